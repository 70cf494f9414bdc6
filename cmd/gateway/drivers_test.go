package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/cmd/gateway/testdata/parrot"
	"parley/cmd/gateway/testdata/wire"
	"parley/config"
)

// moreDrivers is the program with one more channel, model provider and store, each
// of which is a folder and a line here.
func moreDrivers() {
	d := drivers()
	d.Channels = append(d.Channels, config.DriverOf[wire.Config]("wire"))
	d.Models = append(d.Models, config.DriverOf[parrot.Model]("parrot"))
	d.Stores = append(d.Stores, config.DriverOf[parrot.Store]("cages"))
	os.Exit(newProgram(d).run(context.Background(), os.Args[1:]))
}

// TestCategories: rules can be for the categories of the tools there are.
func TestCategories(t *testing.T) {
	want := []string{"agents", "code", "crawler", "cron", "custom", "data", "exec", "files", "mcp", "memory", "message", "weather"}
	if got := toolCategories(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for _, category := range want {
		if !strings.Contains(pages(t)["docs/config.md"], "`"+category+"`") {
			t.Errorf("docs/config.md does not tell of the category %s", category)
		}
	}
	src := `{"tools": {"rules": {"files": "ask", "wbe": "off"}}}`
	if _, err := parseText(src); err == nil || !strings.HasSuffix(err.Error(), "1:45: tools.rules.wbe: no tools are of this category; allowed: "+strings.Join(want, ", ")) {
		t.Errorf("%v", err)
	}
}

// A wireServer is the network of the channel wire.
type wireServer struct {
	w     *testGateway
	l     net.Listener
	conns chan net.Conn
	conn  net.Conn
	lines chan string
	n     int
}

func newWire(w *testGateway) *wireServer {
	l, err := (&net.ListenConfig{}).Listen(w.t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { l.Close() })
	s := &wireServer{w: w, l: l, lines: make(chan string, 99), conns: make(chan net.Conn, 9)}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go s.read(conn)
		}
	}()
	return s
}

// read keeps what comes in by conn; one that only looks whether s is there says nothing.
func (s *wireServer) read(conn net.Conn) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	for n := 0; lines.Scan(); n++ {
		if n == 0 {
			s.conns <- conn
		}
		s.lines <- lines.Text()
	}
}

// say has somebody write a line.
func (s *wireServer) say(id, text string) {
	s.w.t.Helper()
	s.n++
	if _, err := fmt.Fprintln(s.conn, s.n, id, text); err != nil {
		s.w.t.Fatal(err)
	}
}

// shows waits for a line that begins with start, and returns it.
func (s *wireServer) shows(start string) string {
	s.w.t.Helper()
	var all []string
	for late := time.After(waitTime); ; {
		select {
		case line := <-s.lines:
			all = append(all, line)
			if strings.HasPrefix(line, start) {
				return line
			}
		case <-late:
			s.w.t.Fatalf("the wire does not show %q, but %q", start, all)
		}
	}
}

