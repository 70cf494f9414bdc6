package web_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"parley/chat"
	"parley/web/webtest"
)

// TestOrderInBrowser: what is said while the agent works stays where it was said. At each moment a page that was there all
// along, one that is loaded again in the middle, and one that is loaded after the answer show the same order.
func TestOrderInBrowser(t *testing.T) {
	browser := webtest.Browser(t)
	for name, test := range map[string]func(*testing.T, context.Context){
		"taken into the answer": takenIn, "answered later": answeredLater, "before the first sign": beforeTheFirstSign,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, browser)
		})
	}
}

// An ordered conversation is looked at by a page that is there all along and by one that is loaded at each moment.
type ordered struct {
	*tab
	loaded *tab
}

// shows fails the test unless both pages show this, top to bottom. "[…]" is the reply that is being written.
func (o *ordered) shows(t *testing.T, what string, want ...string) {
	t.Helper()
	const js = `[...document.querySelectorAll("article")].filter((a) => a.offsetHeight).map((a) => a.closest("#making") ? "[" +
		(a.querySelector(".text").innerText.trim() || a.querySelector(".steps summary")?.innerText.trim() || "…") + "]" : a.querySelector(":scope > .text").innerText.trim()).join(" | ")`
	all := strings.Join(want, " | ")
	signOfLife := func() { // as an agent at work gives them: without, a busy machine has its answer count as abandoned
		if !strings.Contains(all, "[") {
			return
		}
		if err := o.Typing(t.Context(), chat.Address{Channel: "web", Chat: "owner", Thread: "first"}); err != nil {
			t.Fatal(err)
		}
	}
	signOfLife()
	o.loaded.do(chromedp.Reload())
	for name, b := range map[string]*tab{"there all along": o.tab, "loaded " + what: o.loaded} {
		done := fmt.Sprintf(`document.querySelector("#state")?.dataset.text === "" && %s === %q`, js, all)
		for range 200 {
			signOfLife()
			if eval[bool](b, `new Promise((r) => setTimeout(() => r(Boolean(`+webtest.Loaded(done)+`)), 15))`) {
				break
			}
		}
		if got := eval[string](b, js); got != all {
			t.Errorf("%s, a page shows\n%s, want\n%s", name, got, all)
		}
	}
	b := o.tab
	b.until(`!document.querySelector("[data-mark]")`)
}

func ordering(t *testing.T, browser context.Context) *ordered {
	h := newHome(t)
	return &ordered{h.tab(t, browser), h.tab(t, browser)}
}

func (o *ordered) works(r chat.Reply, call string) {
	o.Step(r, chat.Step{Call: call, Tool: "look", Name: "Look " + call, State: chat.Running, Began: time.Now()})
}

// A message that the answer takes in, a question and a note of the turn stay in the order in which they were said; the answer
// comes after them.
func takenIn(t *testing.T, browser context.Context) {
	o := ordering(t, browser)
	first := o.tells(t, "Tidy up")
	r := first.Reply()
	o.works(r, "1")
	o.shows(t, "at work", "Tidy up", "[Look 1 – running]")
	second := o.tells(t, "Not the photos")
	o.shows(t, "when more was said", "Tidy up", "[Look 1 – running]", "Not the photos")
	ask := anApproval("q1")
	ask.Text = "Delete **old.txt**?"
	rc := o.asks(t, ask)
	o.shows(t, "at a question", "Tidy up", "[Look 1 – running]", "Not the photos", "Delete old.txt?")
	if got := eval[string](o.tab, `document.querySelector("#told").textContent`); !strings.HasPrefix(got, "Clean up asks for your approval") || !strings.Contains(got, "Delete old.txt?") {
		t.Errorf("a screen reader is told %q", got)
	}
	third := o.tells(t, "Nor the songs")
	o.shows(t, "after a question", "Tidy up", "[Look 1 – running]", "Not the photos", "Delete old.txt?", "Nor the songs")
	o.shot("order-live")
	o.loaded.look(390, 800, "light")
	o.loaded.shot("order-loaded-phone")
	o.ends(t, rc, ask, chat.Outcome{Answer: "Yes", By: "Ada", Time: time.Now()})
	o.works(r, "2")
	r.Text = "I have"
	o.Stream(r)
	o.shows(t, "in mid-answer", "Tidy up", "[I have]", "Not the photos", "Delete old.txt?", "Nor the songs")
	r.Text, r.Also = "I have tidied up.", []string{second.ID, third.ID}
	o.says(t, r)
	o.shows(t, "after the answer", "Tidy up", "Not the photos", "Delete old.txt?", "Nor the songs", "I have tidied up.")
}

// A message that the answer does not take in is answered after it. A command that was answered meanwhile stays with its answer.
func answeredLater(t *testing.T, browser context.Context) {
	o := ordering(t, browser)
	r := o.tells(t, "A story").Reply()
	if err := o.Typing(o.ctx, r.To); err != nil {
		t.Fatal(err)
	}
	later := o.tells(t, "And a song")
	o.shows(t, "before the first word", "A story", "[…]", "And a song")
	about := o.tells(t, "/status").Reply()
	o.shows(t, "when a command was given", "A story", "[…]", "And a song", "/status")
	about.Text = "I tell a story."
	o.says(t, about)
	if err := o.Typing(o.ctx, r.To); err != nil {
		t.Fatal(err)
	}
	o.shows(t, "when it was answered", "A story", "[…]", "And a song", "/status", "I tell a story.")
	r.Text = "Once"
	o.Stream(r)
	o.shows(t, "in mid-answer", "A story", "[Once]", "And a song", "/status", "I tell a story.")
	r.Text = "Once upon a time."
	o.says(t, r)
	whole := []string{"A story", "Once upon a time.", "And a song", "/status", "I tell a story."}
	o.shows(t, "after the answer", whole...)
	next := later.Reply()
	next.Text = "La"
	o.Stream(next)
	o.shows(t, "in the next answer", append(slices.Clone(whole), "[La]")...)
	other := o.tells(t, "Louder").Reply()
	o.shows(t, "when more was said", append(slices.Clone(whole), "[La]", "Louder")...)
	other.Text = "LA" // the answer under way was given up
	o.Stream(other)
	o.shows(t, "when another answer began", append(slices.Clone(whole), "Louder", "[LA]")...)
	other.Text = "LA LA"
	o.says(t, other)
	o.shows(t, "in the end", append(slices.Clone(whole), "Louder", "LA LA")...)
}

// Two messages that were sent before the agent began stay above what it writes, and so does a question of that turn.
func beforeTheFirstSign(t *testing.T, browser context.Context) {
	o := ordering(t, browser)
	r := o.tells(t, "Look").Reply()
	second := o.tells(t, "And listen")
	o.shows(t, "before anything", "Look", "And listen")
	o.works(r, "1")
	ask := aChoice("c1")
	rc := o.asks(t, ask)
	o.shows(t, "at a question", "Look", "And listen", "Which train shall I book?", "[Look 1 – running]")
	o.ends(t, rc, ask, chat.Outcome{Choice: 1, Answer: "The 10:02, direct", By: "Ada", Time: time.Now()})
	r.Text, r.Also = "Done.", []string{second.ID}
	o.says(t, r)
	o.shows(t, "after the answer", "Look", "And listen", "Which train shall I book?", "Done.")
}
