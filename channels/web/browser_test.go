package web_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley/channels"
	"parley/channels/greeting"
	"parley/channels/web"
	"parley/channels/web/app"
	"parley/channels/web/notify"
	"parley/channels/webpush/webpushtest"
	"parley/chat"
	"parley/store"
	"parley/store/mem"
	"parley/web/webtest"
)

// A home is the page's other side: a real Channel under the policy of the real
// server, and a gateway that hears and says what the test wants.
type home struct {
	*web.Channel
	at    string
	heard chan chat.Message
	away  atomic.Bool              // nothing is answered
	lost  atomic.Pointer[[]string] // files of the page that are not answered, by the ends of their names
	asked atomic.Int64             // how often one of them was asked for
	deaf  atomic.Bool              // messages are not taken
	wrong atomic.Pointer[[]string] // what is wrong with the next values
	steps []chat.Step              // to every reply
	bytes atomic.Int64             // that were sent, headers left out
	mute  atomic.Bool              // the page may not use the microphone
	full  atomic.Bool              // uploads do not fit on the disk
	who   atomic.Pointer[string]   // who is signed in; nil: the owner
	app   atomic.Pointer[app.Handler]
	push  *webpushtest.Service
	dir   string
	n     atomic.Int64
	list  sync.Mutex
	all   []chat.Message
}

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
	"media-src 'self' blob:; frame-src 'self'; connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func newHome(t testing.TB, change ...func(*web.Config)) *home {
	t.Helper()
	h := &home{heard: make(chan chat.Message, 100), dir: t.TempDir()}
	h.push = webpushtest.New(t)
	kept := mem.New()
	notices := notify.New(notify.Config{
		Store: kept, Client: h.push.Client(), Log: slog.New(slog.DiscardHandler), Home: func() string { return h.at },
	})
	var err error
	cfg := web.Config{
		Name: "web", Store: kept, MaxFile: 1 << 20, Log: slog.New(slog.DiscardHandler), Notify: notices,
		Open:  func(p string) (*os.File, error) { return os.Open(filepath.Join(h.dir, path.Base(p))) },
		Save:  h.save,
		Steps: func(context.Context, chat.SessionID, string) ([]chat.Step, error) { return h.steps, nil },
		Models: func(context.Context, chat.Address, chat.Sender) ([]string, error) {
			return []string{"fast", "thorough"}, nil
		},
		Search: func(_ context.Context, _, words string) ([]chat.Find, error) {
			if words != "wind" {
				return nil, nil
			}
			return []chat.Find{{Session: "web:owner/first", Entry: chat.Entry{Kind: chat.Said, Text: "… the <b>wind</b> turns north …", Time: time.Now()}}}, nil
		},
	}
	for _, f := range change {
		f(&cfg)
	}
	h.Channel, err = web.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.Run(ctx, h.deliver) }()
	srv := httptest.NewServer(http.HandlerFunc(h.serve))
	h.at = srv.URL
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		srv.CloseClientConnections()
		srv.Close()
	})
	return h
}

func (h *home) deliver(_ context.Context, m chat.Message) error {
	if h.deaf.Load() || h.away.Load() { // also what came in before it was away
		return io.ErrClosedPipe
	}
	if problems := h.wrong.Swap(nil); problems != nil && m.Answer != nil {
		return &chat.WrongValues{Problems: *problems}
	}
	h.list.Lock()
	defer h.list.Unlock()
	for _, old := range h.all {
		if old.Key() == m.Key() {
			return nil
		}
	}
	h.all = append(h.all, m)
	h.heard <- m
	return nil
}

func (h *home) save(_ context.Context, _ chat.Address, _ chat.Sender, name string, r io.Reader) (chat.File, error) {
	p := fmt.Sprintf("inbox/%d-upload%s", h.n.Add(1), path.Ext(name))
	body, err := io.ReadAll(r)
	if h.full.Load() {
		return chat.File{}, store.ErrFull
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(h.dir, path.Base(p)), body, 0o600)
	}
	return chat.File{Path: p, Name: name, Size: int64(len(body))}, err
}

func (h *home) serve(w http.ResponseWriter, r *http.Request) {
	if lost := h.lost.Load(); lost != nil && slices.ContainsFunc(*lost, func(end string) bool { return strings.HasSuffix(r.URL.Path, end) }) {
		h.asked.Add(1)
		panic(http.ErrAbortHandler)
	}
	if h.away.Load() {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Permissions-Policy", "microphone=("+map[bool]string{false: "self"}[h.mute.Load()]+")")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Referrer-Policy", "no-referrer")
	if r.Method != http.MethodGet && r.Header.Get("X-Parley") == "" {
		http.Error(w, "not ours", http.StatusForbidden)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/app/") {
		if other := h.app.Load(); other != nil {
			other.ServeHTTP(w, r)
			return
		}
		web.App(h.Channel).ServeHTTP(w, r)
		return
	}
	who := chat.Sender{ID: "owner", Name: "Ada", Role: chat.Owner}
	if other := h.who.Load(); other != nil {
		who = chat.Sender{ID: *other, Name: *other, Role: chat.User}
	}
	h.Serve(&counted{w, &h.bytes}, r, who)
}

type counted struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c *counted) Write(p []byte) (int, error) {
	c.n.Add(int64(len(p)))
	return c.ResponseWriter.Write(p)
}

func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// hears returns what the gateway hears next.
func (h *home) hears(t *testing.T, text string) chat.Message {
	t.Helper()
	select {
	case m := <-h.heard:
		if m.Text != text {
			t.Fatalf("the gateway heard %q, not %q", m.Text, text)
		}
		return m
	case <-time.After(time.Minute):
		t.Fatalf("the gateway did not hear %q", text)
		panic("unreachable")
	}
}

func (h *home) says(t testing.TB, r chat.Reply) {
	t.Helper()
	if r.To.Chat == "" {
		r.To = chat.Address{Channel: "web", Chat: "owner", Thread: "first"}
	}
	if _, err := h.Send(context.Background(), r); err != nil {
		t.Fatal(err)
	}
}

// A tab is a window of the browser on the home's page.
type tab struct {
	testing.TB
	*home
	ctx context.Context
}

// tab opens a window. Whatever complains in it fails the test, unless it is among excused.
func (h *home) tab(t testing.TB, browser context.Context, excused ...string) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	b := &tab{t, h, ctx}
	b.do(chromedp.EmulateViewport(1280, 800))
	var wg sync.WaitGroup
	complaints := chromedp.Console(ctx)
	wg.Go(func() {
		for m, err := range complaints {
			if err != nil {
				return
			}
			known := false
			for _, e := range excused {
				known = known || strings.Contains(m.Text, e)
			}
			if !known {
				t.Errorf("the page complains: %s: %s (%s)", m.Type, m.Text, m.URL)
			}
		}
	})
	t.Cleanup(func() {
		if t.Failed() {
			b.shot(strings.ReplaceAll(t.Name(), "/", "-") + "-failed")
		}
		cancel()
		end()
		wg.Wait()
	})
	b.do(chromedp.Navigate(h.at + "/"))
	b.until(`document.querySelector("#state").dataset.text === "" && !!document.querySelector("#entries")`)
	return b
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.Fatal(err)
	}
}

func eval[T any](b *tab, js string) T {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%s: %v", js, err)
	}
	return v
}

// until waits until js is true.
func (b *tab) until(js string) {
	b.Helper()
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		var ok bool
		ok, err = chromedp.Run(b.ctx, chromedp.Evaluate[bool](`new Promise((r) => setTimeout(() => r(Boolean(`+webtest.Loaded(js)+`)), 15))`, chromedp.EvalAwaitPromise))
		if ok && err == nil {
			return
		}
	}
	body, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string](`document.querySelector("main").innerHTML`))
	b.Fatalf("it did not come to %s (%v): %s", js, err, body)
}