// TestChannelIsAFolderAndALine adds a channel that no other part of the program
// knows, and uses it as people use a channel.
func TestChannelIsAFolderAndALine(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	w.program = "parley-with-more-drivers"
	s := newWire(w)
	entry := map[string]any{"address": s.l.Addr().String(), "token": "canary-wire", "allow": []string{"u-8"}}
	w.channels["wire"] = entry
	w.owners = append(w.owners, "wire:u-7")

	// It is checked with all else, at its place.
	w.config()
	w.rewrite("{\n \"owners\": [\"wire:7\", \"wire\"],\n \"channels\": {\n  \"wire\": { \"address\": \"home\", \"places\": \"\", \"allow\": [\"bob\", \"u-8\", \"*\"], \"style\": \"odd\" },\n" +
		"  \"wire:b\": { \"address\": \":1\", \"token\": \"x\" }, \"wire:c\": { \"address\": \":1\", \"token\": \"x\" }, \"wyre\": {}\n }\n}")
	out, code := w.run("", "doctor")
	if code != exitUsage {
		t.Errorf("exit code %d: %s", code, out)
	}
	for _, fault := range []string{
		`2:13: owners[0]: is no owner: the id must be such as "u-7"`, `2:23: owners[1]: is no owner; allowed:`,
		`4:24: channels.wire.address: must be an address and a port`, `4:32: channels.wire.places: unknown key; allowed: address, allow, style, token`,
		`4:56: channels.wire.allow[0]: must be such as "u-7"; or "*" for everybody`, `4:85: channels.wire.style: "odd" is not known; allowed: plain, loud`,
		`5:86: channels.wire:c.token: is the token of wire:b too; a wire has one end`,
		`5:93: channels.wyre: no channel of this type; allowed: console, web, telegram, discord, wire, and telegram:LABEL, discord:LABEL or wire:LABEL`,
	} {
		if !strings.Contains(out, "config.json:"+fault) {
			t.Errorf("no %s in\n%s", fault, out)
		}
	}

	// It lets in whom it should.
	w.config()
	w.start()
	s.shows("token canary-wire")
	s.conn = <-s.conns
	s.say("u-7", "hello")
	s.shows("u-7: heard hello")
	s.say("u-8", "hello too")
	s.shows("u-8: heard hello too")
	s.say("u-9", "me too")
	if line := s.shows("u-9: "); strings.Contains(line, "heard") || !strings.Contains(line, "code") {
		t.Errorf("somebody unknown is told %q", line)
	}

	// Owners see how it does.
	if out, _ := w.run("", "doctor"); !strings.Contains(out, "ok    wire            a wire to "+s.l.Addr().String()+" for [secret]") {
		t.Errorf("doctor says\n%s", out)
	}
	if out, _ := w.run("", "status"); !strings.Contains(out, "wire") {
		t.Errorf("status says\n%s", out)
	}

	// It follows the file.
	entry["allow"] = []string{"u-9"}
	entry["style"] = "loud"
	w.config()
	w.logs("changed=channels.wire.allow", 1)
	w.logs("restart needed: channels.wire.style", 1)
	s.say("u-9", "and now")
	s.shows("u-9: heard and now")

	// The model reaches it.
	w.tg.Say(person, `call message {"text": "tea is ready", "chat": "wire:u-7"}`)
	s.shows("u-7: tea is ready")
	w.tg.Say(person, `call message {"text": "tea is ready", "chat": "wyre:u-7"}`)
	w.told(person, "the channels there are", func(texts []string) bool {
		return toldOf(texts, `there is no channel "wyre"; there are console, api, telegram, wire, web`)
	})

	// After a restart it is as the file says.
	w.stop()
	w.start()
	s.shows("token canary-wire")
	s.conn = <-s.conns
	s.say("u-9", "again")
	s.shows("u-9: HEARD AGAIN")
}

// TestModelAndStoreAreALineEach adds a model provider and a store that no other part
// of the program knows.
func TestModelAndStoreAreALineEach(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	w.program = "parley-with-more-drivers"
	w.config()
	w.rewrite(`{"models": {"main": {"type": "parrot", "voice": "shrill", "baseUrl": ""}}, "store": {"type": "cages", "cages": 10}}`)
	out, code := w.run("", "doctor")
	for _, fault := range []string{
		`1:49: models.main.voice: "shrill" is not known; allowed: soft, loud`,
		`1:59: models.main.baseUrl: unknown key; allowed: contextWindow, maxTokens, model, price, toolCalls, type, voice`,
		`1:112: store.cages: is 10, must be from 1 to 9`,
	} {
		if code != exitUsage || !strings.Contains(out, "config.json:"+fault) {
			t.Errorf("exit code %d, no %s in\n%s", code, fault, out)
		}
	}
	w.model = map[string]any{"type": "parrot", "voice": "loud", "model": "polly"}
	w.more["store"] = map[string]any{"type": "cages"}
	w.config()
	out, _ = w.run("", "doctor")
	want(t, out, "ok    model main", "polly answered in")
	want(t, out, "ok    store", "configured: cages")
	w.start()
	w.tg.Say(person, "hello")
	w.says(person, "main repeats: HELLO")
	w.logs("polly at a cage", 1) // at the start
}
