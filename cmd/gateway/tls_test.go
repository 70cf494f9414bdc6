package main

import (
	"context"
	"encoding/pem"
	"log"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/channels/discord/discordtest"
)

// behindTLS returns the address of a server that speaks TLS, and HTTP/2 to who
// wants it, as the real ones do, and passes on to the one at plain. The program
// trusts it.
func (w *testGateway) behindTLS(plain string) string {
	w.t.Helper()
	at, err := url.Parse(strings.Replace(plain, "ws://", "http://", 1))
	if err != nil {
		w.t.Fatal(err)
	}
	path := at.Path
	at.Path = ""
	s := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(at))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(&w.log, "proxy: ", 0)
	s.StartTLS()
	w.t.Cleanup(func() {
		w.kill() // its polls would be waited for
		s.Close()
	})
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}) // the same of each
	if err := os.WriteFile(filepath.Join(w.dir, "cert.pem"), cert, 0o600); err != nil {
		w.t.Fatal(err)
	}
	if strings.HasPrefix(plain, "ws://") {
		return strings.Replace(s.URL, "https://", "wss://", 1) + path
	}
	return s.URL + path
}

// TestOverTLS: Telegram, Discord and the model are spoken to as they are out
// there: by TLS, with servers that offer HTTP/2.
func TestOverTLS(t *testing.T) {
	w := newTestGateway(t, echo)
	t.Setenv("SSL_CERT_FILE", filepath.Join(w.dir, "cert.pem"))
	w.discord(discordtest.Config{})
	w.model["baseUrl"] = w.behindTLS(w.llm.URL())
	for name, keys := range map[string][]string{"telegram": {"apiUrl"}, "discord": {"apiUrl", "gatewayUrl"}} {
		c := w.channels[name].(map[string]any)
		for _, key := range keys {
			c[key] = w.behindTLS(c[key].(string))
		}
	}
	w.start()
	w.tg.Say(person, "over Telegram")
	w.says(person, "heard over Telegram")
	d := onDiscord{w, func(string) {}}
	d.open(0)
	d.say(0, "over Discord")
	ctx, cancel := context.WithTimeout(t.Context(), waitTime)
	defer cancel()
	if texts, err := d.wait(ctx, 0, func(texts []string) bool { return slices.Contains(texts, "heard over Discord") }); err != nil {
		t.Errorf("the bot said %q: %v", texts, err)
	}
}
