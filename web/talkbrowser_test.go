package web

import (
	"context"
	"iter"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"parley/chat"
	"parley/web/layout"
	"parley/web/talkpages"
	"parley/web/webtest"
)

const answered = "## What I found\n\nTwo heat pumps are **quieter** than ours:\n\n| Model | dB | Price |\n|---|--:|--:|\n" +
	"| Vaillant aroTHERM | 46 | 9,800 |\n| Bosch Compress | 48 | 8,900 |\n\n- [x] looked up\n- [ ] ordered\n\n" +
	"```go\nfunc main() { fmt.Println(\"a very long line of code that has to stay inside of its frame on a phone\") }\n```\n\n" +
	"![photo](https://evil.example/pump.png) <img src=x onerror=alert(1)>"

// exampleTurns are those of a conversation in which text was said.
func exampleTurns(text string) []chat.Turn {
	at := time.Now().UTC().Add(-time.Hour)
	step := func(tool, name string, state chat.StepState, tip, failure string, took int64) *chat.Step {
		return &chat.Step{Call: "1", Tool: tool, Name: name, State: state, Tip: tip, Error: failure, Began: at, Took: took}
	}
	call := func(args string) chat.Entry { return chat.Entry{Kind: chat.Called, Time: at, Text: args, Call: "1"} }
	return []chat.Turn{
		{Parts: []chat.Part{{Entry: chat.Entry{Kind: chat.Removed, Time: at, Text: "[what was said before 2026-01-01 was removed because it was old, but for what the model is still shown]"}}}},
		{Parts: []chat.Part{
			{Entry: chat.Entry{Kind: chat.Heard, Who: "Anna", Text: text, Time: at, Files: []chat.File{{Name: "offer.pdf"}}}},
			{Entry: call(`{"query":"quiet heat pumps 2026","count":5}`), Step: step("web_search", "Search the web", chat.Done, "quiet heat pumps 2026", "", 1240), Result: "1. Vaillant aroTHERM plus: 46 dB\n2. Bosch Compress: 48 dB", Receipt: "0123456789abcdef"},
			{Entry: call(`{"url":"https://example.org/` + strings.Repeat("long/", 30) + `"}`), Step: step("web_fetch", "Read a page", chat.Failed, "https://example.org/", "the server does not answer", 30_000), Result: "Error: the server does not answer"},
			{Entry: call(`{"path":"notes.txt"}`), Step: step("file_delete", "Delete a file", chat.Refused, "notes.txt", "Anna did not allow it", 0), Result: "Error: Anna did not allow it. Do not try again."},
			{Entry: call(`{}`), Step: step("exec", "exec", chat.Interrupted, "sleep 100", "", 0), Result: "Error: interrupted", By: "Anna"},
			{Entry: chat.Entry{Kind: chat.Said, Who: "main", Text: answered + "\n\n" + text, Time: at}},
		}, Read: 12_345, Written: 678, Cost: 0.0312, Unpriced: 100},
		{Parts: []chat.Part{{Entry: chat.Entry{Kind: chat.Began, Time: at}}}},
		{Parts: []chat.Part{
			{Entry: chat.Entry{Kind: chat.Heard, Who: "Anna", Text: "stop that", Time: at}},
			{Entry: chat.Entry{Kind: chat.Ended, Text: "stopped", Time: at}},
			{Entry: chat.Entry{Kind: chat.Lost, Text: "[entry 3 could not be read]", Time: at}},
		}},
		{Open: true, Parts: []chat.Part{
			{Entry: chat.Entry{Kind: chat.Heard, Who: "Anna", Text: "go on", Time: at}},
			{Entry: call(`{}`), Step: step("web_search", "Search the web", chat.Running, "", "", 0)},
		}},
	}
}