// drawn waits until the page has been drawn; one in the background is not.
const drawn = `new Promise((r) => { requestAnimationFrame(() => r(true)); setTimeout(() => r(false), 1000) })`

// click clicks on what can be seen: before a page is drawn its autofocus is not done, and complains of a click.
func (b *tab) click(css string) {
	b.Helper()
	_, _ = chromedp.Run(b.ctx, chromedp.Evaluate[bool](drawn, chromedp.EvalAwaitPromise)) // another page may come meanwhile
	var err error = chromedp.ErrInvalidDimensions
	for deadline := time.Now().Add(time.Minute); errors.Is(err, chromedp.ErrInvalidDimensions) && time.Now().Before(deadline); {
		_, err = chromedp.Run(b.ctx, chromedp.Click(chromedp.CSS(css), chromedp.NodeVisible)) // it may be laid out anew meanwhile
	}
	if err != nil {
		b.Fatalf("click on %s: %v", css, err)
	}
}

// typed types text, whose \r is the Enter key.
func (b *tab) typed(css, text string) {
	b.Helper()
	for line, rest, more := "", text, true; more; {
		if line, rest, more = strings.Cut(rest, enter); line != "" || !more && text == "" {
			b.do(chromedp.SendKeys(chromedp.CSS(css), line))
		}
		switch {
		case more && css == "#text":
			b.enter(0)
		case more:
			b.do(chromedp.KeyEvent(kb.Enter))
		}
	}
}

const enter = "\r"

// enter presses the Enter key, as a keyboard does: what the page prevents does not happen.
func (b *tab) enter(modifiers int64) {
	b.Helper()
	b.press(input.DispatchKeyEventParams{Key: "Enter", Code: "Enter", Text: "\r", WindowsVirtualKeyCode: 13, Modifiers: modifiers})
}

// keys presses the keys of text, as enter does. What typed types arrives also where the page prevents it.
func (b *tab) keys(text string) {
	b.Helper()
	for _, c := range text {
		b.press(input.DispatchKeyEventParams{Key: string(c), Text: string(c)})
	}
}

func (b *tab) press(key input.DispatchKeyEventParams) {
	b.Helper()
	for _, key.Type = range []input.DispatchKeyEventType{"keyDown", "keyUp"} {
		if _, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, key); err != nil {
			b.Fatal(err)
		}
	}
}

// tells types text and sends it, and the gateway hears it.
func (b *tab) tells(t *testing.T, text string) chat.Message {
	t.Helper()
	b.typed("#text", text+enter)
	return b.hears(t, text)
}

// texts is what the conversation shows.
func (b *tab) texts() []string {
	b.Helper()
	return eval[[]string](b, `[...document.querySelectorAll("article > .text")].map((e) => e.innerText.trim())`)
}

// shot keeps a picture for people to look at.
func (b *tab) shot(name string) {
	dir := os.Getenv("PARLEY_ARTIFACTS")
	if f := flag.Lookup("test.artifacts"); dir == "" && f != nil && f.Value.String() == "true" {
		dir = b.ArtifactDir()
	}
	if dir == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)
	}
	if err != nil {
		b.Log("screenshot:", err)
	}
}

func (b *tab) look(width, height int64, scheme string) {
	b.Helper()
	b.do(chromedp.EmulateViewport(width, height))
	_, err := chromedp.Run(b.ctx, func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		return chromedp.Void{}, call(ctx, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
	})
	if err != nil {
		b.Fatal(err)
	}
}

func call(ctx context.Context, p emulation.SetEmulatedMediaParams) error {
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, p)
	return err
}

func (b *tab) offline(is bool) {
	b.Helper()
	_, err := chromedp.Call(b.ctx, network.OverrideNetworkState, network.OverrideNetworkStateParams{Offline: is, DownloadThroughput: -1, UploadThroughput: -1})
	if err != nil {
		b.Fatal(err)
	}
	_, err = chromedp.Call(b.ctx, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
		MatchedNetworkConditions: []*network.Conditions{{Offline: is, DownloadThroughput: -1, UploadThroughput: -1}},
	})
	if err != nil {
		b.Fatal(err)
	}
}

// formsWithoutScripts: who clicks before the scripts of the page have loaded stays on
// the page, with what was typed.
func formsWithoutScripts(t *testing.T, browser context.Context) {
	h := newHome(t)
	ctx, end := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	defer end()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	if forms := webtest.SubmitWithoutScripts(t, ctx, h.at, []string{"/"}); forms != 4 {
		t.Errorf("%d forms were found", forms)
	}
}

func TestBrowser(t *testing.T) {
	browser := webtest.Browser(t) // that all share; each has a window of its own
	for name, test := range map[string]func(*testing.T, context.Context){
		"greeting": greets, "stream": stream, "stop and retry": stopAndRetry, "P3 offline": offline, "lost modules": lostModules, "P3 refused for a while": refused,
		"files": uploads, "question": question, "form": fillsIn, "forms look": formLooks, "accessible form": accessibleForm, "conversations": conversations, "R-S5 scripts are text": inert,
		"said meanwhile": saidMeanwhile, "failed upload": failedUpload, "asked elsewhere": askedElsewhere,
		"forms without scripts": formsWithoutScripts, "looks": looks, "accessible": accessible, "scrolling": scrolling, "keys": keys,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, browser)
		})
	}
}

const lesson = "## The tide\n\nIt comes **twice** a day, because the Earth turns *under* two bulges of water.\n\n" +
	"| Place | Range | When |\n|---|---:|---|\n| Bay of Fundy | 16.3 m | spring |\n| Mont-Saint-Michel | 14 m | equinox |\n\n" +
	"1. The Moon pulls the near side most.\n2. The far side is left behind.\n\n" +
	"```go\nfunc height(t time.Duration) float64 {\n\treturn amplitude * math.Cos(2*math.Pi*t.Hours()/12.42)\n}\n```\n\n> Time and tide wait for no man.\n\nSee `tides.csv` or https://example.com/tides."

// An empty conversation offers three things to press, until something was said.
func greets(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	b.until(`document.querySelectorAll("#try button").length === 3 && document.querySelector("#try").checkVisibility()`)
	b.shot("greeting")
	b.click("#try button:nth-child(2)")
	h.hears(t, greeting.Suggestions()[1])
	b.until(`!document.querySelector("#try").checkVisibility() && document.querySelectorAll("article.you").length === 1`)
}

