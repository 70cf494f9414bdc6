package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"parley/channels/web/app"
	"parley/chat"
	"parley/web/webtest"
)

// TestApp is the chat page as an app: what fingers do, what is attached, and whose tab it is.
func TestApp(t *testing.T) {
	browser := webtest.Browser(t)
	for name, test := range map[string]func(*testing.T, context.Context){
		"drawer": drawer, "news at the menu": menuMark, "notice": noticeBelow, "targets": targets, "keyboard": keyboard,
		"unread": unread, "away": away, "uploads": uploadsFail, "tab of somebody else": othersTab,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, browser)
		})
	}
}

// TestWorker is what the page's service worker does. Each has the browser for itself: Chromium starts the workers of
// several windows that load at once very late, or not at all.
func TestWorker(t *testing.T) {
	for name, test := range map[string]func(*testing.T, context.Context){
		"notifications": notifications, "clicked": clicked, "replaced": worker,
	} {
		t.Run(name, func(t *testing.T) { test(t, webtest.WholeBrowser(t)) })
	}
}

// phone makes the window that of a phone with a touch screen.
func (b *tab) phone() {
	b.Helper()
	b.look(390, 844, "light")
	if _, err := chromedp.Call(b.ctx, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{Enabled: true}); err != nil {
		b.Fatal(err)
	}
}

// swipe moves a finger along points, and lifts it.
func (b *tab) swipe(points ...[2]float64) {
	b.Helper()
	kind := input.DispatchTouchEventType("touchStart")
	for _, p := range points {
		b.touch(kind, &input.TouchPoint{X: p[0], Y: p[1]})
		kind = "touchMove"
	}
	b.touch("touchEnd")
}

func (b *tab) touch(kind input.DispatchTouchEventType, points ...*input.TouchPoint) {
	b.Helper()
	if points == nil {
		points = []*input.TouchPoint{}
	}
	_, err := chromedp.Call(b.ctx, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: kind, TouchPoints: points})
	if err != nil {
		b.Fatal(err)
	}
}

const (
	drawerOpen = `document.querySelector("#side").matches(":popover-open") && document.querySelector("#side").getBoundingClientRect().left === 0`
	drawerShut = `!document.querySelector("#side").checkVisibility()`
)

// drawer: on a phone the list of conversations follows the finger, and a swipe along something that was scrolled
// sideways, or downwards, moves only that.
func drawer(t *testing.T, browser context.Context) {
	h := newHome(t)
	h.says(t, chat.Reply{ID: "code", Text: "```\n" + strings.Repeat("a very long line ", 40) + "\n```\n\nAnd **more**."})
	b := h.tab(t, browser)
	b.phone()
	b.until(drawerShut)
	b.swipe([2]float64{30, 600}, [2]float64{60, 602}, [2]float64{180, 606}, [2]float64{290, 610})
	b.until(drawerOpen)
	b.shot("phone-drawer")
	b.swipe([2]float64{280, 400}, [2]float64{250, 402}, [2]float64{90, 405}, [2]float64{20, 407})
	b.until(drawerShut)
	b.swipe([2]float64{30, 600}, [2]float64{60, 602}, [2]float64{290, 606}, [2]float64{200, 606}, [2]float64{60, 606}) // and back
	b.until(drawerShut)
	b.swipe([2]float64{100, 300}, [2]float64{110, 340}, [2]float64{140, 420}, [2]float64{290, 500}) // downwards
	b.until(drawerShut)
	code := eval[[]float64](b, `(() => { const e = document.querySelector(".text pre"), r = e.getBoundingClientRect(); e.scrollLeft = 500; return [r.left + 30, r.top + 15] })()`)
	x, y := code[0], code[1]
	b.swipe([2]float64{x, y}, [2]float64{x + 40, y}, [2]float64{x + 150, y}, [2]float64{x + 200, y})
	b.until(drawerShut + ` && document.querySelector(".text pre").scrollLeft < 400`)
	eval[bool](b, `new Promise((done) => { // it goes on moving for a while
		const e = document.querySelector(".text pre");
		let still = 0;
		const frame = () => (still = e.scrollLeft ? 0 : still + 1, e.scrollLeft = 0, still > 20 ? done(true) : requestAnimationFrame(frame));
		frame();
	})`)
	b.swipe([2]float64{x, y}, [2]float64{x + 40, y}, [2]float64{x + 150, y}, [2]float64{x + 250, y}) // it cannot go further
	b.until(drawerOpen)
	b.swipe([2]float64{280, 400}, [2]float64{250, 402}, [2]float64{90, 405}, [2]float64{20, 407})
	b.until(drawerShut)
	b.click("#menu")
	b.until(drawerOpen)
	b.swipe([2]float64{380, 500}, [2]float64{380, 500}) // a touch beside it
	b.until(drawerShut)
}