// withTalks has conversations in which text was said.
func withTalks(text string) func(*Config) {
	now := time.Now().UTC()
	noon := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 1, 0, time.UTC)
	pages := &talkpages.Pages{
		List: func(context.Context, string) ([]chat.Talk, error) {
			return []chat.Talk{
				{Session: "telegram:42", Title: text, Last: noon},
				{Session: "web:owner/c1", Title: "What is the tallest mountain of the Alps, and who climbed it first?", Last: noon},
				{Session: "telegram:-100/7", Title: "Dinner for nine on Friday", Last: noon.AddDate(0, 0, -1)},
				{Session: "cron:morning", Title: "The weather, and what is in the calendar", Last: noon.AddDate(0, 0, -3)},
				{Session: "telegram:work:77", Title: "The invoice of March", Last: noon.AddDate(0, 0, -20)},
				{Session: "discord:9", Last: noon.AddDate(-2, 0, 0)},
			}, nil
		},
		Search: func(_ context.Context, in func(chat.SessionID) bool, words string, _ int) (found []chat.Find, _ error) {
			for _, f := range []chat.Find{
				{Session: "telegram:42", Entry: chat.Entry{Kind: chat.Heard, Who: "Anna", Text: "… a quiet heat pump for " + text, Time: noon}},
				{Session: "discord:9", Entry: chat.Entry{Kind: chat.Said, Text: "heat", Time: noon.AddDate(-2, 0, 0)}},
			} {
				if in(f.Session) && strings.Contains(f.Entry.Text, words) {
					found = append(found, f)
				}
			}
			return found, nil
		},
		Turns: func(_ context.Context, id chat.SessionID) ([]chat.Turn, error) {
			switch id {
			case "telegram:42":
				return exampleTurns(text), nil
			case "telegram:many":
				turns := make([]chat.Turn, 120)
				for i := range turns {
					turns[i].Parts = []chat.Part{{Entry: chat.Entry{Kind: chat.Heard, Text: "turn " + string(rune('A'+i/26)) + string(rune('a'+i%26)), Time: now}}}
				}
				return turns, nil
			}
			return nil, nil
		},
		Names: func(context.Context) (map[string]string, error) { return map[string]string{"telegram:42": text}, nil },
		Zone:  time.UTC,
	}
	return func(c *Config) {
		c.Gateway.Pages = []layout.Pages{pages}
		c.Gateway.Conversations.Transcript = func(context.Context, chat.SessionID) iter.Seq2[chat.Entry, error] {
			return func(yield func(chat.Entry, error) bool) { yield(chat.Entry{Kind: chat.Heard}, nil) }
		}
	}
}

// R-S5: whatever was said, in messages, answers, arguments and results, is text; a remote picture is a link.
func TestHostileTalks(t *testing.T) {
	for _, text := range webtest.Hostile {
		turns := exampleTurns(text)
		for i := range turns[1].Parts {
			p := &turns[1].Parts[i]
			p.Entry.Who, p.By, p.Receipt = text, text, text
			if p.Step != nil {
				p.Entry.Text, p.Result, p.Step.Error, p.Step.Tip, p.Step.Name, p.Step.Tool = text, text, text, text, text, text
			}
		}
		f := newFace(t, withTalks(text), func(c *Config) {
			c.Gateway.Pages[0].(*talkpages.Pages).Turns = func(context.Context, chat.SessionID) ([]chat.Turn, error) { return turns, nil }
		})
		boss := f.owner(t)
		for _, path := range []string{"/owner/talks", "/owner/talks?q=heat&who=telegram:42", "/owner/talks/telegram:42",
			"/owner/talks?q=" + url.QueryEscape(text) + "&channel=" + url.QueryEscape(text) + "&who=" + url.QueryEscape(text) + "&days=" + url.QueryEscape(text)} {
			page := read(t, f.want(t, 200, asking{path: path, by: boss}))
			if faults := notByMarkdown(webtest.Active(page)); len(faults) > 0 || !webtest.Shows(page, strings.TrimSpace(text)) {
				t.Errorf("%s, %q: %q", path, text, faults)
			}
			if strings.Contains(page, "<img") {
				t.Errorf("%s: a picture is loaded", path)
			}
		}
	}
}

// notByMarkdown returns the faults that are no links which somebody wrote, to the web.
func notByMarkdown(faults []string) (left []string) {
	for _, f := range faults {
		if !strings.HasPrefix(f, `href of a: "https://evil.example/pump.png"`) {
			left = append(left, f)
		}
	}
	return left
}

