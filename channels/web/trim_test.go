package web

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"parley/chat"
	"parley/retention/retentiontest"
	"parley/store"
	"parley/store/mem"
)

// P28: what was said on the page long ago is removed, and conversations of which nothing
// is left, with a crash anywhere; their files go, too, and open questions are counted anew.
func TestTrim(t *testing.T) {
	now := time.Date(2024, 4, 1, 0, 0, 0, 0, time.UTC)
	open := func(s store.Store) *Channel {
		c, err := New(Config{Name: "web", Store: s, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	retentiontest.Run(t, retentiontest.Case{
		Open: func() store.Store {
			s := mem.New()
			c := open(s)
			for id, days := range map[string][]int{"goes-on": {-9, -1, 0, 1}, "over": {-9, -8}, "has-session": {-9}, "young": {1}} {
				if err := c.conversations.set(t.Context(), c.address("ann", id), conversation{Last: now.AddDate(0, 0, -20)}); err != nil {
					t.Fatal(err)
				}
				rm, leave := c.openRoom(c.address("ann", id))
				for i, day := range days {
					e := logEntry{ID: fmt.Sprint(id, i), Who: whoAgent, Text: fmt.Sprint(id, i), Time: now.AddDate(0, 0, day)}
					if i == 0 {
						e.Files = []fileLink{{ID: "file-" + id}}
						e.Ask = &chat.Question{ID: id}
						if err := c.files.Set(t.Context(), storeKey("ann", "file-"+id), chat.File{Name: "x"}); err != nil {
							t.Fatal(err)
						}
					}
					if _, _, err := rm.appendEntry(t.Context(), e); err != nil {
						t.Fatal(err)
					}
				}
				leave()
			}
			return s
		},
		Before: now,
		Trim: func(s store.Store, pass store.Trimming) error {
			return Trim(t.Context(), open(s), pass, func(_ context.Context, id chat.SessionID) (bool, error) {
				return strings.HasSuffix(string(id), "has-session"), nil
			})
		},
		Archived: []string{
			`"id":"goes-on0","who":"parley","text":"goes-on0","time":"2024-03-23T00:00:00Z","files":[{"id":"file-goes-on","name":"","type":"","size":0,"url":""}],"ask":{"id":"goes-on","choices":null}}`,
			`"id":"goes-on1","who":"parley","text":"goes-on1","time":"2024-03-31T00:00:00Z"}`,
			`"id":"over0","who":"parley","text":"over0","time":"2024-03-23T00:00:00Z","files":[{"id":"file-over","name":"","type":"","size":0,"url":""}],"ask":{"id":"over","choices":null}}`,
			`"id":"over1","who":"parley","text":"over1","time":"2024-03-24T00:00:00Z"}`,
			`"id":"has-session0","who":"parley","text":"has-session0","time":"2024-03-23T00:00:00Z","files":[{"id":"file-has-session","name":"","type":"","size":0,"url":""}],"ask":{"id":"has-session","choices":null}}`,
		},
		Check: func(t *testing.T, s store.Store) {
			t.Helper()
			c := open(s)
			for id, want := range map[string]string{"goes-on": "goes-on2 goes-on3", "over": "", "has-session": "", "young": "young0"} {
				rm, leave := c.openRoom(c.address("ann", id))
				var texts []string
				for e, err := range rm.entriesAfter(t.Context(), 0) {
					if err != nil {
						t.Fatal(err)
					}
					texts = append(texts, e.Text)
				}
				leave()
				if got := strings.Join(texts, " "); got != want {
					t.Errorf("%s has %q, want %q", id, got, want)
				}
				_, _, err := c.files.Get(t.Context(), storeKey("ann", "file-"+id))
				if (err == nil) != (id == "young") {
					t.Errorf("the file of %s: %v", id, err)
				}
			}
			all, err := c.conversations.of(t.Context(), "ann")
			if err != nil {
				t.Fatal(err)
			}
			var list []string
			for _, item := range all {
				list = append(list, fmt.Sprint(item.ID, item.Asks))
			}
			if got := strings.Join(list, " "); got != "goes-on0 young1 has-session0" {
				t.Errorf("the list has %s", got)
			}
		},
	})
}

// P28: a title that was made of what is removed goes with it, with a crash anywhere; one that
// the person has chosen stays.
func TestTrimTitles(t *testing.T) {
	now := time.Date(2024, 4, 1, 0, 0, 0, 0, time.UTC)
	open := func(s store.Store) *Channel {
		c, err := New(Config{Name: "web", Store: s, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	retentiontest.Run(t, retentiontest.Case{
		Open: func() store.Store {
			s := mem.New()
			c := open(s)
			for id, said := range map[string][]string{
				"emptied": {"secret"}, "goes-on": {"secret", "public"}, "chosen": {"secret", "public"}, "young": {"", "public"},
			} {
				title := said[0]
				switch id {
				case "chosen":
					title = "Mine"
				case "young":
					title = "public"
				}
				at := c.address("ann", id)
				if err := c.conversations.set(t.Context(), at, conversation{Title: title, Last: now, Used: true}); err != nil {
					t.Fatal(err)
				}
				rm, leave := c.openRoom(at)
				for i, text := range said {
					e := logEntry{ID: fmt.Sprint(id, i), Who: whoPerson, Text: text, Time: now.AddDate(0, 0, i-1)}
					if _, _, err := rm.appendEntry(t.Context(), e); err != nil {
						t.Fatal(err)
					}
				}
				leave()
			}
			return s
		},
		Before: now,
		Trim: func(s store.Store, pass store.Trimming) error {
			has := func(context.Context, chat.SessionID) (bool, error) { return true, nil }
			return Trim(t.Context(), open(s), pass, has)
		},
		Archived: []string{`"text":"secret","time":"2024-03-31T00:00:00Z"}`, `"text":"secret","time":"2024-03-31T00:00:00Z"}`,
			`"text":"secret","time":"2024-03-31T00:00:00Z"}`, `"text":"","time":"2024-03-31T00:00:00Z"}`},
		Check: func(t *testing.T, s store.Store) {
			t.Helper()
			c := open(s)
			for id, want := range map[string]string{"emptied": "", "goes-on": "public", "chosen": "Mine", "young": "public"} {
				conv, err := c.conversations.get(t.Context(), c.address("ann", id))
				if err != nil || conv.Title != want {
					t.Errorf("%s has the title %q, %v; want %q", id, conv.Title, err, want)
				}
			}
		},
	})
}