// A reply streams, its steps are named, and the end takes the place of the draft.
func stream(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	m := b.tells(t, "Why are there two tides a day?")
	r := m.Reply()
	b.until(`document.querySelector("#entries article.you:not(:has([data-mark]))")`)
	if err := h.Typing(b.ctx, r.To); err != nil {
		t.Fatal(err)
	}
	b.until(`document.querySelector("#making .dots") && document.querySelector("#send").ariaLabel === "Stop"`)
	for _, path := range []string{"ti", "tides.csv"} { // C-008, C-015, C-016: its arguments come in
		h.Step(r, chat.Step{Call: "1", Tool: "read_file", State: chat.Waiting, Params: map[string]any{"path": path}})
		b.until(fmt.Sprintf(`document.querySelector(".steps").open && document.querySelector(".steps summary").innerText.includes("read_file – waiting") &&
			document.querySelector("[data-call='1'] dd").innerText === %q`, path))
	}
	h.Step(r, chat.Step{Call: "1", State: chat.Waiting, Tip: "waiting for your approval"})
	b.until(`document.querySelector(".steps summary").innerText.includes("read_file – waiting for your approval")`)
	h.Step(r, chat.Step{Call: "1", State: chat.Running, Tip: "tides.csv"})
	b.until(`document.querySelector(".steps summary").innerText.includes("read_file – running: tides.csv")`)
	h.Step(r, chat.Step{Call: "2", Tool: "web_search", Name: "The web", State: chat.Running, Params: map[string]any{"count": 5, "query": "moon"}})
	b.shot("steps")
	h.Step(r, chat.Step{Call: "1", State: chat.Done, Tip: "tides.csv, 2 KB", Result: "time,height", Began: time.Unix(1, 0), Ended: time.Unix(2, 3e8)})
	h.Step(r, chat.Step{Call: "2", State: chat.Failed, Tip: "moon", Error: "no network"})
	b.until(`document.querySelector(".steps summary").innerText.includes("read_file, The web – 1 of 2 failed")`)
	if got := eval[string](b, `[...document.querySelectorAll(".steps li")].map((l) => [l.dataset.state, l.firstChild.open, ...[...l.querySelectorAll("dd, p")].map((e) => e.textContent)].join(" ")).join("|")`); got != "success false tides.csv time,height|error true 5 moon no network" {
		t.Errorf("the cards say %s", got)
	}
	b.do(chromedp.Reload())
	b.until(`[...document.querySelectorAll(".steps li")].map((l) => l.dataset.call + l.dataset.state).join() === "1success,2error"`)
	r.Text = lesson[:120]
	h.Stream(r)
	b.until(`document.querySelector("#making .text strong")?.innerText === "twice"`)
	eval[bool](b, `window.node = document.querySelector("#making article"), true`)
	h.says(t, chat.Reply{ID: "aside", Text: "By the way: the kettle is on."})
	b.until(`document.querySelector("#entries").innerText.includes("kettle") && document.querySelector("#making article") === window.node`)
	b.until(`!document.querySelector("#entries > :last-child .redo")`) // there is nothing to try again before the reply is there
	r.Text, r.Steps = lesson, "🔧 read_file, The web – 2 s, 1 failed"
	h.Stream(r)
	b.until(`document.querySelector("#making table")`)
	h.says(t, r)
	b.until(`document.querySelector("#entries").lastElementChild === window.node && document.querySelector("#making").childNodes.length === 0`)
	b.until(`document.querySelector("#send").ariaLabel === "Send" && document.querySelector("#entries > :last-child .redo") && document.querySelector(".code .copy")`)
	if got := b.texts(); len(got) != 3 || !strings.Contains(got[2], "twice") {
		t.Errorf("the page shows %q", got)
	}
	if eval[bool](b, `document.querySelector(".steps").open`) {
		t.Error("the steps stay open when all is said")
	}
	b.shot("chat")
	b.do(chromedp.Reload())
	b.until(`document.querySelector("#entries p.steps")?.innerText === "🔧 read_file, The web – 2 s, 1 failed"`)
	b.until(`document.querySelectorAll("#entries article").length === 3 && document.querySelector(".code .copy") && document.querySelector("#entries time").innerText`)
	if cls := eval[float64](b, `new Promise((r) => new PerformanceObserver((l, o) => r(l.getEntries().reduce((n, e) => n + e.value, 0))).observe({type: "layout-shift", buffered: true}) ?? setTimeout(() => r(0), 300))`); cls > 0.02 {
		t.Errorf("the layout shifts by %.3f when the page is loaded", cls)
	}
}

func stopAndRetry(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	m := b.tells(t, "Count to a million")
	r := m.Reply()
	r.Text = "1, 2, 3"
	h.Stream(r)
	b.until(`document.querySelector("#send").ariaLabel === "Stop" && document.querySelector("#making").innerText.includes("1, 2, 3")`)
	b.click("#send")
	h.hears(t, "/stop")
	b.typed("#text", kb.Escape)
	h.hears(t, "/stop")
	r.Text = "1, 2, 3 – stopped."
	h.says(t, r)
	b.until(`document.querySelector("#entries > :last-child .redo") && document.querySelector("#send").ariaLabel === "Send"`)
	b.click("#entries > :last-child .redo")
	again := h.hears(t, "/regenerate")
	r = again.Reply()
	r.Text = "Once more: 1, 2, 3, 4."
	h.says(t, r)
	b.until(`document.querySelector(".parley .versions")?.innerText === "2/2"`)
	if got := b.texts(); len(got) != 2 || !strings.HasPrefix(got[1], "Once more") {
		t.Errorf("commands are shown, or answers are not: %q", got)
	}
}

// What is written while there is no network is sent once there is, and once.
func offline(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser, "net::ERR_")
	b.tells(t, "before")
	b.offline(true)
	b.until(`document.querySelector("#state").innerText === "You are offline. Your messages will be sent when you are back online."`)
	b.typed("#text", "one"+enter+"two"+enter+"half a thou")
	b.until(`document.querySelectorAll("#unsent article").length === 2 && document.querySelector("#unsent").innerText.includes("Waiting to be sent")`)
	b.shot("offline")
	h.says(t, chat.Reply{ID: "meanwhile", Text: "said meanwhile"})
	b.offline(false)
	h.hears(t, "one")
	h.hears(t, "two")
	b.until(`document.querySelectorAll("#entries article").length === 4 && document.querySelectorAll("[data-mark], #unsent article").length === 0`)
	b.until(`document.querySelector("#state").innerText === ""`)
	if got := fmt.Sprint(b.texts()); got != "[before said meanwhile one two]" {
		t.Errorf("the page shows %s", got)
	}
	b.do(chromedp.Reload())
	b.until(`document.querySelectorAll("#entries article").length === 4 && document.querySelector("#text").value === "half a thou"`)
	if n := len(h.heard); n > 0 {
		t.Errorf("%d messages were sent twice", n)
	}
}

// Modules that are loaded when first needed, while the connection breaks: the page does not
// complain, and has them soon after the connection is back.
func lostModules(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser, "net::ERR_")
	h.lost.Store(&[]string{"/cards.js", "/cards.css", "/highlight.js", "/maths.js", "/temml.min.js"})
	h.says(t, chat.Reply{ID: "code", Text: "It is $x^2$:\n\n```go\nfunc main() {}\n```"})
	b.until(`document.querySelectorAll("#entries .code, #entries .math").length === 2`)
	for deadline := time.Now().Add(time.Minute); h.asked.Load() < 12 && time.Now().Before(deadline); {
		b.until("true")
	}
	if eval[bool](b, `!!document.querySelector(".hljs-keyword, math, link[href$='/cards.css']")`) {
		t.Error("the modules were not lost")
	}
	h.lost.Store(nil)
	b.until(`document.querySelector(".hljs-keyword") && document.querySelector("math") && document.querySelector("link[href$='/cards.css']")`)
	h.lost.Store(&[]string{"/notify.js"})
	b.click("#bell")
	b.until("true")
	h.lost.Store(nil)
	b.until(`document.querySelector("dialog[open]") || document.querySelector("#bell").click()`)
}

