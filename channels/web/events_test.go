package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/chat"
	"parley/store"
	"parley/store/bolt"
	"parley/store/mem"
	"parley/timetest"
)

// Last-Event-ID: a browser goes on where it was, also after a restart.
func TestGoesOn(t *testing.T) {
	dir := t.TempDir()
	for life := range 3 {
		s, err := bolt.Open(t.Context(), bolt.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		h := open(t, s)
		after := ""
		var want []string
		for i := range 10 * life {
			if i >= 5 {
				want = append(want, fmt.Sprint("number ", i))
			}
			after = "5"
		}
		b := h.watch("anna", firstID, after)
		for i := 10 * life; i < 10*life+10; i++ {
			h.reply("anna", firstID, fmt.Sprint("r", i), fmt.Sprint("number ", i))
			want = append(want, fmt.Sprint("number ", i))
		}
		b.shows(t, want...)
		for i, e := range b.all("message") {
			if want := fmt.Sprint(10*(life+1) - len(want) + i + 1); e.id != want {
				t.Errorf("event %d has the id %s, want %s", i, e.id, want)
			}
		}
		h.must(http.StatusBadRequest, "anna", "GET", "/c/first/events?after=x", nil)
		h.Close()
		<-b.over // P16: Close ends those who read along
		h.must(http.StatusServiceUnavailable, "anna", "GET", "/c/first/events", nil)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Whoever comes while others write misses nothing and sees nothing twice.
func TestComesMeanwhile(t *testing.T) {
	h := newTestGateway(t)
	const n = 300
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range n {
			h.reply("anna", firstID, fmt.Sprint("r", i), fmt.Sprint("number ", i))
		}
	})
	var tabs []*tab
	for range 10 {
		tabs = append(tabs, h.watch("anna", firstID, ""))
	}
	wg.Wait()
	for _, b := range tabs {
		until(t, "all are shown, or the tab is told to begin again", func() bool { return len(b.all("message")) >= n || len(b.all("resync")) > 0 })
		for i, e := range b.entries() {
			if e.Seq != uint64(i+1) || e.Text != fmt.Sprint("number ", i) {
				t.Fatalf("entry %d is %d %q", i, e.Seq, e.Text)
			}
		}
	}
}

// The making of a reply is shown: also to those who come late, and not once it is over.
func TestMaking(t *testing.T) {
	h := newTestGateway(t)
	r := chat.Reply{ID: "r1", To: h.address("anna", firstID)}
	one := h.watch("anna", firstID, "")
	if err := h.Typing(t.Context(), r.To); err != nil {
		t.Fatal(err)
	}
	h.Step(r, chat.Step{Call: "c1", Tool: "read_file", State: chat.Running})
	h.Step(r, chat.Step{Call: "c1", Tool: "read_file", State: chat.Done, Tip: "3 lines"})
	for _, r.Text = range []string{"**so", "**so far**"} {
		h.Stream(r)
	}
	late := h.watch("anna", firstID, "")
	for _, b := range []*tab{one, late} {
		until(t, "the last draft is shown", func() bool {
			ds := b.all("draft")
			return len(ds) > 0 && ds[len(ds)-1].data == `{"reply":"r1","html":"<p><strong>so far</strong></p>\n"}`
		})
		if ss := b.all("step"); ss[len(ss)-1].data != `{"reply":"r1","requestId":"c1","toolName":"read_file","displayName":"read_file","status":"success","showTip":"3 lines"}` {
			t.Errorf("steps %v", ss)
		}
		if bs := b.all("busy"); len(bs) < 1 || bs[len(bs)-1].data != `{"on":true}` {
			t.Errorf("busy %v", bs)
		}
	}
	h.reply("anna", firstID, "r1", "so far, so good")
	after := h.watch("anna", firstID, "")
	for _, b := range []*tab{one, late, after} {
		b.shows(t, "so far, so good")
	}
	until(t, "the sign is off", func() bool { bs := one.all("busy"); return bs[len(bs)-1].data == `{"on":false}` })
	if n := len(after.all("draft")) + len(after.all("step")) + len(after.all("busy")); n > 0 {
		t.Errorf("%d signs of what is over", n)
	}
}

// who comes in the middle of a turn has the steps in the order in which
// they began, as those who saw them have. C-007, C-009, C-010, C-013: each is
// whole, with what was known before, and its end is the end.
func TestA089StepsAfterReload(t *testing.T) {
	h := newTestGateway(t)
	r := chat.Reply{ID: "r1", To: h.address("anna", firstID)}
	began := time.Date(2026, 4, 16, 21, 2, 33, 0, time.UTC)
	one := h.watch("anna", firstID, "")
	if err := h.Typing(t.Context(), r.To); err != nil {
		t.Fatal(err)
	}
	until(t, "it reads along", func() bool { return len(one.all("busy")) > 0 })
	for _, s := range []chat.Step{
		{Call: "b", Tool: "web_search", State: chat.Waiting, Params: map[string]any{"query": "ti"}, Began: began},
		{Call: "a", Tool: "read_file", Name: "Read a file", State: chat.Running, Params: map[string]any{"path": "a.md", "limit": 20}},
		{Call: "b", State: chat.Waiting, Params: map[string]any{"query": "tides"}, Began: began.Add(time.Second)},
		{Call: "b", State: chat.Running, Tip: "tides"},
		{Call: "b", State: chat.Done, Result: "3 results", Ended: began.Add(412 * time.Millisecond)},
		{Call: "b", State: chat.Running, Tip: "again"},
		{Call: "a", State: chat.Failed, Error: "no such file"},
	} {
		h.Step(r, s)
	}
	late := h.watch("anna", firstID, "")
	want := []string{
		`{"reply":"r1","requestId":"b","toolName":"web_search","displayName":"web_search","status":"success","showTip":"tides","params":{"query":"tides"},"result":"3 results","startTime":"2026-04-16T21:02:33Z","endTime":"2026-04-16T21:02:33.412Z","duration":412}`,
		`{"reply":"r1","requestId":"a","toolName":"read_file","displayName":"Read a file","status":"error","params":{"limit":20,"path":"a.md"},"error":"no such file"}`,
	}
	until(t, "the steps are there", func() bool { return len(one.all("step")) == 6 && len(late.all("step")) == 2 })
	for _, b := range []*tab{one, late} {
		var order []string
		last := map[string]string{}
		for _, e := range b.all("step") {
			var s stepData
			if err := json.Unmarshal([]byte(e.data), &s); err != nil {
				t.Fatal(err)
			}
			if last[s.Call] == "" {
				order = append(order, s.Call)
			}
			last[s.Call] = e.data
		}
		if got := []string{last[order[0]], last[order[1]]}; !slices.Equal(got, want) {
			t.Errorf("shown %v", got)
		}
	}
	if got := one.all("step")[0].data; !strings.Contains(got, `"status":"wait","params":{"query":"ti"}`) { // C-008, C-015
		t.Errorf("first %s", got)
	}
	r.Text, r.Steps = "done", "🔧 web_search – 1 s"
	if _, err := h.Send(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	after := h.watch("anna", firstID, "")
	after.shows(t, "done")
	if e := after.entries()[0]; e.Steps != r.Steps || len(after.all("step")) > 0 {
		t.Errorf("after the turn: %+v", e)
	}
	if page := h.must(http.StatusOK, "anna", "GET", "/c/first", nil); !strings.Contains(page, `<p class="steps">🔧 web_search – 1 s</p>`) {
		t.Error("the page does not show the line of steps")
	}
}

// B-071: whoever may not see which tools are at work is not sent it either: not while the
// turn runs, not when joining in the middle of it, and not in what was said before. It counts
// at once, also for a page that is open.
func TestB071StepsAreWithheld(t *testing.T) {
	var blocked atomic.Bool
	blocked.Store(true)
	h := open(t, mem.New(), func(c *Config) {
		c.Blocked = func(_ context.Context, who chat.Sender, part string) bool {
			return who.ID == "anna" && part == blockSteps && blocked.Load()
		}
	})
	r := chat.Reply{ID: "r1", To: h.address("anna", firstID)}
	before := h.watch("anna", firstID, "")
	h.Step(r, chat.Step{Call: "a", Tool: "secret_tool", State: chat.Running})
	joined := h.watch("anna", firstID, "")
	h.Stream(chat.Reply{ID: "r1", To: r.To, Text: "so far"})
	for _, b := range []*tab{before, joined} {
		until(t, "the draft is there", func() bool { return len(b.all("draft")) > 0 })
	}
	r.Text, r.Steps = "done", "secret_tool – 1 s"
	if _, err := h.Send(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	after := h.watch("anna", firstID, "")
	for name, b := range map[string]*tab{"before": before, "in the middle": joined, "after": after} {
		b.shows(t, "done")
		if len(b.all("step")) > 0 || b.entries()[0].Steps != "" {
			t.Errorf("who came %s the turn is sent %v and %q", name, b.all("step"), b.entries()[0].Steps)
		}
	}
	for _, path := range []string{"/c/" + firstID, "/c/" + firstID + "/before?seq=99"} {
		if page := h.must(http.StatusOK, "anna", "GET", path, nil); strings.Contains(page, "secret_tool") || !strings.Contains(page, "done") {
			t.Errorf("%s shows %s", path, page)
		}
	}
	blocked.Store(false)
	h.Step(chat.Reply{ID: "r2", To: r.To}, chat.Step{Call: "b", Tool: "open_tool", State: chat.Running})
	until(t, "the step is shown", func() bool { return len(before.all("step")) == 1 })
}

// A reply that says nothing is no entry, and ends what was in the making.
func TestSaysNothing(t *testing.T) {
	h := newTestGateway(t)
	b := h.watch("anna", firstID, "")
	r := chat.Reply{ID: "r1", To: h.address("anna", firstID), Text: "so far"}
	h.Stream(r)
	until(t, "the draft is shown", func() bool { return len(b.all("draft")) > 0 })
	r.Text = " \n"
	if _, err := h.Send(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	until(t, "the sign is off", func() bool { bs := b.all("busy"); return len(bs) > 0 && bs[len(bs)-1].data == `{"on":false}` })
	late := h.watch("anna", firstID, "")
	h.reply("anna", firstID, "r2", "end")
	late.shows(t, "end")
	if n := len(late.all("draft")); n > 0 {
		t.Errorf("%d drafts of what is over", n)
	}
}

// What was given up is not shown to those who come after.
func TestGivenUp(t *testing.T) {
	timetest.TestWithOthers(t, func(t *testing.T) {
		c, err := New(Config{Name: "web", Store: mem.New(), Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		at := c.address("anna", firstID)
		rm, leave := c.openRoom(at)
		defer leave()
		come := func() int {
			bodies, _, _, _ := rm.nextEvents(rm.addReader(0))
			return len(bodies)
		}
		c.Stream(chat.Reply{ID: "r1", To: at, Text: "so far"})
		if n := come(); n != 2 {
			t.Errorf("%d frames, want busy and draft", n)
		}
		timetest.Sleep(activityTimeout + time.Second)
		if n := come(); n != 0 {
			t.Errorf("%d frames of what was given up", n)
		}
		_ = c.Typing(t.Context(), at)
		if n := come(); n != 1 {
			t.Errorf("%d frames, want busy", n)
		}
	})
}

// A draft is sent whole, so not for every word, and the latest always is.
func TestDraftsArePaced(t *testing.T) {
	timetest.TestWithOthers(t, func(t *testing.T) {
		c, err := New(Config{Name: "web", Store: mem.New(), Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		w := &writer{header: http.Header{}}
		ctx, leave := context.WithCancel(t.Context())
		var live sync.WaitGroup
		live.Go(func() { c.Serve(w, events(ctx), chat.Sender{ID: "anna"}) })
		synctest.Wait()
		at := c.address("anna", firstID)
		for i := range 100 {
			c.Stream(chat.Reply{ID: "r1", To: at, Text: strings.Repeat("word ", 100*i) + "end"})
			timetest.Sleep(30 * time.Millisecond)
		}
		timetest.Sleep(time.Second)
		if n := w.count("event: draft"); n < 10 || n > 31 {
			t.Errorf("%d drafts in three seconds", n)
		}
		if got := w.String(); !strings.HasSuffix(got, strings.Repeat("word ", 9900)+"end</p>\\n\"}\n\n") {
			t.Error("the latest draft is not shown")
		}
		before := w.count(":\n\n")
		timetest.Sleep(time.Minute)
		if n := w.count(":\n\n"); n-before < 3 || n-before > 4 {
			t.Errorf("%d heartbeats in a minute", n-before)
		}
		leave()
		live.Wait()
	})
}

func events(ctx context.Context) *http.Request {
	r, err := http.NewRequestWithContext(ctx, "GET", "/c/first/events", nil)
	if err != nil {
		panic(err)
	}
	return r
}

// A writer is a browser that takes events when it is let.
type writer struct {
	header http.Header
	hold   chan struct{} // closed, or nil: it takes them at once
	begun  atomic.Bool   // it was to take something
	mu     sync.Mutex
	body   strings.Builder
}

func (w *writer) Header() http.Header              { return w.header }
func (w *writer) WriteHeader(int)                  {}
func (w *writer) Flush()                           {}
func (w *writer) SetWriteDeadline(time.Time) error { return nil }
func (w *writer) SetReadDeadline(time.Time) error  { return nil }

func (w *writer) Write(p []byte) (int, error) {
	w.begun.Store(true)
	if w.hold != nil {
		<-w.hold
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.body.Write(p)
}

func (w *writer) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.body.String()
}

func (w *writer) count(s string) int { return strings.Count(w.String(), s) }

// P15: a slow reader gets a bounded buffer and then a marker; others are not delayed.
func TestP15SlowReader(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		text string
	}{{"many", maxEvents + 10, "number"}, {"big", 10, strings.Repeat("long ", maxEventBytes/50)}} {
		t.Run(c.name, func(t *testing.T) {
			h := newTestGateway(t)
			quick := h.watch("anna", firstID, "")
			slow := &writer{header: http.Header{}, hold: make(chan struct{})}
			var live sync.WaitGroup
			live.Go(func() { h.Serve(slow, events(t.Context()), chat.Sender{ID: "anna"}) })
			until(t, "it reads along, too", slow.begun.Load)
			rm, leave := h.openRoom(h.address("anna", firstID))
			defer leave()
			for i := range c.n {
				h.reply("anna", firstID, fmt.Sprint("r", i), c.text)
				until(t, "the quick one sees it", func() bool { return len(quick.all("message")) == i+1 })
			}
			rm.mu.Lock()
			if len(rm.events) > maxEvents || rm.eventBytes > maxEventBytes {
				t.Errorf("%d frames of %d bytes wait", len(rm.events), rm.eventBytes)
			}
			rm.mu.Unlock()
			close(slow.hold)
			live.Wait() // it is sent away
			if got := slow.String(); !strings.HasSuffix(got, "event: resync\ndata: {}\n\n") {
				t.Errorf("the slow one is told %q", got[max(0, len(got)-100):])
			}
			last := strings.Count(slow.String(), "event: message")
			again := h.watch("anna", firstID, fmt.Sprint(last))
			until(t, "it gets the rest", func() bool { return len(again.all("message")) == c.n-last })
		})
	}
}

// A browser whose connection takes nothing at all is given up after a while.
func TestStuckReader(t *testing.T) {
	timetest.TestWithOthers(t, func(t *testing.T) {
		c, err := New(Config{Name: "web", Store: mem.New(), Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.Serve(w, r, chat.Sender{ID: "anna"}) })}
		l := timetest.NewListener()
		var live sync.WaitGroup
		live.Go(func() { _ = srv.Serve(l) })
		theirs, err := l.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := theirs.Write([]byte("GET /c/first/events HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		timetest.Sleep(writeTimeout + time.Second) // and never reads
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		c.mu.Lock()
		if len(c.rooms) > 0 {
			t.Error("it still reads along")
		}
		c.mu.Unlock()
		_ = srv.Close()
		theirs.Close()
		live.Wait()
	})
}

// P15: ten thousand idle readers cost one goroutine and little memory each, and
// nothing once they are gone.
func TestP15IdleReaders(t *testing.T) {
	const n, most = 10_000, 16 << 10 // bytes of each, of which the stack is most
	c, err := New(Config{Name: "web", Store: mem.New(), Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	var writers atomic.Int64
	goroutines, bytes := usage()
	ctx, leave := context.WithCancel(t.Context())
	var live sync.WaitGroup
	for i := range n {
		w := counter{http.Header{}, "retry:", &writers}
		live.Go(func() {
			c.Serve(w, events(ctx), chat.Sender{ID: fmt.Sprint("person", i)})
		})
	}
	until(t, "all read along", func() bool {
		return int(writers.Load()) == n
	})
	many, big := usage()
	t.Logf("%d goroutines and %d bytes for each", (many-goroutines)/n, (big-bytes)/n)
	if many-goroutines > n+10 || big-bytes > n*most {
		t.Errorf("%d readers take %d goroutines and %d bytes", n, many-goroutines, big-bytes)
	}
	leave()
	live.Wait()
	if left, _ := usage(); left > goroutines+10 {
		t.Errorf("%d goroutines are left", left-goroutines)
	}
	if len(c.rooms) > 0 {
		t.Errorf("%d conversations are left in memory", len(c.rooms))
	}
}

// usage returns how many goroutines there are and what is in use of heap and stacks.
func usage() (goroutines, bytes int) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return runtime.NumGoroutine(), int(m.HeapInuse + m.StackInuse)
}

// One stream to a thousand readers: a draft of growing length every 30 ms, and then the reply.
func BenchmarkReaders1000(b *testing.B) {
	const n = 1000
	c, err := New(Config{Name: "web", Store: mem.New(), Log: quiet})
	if err != nil {
		b.Fatal(err)
	}
	ctx, leave := context.WithCancel(b.Context())
	var live sync.WaitGroup
	var sent atomic.Int64
	for range n {
		live.Go(func() { c.Serve(counter{http.Header{}, "event: message", &sent}, events(ctx), chat.Sender{ID: "anna"}) })
	}
	at := c.address("anna", firstID)
	rm, done := c.openRoom(at)
	defer done()
	for users := 0; users <= n; runtime.Gosched() {
		c.mu.Lock()
		users = rm.users
		c.mu.Unlock()
	}
	i := 0
	for b.Loop() {
		i++
		id, before := fmt.Sprint("r", i), sent.Load()
		if _, err := c.Send(ctx, chat.Reply{ID: id, To: at, Text: "Here is **an answer** of some length, with `code` and a [link](https://example.org)."}); err != nil {
			b.Fatal(err)
		}
		for sent.Load() < before+n {
			runtime.Gosched()
		}
	}
	leave()
	live.Wait()
}

// A counter counts what it was sent that begins with what.
type counter struct {
	header http.Header
	what   string
	n      *atomic.Int64
}

func (c counter) Header() http.Header { return c.header }
func (c counter) WriteHeader(int)     {}
func (c counter) Flush()              {}

func (c counter) Write(p []byte) (int, error) {
	if strings.HasPrefix(string(p[:min(len(p), 20)]), c.what) {
		c.n.Add(1)
	}
	return len(p), nil
}

// A press is delivered with what it answers, again as often as it is sent.
func TestPress(t *testing.T) {
	h := newTestGateway(t)
	heard, _ := h.hear(nil)
	r := chat.Reply{ID: "r1", To: h.address("anna", firstID), Text: "Shall I?", Ask: &chat.Question{ID: "q1", Choices: []string{"yes", "no"}}}
	rc, err := h.Send(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []words{
		{"id": "press-001", "question": "q2", "choice": 0}, {"id": "press-001", "question": "q1", "choice": 2},
		{"id": "press-001", "question": "q1", "choice": -1},
	} {
		h.must(http.StatusNotFound, "anna", "POST", "/c/first/answer", bad)
	}
	h.must(http.StatusBadRequest, "anna", "POST", "/c/first/answer", words{"id": "x", "question": "q1", "choice": 1})
	h.must(http.StatusAccepted, "anna", "POST", "/c/first/answer", words{"id": "press-001", "question": "q1", "choice": 1})
	want, _ := json.Marshal(chat.Answer{Question: "q1", Choice: 1, Receipt: string(rc)})
	got, _ := json.Marshal(heard()[0].Answer)
	if len(heard()) != 1 || string(got) != string(want) || heard()[0].ID != "first.press-001" {
		t.Errorf("heard %+v", heard())
	}
	h.watch("anna", firstID, "").shows(t, "Shall I?")
}

// A store whose logs call after between writing a record and saying so.
type dawdler struct {
	store.Store
	after func()
}

func (d dawdler) Log(name string) store.Log { return dawdling{d.Store.Log(name), d.after} }

type dawdling struct {
	store.Log
	after func()
}

func (l dawdling) Append(ctx context.Context, after uint64, recs ...[]byte) (uint64, error) {
	if len(recs) > 0 {
		defer l.after()
	}
	return l.Log.Append(ctx, after, recs...)
}

// Whoever finds a record in the log before all are shown it sees it once.
func TestReadsAhead(t *testing.T) {
	var h *testGateway
	var b *tab
	var watched atomic.Bool
	h = open(t, dawdler{mem.New(), func() {
		if watched.Swap(true) {
			return
		}
		b = h.watch("anna", firstID, "")
		until(t, "the tab has read the log", func() bool {
			_ = h.Typing(t.Context(), h.address("anna", firstID))
			return len(b.all("message")) > 0 && len(b.all("busy")) > 0
		})
	}})
	h.reply("anna", firstID, "r1", "one")
	h.reply("anna", firstID, "r2", "two")
	b.shows(t, "one", "two")
	if n := len(b.all("message")); n != 2 {
		t.Errorf("2 messages were sent as %d", n)
	}
}
