package channeltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/channels"
	"parley/chat"
)

// A Rig is a channel with the far side of its network.
type Rig struct {
	Channel channels.Channel
	At      chat.Address      // a private chat with somebody
	Say     func(text string) // has them say text there; it may return before text is received
	Shown   func() []string   // the texts they see of us there, oldest first; nil if the network cannot tell
	Keeps   bool              // the network sends again what was not acknowledged (P1)

	// Upload has them send a file there; nil skips what needs it.
	Upload func(name string, data []byte)
	// Press has them press the button of that choice there and says whether
	// there is one; nil skips what needs it.
	Press func(question string, choice int) bool
}

// patience is how long a channel on loopback may take for anything, on a machine that is busy.
const patience = time.Minute

// Run tests the channel that open makes anew for each case.
func Run(t *testing.T, open func(t *testing.T) Rig) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Rig)
	}{
		{"run ends when its context does, with nil (P16)", runEnds},
		{"a message says who, where and when", hears},
		{"every message has an id of its own (P2)", distinct},
		{"a message that was not taken comes again, as the same (P1 P2)", comesAgain},
		{"sends before it runs", sends},
		{"sends from many goroutines", sendsMany},
		{"gives up sending when its context ends", sendEnds},
		{"parts are the same every time and hold everything", splits},
		{"a sent message can be edited, twice the same", edits},
		{"a sent message can be deleted, twice", deletes},
		{"shows that the agent is busy", types},
		{"brings the files of a message whole, also again", fetches},
		{"says of a file that is gone that it cannot be had", missing},
		{"a question has buttons until it is edited; a press says which", asks},
		{"marks a message, twice the same", reacts},
		{"speaks to a person first", directs},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

// receive runs the channel during the test and returns what it delivers.
func receive(t *testing.T, r Rig, refuse int) <-chan chat.Message {
	ctx, stop := context.WithCancel(context.Background())
	got, ended := make(chan chat.Message, 100), make(chan error, 1)
	go func() {
		var mu sync.Mutex
		ended <- r.Channel.Run(ctx, func(_ context.Context, m chat.Message) error {
			mu.Lock()
			defer mu.Unlock()
			got <- m
			if refuse > 0 {
				refuse--
				return errors.New("the store is full")
			}
			return nil
		})
	}()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Run ended with %v", err)
			}
		case <-time.After(patience):
			t.Error("Run does not end")
		}
	})
	return got
}

func next(t *testing.T, got <-chan chat.Message) chat.Message {
	t.Helper()
	select {
	case m := <-got:
		return m
	case <-time.After(patience):
		t.Fatal("nothing was delivered")
		return chat.Message{}
	}
}

func runEnds(t *testing.T, r Rig) { receive(t, r, 0) }

func hears(t *testing.T, r Rig) {
	got := receive(t, r, 0)
	r.Say("good morning")
	m := next(t, got)
	if m.Text != "good morning" || m.ID == "" || m.From.ID == "" || m.At.Chat != r.At.Chat || m.Time.IsZero() {
		t.Errorf("text, id, sender, chat or time is wrong: %+v", m)
	}
	if m.Group {
		t.Error("a private chat is taken for a group")
	}
}

func distinct(t *testing.T, r Rig) {
	got := receive(t, r, 0)
	r.Say("same")
	first := next(t, got)
	r.Say("same")
	if second := next(t, got); first.Key() == second.Key() {
		t.Errorf("two messages have the key %q", first.Key())
	}
}

func comesAgain(t *testing.T, r Rig) {
	if !r.Keeps {
		t.Skip("the network does not keep messages")
	}
	got := receive(t, r, 1)
	r.Say("keep me")
	first := next(t, got)
	if second := next(t, got); second.Key() != first.Key() || second.Text != first.Text {
		t.Errorf("got %+v, want %+v again", second, first)
	}
}

func (r Rig) reply(id, text string) chat.Reply {
	return chat.Reply{ID: id, To: r.At, Text: text}
}

// parts returns the messages that text is sent as.
func (r Rig) parts(id, text string) []chat.Reply {
	return channels.Parts(r.Channel, r.reply(id, text))
}

