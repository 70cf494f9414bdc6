package discord_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"parley/channels"
	"parley/channels/discord"
	"parley/channels/discord/discordtest"
	"parley/chat"
)

const create = "POST /channels/{id}/messages"

func permanent(err error) bool {
	var e *channels.Error
	return errors.As(err, &e) && e.Permanent
}

func (h *harness) send(ctx context.Context, r chat.Reply) (channels.Receipt, error) {
	return h.ch.Send(ctx, channels.Parts(h.ch, r)[0])
}

// A reply whose answer was lost does not appear twice (P9), even after a restart. If
// the earlier one has less text, it is edited.
func TestP9Nonce(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{}, nil)
	room := h.DM("7")
	h.Fail(create, discordtest.Fault{DropAfter: true})
	r := chat.Reply{ID: strings.Repeat("re:discord/101/@7/", 9), To: dm("7"), Text: "so far"}
	if _, err := h.send(t.Context(), r); err == nil || permanent(err) {
		t.Fatalf("a lost answer is %v", err)
	}
	h.restart()
	r.Text = "so far, and the rest"
	rc, err := h.send(t.Context(), r)
	ms := h.Messages(room)
	if err != nil || len(ms) != 1 || ms[0].Text != r.Text || string(rc) != room+"/"+ms[0].ID {
		t.Errorf("%v %v: %+v", rc, err, ms)
	}
	if ms[0].Preview || ms[0].Pings {
		t.Error("links are unfurled, or people pinged (R-S13)")
	}
	r.ID += "#2"
	if _, err := h.send(t.Context(), r); err != nil || len(h.Messages(room)) != 2 {
		t.Error("another reply is dropped", err)
	}
}

// R-S13: no message unfurls links: neither new ones, with or without buttons or
// files, nor edited ones or steps.
func TestRS13NoEmbeds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := newHarness(t, discordtest.Config{}, func(c *discord.Config) {
		c.Open = func(path string) (*os.File, error) { return os.Open(filepath.Join(dir, path)) }
	})
	room := h.DM("7")
	const link = "https://example.com/leak?secret"
	h.Fail(create, discordtest.Fault{Status: 413, Code: 40005})
	for i, r := range []chat.Reply{
		{Files: []chat.File{{Path: "a.txt"}}}, // is refused, and told of
		{Text: link},
		{Text: link},
		{Text: "> 🔧 " + link + "\n\n" + link, Ask: &chat.Question{ID: "q", Choices: []string{link}}},
		{Text: link, Files: []chat.File{{Path: "a.txt"}}},
		{Text: link, Files: []chat.File{{Path: "gone.txt"}}},
	} {
		r.ID, r.To = fmt.Sprint("r", i), dm("7")
		rc, err := h.send(t.Context(), r)
		if err != nil {
			t.Fatal(i, err)
		}
		for range 2 {
			if ms := h.Messages(room); len(ms) != i+1 || ms[i].Preview {
				t.Fatalf("reply %d: links are unfurled: %+v", i, ms)
			}
			if err := h.ch.Edit(t.Context(), rc, chat.Reply{To: dm("7"), Text: "edited " + link}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Errors are classified (P10).
func TestP10Refusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault     discordtest.Fault
		after     time.Duration
		permanent bool
	}{
		"429":           {discordtest.Fault{Status: 429, RetryAfter: 65.5}, 65500 * time.Millisecond, false},
		"429 of nobody": {discordtest.Fault{Status: 429, Page: "<html>slow down", Times: 2}, 100 * time.Millisecond, false},
		"403":           {discordtest.Fault{Status: 403, Code: 50007}, 0, true},
		"404":           {discordtest.Fault{Status: 404, Code: 10003}, 0, true},
		"400":           {discordtest.Fault{Status: 400, Code: 50035}, 0, true},
		"401":           {discordtest.Fault{Status: 401}, 0, false},
		"500":           {discordtest.Fault{Status: 500}, 0, false},
		"502":           {discordtest.Fault{Status: 502, Page: "<html>"}, 0, false},
		"a page":        {discordtest.Fault{Page: "<html>sign in to the hotel"}, 0, false},
		"lost":          {discordtest.Fault{DropBefore: true}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, discordtest.Config{}, nil)
			h.DM("7")
			h.Fail(create, c.fault)
			_, err := h.send(t.Context(), chat.Reply{ID: "r", To: dm("7"), Text: "hi"})
			var e *channels.Error
			errors.As(err, &e)
			if err == nil || permanent(err) != c.permanent || e != nil && e.After != c.after || e == nil && c.after != 0 {
				t.Fatalf("%v, %+v", err, e)
			}
			if strings.Contains(err.Error(), h.Token()) || strings.Contains(err.Error(), "http://") {
				t.Errorf("R-S26: %v", err)
			}
			if _, err = h.send(t.Context(), chat.Reply{ID: "r", To: dm("7"), Text: "hi"}); err != nil {
				t.Error(err)
			}
		})
	}
}