// A gateway that takes nothing, and a page that is loaded anew meanwhile.
func refused(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser, "503", "413", "net::ERR_")
	h.deaf.Store(true)
	b.typed("#text", "hold on to this"+enter)
	b.until(`document.querySelector("[data-mark]")?.innerText === "Waiting to be sent"`)
	b.do(chromedp.Reload())
	b.until(`document.querySelector("[data-mark]")?.innerText === "Waiting to be sent"`)
	h.away.Store(true)
	h.deaf.Store(false)
	b.until(`document.querySelector("[data-mark]")`)
	h.away.Store(false)
	h.hears(t, "hold on to this")
	b.until(`!document.querySelector("[data-mark]")`)
	if got := b.texts(); len(got) != 1 || len(h.heard) > 0 {
		t.Errorf("the page shows %q", got)
	}
	b.typed("#text", strings.Repeat("x", 100))
	eval[bool](b, `(document.querySelector("#text").value = "x".repeat(70000), true)`)
	b.typed("#text", enter)
	b.until(`document.querySelector("[data-mark]")?.innerText.includes("too long")`)
	eval[bool](b, `(document.querySelector("[data-mark] button:last-child").click(), true)`)
	b.until(`document.querySelectorAll("article").length === 1`)
}

const pixel = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\x00\x05\x00\x01\xff\x89\x99=\x1d\x00\x00\x00\x00IEND\xaeB`\x82"

// Files come by the picker, by paste and by drop, and go out again.
func uploads(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	dir := t.TempDir()
	notes := filepath.Join(dir, "notes of a walk.txt")
	if err := os.WriteFile(notes, []byte("sea, wind"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.SetUploadFiles(chromedp.CSS("#pick"), []string{notes}, chromedp.NodeReady))
	b.until(`document.querySelector("#tray li:not(:has(progress))")`)
	send := func(kind, name, field string) {
		body, _ := json.Marshal([]byte(pixel)) // base64
		eval[bool](b, `(() => {
			const d = new DataTransfer();
			d.items.add(new File([Uint8Array.from(atob(`+string(body)+`), (c) => c.charCodeAt(0))], "`+name+`", {type: "image/png"}));
			document.querySelector("#text").dispatchEvent(new `+kind+`("`+strings.ToLower(field)+`", {bubbles: true, cancelable: true, `+
			map[bool]string{true: "clipboardData", false: "dataTransfer"}[kind == "ClipboardEvent"]+`: d}));
			return true; })()`)
	}
	send("ClipboardEvent", "pasted.png", "paste")
	send("DragEvent", "dragged.png", "dragover")
	b.until(`document.documentElement.classList.contains("drop")`)
	send("DragEvent", "dropped.png", "drop")
	b.until(`document.querySelectorAll("#tray li:not(:has(progress))").length === 3 && document.querySelectorAll("#tray img").length === 2`)
	b.shot("attached")
	b.do(chromedp.Reload())
	b.until(`document.querySelectorAll("#tray li").length === 3`)
	b.click(`[aria-label="Remove dropped.png"]`)
	m := b.tells(t, "look at these")
	if len(m.Files) != 2 || m.Files[0].Name != "notes of a walk.txt" || m.Files[1].Name != "pasted.png" {
		t.Fatalf("the gateway has %+v", m.Files)
	}
	b.until(`document.querySelector(".files img")?.naturalWidth === 1 && document.querySelector("a.card").download === "notes of a walk.txt"`)
	if got := eval[string](b, `fetch(document.querySelector("a.card").href).then((r) => r.text())`); got != "sea, wind" {
		t.Errorf("it downloads as %q", got)
	}
	if err := os.WriteFile(filepath.Join(h.dir, "not.png"), []byte("no picture"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := m.Reply()
	r.Text, r.Files = "Here you are.", []chat.File{{Path: "not.png"}}
	h.says(t, r)
	b.until(`document.querySelector(".parley .picture svg")`)
	eval[bool](b, `(() => { const d = new DataTransfer(); d.items.add(new File([new Uint8Array((1 << 20) + 1)], "big.bin"));
		dispatchEvent(new ClipboardEvent("paste", {clipboardData: d})); return true; })()`)
	b.until(`document.querySelector("#tray .bad")?.innerText === "too big: 1 MB is the limit"`)
}

// What is said while an answer is being made stays below it, also on a page that
// is loaded anew; an answer that answers it, too, comes after it.
func saidMeanwhile(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	first := b.tells(t, "Tell me a story").Reply()
	first.Text = "Once upon a time"
	h.Stream(first)
	b.until(`document.querySelector("#making").innerText.includes("Once upon")`)
	second := b.tells(t, "A short one").Reply()
	b.until(`!document.querySelector("[data-mark]") && document.querySelector("#unsent article[data-seq]")`)
	order := func(want string) {
		t.Helper()
		if got := strings.Join(b.texts(), " | "); got != want {
			t.Errorf("the page shows %s, want %s", got, want)
		}
	}
	order("Tell me a story | Once upon a time | A short one")
	b.shot("said-meanwhile")
	first.Text = "Once upon a time there was a king."
	h.says(t, first)
	b.until(`document.querySelectorAll("#entries article").length === 3`)
	order("Tell me a story | Once upon a time there was a king. | A short one")
	second.Text = "He"
	h.Stream(second)
	b.until(`document.querySelector("#making").innerText.includes("He")`)
	third := b.tells(t, "And a queen")
	b.until(`!document.querySelector("[data-mark]") && document.querySelector("#unsent article[data-seq]")`)
	second.Text, second.Also = "He had a queen.", []string{third.ID}
	h.says(t, second)
	b.until(`document.querySelectorAll("#entries article").length === 5`)
	const all = "Tell me a story | Once upon a time there was a king. | A short one | And a queen | He had a queen."
	order(all)
	b.do(chromedp.Reload())
	b.until(`document.querySelector("#entries time")?.innerText`)
	order(all)

	// A command that was answered meanwhile stays with its answer.
	fourth := b.tells(t, "A long one").Reply()
	fourth.Text = "It was a dark"
	h.Stream(fourth)
	b.until(`document.querySelector("#making").innerText.includes("It was a dark")`)
	for n, command := range []string{"/cron", "/mcp"} {
		r := b.tells(t, command).Reply()
		r.Text = "about " + command
		h.says(t, r)
		b.until(fmt.Sprintf(`document.querySelectorAll("#entries article").length === %d`, 8+2*n))
		if n == 0 { // the page that is loaded again knows it, too
			b.do(chromedp.Reload())
			b.until(`document.querySelector("#state").dataset.text === "" && document.querySelectorAll("#entries article").length === 8`)
			h.Stream(fourth)
			b.until(`document.querySelector("#making").innerText.includes("It was a dark")`)
		}
	}
	h.says(t, fourth)
	b.until(`document.querySelectorAll("#entries article").length === 11 && !document.querySelector("#making article")`)
	const commands = all + " | A long one | /cron | about /cron | /mcp | about /mcp | It was a dark"
	order(commands)
	b.do(chromedp.Reload())
	b.until(`document.querySelector("#entries time")?.innerText`)
	order(commands)
}

// A file that could not be uploaded holds a message back, and the page says so and
// what to do.
func failedUpload(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	big := func() {
		eval[bool](b, `(() => { const d = new DataTransfer(); d.items.add(new File([new Uint8Array((1 << 20) + 1)], "big.bin"));
			dispatchEvent(new ClipboardEvent("paste", {clipboardData: d})); return true; })()`)
		b.until(`document.querySelector("#tray .bad")`)
	}
	big()
	b.typed("#text", "look at this"+enter)
	b.until(`document.querySelector("#why").innerText.includes("big.bin could not be uploaded, so your message is not sent yet.")`)
	if got := len(h.heard); got != 0 {
		t.Errorf("%d messages were sent without their file", got)
	}
	b.shot("failed-upload")
	b.click("#why button")
	h.hears(t, "look at this")
	b.until(`document.querySelector("#why").innerText === "" && !document.querySelector("#tray li")`)
	big()
	b.until(`document.querySelector("#why button")?.innerText === "Remove"`)
	b.click("#why button")
	b.until(`document.querySelector("#why").innerText === "" && !document.querySelector("#tray li")`)
}

// A question in another conversation is announced on every page, at once and when
// it is loaded, until it is answered.
func askedElsewhere(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	b.tells(t, "hello")
	r := chat.Reply{ID: "ask:1", To: h.Direct("owner"), Text: "`telegram:42` asks to delete **old.txt**", Ask: &chat.Question{ID: "q7", Choices: []string{"Yes", "No"}}}
	rc, err := h.Send(b.ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	const announced = `document.querySelector("#elsewhere:not([hidden])")?.innerText === "Your answer is needed in Notices" &&
		document.querySelector("#talks .badge")?.firstChild.data === "1"`
	b.until(announced)
	b.shot("asked-elsewhere")
	b.do(chromedp.Reload())
	b.until(announced)
	b.click("#elsewhere a")
	b.until(`document.querySelector(".ask button") && document.querySelector("#elsewhere").hidden && document.querySelector("#talks [aria-current] .badge")`)
	r.Text, r.Ask = r.Text+" – **No**", nil
	if err := h.Edit(b.ctx, rc, r); err != nil {
		t.Fatal(err)
	}
	b.until(`!document.querySelector(".ask") && !document.querySelector("#talks .badge")`)
}

func question(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	m := b.tells(t, "tidy up")
	r := m.Reply()
	r.ID, r.Text, r.Ask = "q1", "May I delete `old.txt`?", &chat.Question{ID: "q7", Choices: []string{"Yes, delete it", "No", "Always"}}
	rc, err := h.Send(b.ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	b.until(`document.querySelectorAll(".ask button").length === 3`)
	b.shot("question")
	b.click(`.ask button:nth-child(2)`)
	got := h.hears(t, "")
	if a := got.Answer; a == nil || a.Question != "q7" || a.Choice != 1 || a.Receipt != string(rc) {
		t.Fatalf("the gateway heard %+v", got)
	}
	b.until(`document.querySelector("[aria-pressed=true]:disabled")?.innerText === "No"`)
	r.Text, r.Ask = "May I delete `old.txt`? – **No**", nil
	if err := h.Edit(b.ctx, rc, r); err != nil {
		t.Fatal(err)
	}
	b.until(`!document.querySelector(".ask") && document.querySelector(".parley strong").innerText === "No"`)
}

// aForm asks for a value of each kind.
func aForm() *chat.Question {
	least, most := 1.0, 12.0
	long := 60
	return &chat.Question{ID: "f1", Choices: []string{"Send", "Decline", "Cancel"}, Whom: "owner", Alone: true, Fields: []chat.Field{
		{Kind: chat.FieldText, Label: "Your name", Note: "As it stands on the passport.", Hint: "at most 60 characters long", MaxLength: &long, Required: true},
		{Kind: chat.FieldText, Label: "E-mail <b>address</b>", Format: chat.FormatEmail, Hint: "an e-mail address such as name@example.com", Required: true},
		{Kind: chat.FieldInteger, Label: "Guests", Hint: "a whole number, at least 1, at most 12", Min: &least, Max: &most, Preset: []string{"2"}, Required: true},
		{Kind: chat.FieldText, Label: "Arrival", Format: chat.FormatDate, Hint: "a date such as 2026-11-23", Required: true},
		{Kind: chat.FieldText, Label: "Dinner", Format: chat.FormatDateTime, Preset: []string{"2026-12-24T18:30:00Z"}},
		{Kind: chat.FieldChoice, Label: "Room", Options: []chat.Option{{Value: "s", Label: "Single"}, {Value: "d", Label: "Double"}}, Required: true},
		{Kind: chat.FieldYesNo, Label: "Breakfast", Options: []chat.Option{{Value: "true", Label: "Yes"}, {Value: "false", Label: "No"}}},
		{Kind: chat.FieldChoices, Label: "Extras", Options: []chat.Option{{Value: "p", Label: "Parking"}, {Value: "c", Label: "Cot"}, {Value: "v", Label: "Sea view"}}, Preset: []string{"c"}},
		{Kind: chat.FieldText, Label: "Wishes", Note: "What else should we know?"},
	}}
}

// asksForm has the page show a form, and returns the receipt of its message.
func (b *tab) asksForm(t *testing.T, q *chat.Question) channels.Receipt {
	t.Helper()
	r := chat.Reply{ID: "form", To: chat.Address{Channel: "web", Chat: "owner", Thread: "first"}, Ask: q,
		Text: "The MCP server `hotel` asks, for its tool `mcp_hotel_book`:\n> `Please tell us about your stay.`\n\n*Your answer goes to that server. Never give it passwords or other secrets.*"}
	rc, err := b.Send(b.ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	b.until(`[...document.styleSheets].some((s) => s.href?.endsWith("cards.css")) && document.querySelector("form.ask")?.oninput && document.querySelectorAll("form.ask [data-field]").length === ` + fmt.Sprint(len(q.Fields)))
	return rc
}

// set gives a control of the form a value, as somebody who types does.
func (b *tab) set(css, value string) {
	b.Helper()
	eval[bool](b, fmt.Sprintf(`((c) => (c.value = %q, c.dispatchEvent(new Event("input", {bubbles: true}))))(document.querySelector(%q))`, value, css))
}

// A form is filled in and sent. What is wrong is said at its field, with all that was typed still there, also
// after the page was loaded again. In the end the page shows what was sent, in the other tab, too.
func fillsIn(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser, "422")
	b.tells(t, "book a room")
	rc := b.asksForm(t, aForm())
	other := h.tab(t, browser)
	other.until(`document.querySelector("form.ask")?.oninput`)
	if label := eval[string](b, `document.querySelector("label[for=f1-1]").innerText`); label != "E-mail <b>address</b>" {
		t.Errorf("a label is %q", label)
	}
	b.typed("#f1-0", "Ada")
	b.typed("#f1-1", "nobody")
	b.set("#f1-3", "2026-12-23")
	b.set("#f1-5", "d")
	b.click(`input[name=f1-6][value=true]`)
	b.click(`input[name=f1-7][value=v]`)
	b.typed("#f1-8", "A quiet room,\nplease")
	local := eval[string](b, `((d) => new Date(d.getTime() - 60000 * d.getTimezoneOffset()).toISOString().slice(0, 16))(new Date("2026-12-24T18:30:00Z"))`)
	if shown := eval[string](b, `document.querySelector("#f1-4").value`); shown != local {
		t.Errorf("a moment is shown as %q, not %q", shown, local)
	}
	h.wrong.Store(&[]string{"", "This must be an e-mail address.", "", "", "", "", "", "This must be other extras.", ""})
	b.click(`.ask [type=submit]`)
	isOpen := `document.activeElement.id === "f1-1" && !document.querySelector("#f1-1-wrong").hidden && !document.querySelector(".ask :disabled")`
	b.until(isOpen)
	if said := eval[string](b, `[...document.querySelectorAll(".wrong:not([hidden])")].map((p) => p.innerText).join("|")`); said != "This must be an e-mail address.|This must be other extras." {
		t.Errorf("the page says %q", said)
	}
	if by := eval[string](b, `document.activeElement.getAttribute("aria-describedby").split(" ").map((id) => document.getElementById(id).innerText).join("|") + document.activeElement.ariaInvalid`); by != "An e-mail address such as name@example.com|This must be an e-mail address.true" {
		t.Errorf("screen readers read %q", by)
	}
	b.typed("#f1-1", "@example.com")
	b.until(`document.querySelector("#f1-1-wrong").hidden && !document.querySelector("#f1-1").ariaInvalid`)
	b.do(chromedp.Reload()) // and waits: the page before it shows the same
	b.until(`[...document.styleSheets].some((s) => s.href?.endsWith("cards.css")) && document.querySelector("form.ask")?.oninput && document.querySelector("#f1-1").value === "nobody@example.com"`)
	eval[bool](b, `(document.querySelector("#f1-0").focus(), true)`)
	b.enter(0) // sends, as in any form
	a := b.hears(t, "").Answer
	at, err := time.Parse(time.RFC3339, a.Values[4][0])
	if err != nil || !at.Equal(time.Date(2026, 12, 24, 18, 30, 0, 0, time.UTC)) {
		t.Errorf("the moment is %q: %v", a.Values[4], err)
	}
	a.Values[4] = nil
	want := chat.Answer{Question: "f1", Choice: 0, Receipt: string(rc), Values: [][]string{{"Ada"}, {"nobody@example.com"}, {"2"}, {"2026-12-23"}, nil, {"d"}, {"true"}, {"c", "v"}, {"A quiet room,\nplease"}}}
	if !reflect.DeepEqual(*a, want) {
		t.Errorf("the gateway heard %+v, not %+v", *a, want)
	}
	b.until(`document.querySelectorAll(".ask :is(input, select, textarea, button):enabled").length === 0`)
	closed := chat.Reply{ID: "form", To: chat.Address{Channel: "web", Chat: "owner", Thread: "first"}, Text: "It asked.\n\n✓ **Send**\n\n- `Your name`: `Ada`"}
	if err := h.Edit(b.ctx, rc, closed); err != nil {
		t.Fatal(err)
	}
	for _, tab := range []*tab{b, other} {
		tab.until(`!document.querySelector(".ask") && document.querySelector(".parley .text").innerText.includes("Your name: Ada")`)
	}
	if left := eval[int](b, `Object.keys(sessionStorage).filter((k) => k.startsWith("form/")).length`); left != 0 {
		t.Errorf("%d forms are kept after they were answered", left)
	}
}

// Forms fit screens of all widths, and fingers.
func formLooks(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser, "422")
	r := b.tells(t, "book a room").Reply()
	q := aForm()
	q.Fields[5].Options[1].Label = strings.Repeat("Double room with a view of the sea and ", 3)
	q.Fields[7].Options[1].Label = strings.Repeat("wide", 30)
	q.Fields[8].Label = strings.Repeat("W", 100)
	b.asksForm(t, q)
	h.wrong.Store(&[]string{"", "This must be an e-mail address such as name@example.com.", "", "Please fill this in.", "", "Please fill this in.", "", "", ""})
	b.click(`.ask [type=submit]`)
	b.until(`document.activeElement.id === "f1-1"`)
	h.Step(r, chat.Step{Call: "1", Tool: "mcp_hotel_book", State: chat.Running, Tip: strings.Repeat("Which room would you like? ", 5)})
	b.until(`document.querySelector(".steps .unseen")`)
	for _, size := range [][2]int64{{1200, 1600}, {390, 2200}} {
		for _, scheme := range []string{"light", "dark"} {
			b.look(size[0], size[1], scheme)
			b.until(fmt.Sprintf(`innerWidth === %d && matchMedia("(prefers-color-scheme: %s)").matches`, size[0], scheme))
			b.shot(fmt.Sprintf("form-%d-%s", size[0], scheme))
			if wide := eval[string](b, `[document.documentElement, document.querySelector("#scroll"), document.querySelector("form.ask")].map((e) => e.scrollWidth - e.clientWidth).join()`); wide != "0,0,0" {
				t.Errorf("at %d there is more than fits: %s", size[0], wide)
			}
			if small := eval[string](b, `[...document.querySelectorAll(".ask :is(button, select, textarea, .option, .field > input)")]
				.filter((e) => e.getBoundingClientRect().height < 44).map((e) => e.outerHTML).join("\n")`); small != "" {
				t.Errorf("too small for a finger: %s", small)
			}
		}
	}
}

// Every control of a form has a name, also for those who cannot see it.
func accessibleForm(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	b.tells(t, "book a room")
	b.asksForm(t, aForm())
	tree, err := chromedp.Call(b.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, n := range tree.Nodes {
		name, role := text(n.Name), text(n.Role)
		if !n.Ignored && name != "" && !slices.Contains([]string{"InlineTextBox", "StaticText", "LabelText", "Legend"}, role) {
			found[name] = role + ": " + text(n.Description)
		}
	}
	for name, want := range map[string]string{
		"Your name":             "textbox: As it stands on the passport. At most 60 characters long",
		"E-mail <b>address</b>": "textbox: An e-mail address such as name@example.com",
		"Guests":                "spinbutton: A whole number, at least 1, at most 12",
		"Arrival":               "Date: ",
		"Dinner (optional)":     "DateTime: ",
		"Room":                  "combobox: ",
		"Breakfast (optional)":  "radiogroup: ",
		"Extras (optional)":     "group: ",
		"Parking":               "checkbox: ",
		"Wishes (optional)":     "textbox: What else should we know?",
		"Fill in and send":      "form: ",
	} {
		if found[name] != want {
			t.Errorf("%s is %q, not %q", name, found[name], want)
		}
	}
}

func conversations(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	b.tells(t, "The wind today")
	b.until(`document.querySelector("h1").innerText === "The wind today" && document.title.startsWith("The wind today")`)
	b.click("#edit")
	b.until(`document.activeElement.id === "name"`)
	b.typed("#name", "Weather at sea"+enter)
	b.until(`document.querySelector("h1").innerText === "Weather at sea" && document.querySelector("#talks").innerText.includes("Weather at sea")`)
	b.click("#edit")
	b.typed("#name", "never"+kb.Escape)
	b.until(`document.querySelector("h1").innerText === "Weather at sea"`)
	b.click("#edit")
	b.keys("Storms at sea")
	b.enter(0)
	b.until(`document.querySelector("h1").innerText === "Storms at sea" && document.activeElement.id === "edit"`)
	b.click("#new")
	b.until(`location.pathname !== "/c/first" && document.querySelector("#state")?.dataset.text === ""`)
	b.shot("new")
	b.typed("#text", "Soup for four"+enter)
	b.until(`document.querySelectorAll("#talks a").length === 2 && document.querySelector("#talks").innerText.includes("Soup for four")`)
	eval[bool](b, `(dispatchEvent(new KeyboardEvent("keydown", {key: "k", ctrlKey: true})), true)`)
	b.until(`document.activeElement.id === "words"`)
	b.typed("#words", "wind")
	b.until(`document.querySelector("#talks small")?.innerText === "… the <b>wind</b> turns north …" && document.querySelector("#found").innerText === "1 found"`)
	b.shot("search")
	eval[bool](b, `(document.querySelector("#words").value = "", document.querySelector("#words").dispatchEvent(new Event("input")), true)`)
	b.until(`document.querySelectorAll("#talks a").length === 2`)
	b.click("#delete")
	b.until(`document.querySelector("#sure").open`)
	b.click(`#sure [value=no]`)
	b.until(`!document.querySelector("#sure").open && document.querySelectorAll("#talks a").length === 2`)
	b.click("#delete")
	b.click(`#sure [value=yes]`)
	b.until(`location.pathname === "/c/first" && document.querySelectorAll("#talks a").length === 1`)
}

