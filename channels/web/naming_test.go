package web

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/channels/web/titles"
	"parley/chat"
	"parley/store"
	"parley/store/mem"
)

// named has the conversations of a page named by title.
func named(s store.Store, title func(context.Context, titles.Beginning) (string, error)) func(*Config) {
	return func(c *Config) {
		c.Titles = titles.New(titles.Config{Store: s, On: func() bool { return true }, Make: title, Log: quiet})
	}
}

// titleOf returns what the page calls the conversation id of who.
func (h *testGateway) titleOf(who, id string) string {
	h.Helper()
	conv, err := h.conversations.get(h.Context(), h.address(who, id))
	if err != nil {
		h.Fatal(err)
	}
	return displayTitle(id, conv)
}

// TestTitleOfAModel: after the first answer a conversation is named by what the person asked and was answered, until
// then by their first words. Pages that are open see it. What begins it is no command, no apology and no approval.
func TestTitleOfAModel(t *testing.T) {
	s := mem.New()
	begun := make(chan titles.Beginning, 10)
	h := open(t, s, named(s, func(_ context.Context, b titles.Beginning) (string, error) {
		begun <- b
		return "  The tides\n of the <b>North</b> Sea", nil
	}))
	h.hear(nil)
	page := h.watch("ann", "first", "")
	h.say("ann", "first", "message-1", "/status")
	h.reply("ann", "first", "reply-1", "All is well.")
	if got := h.titleOf("ann", "first"); got != "New conversation" {
		t.Errorf("a command names it %q", got)
	}
	h.say("ann", "first", "message-2", "Why do the tides come twice a day?")
	if _, err := h.Send(t.Context(), chat.Reply{ID: "sorry", To: h.address("ann", "first"), Text: "No model.", Failed: true}); err != nil {
		t.Fatal(err)
	}
	approval := chat.Reply{ID: "ask", To: h.address("ann", "first"), Text: "Read **tides.txt**?", Ask: &chat.Question{ID: "q1", Choices: []string{"Yes"}}}
	if _, err := h.Send(t.Context(), approval); err != nil {
		t.Fatal(err)
	}
	if got := h.titleOf("ann", "first"); got != "Why do the tides come twice a day?" {
		t.Errorf("the title is %q before the first answer", got)
	}
	h.reply("ann", "first", "reply-2", "The earth turns below **two** bulges.")
	until(t, "a title", func() bool { return h.titleOf("ann", "first") == "The tides of the <b>North</b> Sea" })
	b := <-begun
	if b.At != h.address("ann", "first") || b.Asked != "Why do the tides come twice a day?" || b.Answered != "The earth turns below **two** bulges." {
		t.Errorf("it was made of %+v", b)
	}
	last := len(page.all("talks"))
	until(t, "the open page is told", func() bool { return last > 0 })
	if got := h.must(http.StatusOK, "ann", "GET", "/talks", nil); !strings.Contains(got, `"title":"The tides of the \u003cb\u003eNorth`) {
		t.Errorf("the list has %s", got)
	}

	h.reply("ann", "first", "reply-3", "Another answer.")
	h.say("ann", "first", "message-4", "And now?")
	h.reply("ann", "first", "reply-4", "The next one.")
	h.say("bob", "first", "message-1", "Bread")
	h.reply("bob", "first", "reply-1", "Flour and water.") // is named after those
	until(t, "a title for Bob", func() bool { return h.titleOf("bob", "first") != "Bread" })
	if n := len(begun); n != 1 {
		t.Errorf("%d more titles were made, want 1, Bob's", n)
	}
}

// TestTitleTries: a model that makes no title of a conversation is asked twice, and no more.
func TestTitleTries(t *testing.T) {
	s := mem.New()
	begun := make(chan bool, 10)
	h := open(t, s, named(s, func(context.Context, titles.Beginning) (string, error) {
		begun <- true
		return "", nil
	}))
	h.hear(nil)
	h.say("ann", "first", "message-1", "Bread")
	h.reply("ann", "first", "reply-1", "Flour and water.")
	<-begun // the first time; the service tries again after a minute
	for try, want := range []bool{true, false, false} {
		b, err := titledPage{h.Channel}.BeginTitle(t.Context(), h.address("ann", "first"))
		if err != nil || (b != nil) != want {
			t.Errorf("try %d: %+v, %v", try+2, b, err)
		}
	}
}