// A rate limit that ends soon is waited for, and the end of a context ends a request
// (the library's does not).
func TestLimits(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{}, nil)
	h.DM("7")
	h.Fail(create, discordtest.Fault{Hang: true})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h.Watch(func(e discordtest.Event) {
		if e.Route == create {
			cancel()
		}
	})
	began := time.Now()
	if _, err := h.send(ctx, chat.Reply{ID: "r", To: dm("7"), Text: "hi"}); !errors.Is(err, context.Canceled) || time.Since(began) > testTimeout {
		t.Error(err)
	}
	h.Fail(create, discordtest.Fault{Status: 429, RetryAfter: 0.05, Channel: h.DM("8")})
	if _, err := h.send(t.Context(), chat.Reply{ID: "r8", To: dm("8"), Text: "hi"}); err != nil || h.Count(create) != 3 {
		t.Errorf("%v, discord was asked %d times", err, h.Count(create))
	}
}

// Text is split at 2000 code points, and code goes on as code.
func TestSplit(t *testing.T) {
	ch, err := discord.New(discord.Config{Token: "x"})
	if err != nil {
		t.Fatal(err)
	}
	code := strings.Repeat("    x := \"something\" // 漢字\n", 300)
	long := "Before:\n\n```go\n" + code + "```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n~~~\nopen `\u0060` end"
	var all strings.Builder
	parts := channels.Parts(ch, chat.Reply{ID: "r", Text: long, Ask: &chat.Question{ID: "q", Choices: []string{"a"}}})
	for i, p := range parts {
		if n := utf8.RuneCountInString(p.Text); n > 2000 || n == 0 || strings.Count(p.Text, "```")%2 != 0 || (p.Ask != nil) != (i == len(parts)-1) {
			t.Errorf("part %d has %d code points: %s", i, n, p.Text)
		}
		if i > 0 && i < len(parts)-1 && !strings.HasPrefix(p.Text, "```go\n    x") {
			t.Errorf("part %d begins with %.20q", i, p.Text)
		}
		all.WriteString(p.Text)
	}
	if n := strings.Count(all.String(), "x := \"something\" // 漢字\n"); n != 300 || len(parts) < 4 {
		t.Errorf("%d lines of 300 in %d parts", n, len(parts))
	}
	for _, nothing := range []string{"", " \n\t", "```\n```", "\u200b", "\x00"} {
		if parts := channels.Parts(ch, chat.Reply{ID: "r", Text: nothing}); len(parts) != 0 {
			t.Errorf("%q is %d messages", nothing, len(parts))
		}
	}
}

// Ten files share a message. The person is told which are gone or too large.
func TestUpload(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const odd = "отчёт \" \u202eй.txt"
	for name, size := range map[string]int64{odd: 3, "big.bin": 11 << 20} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("abc"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(dir, name), size); err != nil {
			t.Fatal(err)
		}
	}
	h := newHarness(t, discordtest.Config{}, func(c *discord.Config) {
		c.Open = func(path string) (*os.File, error) { return os.Open(filepath.Join(dir, path)) }
	})
	room := h.DM("7")
	files := []chat.File{{Path: "gone.txt"}, {Path: "big.bin"}}
	for range 11 {
		files = append(files, chat.File{Path: odd})
	}
	for i, part := range channels.Parts(h.ch, chat.Reply{ID: "r", To: dm("7"), Text: "here", Files: files}) {
		part.ID = fmt.Sprint("r", i)
		if _, err := h.ch.Send(t.Context(), part); err != nil {
			t.Fatal(err)
		}
	}
	ms := h.Messages(room)
	if len(ms) != 3 || ms[0].Text != "here" || len(ms[1].Files) != 8 || len(ms[2].Files) != 3 || string(ms[2].Files[0].Data) != "abc" || ms[2].Files[0].Type != "text/plain; charset=utf-8" || ms[2].Files[0].Name != "отчёт _ й.txt" {
		t.Fatalf("sent %+v", ms)
	}
	if !strings.Contains(ms[1].Text, "gone.txt cannot be opened any more") || !strings.Contains(ms[1].Text, "big.bin is larger than the 10 MB") {
		t.Errorf("told %q", ms[1].Text)
	}
	h.Fail(create, discordtest.Fault{Status: 413, Code: 40005})
	if _, err := h.ch.Send(t.Context(), chat.Reply{ID: "x", To: dm("7"), Files: files[2:3]}); err != nil || !strings.Contains(h.Messages(room)[3].Text, "too large for Discord") {
		t.Error(err, h.Messages(room)[3:])
	}
}

// The bot can write to a person first. An address that is not a chat is a permanent error.
func TestDirect(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{}, nil)
	if _, err := h.send(t.Context(), chat.Reply{ID: "r", To: h.ch.Direct("7"), Text: "good morning"}); err != nil || len(h.Messages(h.DM("7"))) != 1 {
		t.Error(err)
	}
	for _, no := range []string{"", "@", "x", "1/../2", "@1/2", "123"} {
		if _, err := h.send(t.Context(), chat.Reply{ID: "r", To: chat.Address{Chat: no}, Text: "hi"}); !permanent(err) {
			t.Errorf("%q: %v", no, err)
		}
	}
	h.Refuse(h.DM("7"), 50007)
	if _, err := h.send(t.Context(), chat.Reply{ID: "r2", To: h.ch.Direct("7"), Text: "hi"}); !permanent(err) {
		t.Error(err)
	}
}