// R-S5: whatever others chose to be called is text here.
func inert(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	const probe = `<img src=x onerror="window.hit=1"><script>window.hit=1</script>"'><svg onload=window.hit=1>`
	m := b.tells(t, probe)
	r := m.Reply()
	h.Step(r, chat.Step{Call: probe, Tool: probe, State: chat.Failed, Tip: probe, Params: map[string]any{probe: probe, "x": []any{probe}}, Result: probe, Error: probe})
	b.until(`[...document.querySelectorAll(".steps :is(b, dt, dd, p)")].filter((e) => e.textContent.includes("<img src=x")).length === 6`)
	r.Text = probe + "\n\n[x](javascript:window.hit=1) ![y](http://127.0.0.1:1/x.png)\n\n```" + probe + "\n" + probe + "\n```"
	h.Stream(r)
	b.until(`document.querySelector("#making pre")`)
	if err := os.WriteFile(filepath.Join(h.dir, "f"), []byte(probe), 0o600); err != nil {
		t.Fatal(err)
	}
	r.Files = []chat.File{{Path: "f", Name: probe, Type: "text/html"}, {Path: "f", Name: probe + ".png", Type: "image/png"}, {Path: "f", Name: `x" onerror="window.hit=1`, Type: `image/png`}}
	r.Steps = probe
	r.Ask = &chat.Question{ID: "q9", Choices: []string{probe, `" onclick="window.hit=1`}}
	h.says(t, r)
	b.until(`document.querySelectorAll(".parley .files li").length === 3 && document.querySelector("h1").textContent.startsWith("<img")`)
	b.click("#edit")
	b.until(`document.activeElement.id === "name"`)
	b.typed("#name", "2 "+probe+enter)
	b.until(`document.querySelector("h1").textContent.startsWith("2 <img src=x") && document.querySelector("#talks").textContent.includes("<script>")`)
	check := func() {
		t.Helper()
		b.until(`document.readyState === "complete" && document.querySelector(".ask")`)
		if bad := eval[int](b, `[...document.querySelectorAll("body *")].filter((e) => [...e.attributes].some((a) => a.name.startsWith("on")) ||
			/^javascript:/i.test(e.href ?? "") || e.tagName === "SCRIPT" || e.tagName === "IMG" && !e.src.startsWith(location.origin + "/files/")).length`); bad > 0 {
			t.Errorf("%d elements were made of text", bad)
		}
		if eval[bool](b, `"hit" in window`) {
			t.Error("a script ran")
		}
	}
	check()
	b.do(chromedp.Reload())
	b.until(`document.querySelector("h1").textContent.startsWith("2 <img src=x")`)
	check()
}