// small lists what can be pressed and is smaller than a finger, but for links in what was written.
const small = `[...document.querySelectorAll("a, button, summary, select, textarea, [role=button], input, .option")]
	.filter((e) => e.checkVisibility() && !e.closest(".text, .unseen") && !["checkbox", "radio", "file"].includes(e.type))
	.map((e) => [e, e.getBoundingClientRect()])
	.filter(([, r]) => r.right > 0 && r.width && (r.width < 43.9 || r.height < 43.9))
	.map(([e, r]) => Math.round(r.width) + "×" + Math.round(r.height) + " " + e.outerHTML.slice(0, 150))`

// targets: on a phone whatever can be pressed is at least 44 pixels wide and high.
func targets(t *testing.T, browser context.Context) {
	h := newHome(t)
	h.talkAbout(t)
	h.says(t, chat.Reply{ID: "code", Text: "```go\nfunc main() {}\n```"})
	b := h.tab(t, browser, "503")
	b.phone()
	measure := func(when string) {
		t.Helper()
		for _, is := range eval[[]string](b, small) {
			t.Errorf("%s: too small for a finger: %s", when, is)
		}
		if wide := eval[int](b, `document.documentElement.scrollWidth`); wide > 390 {
			t.Errorf("%s: the page is %d pixels wide", when, wide)
		}
	}
	b.until(`document.querySelector(".code button")`)
	for _, e := range eval[[]string](b, `[...document.querySelectorAll(".text button")].filter((e) => e.checkVisibility() && e.getBoundingClientRect().height < 43.9).map((e) => e.outerHTML)`) {
		t.Errorf("too small for a finger: %s", e)
	}
	measure("conversation")
	b.click("#menu")
	b.until(drawerOpen)
	measure("drawer")
	b.do(chromedp.KeyEvent("\x1b"))
	b.until(drawerShut)
	b.click("#delete")
	measure("dialog")
	b.click("#sure button")
	h.deaf.Store(true)
	b.typed("#text", "hello")
	b.click("#send")
	b.until(`document.querySelector("[data-mark]")`)
	b.paste("big.bin", (1<<20)+1)
	b.until(`document.querySelector("#why button")`)
	measure("failed upload")
	b.shot("phone-failed-upload")
}

// keyboard: the page ends above the on-screen keyboard, also where the browser scrolls the page to show the field.
func keyboard(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	b.phone()
	eval[bool](b, `(() => {
		window.shown = new EventTarget();
		Object.assign(shown, { scale: 1, height: 500, offsetTop: 40 });
		Object.defineProperty(window, "visualViewport", { value: shown, configurable: true });
		return true;
	})()`)
	eval[bool](b, `import(document.querySelector("script[type=module]").src.replace("page.js", "phone.js")).then((m) => (m.start(), shown.dispatchEvent(new Event("resize")), true))`)
	b.until(`Math.abs(document.querySelector("#send").getBoundingClientRect().bottom - 540) < 24`)
	eval[bool](b, `(Object.assign(shown, { height: innerHeight, offsetTop: 0 }), shown.dispatchEvent(new Event("resize")), true)`)
	b.until(`innerHeight - document.querySelector("#send").getBoundingClientRect().bottom < 30`)
}

