package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/channels/telegram/telegramtest"
	"parley/llm"
	"parley/llm/llmtest"
)

// TestBytesOfAPerson: who has sent as much as a day allows is told so in one
// plain sentence on each channel, and what comes after is not kept; others and
// owners go on.
func TestBytesOfAPerson(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		if strings.HasPrefix(spokenLast(r), "write") && !used(r) {
			return llmtest.Reply{Calls: []llm.ToolCall{{ID: "c1", Name: "write_file", Args: `{"path": "notes.txt", "content": "` + strings.Repeat("x", 900) + `"}`}}}
		}
		if got := results(r); len(got) > 0 {
			return llmtest.Reply{Text: strings.Join(got, "\n")}
		}
		return echo(ctx, r)
	})
	w.more["limits"] = map[string]any{"person": map[string]any{"bytes": 1000}}
	w.start()
	const enough = " of 0.001 megabytes. It resets at midnight (UTC). An owner can raise it with /raise "
	long := strings.Repeat("y", 600)

	other := w.at(asker)
	other.asks("hello", "heard hello")
	other.asks(long, "heard "+long)
	other.asks(long+"2", "heard "+long+"2\n\n120 % of today's limit for you is used: 0.0012 of 0.001 megabytes.")
	w.tg.Say(asker, "once more")
	w.told(asker, "a refusal", func(texts []string) bool {
		return strings.HasPrefix(texts[len(texts)-1], "Today's limit for you is reached: 0.0012"+enough)
	})
	w.tg.Say(person, long+long)
	w.says(person, "heard "+long+long)

	anna := w.invite("anna")
	anna.say("first", "aaaaaaaa", long)
	anna.reads("first", "an answer", func(lines []line) bool { return len(lines) == 2 }) // else one answers both
	anna.say("first", "bbbbbbbb", long)
	if status, body := anna.do("POST", "/c/first/messages", map[string]any{"id": "cccccccc", "text": "more"}); status != http.StatusInsufficientStorage || !strings.Contains(body, enough) {
		t.Errorf("web: %d %s", status, body)
	}
	if status, body := anna.upload("a.txt", "z"); status != http.StatusInsufficientStorage || !strings.Contains(body, enough) {
		t.Errorf("upload: %d %s", status, body)
	}
	for _, l := range anna.reads("first", "two answers", func(lines []line) bool { return len(lines) >= 4 }) {
		if l.Text == "more" {
			t.Error("what was refused is kept")
		}
	}

	key := w.key("anna") // who is another person on another channel
	if status, answer, err := w.sendPicture(t.Context(), w.base(), key, 2000); status != 200 || err != nil {
		t.Fatalf("api: %d %s %v", status, answer, err)
	}
	if status, answer, err := w.sendPicture(t.Context(), w.base(), key, 10); status != 429 || !strings.Contains(answer, "quota_exceeded") || err != nil {
		t.Errorf("api: %d %s %v", status, answer, err)
	}

	bert := w.invite("bert")
	bert.say("first", "aaaaaaaa", "write it")
	bert.reads("first", "an answer", func(lines []line) bool { return lines[len(lines)-1].Who == "parley" })
	bert.say("first", "bbbbbbbb", "write it again")
	bert.reads("first", "an answer", func(lines []line) bool { return len(lines) == 4 })
	bert.do("POST", "/c/first/messages", map[string]any{"id": "cccccccc", "text": "write it a third time"})
	bert.reads("first", "a refusal", func(lines []line) bool {
		body, _ := json.Marshal(lines)
		return strings.Contains(string(body), "Nothing was changed. Today's limit") || len(lines) == 4
	})
	if _, body := bert.do("POST", "/c/first/messages", map[string]any{"id": "dddddddd", "text": "hello"}); !strings.Contains(body, enough) {
		t.Errorf("what tools write does not count: %s", body)
	}
}