func (h *home) talkAbout(t testing.TB) {
	for i, text := range []string{"Morning! The walk was lovely: five kilometres along the coast, and nobody there but the gulls.", lesson} {
		h.says(t, chat.Reply{ID: fmt.Sprint("say", i), Text: text})
	}
}

func looks(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	for _, title := range []string{"Soup for four", "A letter to the landlord", "Trip to Brittany in May"} {
		eval[bool](b, `window.before = true`) // this page, too, may have no message
		b.click("#new")
		b.until(`!window.before && !document.querySelector("article") && document.querySelector("#state")?.dataset.text === ""`)
		b.tells(t, title)
		b.until(`document.querySelector("h1").innerText === ` + fmt.Sprintf("%q", title))
	}
	id := eval[string](b, `document.body.dataset.talk`)
	say := func(r chat.Reply) {
		r.To = chat.Address{Channel: "web", Chat: "owner", Thread: id}
		h.says(t, r)
	}
	say(chat.Reply{ID: "a", Text: "May is a good month: the gorse is in flower and the beaches are empty. Three ideas:\n\n- **Cancale** for oysters and the bay\n- **Ploumanac'h** for pink granite\n- **Quiberon** for wind\n\nShall I look up trains?"})
	b.tells(t, "Yes please. And tell me when the tides are big, I would like to see Mont-Saint-Michel with water around it.")
	say(chat.Reply{ID: "b", Text: lesson})
	b.tells(t, "Lovely")
	live := chat.Reply{ID: "c", To: chat.Address{Channel: "web", Chat: "owner", Thread: id}, Text: "There is a train at 8:12 from Montparnasse that is in Saint-Malo at"}
	h.Step(live, chat.Step{Call: "1", Tool: "web_search", State: chat.Done, Tip: "trains Paris Saint-Malo", Params: map[string]any{"query": "trains Paris Saint-Malo", "count": 5}, Result: "1. TGV INOUI 8081, 8:12", Began: time.Unix(1, 0), Ended: time.Unix(2, 3e8)})
	h.Step(live, chat.Step{Call: "2", Tool: "write_file", State: chat.Failed, Tip: "plan.md", Params: map[string]any{"path": "plan.md"}, Error: "the disk is full"})
	h.Step(live, chat.Step{Call: "3", Tool: "read_file", State: chat.Waiting, Params: map[string]any{"path": strings.Repeat("a/very/long/path/", 12)}})
	h.Stream(live)
	b.until(`document.querySelector("#making").innerText.includes("8:12")`)
	for _, size := range [][2]int64{{1280, 800}, {360, 740}} {
		for _, scheme := range []string{"light", "dark"} {
			b.look(size[0], size[1], scheme)
			b.until(fmt.Sprintf(`innerWidth === %d && matchMedia("(prefers-color-scheme: %s)").matches`, size[0], scheme))
			b.shot(fmt.Sprintf("look-%d-%s", size[0], scheme))
			if wide := eval[int64](b, `document.documentElement.scrollWidth`); wide > size[0] {
				t.Errorf("at %d the page is %d wide", size[0], wide)
			}
			if size[0] != 360 {
				continue
			}
			if small := eval[string](b, `[...document.querySelectorAll("button, a, input, textarea, summary")].filter((e) => e.checkVisibility({visibilityProperty: true}) && !e.closest(".text, .skip, article footer, .code"))
				.map((e) => [e, e.getBoundingClientRect()]).filter(([, r]) => r.width < 44 || r.height < 44).map(([e, r]) => e.outerHTML + r.width + "x" + r.height).join("\n")`); small != "" {
				t.Errorf("too small for a finger: %s", small)
			}
			b.click("#menu")
			b.until(`document.querySelector("#side").matches(":popover-open")`)
			b.until(`document.querySelector("#side").getAnimations().length === 0`)
			b.shot(fmt.Sprintf("drawer-%s", scheme))
			eval[bool](b, `(document.querySelector("#side").hidePopover(), true)`)
		}
	}
	b.look(1280, 800, "light")
	eval[bool](b, `(document.querySelector("#scroll").scrollTop = -9999, document.querySelectorAll(".steps, .steps details").forEach((d) => (d.open = true)), true)`)
	b.shot("look-scrolled")
	for _, scheme := range []string{"light", "dark"} {
		b.look(1280, 800, scheme)
		if low := eval[string](b, contrast); low != "" {
			t.Errorf("%s: low contrast: %s", scheme, low)
		}
	}
}