// paste pastes a file of that size.
func (b *tab) paste(name string, bytes int) {
	b.Helper()
	quoted, _ := json.Marshal(name)
	eval[bool](b, fmt.Sprintf(`(() => { const d = new DataTransfer(); d.items.add(new File([new Uint8Array(%d)], %s));
		dispatchEvent(new ClipboardEvent("paste", {clipboardData: d})); return true; })()`, bytes, quoted))
}

// uploadsFail: an upload that failed says why, and can be tried again or removed. What is too big is not sent.
func uploadsFail(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser, "507", "ERR_INTERNET_DISCONNECTED")
	h.full.Store(true)
	b.paste("notes.txt", 2000)
	b.until(`document.querySelector("#tray .failed small")?.textContent.startsWith("The disk is full")`)
	b.typed("#text", "look")
	b.click("#send")
	b.until(`document.querySelector("#why").textContent.startsWith("notes.txt could not be uploaded")`)
	b.shot("upload-refused")
	h.full.Store(false)
	b.click("#tray .again")
	b.until(`!document.querySelector("#tray .failed") && document.querySelector("#tray small").textContent === "2 KB" && document.querySelector("#why").textContent === ""`)
	b.click("#send")
	if m := h.hears(t, "look"); len(m.Files) != 1 || m.Files[0].Name != "notes.txt" {
		t.Errorf("heard with %+v", m.Files)
	}
	sent := h.n.Load()
	b.paste("film.mp4", (1<<20)+1)
	b.until(`document.querySelector("#tray .failed small")?.textContent === "too big: 1 MB is the limit"`)
	if eval[bool](b, `Boolean(document.querySelector("#tray .again"))`) {
		t.Error("a file that is too big is offered to be tried again")
	}
	b.click(`#tray button[aria-label="Remove film.mp4"]`)
	b.until(`!document.querySelector("#tray li")`)
	if h.n.Load() != sent {
		t.Error("a file that is too big was sent")
	}
	b.offline(true)
	b.paste("later.txt", 10)
	b.until(`document.querySelector("#tray small")?.textContent === "No connection: trying again"`)
	b.offline(false)
	b.until(`document.querySelector("#tray small")?.textContent === "10 bytes"`)
	for i := range 20 {
		b.paste(fmt.Sprintf("%d.txt", i), 10)
	}
	b.until(`document.querySelectorAll("#tray li").length === 21 && document.querySelector("#tray .failed small")?.textContent === "not added: a message can have 20 files"`)
}

// othersTab: a tab of somebody who was signed in before neither sends nor shows anything in the name of who has
// signed in since, and goes on when its person is back.
func othersTab(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser, "412")
	b.tells(t, "hello from the owner")
	anna := "anna"
	h.who.Store(&anna)
	b.typed("#text", "my secret"+enter)
	b.until(`document.querySelector("#state").textContent.includes("Somebody else has signed in")`)
	b.shot("signed-in-as-other")
	b.do(chromedp.Navigate(h.at + "/"))
	b.until(`document.body.dataset.person === "anna" && document.querySelector("#state").dataset.text === ""`)
	if all := b.texts(); slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, "secret") }) || len(h.heard) > 0 {
		t.Errorf("%q was taken along to somebody else", all)
	}
	h.who.Store(nil)
	b.do(chromedp.Navigate(h.at + "/"))
	h.hears(t, "my secret") // it was kept for its person
}

// hide has the page believe that its tab is in the background, or in sight again.
func (b *tab) hide(is bool) {
	b.Helper()
	state := map[bool]string{true: "hidden", false: "visible"}[is]
	eval[bool](b, fmt.Sprintf(`(Object.defineProperty(document, "visibilityState", { value: %q, configurable: true }),
		Object.defineProperty(document, "hidden", { value: %v, configurable: true }), document.dispatchEvent(new Event("visibilitychange")), true)`, state, is))
}