// shows waits until one message, and one only, holds text.
func (r Rig) shows(t *testing.T, text string) {
	t.Helper()
	if r.Shown == nil {
		return
	}
	holds := func(s string) bool { return strings.Contains(s, text) }
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); time.Now().Before(end); <-tick.C {
		shown := r.Shown()
		if i := slices.IndexFunc(shown, holds); i >= 0 {
			if slices.ContainsFunc(shown[i+1:], holds) {
				t.Errorf("%q is shown twice: %q", text, shown)
			}
			return
		}
	}
	t.Fatalf("%q is not shown: %q", text, r.Shown())
}

func (r Rig) send(t *testing.T, id, text string) channels.Receipt {
	t.Helper()
	var rc channels.Receipt
	for _, part := range r.parts(id, text) {
		var err error
		if rc, err = r.Channel.Send(t.Context(), part); err != nil {
			t.Fatal(err)
		}
	}
	return rc
}

func sends(t *testing.T, r Rig) {
	r.send(t, "r1", "hello there")
	r.shows(t, "hello there")
}

func sendsMany(t *testing.T, r Rig) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for _, part := range r.parts(fmt.Sprint("r", i), fmt.Sprintf("number %d.", i)) {
				if _, err := r.Channel.Send(t.Context(), part); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i := range 8 {
		r.shows(t, fmt.Sprintf("number %d.", i))
	}
}

func sendEnds(t *testing.T, r Rig) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := r.Channel.Send(ctx, r.parts("r1", "too late")[0])
		ended <- err
	}()
	select {
	case err := <-ended:
		var e *channels.Error
		if errors.As(err, &e) && e.Permanent {
			t.Errorf("an ended context is taken for a permanent error: %v", err)
		}
	case <-time.After(patience):
		t.Error("Send does not end")
	}
}

func splits(t *testing.T, r Rig) {
	if _, ok := r.Channel.(channels.Splitter); !ok {
		t.Skip("the channel does not split")
	}
	var words []string
	for i := range 4000 {
		words = append(words, fmt.Sprintf("word%d,", i))
	}
	long := r.reply("r1", strings.Join(words, " "))
	long.Files = []chat.File{{Path: "a.txt", Type: "text/plain"}}
	parts := channels.Parts(r.Channel, long)
	if again := channels.Parts(r.Channel, long); !reflect.DeepEqual(parts, again) {
		t.Error("the same reply has other parts the second time")
	}
	var all strings.Builder
	files := 0
	for i, p := range parts {
		if p.Text == "" && len(p.Files) == 0 {
			t.Errorf("part %d has nothing in it: %+v", i, p)
		}
		all.WriteString(p.Text + " ")
		files += len(p.Files)
	}
	if files != 1 {
		t.Errorf("one file became %d", files)
	}
	rest := all.String()
	for _, w := range words {
		_, after, found := strings.Cut(rest, w)
		if !found {
			t.Fatalf("%q is lost or out of order in %d parts", w, len(parts))
		}
		rest = after
	}
}

func edits(t *testing.T, r Rig) {
	e, ok := r.Channel.(channels.Editor)
	if !ok {
		t.Skip("the channel does not edit")
	}
	rc := r.send(t, "r1", "first words")
	for range 2 {
		if err := e.Edit(t.Context(), rc, r.parts("r1", "second thoughts")[0]); err != nil {
			t.Fatal(err)
		}
	}
	r.shows(t, "second thoughts")
	isOld := func(s string) bool { return strings.Contains(s, "first words") }
	if r.Shown != nil && slices.ContainsFunc(r.Shown(), isOld) {
		t.Errorf("the old text is still shown: %q", r.Shown())
	}
	if e.EditEvery(r.At) <= 0 {
		t.Error("EditEvery sets no limit")
	}
}

func deletes(t *testing.T, r Rig) {
	d, ok := r.Channel.(channels.Editor)
	if !ok {
		t.Skip("the channel does not delete")
	}
	rc := r.send(t, "r1", "never mind")
	for range 2 {
		if err := d.Delete(t.Context(), r.At, rc); err != nil {
			t.Fatal(err)
		}
	}
	isDeleted := func(s string) bool { return strings.Contains(s, "never mind") }
	if r.Shown != nil && slices.ContainsFunc(r.Shown(), isDeleted) {
		t.Errorf("it is still shown: %q", r.Shown())
	}
}

