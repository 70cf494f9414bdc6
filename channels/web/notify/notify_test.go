package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/channels/webpush/webpushtest"
	"parley/chat"
	"parley/store"
	"parley/store/mem"
	"parley/timetest"
)

// A desk is a Service, and the push service that it uses.
type desk struct {
	*Service
	push *webpushtest.Service
	seen atomic.Uint64 // how far the person has seen the conversation
	may  atomic.Bool
}

func newDesk(t *testing.T, s store.Store) *desk {
	t.Helper()
	d := &desk{push: webpushtest.New(t)}
	d.may.Store(true)
	d.Service = New(Config{
		Store: s, Client: d.push.Client(), Log: slog.New(slog.DiscardHandler),
		Home:  func() string { return "https://chat.example" },
		Lasts: func(context.Context, string, string) (bool, error) { return d.may.Load(), nil },
	})
	return d
}

func (d *desk) hasSeen(_ context.Context, _ chat.Address, seq uint64) (bool, error) {
	return d.seen.Load() >= seq, nil
}

// subscribe returns a new browser of person.
func (d *desk) subscribe(t *testing.T, person string, private bool) *webpushtest.Browser {
	t.Helper()
	key, err := d.Key(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := d.push.Subscribe(key)
	if err := d.Subscribe(t.Context(), person, b.Subscription, private); err != nil {
		t.Fatal(err)
	}
	return b
}

func notice(n int) Notice {
	return Notice{
		ID: fmt.Sprint("reply-", n), At: chat.Address{Channel: "web", Chat: "anna", Thread: "first"}, Seq: uint64(n),
		Title: "The tide", Text: fmt.Sprintf("It comes twice a day. %d", n),
	}
}

func (d *desk) tell(t *testing.T, ns ...Notice) {
	t.Helper()
	for _, n := range ns {
		if err := d.Tell(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
}

// sendAll handles what is in the queue now as if it had been told ago.
// It returns how many are put off.
func (d *desk) sendAll(t *testing.T, ago time.Duration) (left int) {
	t.Helper()
	n, err := d.queue.Len(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		item, err := d.queue.Pull(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var p pending
		if err := json.Unmarshal(item.Body, &p); err != nil {
			t.Fatal(err)
		}
		p.Time = p.Time.Add(-ago)
		if d.try(t.Context(), p, d.hasSeen) > 0 {
			left++
			item.Later(0)
		} else if err := item.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return left
}

func got(b *webpushtest.Browser) (all []string) {
	for {
		select {
		case text := <-b.Got:
			all = append(all, text)
		default:
			return all
		}
	}
}

// TestTold: each browser of the person is told once, in words or without, and nobody else is. What a page has shown is
// told nowhere.
func TestTold(t *testing.T) {
	d := newDesk(t, mem.New())
	phone := d.subscribe(t, "anna", false)
	laptop := d.subscribe(t, "anna", true)
	other := d.subscribe(t, "bob", false)
	d.seen.Store(1)
	question := notice(3)
	question.Asks = true
	d.tell(t, notice(1), notice(2), notice(2), question)
	if left := d.sendAll(t, 5*time.Second); left != 0 {
		t.Errorf("%d are left", left)
	}
	d.tell(t, notice(2)) // a crash has the reply sent again
	d.sendAll(t, 5*time.Second)
	want := `[{"title":"The tide","text":"It comes twice a day. 2","tag":"reply-2","url":"/c/first"} ` +
		`{"title":"The tide","text":"❓ It comes twice a day. 3","tag":"reply-3","url":"/c/first"}]`
	if all := fmt.Sprint(got(phone)); all != want {
		t.Errorf("the phone got %s", all)
	}
	want = `[{"title":"Parley","text":"New answer","tag":"reply-2","url":"/c/first"} ` +
		`{"title":"Parley","text":"Your answer is needed","tag":"reply-3","url":"/c/first"}]`
	if all := fmt.Sprint(got(laptop)); all != want {
		t.Errorf("the laptop got %s", all)
	}
	if all := got(other); len(all) > 0 {
		t.Errorf("somebody else got %s", all)
	}
}

// TestRetried: what the push service cannot take now waits, and is dropped when it is old. A browser that is gone, or
// of somebody who may not see the page any more, is forgotten.
func TestRetried(t *testing.T) {
	d := newDesk(t, mem.New())
	phone := d.subscribe(t, "anna", false)
	phone.Fail(503, 429)
	d.tell(t, notice(1))
	for range 2 {
		if left := d.sendAll(t, time.Minute); left != 1 || len(got(phone)) != 0 {
			t.Fatal("a busy push service is not asked again")
		}
	}
	if left := d.sendAll(t, time.Minute); left != 0 || len(got(phone)) != 1 {
		t.Errorf("%d are left", left)
	}
	phone.Fail(503)
	d.tell(t, notice(2))
	if left := d.sendAll(t, 59*time.Minute); left != 0 {
		t.Error("what is an hour old still waits")
	}
	phone.Fail(400)
	d.tell(t, notice(3))
	if left := d.sendAll(t, time.Minute); left != 0 {
		t.Error("what is refused for good waits")
	}
	for _, status := range []int{404, 410} {
		phone.Fail(status)
		d.tell(t, notice(status))
		d.sendAll(t, time.Minute)
		d.tell(t, notice(status+1000))
		if n, _ := d.queue.Len(t.Context()); n != 0 {
			t.Errorf("a browser that is gone (%d) is still told", status)
		}
		phone = d.subscribe(t, "anna", false)
	}
	d.may.Store(false)
	d.tell(t, notice(5))
	d.sendAll(t, time.Minute)
	d.may.Store(true)
	d.tell(t, notice(6))
	if n, _ := d.queue.Len(t.Context()); n != 0 || len(got(phone)) != 0 {
		t.Error("somebody who may not see the page any more is told")
	}
}

// TestBrowsers: a person has so many browsers at most, a browser belongs to one person, the key lasts, and a browser
// that does not show the page any more is told nothing.
func TestBrowsers(t *testing.T) {
	s := mem.New()
	d := newDesk(t, s)
	first := d.subscribe(t, "anna", false)
	for range maxBrowsers {
		d.subscribe(t, "anna", false)
	}
	d.tell(t, notice(1))
	if n, _ := d.queue.Len(t.Context()); n != maxBrowsers {
		t.Errorf("%d browsers are told", n)
	}
	if left := d.sendAll(t, time.Minute); left != 0 || len(got(first)) > 0 {
		t.Error("the browser that was used longest ago did not make room")
	}
	before, _ := d.Key(t.Context())
	again := newDesk(t, s)
	if after, _ := again.Key(t.Context()); after != before {
		t.Error("the key does not survive a restart")
	}
	shared := d.subscribe(t, "bob", false)
	if err := d.Subscribe(t.Context(), "carol", shared.Subscription, false); err != nil {
		t.Fatal(err)
	}
	to := notice(2)
	to.At.Chat = "bob"
	d.tell(t, to)
	if n, _ := d.queue.Len(t.Context()); n != 0 {
		t.Error("a browser that somebody else uses now is told")
	}
	key := browserKey("carol", shared.Subscription.Endpoint)
	old, _, err := d.browsers.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	old.Used = old.Used.Add(-unusedAfter - time.Hour)
	if err := d.browsers.Set(t.Context(), key, old); err != nil {
		t.Fatal(err)
	}
	to.At.Chat = "carol"
	d.tell(t, to)
	if n, _ := d.queue.Len(t.Context()); n != 0 {
		t.Error("a browser that was not used for long is told")
	}
	if err := d.Unsubscribe(t.Context(), "anna", first.Subscription.Endpoint); err != nil {
		t.Error(err)
	}
}

// TestRun: what is told is sent after a moment in which a page may show it, and what waits when the gateway stops is
// sent after the next start.
func TestRun(t *testing.T) {
	s := mem.New()
	timetest.Test(t, func(t *testing.T) {
		d := &desk{}
		d.may.Store(true)
		var sent atomic.Int64
		d.Service = New(Config{
			Store: s, Log: slog.New(slog.DiscardHandler), Home: func() string { return "" },
			Lasts: func(context.Context, string, string) (bool, error) { sent.Add(1); return false, nil }, // as far as the network
		})
		sub := browser{Person: "anna", Used: time.Now()}
		sub.Endpoint = "https://push.example/x"
		if err := d.browsers.Set(t.Context(), browserKey("anna", sub.Endpoint), sub); err != nil {
			t.Fatal(err)
		}
		d.tell(t, notice(1))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.Run(ctx, d.hasSeen) }()
		timetest.Sleep(grace / 2)
		if sent.Load() != 0 {
			t.Error("it was sent before a page could show it")
		}
		timetest.Sleep(grace)
		if sent.Load() != 1 {
			t.Errorf("it was sent %d times", sent.Load())
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestSignIns: a browser is told for as long as the sign-in lasts by which it asked for that, and takes a newer one at
// its next visit. Without one it cannot ask. Those whose sign-in has ended are forgotten when somebody asks.
func TestSignIns(t *testing.T) {
	d := newDesk(t, mem.New())
	type by struct{}
	ended := map[string]bool{"": true}
	d.cfg.SignIn = func(ctx context.Context) string { return ctx.Value(by{}).(string) }
	d.cfg.Lasts = func(_ context.Context, _, signIn string) (bool, error) { return !ended[signIn], nil }
	key, err := d.Key(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(b *webpushtest.Browser, signIn string) error {
		return d.Subscribe(context.WithValue(t.Context(), by{}, signIn), "anna", b.Subscription, false)
	}
	phone, laptop, tablet := d.push.Subscribe(key), d.push.Subscribe(key), d.push.Subscribe(key)
	if err := ask(phone, ""); err == nil {
		t.Error("a browser that is not signed in is told")
	}
	for _, b := range []*webpushtest.Browser{phone, laptop} {
		if err := ask(b, "first"); err != nil {
			t.Fatal(err)
		}
	}
	if err := ask(laptop, "second"); err != nil { // it was signed in anew, within a day
		t.Fatal(err)
	}
	d.tell(t, notice(1))
	ended["first"] = true // before it is sent
	d.sendAll(t, time.Minute)
	if a, b := got(phone), got(laptop); len(a) != 0 || len(b) != 1 {
		t.Errorf("the phone, which is signed out, got %q, and the laptop %q", a, b)
	}
	d.tell(t, notice(2))
	if n, _ := d.queue.Len(t.Context()); n != 1 {
		t.Errorf("%d browsers are told", n)
	}
	ended["second"] = true
	if err := ask(tablet, "third"); err != nil {
		t.Fatal(err)
	}
	d.sendAll(t, time.Minute)
	if _, _, err := d.browsers.Get(t.Context(), browserKey("anna", laptop.Subscription.Endpoint)); err == nil || len(got(laptop)) != 0 {
		t.Error("a browser whose sign-in has ended is still known")
	}
}

// TestLong: a long answer is shortened to what a push service takes.
func TestLong(t *testing.T) {
	d := newDesk(t, mem.New())
	phone := d.subscribe(t, "anna", false)
	n := notice(1)
	n.Title, n.Text = strings.Repeat("语", 5000), strings.Repeat("🌊\n", 5000)
	d.tell(t, n)
	d.sendAll(t, time.Minute)
	if all := got(phone); len(all) != 1 || len(all[0]) > 2000 {
		t.Errorf("got %.200q", all)
	}
}