// contrast lists the pairs of colours that are too close (WCAG 1.4.3: 4.5, and 1.4.11: 3).
const contrast = `(() => {
	const probe = document.body.appendChild(document.createElement("i")), pad = new OffscreenCanvas(1, 1).getContext("2d", {willReadFrequently: true});
	const light = (name) => {
		probe.style.color = "var(--" + name + ")";
		pad.fillStyle = getComputedStyle(probe).color;
		pad.fillRect(0, 0, 1, 1);
		const [r, g, b] = [...pad.getImageData(0, 0, 1, 1).data].map((v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const pairs = ["ink", "quiet", "accent", "bad"].flatMap((c) => ["paper", "shade", "card"].map((on) => [c, on, 4.5]))
		.concat([["ink", "mine", 4.5], ["quiet", "mine", 4.5], ["on", "accent", 4.5], ["edge", "card", 3], ["edge", "paper", 3]]);
	const low = pairs.map(([a, b, least]) => {
		const [x, y] = [light(a), light(b)].sort((p, q) => q - p), is = (x + 0.05) / (y + 0.05);
		return is < least ? a + " on " + b + ": " + is.toFixed(2) : "";
	}).filter(Boolean).join(", ");
	probe.remove();
	return low;
})()`

// Everything that can be used has a role and a name, and the page has its landmarks.
func accessible(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	m := b.tells(t, "hello")
	h.talkAbout(t)
	r := m.Reply()
	r.Text, r.Ask = "Well?", &chat.Question{ID: "q1", Choices: []string{"Yes", "No"}}
	h.says(t, r)
	h.Step(chat.Reply{ID: "next", To: r.To}, chat.Step{Call: "1", Tool: "clock", State: chat.Running, Params: map[string]any{"zone": "UTC"}})
	b.until(`document.querySelector(".ask") && document.querySelector(".steps")`)
	tree, err := chromedp.Call(b.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		t.Fatal(err)
	}
	uses := map[string]bool{"button": true, "link": true, "textbox": true, "searchbox": true, "DisclosureTriangle": true, "checkbox": true, "dialog": true, "group": false}
	found := map[string]int{}
	for _, n := range tree.Nodes {
		role, name := text(n.Role), text(n.Name)
		if n.Ignored || role == "" {
			continue
		}
		found[role]++
		if uses[role] && strings.TrimSpace(name) == "" {
			t.Errorf("a %s has no name: %+v", role, n.BackendDOMNodeID)
		}
		for _, p := range n.Properties {
			if p.Name == "focusable" && text(p.Value) == "true" && (role == "generic" || name == "" && role != "RootWebArea") {
				t.Errorf("a %s that can be focused has the name %q", role, name)
			}
		}
	}
	for _, role := range []string{"main", "navigation", "banner", "search", "log", "heading", "article", "status"} {
		if role == "banner" {
			continue // the header belongs to main
		}
		if found[role] == 0 {
			t.Errorf("there is no %s: %v", role, found)
		}
	}
	if h1 := eval[int](b, `document.querySelectorAll("h1").length`); h1 != 1 {
		t.Errorf("there are %d h1", h1)
	}
	if twice := eval[string](b, `[...document.querySelectorAll("[id]")].map((e) => e.id).filter((id, i, all) => all.indexOf(id) !== i).join()`); twice != "" {
		t.Errorf("ids that are there twice: %s", twice)
	}
	if live := eval[bool](b, `!!document.querySelector("#making").closest("[aria-live], [role=log], [role=status]")`); live {
		t.Error("each word of a draft is read out")
	}
	webtest.AxeEverywhere(b.ctx, t, "a conversation")
}