func types(t *testing.T, r Rig) {
	ty, ok := r.Channel.(channels.Typer)
	if !ok {
		t.Skip("the channel has no typing sign")
	}
	if err := ty.Typing(t.Context(), r.At); err != nil {
		t.Error(err)
	}
}

func fetches(t *testing.T, r Rig) {
	f, ok := r.Channel.(channels.Fetcher)
	if !ok || r.Upload == nil {
		t.Skip("the channel has no files to fetch")
	}
	data := bytes.Repeat([]byte("0123456789abcde\n"), 20_000)
	got := receive(t, r, 0)
	r.Upload("notes.txt", data)
	m := next(t, got)
	if len(m.Files) != 1 || m.Files[0].Ref == "" || m.Files[0].Path != "" {
		t.Fatalf("one file with a Ref and no Path should have come: %+v", m.Files)
	}
	for range 2 {
		body, err := f.Fetch(t.Context(), m, m.Files[0])
		if err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(body)
		if err := errors.Join(err, body.Close()); err != nil || !bytes.Equal(all, data) {
			t.Errorf("%d bytes, want %d: %v", len(all), len(data), err)
		}
	}
}

func missing(t *testing.T, r Rig) {
	f, ok := r.Channel.(channels.Fetcher)
	if !ok || r.Upload == nil {
		t.Skip("the channel has no files to fetch")
	}
	got := receive(t, r, 0)
	r.Upload("notes.txt", []byte("hello"))
	m := next(t, got)
	body, err := f.Fetch(t.Context(), m, chat.File{Name: "other.txt", Ref: "gone"})
	if err == nil {
		_, err = io.ReadAll(body)
		_ = body.Close()
	}
	var e *channels.Error
	if !errors.As(err, &e) || !e.Permanent {
		t.Errorf("a file that is gone: %v, want a permanent error", err)
	}
}

func asks(t *testing.T, r Rig) {
	a, ok := r.Channel.(channels.Asker)
	if !ok || r.Press == nil {
		t.Skip("the channel has no buttons")
	}
	if a.MaxChoices() < 2 {
		t.Errorf("%d buttons are no choice", a.MaxChoices())
	}
	got := receive(t, r, 0)
	question := r.reply("q1", "Shall I?")
	question.Ask = &chat.Question{ID: "abc123", Choices: []string{"Yes", "No <&> [maybe](later)"}}
	rc, err := r.Channel.Send(t.Context(), channels.Parts(r.Channel, question)[0])
	if err != nil {
		t.Fatal(err)
	}
	if !r.Press("abc123", 1) {
		t.Fatal("there is no second button")
	}
	m := next(t, got)
	if m.Answer == nil || m.ID == "" || m.From.ID == "" || m.At.Chat != r.At.Chat ||
		!reflect.DeepEqual(*m.Answer, chat.Answer{Question: "abc123", Choice: 1, Receipt: string(rc)}) {
		t.Errorf("a press came as %+v, %+v; want choice 1 of abc123 with receipt %q", m, m.Answer, rc)
	}
	for range 2 {
		if err := a.Edit(t.Context(), rc, r.parts("q1", "Shall I? No.")[0]); err != nil {
			t.Fatal(err)
		}
	}
	r.shows(t, "Shall I? No.")
	if r.Press("abc123", 0) {
		t.Error("the buttons are still there after an edit that asks nothing")
	}
}

func reacts(t *testing.T, r Rig) {
	c, ok := r.Channel.(channels.Reactor)
	if !ok {
		t.Skip("the channel has no marks")
	}
	got := receive(t, r, 0)
	r.Say("mark me")
	m := next(t, got)
	for _, mark := range []channels.Mark{channels.Seen, channels.Working, channels.Working, channels.Done} {
		if err := c.React(t.Context(), m.At, m.ID, mark); err != nil {
			t.Errorf("%s: %v", mark, err)
		}
	}
}

func directs(t *testing.T, r Rig) {
	d, ok := r.Channel.(channels.DirectMessenger)
	if !ok {
		t.Skip("the channel does not speak first")
	}
	got := receive(t, r, 0)
	r.Say("who am I?")
	hello := chat.Reply{ID: "d1", To: d.Direct(next(t, got).From.ID), Text: "you have a letter"}
	if _, err := r.Channel.Send(t.Context(), channels.Parts(r.Channel, hello)[0]); err != nil {
		t.Fatal(err)
	}
	r.shows(t, "you have a letter")
}