// allSeen: the gateway knows that all that was said was seen.
const allSeen = `(fetch("/talks").then((r) => r.json()).then((all) => window.known = !all.some((t) => t.unread)), window.known)`

// menuMark: on a phone, where the list is out of sight, the button to it says what is new in other conversations.
func menuMark(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	b.phone()
	const mark = `getComputedStyle(document.querySelector("#menu"), "::after").content`
	says := func(text string) string { return fmt.Sprintf(`document.querySelector("#menu").ariaLabel === %q`, text) }
	h.says(t, chat.Reply{ID: "a1", Text: "seen here"})
	b.until(`document.querySelector("#entries").innerText.includes("seen here") && ` + mark + ` === "none" && ` + says("Conversations"))
	h.says(t, chat.Reply{ID: "n1", Text: "The bread is done", To: h.Direct("owner")})
	h.says(t, chat.Reply{ID: "n2", Text: "The soup, too", To: h.Direct("owner")})
	b.until(mark + " === `\"2\"` && " + says("Conversations, 2 new"))
	b.shot("phone-news")
	b.do(chromedp.Navigate(h.at + "/c/notices"))
	b.until(`document.querySelector("#entries")?.innerText.includes("The soup") && ` + mark + ` === "none"`)
	h.says(t, chat.Reply{ID: "a2", Text: "And here"})
	b.until(mark + " === `\"1\"`")
	webtest.Axe(b.ctx, b, "news at the menu button")
}

// noticeBelow: what was just sent is not covered by the notice that there is no connection.
func noticeBelow(t *testing.T, browser context.Context) {
	h := newHome(t)
	for i := range 8 {
		h.says(t, chat.Reply{ID: fmt.Sprint("old", i), Text: strings.Repeat("Said before. ", 30)})
	}
	b := h.tab(t, browser, "net::ERR_")
	b.phone()
	b.offline(true)
	b.until(`document.querySelector("#state").innerText.startsWith("You are offline.")`)
	b.typed("#text", "one")
	b.click("#send")
	b.until(`document.querySelector("#unsent").innerText.includes("Waiting to be sent")`)
	b.shot("phone-notice")
	const below = `document.querySelector("#state").getBoundingClientRect().top - document.querySelector("#unsent article").getBoundingClientRect().bottom`
	if by := eval[float64](b, below); by < 0 {
		t.Errorf("the notice covers %v of the message", -by)
	}
	b.offline(false)
	h.hears(t, "one")
	b.until(`document.querySelector("#state").innerText === "" && document.querySelector("#state").getBoundingClientRect().bottom <= document.querySelector("#write").getBoundingClientRect().top`)
}