// TestTitleOfAPerson: a title that the person has given stays, also if they give it while the model thinks, or gave it
// before titles were made by models.
func TestTitleOfAPerson(t *testing.T) {
	s := mem.New()
	var asked atomic.Int32
	thinking, on := make(chan bool), make(chan bool)
	h := open(t, s, named(s, func(context.Context, titles.Beginning) (string, error) {
		asked.Add(1)
		thinking <- true
		<-on
		return "Of the model", nil
	}))
	h.hear(nil)
	rename := func(id string) {
		t.Helper()
		h.must(http.StatusOK, "ann", "PATCH", "/c/"+id, words{"title": "Of Ann"})
	}
	rename("first")
	h.say("ann", "first", "message-1", "Named before the first word")
	h.reply("ann", "first", "reply-1", "Yes.")

	old := conversation{Title: "Of Ann", Last: time.Now(), Used: true} // as earlier versions kept it
	if err := h.conversations.set(t.Context(), h.address("ann", "old"), old); err != nil {
		t.Fatal(err)
	}
	h.say("ann", "old", "message-1", "Named long ago")
	h.reply("ann", "old", "reply-1", "Yes.")

	new := conversation{Last: time.Now()}
	if err := h.conversations.set(t.Context(), h.address("ann", "meanwhile"), new); err != nil {
		t.Fatal(err)
	}
	h.say("ann", "meanwhile", "message-1", "Named meanwhile")
	h.reply("ann", "meanwhile", "reply-1", "Yes.")
	<-thinking
	rename("meanwhile")
	on <- true
	until(t, "the queue is empty", func() bool {
		n, err := s.Queue(store.QueueTitles).Len(t.Context())
		return n == 0 && err == nil
	})
	for _, id := range []string{"first", "old", "meanwhile"} {
		if got := h.titleOf("ann", id); got != "Of Ann" {
			t.Errorf("%s is called %q", id, got)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the model was asked %d times, want once", n)
	}
}

// TestTitleIsNeverInTheWay: an answer is sent whatever becomes of the title: the model hangs, the conversation is
// deleted meanwhile, the store does not take the note.
func TestTitleIsNeverInTheWay(t *testing.T) {
	s := mem.New()
	thinking := make(chan bool, 10)
	on := make(chan bool)
	h := open(t, s, named(s, func(ctx context.Context, _ titles.Beginning) (string, error) {
		thinking <- true
		select {
		case <-on:
			return "A ghost", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}))
	h.hear(nil)
	h.say("ann", "first", "message-1", "Bread")
	h.reply("ann", "first", "reply-1", "Flour.")
	<-thinking
	h.say("ann", "first", "message-2", "And?")
	h.reply("ann", "first", "reply-2", "Water.")
	h.must(http.StatusNoContent, "ann", "DELETE", "/c/first", nil)
	on <- true
	until(t, "the queue is empty", func() bool {
		n, err := s.Queue(store.QueueTitles).Len(t.Context())
		return n == 0 && err == nil
	})
	if got := h.titleOf("ann", "first"); got != "New conversation" {
		t.Errorf("a deleted conversation is called %q", got)
	}

	full := fullTitles{mem.New()}
	h = open(t, full, named(full, nil))
	h.hear(nil)
	h.say("ann", "first", "message-1", "Bread")
	h.reply("ann", "first", "reply-1", "Flour.")
	if got := h.titleOf("ann", "first"); got != "Bread" {
		t.Errorf("the title is %q", got)
	}
}

// fullTitles is a store that takes no notes of titles.
type fullTitles struct{ store.Store }

func (f fullTitles) Queue(name string) store.Queue {
	if name == store.QueueTitles {
		return fullQueue{f.Store.Queue(name)}
	}
	return f.Store.Queue(name)
}

type fullQueue struct{ store.Queue }

func (fullQueue) Push(context.Context, string, []byte) error { return errors.New("no room") }

// TestTitleGoesWithItsWords: when what a conversation began with is removed, the title that was made of it goes, too;
// one that the person gave stays.
func TestTitleGoesWithItsWords(t *testing.T) {
	s := mem.New()
	h := open(t, s, named(s, func(context.Context, titles.Beginning) (string, error) { return "Of the model", nil }))
	h.hear(nil)
	for _, id := range []string{"first", "kept"} {
		if err := h.conversations.set(t.Context(), h.address("ann", id), conversation{Last: time.Now()}); err != nil {
			t.Fatal(err)
		}
		h.say("ann", id, "message-1", "Bread")
		h.reply("ann", id, "reply-1", "Flour.")
		until(t, "a title", func() bool { return h.titleOf("ann", id) == "Of the model" })
	}
	h.must(http.StatusOK, "ann", "PATCH", "/c/kept", words{"title": "Bread"})
	later := time.Now()
	<-time.After(2 * time.Millisecond)
	for _, id := range []string{"first", "kept"} {
		h.say("ann", id, "message-2", "And butter?")
	}
	trimming := store.Trimming{Before: later, Step: func(int) error { return nil }}
	if err := Trim(t.Context(), h.Channel, trimming, func(context.Context, chat.SessionID) (bool, error) { return true, nil }); err != nil {
		t.Fatal(err)
	}
	if got, kept := h.titleOf("ann", "first"), h.titleOf("ann", "kept"); got != "And butter?" || kept != "Bread" {
		t.Errorf("they are called %q and %q", got, kept)
	}
	h.reply("ann", "first", "reply-2", "Yes.")
	until(t, "a title of what is left", func() bool { return h.titleOf("ann", "first") == "Of the model" })
}