// TestStoredOfAPerson: who has as many files as limits.person.stored allows writes
// and sends no more, on whatever channel and over a restart, until some are
// deleted. Owners and others go on.
func TestStoredOfAPerson(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	w.more["limits"] = map[string]any{"person": map[string]any{"stored": 100_000}}
	w.owners = append(w.owners, "web")
	w.start()
	file := func(name string, bytes int) string {
		return fmt.Sprintf(`write_file {"path": %q, "content": %q}`, name, strings.Repeat("x", bytes))
	}
	const full, sentence = "Nothing was written: this person's files use", "would take more than the 1 MB that are allowed. Ask me to delete some, then send it again."
	writes := func(who int64, name string, bytes int, want bool) {
		t.Helper()
		if got := w.does(who, file(name, bytes)); strings.Contains(got, full) == want {
			t.Errorf("%s of %d bytes for %d: %.300s", name, bytes, who, got)
		}
	}
	for i := range 22 { // and the folders that they are in
		writes(guest, fmt.Sprint("a", i, ".txt"), 3000, true)
	}
	writes(guest, "b.txt", 3000, false)
	if code := w.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	w.start()
	writes(guest, "b.txt", 3000, false)
	writes(person, "c.txt", 3000, true) // the owner
	if err := os.Remove(filepath.Join(w.dir, "workspace", homeOf(guest), "a0.txt")); err != nil {
		t.Fatal(err)
	}
	writes(guest, "b.txt", 3000, true)
	writes(guest, "d.txt", 3000, false)
	w.tg.Post(guest, telegramtest.File{Kind: "document", Name: "e.txt", Type: "text/plain", Data: []byte("e")}, "keep it")
	w.told(guest, "a refusal", func(texts []string) bool { return strings.Contains(strings.Join(texts, "\n"), sentence) })

	anna := w.invite("anna") // another person
	if status, body := anna.upload("a.txt", strings.Repeat("z", 90_000)); status != http.StatusCreated {
		t.Errorf("upload: %d %s", status, body)
	}
	if status, body := anna.upload("b.txt", strings.Repeat("z", 20_000)); status != http.StatusInsufficientStorage || !strings.Contains(body, sentence) {
		t.Errorf("upload: %d %s", status, body)
	}
	if status, body := anna.upload("c.txt", "z"); status != http.StatusCreated {
		t.Errorf("what was refused counts: %d %s", status, body)
	}
	if status, body := w.visit().upload("a.txt", strings.Repeat("z", 200_000)); status != http.StatusCreated {
		t.Errorf("upload of an owner: %d %s", status, body)
	}
	key := w.key("anna")
	if status, answer, err := w.sendPicture(t.Context(), w.base(), key, 200_000); status != 429 || !strings.Contains(answer, "quota_exceeded") || !strings.Contains(answer, sentence) || err != nil {
		t.Errorf("api: %d %s %v", status, answer, err)
	}
}

// TestIntakeStopsBeforeTheDiskIsFull: while little is left of the disk, what
// people say stays where it is; what was taken before is answered.
func TestIntakeStopsBeforeTheDiskIsFull(t *testing.T) {
	t.Parallel()
	going := make(chan struct{})
	w := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		if spokenLast(r) == "slowly" {
			select {
			case <-going:
			case <-ctx.Done():
			}
		}
		return echo(ctx, r)
	})
	leave, free := nearlyFull(w)
	w.start()
	w.tg.Say(person, "before")
	w.says(person, "heard before")
	w.tg.Say(person, "slowly")
	w.sees("the question", func(v telegramtest.View) bool { return v.Pending() == 0 })
	v := w.visit()
	leave(4 << 20)
	w.tg.Say(asker, "now?")
	w.logs("update not kept", 1)
	close(going)
	w.says(person, "heard slowly")
	if status, body := v.upload("a.txt", "z"); status != http.StatusInsufficientStorage || !strings.Contains(body, "disk is full") {
		t.Errorf("upload: %d %s", status, body)
	}
	if status, body := v.do("GET", "/readyz", nil); status != 503 || !strings.Contains(body, "disk is full") {
		t.Errorf("ready: %d %s", status, body)
	}
	free()
	w.told(asker, "an answer", func(texts []string) bool { return fmt.Sprint(texts[len(texts)-1]) == "heard now?" })
	if status, body := v.do("GET", "/readyz", nil); status != 200 {
		t.Errorf("ready: %d %s", status, body)
	}
}