// unread: what was said is marked as new in the list, in the title and on the icon until a tab that is in sight
// shows it. Of the conversation that is open and in sight only a question counts, until it is answered.
func unread(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	b.tells(t, "hello")
	notices := h.Direct("owner")
	const plain = `!/^\(/.test(document.title) && document.querySelector("link[rel=icon]").href.endsWith("icon.svg")`
	badge := func(n int) string {
		return fmt.Sprintf(`document.title.startsWith("(%d) ") && document.querySelector("link[rel=icon]").href.startsWith("data:")`, n)
	}
	const none = `!document.querySelector("#talks .badge")`
	h.says(t, chat.Reply{ID: "a1", Text: "one"})
	b.until(`document.querySelector("#entries").innerText.includes("one") && ` + plain + ` && ` + none)
	q := chat.Reply{ID: "q1", To: chat.Address{Channel: "web", Chat: "owner", Thread: "first"}, Text: "May I?", Ask: &chat.Question{ID: "q1", Choices: []string{"Yes", "No"}}}
	rc, err := h.Send(b.ctx, q)
	if err != nil {
		t.Fatal(err)
	}
	b.until(`document.querySelector(".ask") && ` + badge(1) + ` && document.querySelector("#talks [aria-current] .badge")?.title === "Waiting for your answer"`)
	h.says(t, chat.Reply{ID: "n1", Text: "The bread is done", To: notices})
	h.says(t, chat.Reply{ID: "n2", Text: "The soup, too", To: notices})
	b.until(badge(3) + ` && document.querySelector("#talks .badge.new")?.firstChild.data === "2"`)
	b.shot("unread")
	b.hide(true)
	h.says(t, chat.Reply{ID: "a2", Text: "two"})
	h.says(t, chat.Reply{ID: "a3", Text: "three"})
	b.until(badge(4)) // the question is among what is there anyway
	b.hide(false)
	b.until(badge(3))
	eval[bool](b, `(document.querySelector('#talks a[href="/c/notices"]').click(), true)`) // the list may be made anew
	b.until(`location.pathname === "/c/notices" && document.title === "(1) Notices – Parley" && document.querySelector("#talks .badge")?.title === "Waiting for your answer"`)
	b.until(allSeen)
	b.do(chromedp.Navigate(h.at + "/c/first"))
	b.until(badge(1))
	q.Outcome, q.Ask = &chat.Outcome{Answer: "Yes", Time: time.Now()}, nil
	if err := h.Edit(b.ctx, rc, q); err != nil {
		t.Fatal(err)
	}
	b.until(plain + ` && ` + none)
	other := h.tab(t, browser) // what was seen in one tab is so in all
	other.until(plain + ` && ` + none)
}

// pushes is a browser in which notifications are allowed, as is everything that headless Chromium has of them: it has
// no push service, so what one would bring is handed to the worker by hand.
func (b *tab) pushes() {
	b.Helper()
	info, err := chromedp.Call(b.ctx, target.GetTargetInfo, target.GetTargetInfoParams{})
	if err != nil {
		b.Fatal(err)
	}
	_, err = chromedp.Call(b.ctx, cdpbrowser.SetPermission, cdpbrowser.SetPermissionParams{
		Permission: &cdpbrowser.PermissionDescriptor{Name: "notifications"}, Setting: "granted", Origin: b.at,
		BrowserContextID: info.TargetInfo.BrowserContextID,
	})
	if err != nil {
		b.Fatal(err)
	}
}

// counting has the page count the notifications that were shown: Chromium forgets one for which somebody looks while
// it is being shown.
const counting = `navigator.serviceWorker.ready.then((worker) => {
	const show = worker.showNotification.bind(worker);
	window.posted = 0;
	worker.showNotification = (...what) => show(...what).then(() => window.posted++);
	return true;
})`

const shown = `navigator.serviceWorker.ready.then((w) => w.getNotifications()).then((all) => window.shown = all.map((n) => [n.title, n.body, n.tag, n.data.url].join("|")).join("\n"))`

// notifications: they are asked for in the menu; while the tab is in the background, what is said is shown once, in
// words or without, and taken back when the tab is in sight. Signing out ends them.
func notifications(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser, "incognito", "404")
	b.pushes()
	b.tells(t, "hello")
	b.click("#bell")
	b.until(`document.querySelector("#notify[open]")`)
	b.click("#notify-on")
	b.until(`document.querySelector("#notify-on").checked && document.querySelector("#notify-said").textContent.startsWith("They come while this page is open")`)
	b.shot("notifications")
	b.click("#notify .bar button")
	h.says(t, chat.Reply{ID: "a0", Text: "in sight"})
	b.until(`document.querySelector("#entries").innerText.includes("in sight")`)
	eval[bool](b, counting)
	b.hide(true)
	h.says(t, chat.Reply{ID: "a1", Text: "It is **done**."})
	b.until(`window.posted === 1`)
	b.until(`(` + shown + `, window.shown) === "hello|It is done.|a1|/c/first"`)
	b.hide(false)
	b.until(`(` + shown + `, window.shown) === ""`)
	b.click("#bell")
	b.click("#notify-private")
	b.until(`document.querySelector("#notify-private").checked && document.querySelector("#notify-said").textContent.startsWith("They come")`)
	b.click("#notify .bar button")
	b.hide(true)
	h.says(t, chat.Reply{ID: "q1", Text: "May I?", Ask: &chat.Question{ID: "q1", Choices: []string{"Yes", "No"}}})
	b.until(`window.posted === 2`)
	b.until(`(` + shown + `, window.shown) === "Parley|Your answer is needed|q1|/c/first"`)
	b.hide(false)
	b.click("#leave")
	b.until(`Object.keys(localStorage).every((k) => !k.startsWith("notify/"))`)
}

