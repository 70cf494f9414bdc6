package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// garrulous is the address of a server that refuses each request, and says more than it was asked.
func garrulous(t *testing.T) string {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait)
	t.Cleanup(func() { l.Close() })
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer conn.Close()
				r, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				const body = `{"error": {"message": "no", "type": "invalid_request_error"}}`
				fmt.Fprintf(conn, "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"+
					"key=%s, and by the way", len(body), body, canaryKey)
				_, _ = io.Copy(io.Discard, conn) // until the other side has enough
			})
		}
	})
	return "http://" + l.Addr().String() + "/v1"
}

// What libraries say by themselves is a line of the log, without secrets, and never stands between what commands print.
func TestLogOfLibraries(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	w.model["baseUrl"] = garrulous(t)
	w.config()
	const words = "Unsolicited response"
	out, _ := w.run("", "doctor")
	if log := w.log.String(); strings.Contains(out+log, words) || !strings.Contains(out, "model main") {
		t.Errorf("the doctor says %s%s", out, log)
	}
	w.start()
	w.tg.Say(person, "hello")
	w.logs(words, 1)
	for line := range strings.Lines(w.log.String()) {
		if strings.Contains(line, words) && (!strings.HasPrefix(line, "time=") || strings.Contains(line, canaryKey)) {
			t.Errorf("the log says %s", line)
		}
	}
}
