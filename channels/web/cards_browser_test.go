package web_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"parley/channels"
	"parley/chat"
	"parley/web/webtest"
)

// TestCardsInBrowser is about the questions of the agent, before and after somebody has answered them.
func TestCardsInBrowser(t *testing.T) {
	browser := webtest.Browser(t)
	for name, test := range map[string]func(*testing.T, context.Context){
		"approval by keyboard": approvesByKeyboard, "outcomes stay": outcomesStay, "looks": cardsLook, "suggestions": suggestionsAreNoCards,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, browser)
		})
	}
}

// anApproval asks whether a scheduled job may delete a file.
func anApproval(id string) chat.Reply {
	return chat.Reply{
		ID: "ask:" + id, To: chat.Address{Channel: "web", Chat: "owner", Thread: "first"},
		Text: "Delete **notes-2025.txt**?\n\nThe scheduled job **Clean up** asks for this.\n\nIn this conversation there is untrusted content:\n- `https://example.com/tips`\n\n*Always here* and *For an hour* allow: `delete notes-2025.txt`",
		Ask:  &chat.Question{ID: id, Choices: []string{"Yes", "No", "Always here", "For an hour"}, Whom: "owner", Asker: "Clean up", Approval: true},
	}
}

// aChoice asks what somebody wants, or else their own words.
func aChoice(id string) chat.Reply {
	return chat.Reply{
		ID: "ask:" + id, To: chat.Address{Channel: "web", Chat: "owner", Thread: "first"},
		Text: "Which train shall I book?", Ask: &chat.Question{ID: id, Choices: []string{"The 9:12, change in Basel", "The 10:02, direct", "None of them"}, Free: true},
	}
}