// worker: the service worker says plainly that Parley is out of reach, keeps nothing else, and is replaced by that of
// another version, which removes what the old one kept. A click on a notification opens the conversation.
func worker(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser, "ERR_", "502", "404") // also of an icon that the browser asks for by itself
	b.tells(t, "a private matter")
	b.controlled()
	const kept = `caches.keys().then(async (names) => { let all = []; for (const n of names) for (const r of await (await caches.open(n)).keys()) all.push(new URL(r.url).pathname); return names.length + " " + all.sort().join(" ") })`
	if all := eval[string](b, kept); all != "1 /app/offline.css /app/offline.html /app/offline.js" {
		t.Errorf("the worker keeps %s", all)
	}
	before := eval[string](b, `caches.keys().then((n) => n.join())`)
	h.away.Store(true)
	b.do(chromedp.Navigate(h.at + "/c/first"))
	b.until(`document.querySelector("h1").textContent === "Parley is out of reach" && getComputedStyle(document.querySelector("a")).display === "inline-flex"`)
	b.shot("offline")
	b.do(chromedp.EmulateViewport(390, 844))
	b.shot("phone-offline")
	h.away.Store(false)
	b.click("a") // try again
	const back = `document.querySelector("#entries")?.innerText.includes("a private matter") && document.querySelector("#state").dataset.text === ""`
	b.until(back)
	h.away.Store(true)
	b.do(chromedp.Navigate(h.at + "/c/first"))
	b.until(`document.querySelector("h1").textContent === "Parley is out of reach" && document.readyState === "complete"`)
	b.offline(true)
	h.away.Store(false)
	b.offline(false)
	b.until(back) // by itself

	other, err := app.New("another version")
	if err != nil {
		t.Fatal(err)
	}
	h.app.Store(other)
	b.do(chromedp.Reload())
	b.until(`navigator.serviceWorker.controller && (caches.keys().then((n) => window.names = n.join()), window.names?.startsWith("parley-")) && !window.names.includes("` + before + `")`)
	if all := eval[string](b, kept); all != "1 /app/offline.css /app/offline.html /app/offline.js" {
		t.Errorf("after an upgrade there is %s", all)
	}

	if bad := eval[string](b, `fetch("/app/manifest.webmanifest").then((r) => r.json()).then(async (m) => {
		let bad = m.start_url === "/" && m.display === "standalone" ? "" : "manifest ";
		for (const i of m.icons) {
			const image = new Image();
			image.src = i.src;
			await image.decode();
			if (image.naturalWidth + "x" + image.naturalHeight !== i.sizes) bad += i.src;
		}
		return bad + (document.querySelector("link[rel=manifest]") ? "" : "no link");
	})`); bad != "" {
		t.Errorf("the manifest is wrong: %s", bad)
	}
}