// The list has what its filters say, and of a long conversation the parts can be looked at.
func TestTalkPages(t *testing.T) {
	f := newFace(t, withTalks("Heat pumps"))
	boss := f.owner(t)
	titles := []string{"Heat pumps<", "tallest mountain", "Dinner for nine", "The weather", "The invoice", "Without words"}
	for query, want := range map[string]string{
		"":                              "0 1 2 3 4 5",
		"?channel=telegram":             "0 2",
		"?channel=telegram%3Awork":      "4",
		"?channel=cron":                 "3",
		"?who=telegram:-100":            "2",
		"?who=telegram:42&channel=web":  "",
		"?days=1":                       "0 1",
		"?days=7":                       "0 1 2 3",
		"?days=30&channel=telegram":     "0 2",
		"?days=30":                      "0 1 2 3 4",
		"?days=nonsense":                "0 1 2 3 4 5",
		"?q=heat":                       "0 5",
		"?q=heat&days=7":                "0",
		"?q=heat&channel=discord":       "5",
		"?q=nobody+said+this":           "",
		"?q=heat&who=web:owner&days=30": "",
	} {
		page := read(t, f.want(t, 200, asking{path: "/owner/talks" + query, by: boss}))
		_, page, _ = strings.Cut(page, "</form>")
		var got []string
		for i, title := range titles {
			name := title
			if i == 5 && strings.Contains(query, "q=") {
				name = `href="/owner/talks/discord:9"`
			}
			if strings.Contains(page, name) {
				got = append(got, string(rune('0'+i)))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s lists %q, want %q", query, got, want)
		}
		if (want == "") != strings.Contains(page, `class="empty"`) {
			t.Errorf("%s: nothing says that there is none", query)
		}
	}
	f.want(t, 404, asking{path: "/owner/talks/telegram:nobody", by: boss})
	page := read(t, f.want(t, 200, asking{path: "/owner/talks/telegram:42", by: boss}))
	for _, want := range []string{
		`href="/api/sessions/telegram:42/export"`, `class="state idle">not allowed`, `class="state bad">failed`, `class="state warn">interrupted`,
		`class="state busy">running`, `class="state good">done`, "<strong>quieter</strong>", "12\u202f345 tokens read, 678 written, 0.0312 and more",
		"receipt 0123456789abcdef", "approved by Anna", `class="state idle">Stopped`, "1.2 s", "1 failed", "A new conversation began",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the conversation does not show %s", want)
		}
	}
	for _, pages := range f.Server.cfg.Gateway.Pages {
		pages.(*talkpages.Pages).List = func(context.Context, string) ([]chat.Talk, error) { return make([]chat.Talk, 207), nil }
	}
	if page := read(t, f.want(t, 200, asking{path: "/owner/talks", by: boss})); !strings.Contains(page, "7 older ones are not listed") {
		t.Error("the page does not say that there are more")
	}
	page = read(t, f.want(t, 200, asking{path: "/owner/talks/telegram:many", by: boss}))
	if strings.Contains(page, "turn Cr") || !strings.Contains(page, "turn Cs") || !strings.Contains(page, "turn Ep") || !strings.Contains(page, "before=70") {
		t.Error("these are not the last 50 turns")
	}
	page = read(t, f.want(t, 200, asking{path: "/owner/talks/telegram:many?before=70", by: boss}))
	if !strings.Contains(page, "turn Cr") || strings.Contains(page, "turn Cs") || !strings.Contains(page, "before=20") || !strings.Contains(page, "before=120") {
		t.Error("these are not the 50 turns before")
	}
}

// In a real browser, on a desk and on a phone: conversations are filtered, and one is read with its steps.
func TestBrowserTalks(t *testing.T) {
	ctx, end := context.WithTimeout(webtest.Browser(t), 3*time.Minute)
	defer end()
	at, f := served(t, withTalks("Heat pumps"))
	link, err := f.Link(t.Context(), ownerName)
	if err != nil {
		t.Fatal(err)
	}
	js := func(script string) {
		t.Helper()
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[string](script+`; ""`)); err != nil {
			t.Fatal(err)
		}
	}
	look := func(page string) {
		t.Helper()
		fitsPhone(t, ctx, page)
		webtest.AxeEverywhere(ctx, t, page)
		shoot(t, ctx, page)
	}
	goTo := func(path string) {
		t.Helper()
		_, _ = chromedp.Run(ctx, chromedp.Navigate(at+path))
		webtest.Until(ctx, t, `location.pathname + location.search === "`+path+`" && document.readyState === "complete"`)
	}
	_, _ = chromedp.Run(ctx, chromedp.Navigate(link))
	webtest.Until(ctx, t, `document.body.innerText.includes("chat / for owner")`)
	goTo("/owner/talks")
	look("/owner/talks/list")
	js(`document.getElementById("filter-channel").value = "telegram"; document.getElementById("filter-days").value = "7"; document.querySelector(".filters button").click()`)
	webtest.Until(ctx, t, `location.search.includes("channel=telegram") && document.querySelectorAll(".talks li").length === 2 && document.getElementById("filter-days").value === "7"`)
	goTo("/owner/talks?q=heat")
	look("/owner/talks/found")
	js(`document.querySelector(".talks a").click()`)
	webtest.Until(ctx, t, `location.pathname === "/owner/talks/telegram:42" && document.querySelectorAll(".steps details").length === 5 && document.readyState === "complete"`)
	look("/owner/talks/one")
	js(`for (const step of document.querySelectorAll(".steps details")) step.open = true`)
	webtest.Until(ctx, t, `document.querySelector(".steps pre").checkVisibility()`)
	look("/owner/talks/steps")
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(390, 800)); err != nil {
		t.Fatal(err)
	}
	webtest.Until(ctx, t, `document.documentElement.scrollWidth <= innerWidth && [...document.querySelectorAll("main button, main a.button, main summary")].every(e => e.getBoundingClientRect().height >= 44)`)
	js(`window.confirm = () => true; window.before = true; document.querySelector("[data-delete]").click()`)
	webtest.Until(ctx, t, `!window.before && location.pathname === "/owner/talks"`)
	f.mu.Lock()
	defer f.mu.Unlock()
	if did := strings.Join(f.did, ","); did != "forget telegram:42" {
		t.Errorf("did %q", did)
	}
}