// asks asks a question.
func (h *home) asks(t *testing.T, r chat.Reply) channels.Receipt {
	t.Helper()
	rc, err := h.Send(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return rc
}

// ends tells the page how the question ended, as the Hub does: the text says so, too.
func (h *home) ends(t *testing.T, rc channels.Receipt, r chat.Reply, o chat.Outcome) {
	t.Helper()
	r.Ask, r.Outcome = nil, &o
	r.Text += "\n\n✓ **" + o.Answer + "** — " + o.By
	if err := h.Edit(t.Context(), rc, r); err != nil {
		t.Fatal(err)
	}
}

const (
	asksBadge = `document.title.startsWith("(1) ") && document.querySelector("#talks [aria-current] .badge")?.title === "Waiting for your answer"`
	noBadge   = `!document.title.startsWith("(") && !document.querySelector("#talks .badge")`
)

// outcome is what the nth card says in the end.
func (b *tab) outcome(n int) string {
	b.Helper()
	return eval[string](b, fmt.Sprintf(`document.querySelectorAll(".asks")[%d].querySelector(".outcome > p")?.innerText ?? "open"`, n))
}

// Whoever uses the keyboard, and hears the page, finds the question from wherever they are, hears what it is about, answers it, and
// is still there afterwards.
func approvesByKeyboard(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	b.tells(t, "tidy up")
	r := anApproval("q7")
	rc := h.asks(t, r)
	b.until(`document.querySelectorAll("[data-approval] button:enabled").length === 4 && ` + asksBadge)
	tree, err := chromedp.Call(b.ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{})
	if err != nil {
		t.Fatal(err)
	}
	var group string
	for _, n := range tree.Nodes {
		if text(n.Role) == "group" && strings.Contains(text(n.Name), "approval") {
			group = text(n.Name) + ": " + text(n.Description)
		}
	}
	if !strings.HasPrefix(group, "Clean up asks for your approval: Delete notes-2025.txt?") {
		t.Errorf("the buttons are called %q", group)
	}
	if eval[bool](b, `!document.querySelector("#here").hidden`) {
		t.Error("a question in sight is announced as one that is not")
	}
	for i := range 8 {
		h.says(t, chat.Reply{ID: fmt.Sprint("long", i), Text: strings.Repeat("More about it. ", 60)})
	}
	b.until(`document.querySelectorAll("#entries article").length === 10 && !document.querySelector("#here").hidden`)
	if got := eval[string](b, `document.querySelector("#here").innerText`); got != "Your answer is needed: Delete notes-2025.txt?" {
		t.Errorf("out of sight, it is announced as %q", got)
	}
	b.shot("card-out-of-sight")
	eval[bool](b, `(document.querySelector("#here button").focus(), true)`)
	b.enter(0)
	b.until(`document.activeElement.matches(".asks") && document.querySelector("#here").hidden`)
	for range 2 { // to "No"
		b.do(chromedp.KeyEvent(kb.Tab))
	}
	if got := eval[string](b, `document.activeElement.innerText`); got != "No" {
		t.Errorf("the second button is %q", got)
	}
	b.enter(0)
	if a := h.hears(t, "").Answer; a == nil || a.Question != "q7" || a.Choice != 1 || a.Receipt != string(rc) {
		t.Fatalf("the gateway heard %+v", a)
	}
	b.until(`document.querySelector(".ask [aria-pressed=true]:disabled")?.innerText === "No" && document.activeElement.matches(".asks")`)
	if !eval[bool](b, asksBadge) {
		t.Error("the badge went before the answer counts")
	}
	h.ends(t, rc, r, chat.Outcome{Choice: 1, Answer: "No", By: "Ada", Time: time.Now()})
	b.until(`document.querySelector(".outcome[data-how=no]") && !document.querySelector(".ask") && document.activeElement.matches(".asks") && ` + noBadge)
}

// What was decided, by whom and when stays on the card, in other tabs, after a reload and in what is taken along.
func outcomesStay(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	other := h.tab(t, browser)
	b.tells(t, "tidy up, and book")
	approval, choice, words, gone := anApproval("a1"), aChoice("c1"), aChoice("c2"), anApproval("a2")
	approval.Ask.Asker = ""
	ended := time.Date(2026, 3, 14, 15, 9, 0, 0, time.Local)
	for _, r := range []chat.Reply{approval, choice, words, gone} {
		rc := h.asks(t, r)
		b.until(`document.querySelectorAll(".ask button:enabled").length > 0 && ` + asksBadge)
		o := chat.Outcome{Choice: 0, Answer: r.Ask.Choices[0], By: "Ada", Time: ended}
		switch r.ID {
		case words.ID:
			o.Choice, o.Answer = -1, "the night train"
		case gone.ID:
			o = chat.Outcome{Choice: -1, Time: ended}
		}
		h.ends(t, rc, r, o)
		b.until(`!document.querySelector(".ask") && ` + noBadge)
		h.ends(t, rc, r, chat.Outcome{Answer: "something else", Time: time.Now()}) // again, as after a restart
	}
	const day = " · 14 Mar, 3:09 PM"
	want := []string{"Yes · Ada", "The 9:12, change in Basel · Ada", "the night train · Ada", "No longer asked"}
	check := func(b *tab) {
		t.Helper()
		b.until(`document.querySelectorAll(".outcome").length === 4`)
		for i, w := range want {
			got := b.outcome(i)
			when := eval[string](b, fmt.Sprintf(`document.querySelectorAll(".outcome time")[%d].dateTime`, i))
			if at, err := time.Parse(time.RFC3339, when); !strings.HasPrefix(got, w+" · ") || !strings.Contains(got, "14") || !strings.Contains(got, "Mar") || err != nil || !at.Equal(ended) {
				t.Errorf("card %d says %q (%s), want %q", i, got, when, w+day)
			}
		}
		if got := eval[string](b, `[...document.querySelectorAll(".asker")].map((p) => p.innerText.trim()).join("|")`); got != "Parley asked for approval|Parley asked|Parley asked|Clean up asked for approval" {
			t.Errorf("they were asked by %s", got)
		}
		if got := eval[string](b, `document.querySelector(".asks .text").innerText`); !strings.HasPrefix(got, "Delete notes-2025.txt?") || strings.Contains(got, "✓") {
			t.Errorf("the text is %q", got)
		}
	}
	check(b)
	check(other)
	b.do(chromedp.Reload())
	check(b)
	req, err := http.NewRequestWithContext(b.ctx, http.MethodGet, h.at+"/c/first/export/md", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	md, err := io.ReadAll(resp.Body)
	if err != nil || !strings.Contains(string(md), "Which train shall I book?\n\n→ **the night train** · Ada · "+ended.UTC().Format("2006-01-02 15:04 UTC")) {
		t.Errorf("taken along: %v\n%s", err, md)
	}
}

// Cards are for eyes, too: on a desktop and on a phone, in light and in dark.
func cardsLook(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	b.tells(t, "Tidy up the notes, and find me a train to Bern for tomorrow morning.")
	old := anApproval("a1")
	old.Text, old.Ask.Asker = "Run `make test` in the workspace?", ""
	h.ends(t, h.asks(t, old), old, chat.Outcome{Choice: 0, Answer: "Yes", By: "Ada", Time: time.Now()})
	refused := anApproval("a0")
	refused.Text = "Send **3 messages** to `telegram:42`?\n\nThe scheduled job **Clean up** asks for this."
	h.ends(t, h.asks(t, refused), refused, chat.Outcome{Choice: 1, Answer: "No", By: "Ada", Time: time.Now()})
	h.says(t, chat.Reply{ID: "between", Text: "The tests pass. I left the messages unsent."})
	h.asks(t, anApproval("a2"))
	h.asks(t, aChoice("c1"))
	b.until(`document.querySelectorAll(".asks").length === 4 && document.querySelectorAll(".ask").length === 2`)
	for _, width := range []int64{1200, 390} {
		for _, scheme := range []string{"light", "dark"} {
			b.look(width, 800, scheme)
			for part, where := range map[string]string{"top": `document.querySelector(".you").scrollIntoView()`, "end": `document.querySelector("#scroll").scrollTop = 0`} {
				eval[bool](b, `(`+where+`, true)`)
				b.until(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
				b.shot(fmt.Sprintf("cards-%d-%s-%s", width, scheme, part))
			}
			if wide := eval[int64](b, `Math.max(document.documentElement.scrollWidth, document.querySelector("#scroll").scrollWidth)`); wide > width {
				t.Errorf("at %d the page is %d wide", width, wide)
			}
			if small := eval[string](b, `[...document.querySelectorAll(".ask button, #here button")].filter((e) => e.offsetParent && e.offsetHeight < 44).map((e) => e.innerText).join()`); small != "" {
				t.Errorf("too small for a finger: %s", small)
			}
		}
	}
	webtest.AxeEverywhere(b.ctx, t, "questions, open and answered")
}

// Buttons under what the agent says are suggestions: nobody waits, and nothing is marked as waiting.
func suggestionsAreNoCards(t *testing.T, browser context.Context) {
	h := newHome(t)
	b := h.tab(t, browser)
	b.tells(t, "hello")
	r := aChoice("s1")
	r.Ask.Say = true
	rc := h.asks(t, r)
	b.until(`document.querySelectorAll(".ask button").length === 3`)
	if !eval[bool](b, `!document.querySelector(".asks, .asker") && `+noBadge) {
		t.Error("suggestions look like a question that somebody waits for")
	}
	h.ends(t, rc, r, chat.Outcome{Choice: 1, Answer: "The 10:02, direct", By: "Ada", Time: time.Now()})
	b.until(`!document.querySelector(".ask") && document.querySelector(".outcome b").innerText === "The 10:02, direct"`)
}
