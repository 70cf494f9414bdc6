package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/store/nats/natstest"
)

// A store is copied from the file to servers of NATS and back while a message waits: it is answered once, in the
// conversation in which it was said, and no gateway goes on from what was left.
func TestStoreCopy(t *testing.T) {
	address := natstest.Start(t, natstest.Listening(t)).ClientURL()
	servers := map[string]any{"type": "nats", "url": address}
	s := newSiege(t, "telegram", 1)
	other := filepath.Join(s.dir, "other.json")
	configure := func(store map[string]any) { // config.json, with the one for the other store beside it
		s.more["store"] = servers
		if store["type"] == "nats" {
			delete(s.more, "store")
		}
		s.config()
		rename(t, filepath.Join(s.dir, "config.json"), other)
		s.more["store"] = store
		s.config()
	}
	file := map[string]any{"type": "bolt"}
	configure(file)
	if out, code := s.run("", "store", "copy", other); code != exitFailure {
		t.Errorf("while a gateway runs: %d, %s", code, out)
	}
	s.killAt(nth(1, "chunk 3"), func() { s.tell(0, "slow"); s.tell(0, "plain") })

	out, code := s.run("", "store", "copy", other)
	if code != 0 || !strings.Contains(out, "copied and compared: values ") || !strings.Contains(out, "/copied-") {
		t.Fatalf("copied with %d: %s", code, out)
	}
	if _, code := s.run("", "chat", "-m", "hello"); code != exitUsage || !strings.Contains(s.log.String(), `has been in a store of type "nats" since`) {
		t.Errorf("from the file that was left it starts: %d", code)
	}
	if out, code := s.run("", "doctor"); code == 0 || !strings.Contains(out, `has been in a store of type "nats" since`) {
		t.Errorf("doctor: %d, %s", code, out)
	}
	if out, code := s.run("", "store", "copy", other); code != exitFailure {
		t.Errorf("copied again: %d, %s", code, out)
	}
	configure(servers)
	s.revive()
	s.tell(0, "tool")
	s.answered()

	s.killAt(nth(1, "chunk 3"), func() { s.tell(0, "slow"); s.tell(0, "plain") })
	if out, code := s.run("", "store", "copy", other); code != 0 {
		t.Fatalf("copied back with %d: %s", code, out)
	}
	configure(file)
	if _, code := s.run("", "--config", other, "chat", "-m", "hello"); code != exitUsage || !strings.Contains(s.log.String(), "has been copied to where it is used now") {
		t.Errorf("from the servers that were left it starts: %d", code)
	}
	if _, code := s.run("", "--config", other, "store", "copy", filepath.Join(s.dir, "config.json")); code != exitFailure || !strings.Contains(s.log.String(), "there is a store already") {
		t.Errorf("a store that is there is copied over: %d", code)
	}
	s.revive()
	s.tell(0, "plain")
	s.answered()
	s.lift()
	s.stop()
	list, _ := s.run("", "sessions", "list")
	session := regexp.MustCompile(`telegram:\d+`).FindString(list)
	if said := s.exported(session); strings.Count(list, "telegram:") != 1 || strings.Count(said, "**heard**") != s.asked[0] {
		t.Errorf("of %d messages the conversations %s\nhave\n%s", s.asked[0], list, said)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}