// away: who has no page in sight is told by push, once, and a page in sight spares it.
func away(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser, "400")
	b.tells(t, "hello")
	phone := h.push.Subscribe(eval[string](b, `fetch("/push").then((r) => r.json()).then((r) => r.key)`))
	sub, err := json.Marshal(map[string]any{"subscription": phone.Subscription, "private": false})
	if err != nil {
		t.Fatal(err)
	}
	put := func(body string) float64 {
		return eval[float64](b, `fetch("/push", {method: "PUT", headers: {"X-Parley": "1", "Content-Type": "application/json"}, body: `+strconv.Quote(body)+`}).then((r) => r.status)`)
	}
	if status := put(string(sub)); status != 204 {
		t.Fatalf("subscribing: %v", status)
	}
	if status := put(strings.Replace(string(sub), "https://", "http://", 1)); status != 400 {
		t.Errorf("a subscription by http: %v", status)
	}
	h.says(t, chat.Reply{ID: "a1", Text: "in sight"})
	b.until(`document.querySelector("#entries").innerText.includes("in sight")`)
	b.until(allSeen)
	b.hide(true)
	h.says(t, chat.Reply{ID: "a2", Text: "The **bread** is done."})
	h.says(t, chat.Reply{ID: "a2", Text: "The **bread** is done."}) // the outbox repeats it
	h.says(t, chat.Reply{ID: "q1", Text: "May I?", Ask: &chat.Question{ID: "q1", Choices: []string{"Yes", "No"}}})
	for _, want := range []string{
		`{"title":"hello","text":"The bread is done.","tag":"a2","url":"/c/first"}`,
		`{"title":"hello","text":"❓ May I?","tag":"q1","url":"/c/first"}`,
	} {
		select {
		case got := <-phone.Got:
			if got != want {
				t.Errorf("the phone got %s, not %s", got, want)
			}
		case <-time.After(time.Minute):
			t.Fatal("the phone got nothing")
		}
	}
	if len(phone.Got) > 0 {
		t.Errorf("the phone also got %s", <-phone.Got)
	}
}

// controlled waits until the service worker is active and has the page. One that was asked for shortly before the
// worker was active, and came shortly after, is left without it until it is loaded again.
func (b *tab) controlled() {
	b.Helper()
	const register = `navigator.serviceWorker.register("/app/worker.js", { scope: "/", updateViaCache: "none" })`
	b.until(`(` + register + `.then((r) => { window.active = r.active?.state === "activated" }, () => {}), window.active)`)
	if !eval[bool](b, `Boolean(navigator.serviceWorker.controller)`) {
		b.do(chromedp.Reload())
	}
	b.until(`navigator.serviceWorker.controller`)
}

// clicked: a push shows a notification, and a click on it opens its conversation in the tab that is there. The events
// are handed to the real worker: headless Chromium has neither a push service nor a place to click.
func clicked(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	b.pushes()
	h.says(t, chat.Reply{ID: "n1", Text: "The bread is done", To: h.Direct("owner")})
	b.do(chromedp.Navigate(h.at + "/c/first"))
	b.controlled()
	all, err := chromedp.Targets(b.ctx)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(i *target.Info) bool { return i.Type == "service_worker" && strings.HasPrefix(i.URL, h.at) })
	if at < 0 {
		t.Fatal("no worker")
	}
	ctx, end := chromedp.NewContext(b.ctx, chromedp.WithTargetID(all[at].TargetID))
	defer end()
	dispatch := func(js string) {
		t.Helper()
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](js, chromedp.EvalAwaitPromise)); err != nil {
			t.Fatal(err)
		}
	}
	dispatch(`new Promise((posted) => {
		const show = registration.showNotification.bind(registration);
		registration.showNotification = (...what) => show(...what).then(() => posted(true));
		self.dispatchEvent(new PushEvent("push", { data: JSON.stringify({ title: "Notices", text: "The bread is done", tag: "n1", url: "/c/notices" }) }));
	})`)
	b.until(`(` + shown + `, window.shown) === "Notices|The bread is done|n1|/c/notices"`)
	dispatch(`self.registration.getNotifications().then(([notification]) => (self.dispatchEvent(new NotificationEvent("notificationclick", { notification })), true))`)
	b.until(`location.pathname === "/c/notices" && document.querySelector("#entries").innerText.includes("The bread is done")`)
}