func text(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	var s any
	_ = json.Unmarshal([]byte(v.Value), &s)
	return fmt.Sprint(cmp.Or(s, any("")))
}

// The page stays at the end, unless somebody reads what was said before.
func scrolling(t *testing.T, browser context.Context) {
	h := newHome(t)
	for i := range 130 {
		h.says(t, chat.Reply{ID: fmt.Sprint("old", i), Text: fmt.Sprintf("Paragraph %d.\n\n%s", i, strings.Repeat("More of it. ", 20))})
	}
	b := h.tab(t, browser)
	sees := func(n int) string {
		return fmt.Sprintf(`(() => { const a = [...document.querySelectorAll("article")].find((a) => a.innerText.startsWith("Paragraph %d.")), r = a?.getBoundingClientRect(); return r && r.top < innerHeight && r.bottom > 0; })()`, n)
	}
	b.until(sees(129))
	h.says(t, chat.Reply{ID: "x", Text: "Paragraph 130."})
	b.until(sees(130))
	eval[bool](b, `(document.querySelector("#scroll").scrollTop = -3000, true)`)
	b.until(`document.querySelector("#scroll").scrollTop < -2000`)
	eval[bool](b, `(window.mark = [...document.querySelectorAll("article")].find((a) => a.getBoundingClientRect().top > 100), window.top0 = mark.getBoundingClientRect().top, true)`)
	long := strings.Repeat("A long draft. ", 50)
	h.Stream(chat.Reply{ID: "y", To: chat.Address{Channel: "web", Chat: "owner", Thread: "first"}, Text: long})
	b.until(`document.querySelector("#making").innerText.includes("long draft")`)
	h.says(t, chat.Reply{ID: "y", Text: "Paragraph 131.\n\n" + long})
	b.until(`!document.querySelector("#down").hidden`)
	b.shot("news")
	if by := eval[float64](b, `Math.abs(mark.getBoundingClientRect().top - top0)`); by > 1 {
		t.Errorf("what is read moved by %v", by)
	}
	b.click("#down")
	b.until(sees(131) + ` && document.querySelector("#down").hidden`)
	eval[bool](b, `(document.querySelector("#older").scrollIntoView(), window.mark = document.querySelector("article"), window.top0 = mark.getBoundingClientRect().top, true)`)
	b.click("#older")
	b.until(`document.querySelector("article").innerText.startsWith("Paragraph 0.") && document.querySelector("#older").hidden`)
	if n := eval[int](b, `document.querySelectorAll("article").length`); n != 132 {
		t.Errorf("%d entries are shown", n)
	}
	if by := eval[float64](b, `Math.abs(mark.getBoundingClientRect().top - top0)`); by > 60 {
		t.Errorf("what is read moved by %v when older entries came", by)
	}
}

// All that can be done can be done by keyboard, in the order in which it is seen.
func keys(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	b.until(`document.activeElement.id === "text"`)
	b.typed("#text", "one")
	b.enter(8)
	b.do(chromedp.KeyEvent("two"))
	if got := eval[string](b, `document.querySelector("#text").value`); got != "one\ntwo" {
		t.Errorf("Shift+Enter makes %q", got)
	}
	b.enter(0)
	h.hears(t, "one\ntwo")
	b.until(`document.querySelector("#text").value === "" && document.querySelector("#text").clientHeight < 60`)
	eval[bool](b, `(document.activeElement.blur(), true)`)
	var order []string
	for range 21 {
		b.do(chromedp.KeyEvent(kb.Tab))
		order = append(order, eval[string](b, `document.activeElement.id || document.activeElement.className || document.activeElement.innerText`))
		if ring := eval[bool](b, `getComputedStyle(document.activeElement).outlineStyle !== "none" || ["text", ""].includes(document.activeElement.id) && document.activeElement.tagName !== "A"`); !ring {
			t.Errorf("focus is not seen on %s", order[len(order)-1])
		}
	}
	got := strings.Join(order, " ")
	for _, id := range []string{"name new words", "edit more delete scroll", "attach model text"} {
		if !strings.Contains(got, id) {
			t.Errorf("Tab goes %s", got)
		}
	}
}

func BenchmarkFirstPaint(b *testing.B) {
	browser := webtest.Browser(b)
	h := newHome(b)
	h.talkAbout(b)
	w := h.tab(b, browser)
	var paint, n float64
	for b.Loop() {
		h.bytes.Store(0)
		w.do(chromedp.Navigate(h.at + "/c/first"))
		w.until(`performance.getEntriesByName("first-contentful-paint").length`)
		paint += eval[float64](w, `performance.getEntriesByName("first-contentful-paint")[0].startTime`)
		n++
	}
	b.ReportMetric(paint/n, "ms-to-paint/op")
}
