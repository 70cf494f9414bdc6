package web

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"parley/chat"
	"parley/llm"
	"parley/llm/llmtest"
	"parley/memory"
	"parley/store/mem"
	"parley/web/layout"
	"parley/web/memorypages"
	"parley/web/webtest"
	"parley/workspace"
)

// remembered is a memory with lines of every origin: a night of real dreams over two conversations and a web page,
// what a person noted, what somebody wrote by hand, and what is older than anything that is known.
func remembered(t *testing.T) *memory.Notes {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	log := slog.New(slog.DiscardHandler)
	w, err := workspace.Open(t.TempDir())
	must(err)
	t.Cleanup(func() { _ = w.Close() })
	past := memory.NewHistory(w, log)
	notes := &memory.Notes{Versions: memory.NewVersions(w.Names(), mem.New(), log), Past: past, Zone: time.UTC}
	must(w.Names().WriteFile("SOUL.md", []byte("You are Parley: calm, brief and kind.\n")))
	must(w.Names().WriteFile("USER.md", []byte("# Whom you work for\n\n- Name: Ann\n- Language: English, and German with family\n")))
	must(w.Names().WriteFile("MEMORY.md", []byte("# House\n\n- The spare key is with Mrs Ortega next door.\n")))
	_, err = notes.Versions.Log(ctx, chat.TheOwner, 1)
	must(err)
	_, err = notes.Remember(ctx, chat.TheOwner, "The boiler is serviced each October.", "k1")
	must(err)
	at := time.Date(2026, 11, 20, 18, 30, 0, 0, time.UTC)
	for i, e := range []memory.Entry{
		{Session: "telegram:1", Text: "Rex, the dog, is a beagle and afraid of thunder."},
		{Session: "web:owner", Text: "The flight to Lisbon leaves on 3 March at 07:40."},
		{Session: "discord:7", Text: "A page says that TAP lets dogs fly in the cabin up to 8 kg.", Tainted: true, Sources: []string{"https://pets.example/tap"}},
	} {
		e.Time = at.Add(time.Duration(i) * time.Hour)
		_, err := past.Append(ctx, chat.TheOwner, e)
		must(err)
	}
	edit := func(id, file, add string, from ...int) llm.ToolCall {
		args, err := json.Marshal(map[string]any{"file": file, "old": "", "new": add, "from": from})
		must(err)
		return llm.ToolCall{ID: id, Name: "edit_memory", Args: string(args)}
	}
	done := llm.ToolCall{ID: "d", Name: "done", Args: `{"why":"the dog, and the trip to Lisbon"}`}
	script := &llmtest.Script{Answers: []llmtest.Answer{
		{Calls: []llm.ToolCall{edit("a", "MEMORY.md", "\n# Animals\n\n- Rex is a beagle; thunder frightens him.", 1), edit("b", "MEMORY.md", "- Flight to Lisbon on 2027-03-03 at 07:40."), edit("c", "USER.md", "- Has a dog, Rex.", 1), done}},
		{Calls: []llm.ToolCall{edit("a", "HEARD.md", "According to pets.example, TAP lets dogs of up to 8 kg fly in the cabin.", 3), done}},
	}}
	d := memory.Dreamer{Model: func(chat.Person) llm.Model { return script }, Past: past, Versions: notes.Versions, Zone: time.UTC}
	if changes, n, err := d.Dream(ctx, chat.TheOwner); err != nil || n != 3 || len(changes) != 1 {
		t.Fatalf("the night: %v, %d, %v", changes, n, err)
	}
	must(w.Names().WriteFile(path.Join(chat.Person("telegram:42").Folder(), "MEMORY.md"), []byte("- Likes tea.\n")))
	_, err = notes.Remember(ctx, "telegram:42", "has a cat", "k2")
	must(err)
	return notes
}

func withMemory(notes *memory.Notes) func(*Config) {
	return func(c *Config) {
		c.Gateway.Notes = notes
		c.Gateway.Pages = []layout.Pages{&memorypages.Pages{Notes: notes, Zone: time.UTC, Audit: c.Audit}}
	}
}

// Each line is shown with the conversation that it comes from, what nobody vouches for is marked, and what a
// program asks and corrects is what the page shows. Others reach none of it.
func TestMemoryLines(t *testing.T) {
	notes := remembered(t)
	f := newFace(t, withMemory(notes))
	boss := f.owner(t)
	type lines struct {
		Lines []memory.Line
	}
	line := func(words string) memory.Line {
		t.Helper()
		found := decoded[lines](t, f.want(t, 200, asking{path: "/api/memory/lines?q=" + url.QueryEscape(words), by: boss})).Lines
		if len(found) == 0 {
			t.Fatalf("nothing about %s", words)
		}
		return found[0]
	}
	rex := line("beagle")
	if rex.Untrusted || !rex.Origin.Named || len(rex.Origin.Sources) != 1 || rex.Origin.Sources[0].Session != "telegram:1" {
		t.Errorf("Rex: %+v", rex.Origin)
	}
	if tap := line("TAP cabin"); !tap.Untrusted || tap.File != "HEARD.md" || tap.Origin.Sources[0].From[0] != "https://pets.example/tap" {
		t.Errorf("TAP: %+v", tap)
	}
	if flight := line("Lisbon"); flight.Origin.Named || flight.Origin.Read != 2 || flight.Origin.Sources[0].Session != "web:owner" {
		t.Errorf("the flight: %+v", flight.Origin)
	}
	if key := line("Ortega"); key.Origin != nil {
		t.Errorf("the key: %+v", key.Origin)
	}
	body := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const post = "/api/memory/corrections"
	fix := body(map[string]any{"file": rex.File, "line": rex.Number, "was": rex.Text, "text": "- Rex is a terrier."})
	guest := f.invited(t, "gast")
	for name, c := range map[string]asking{
		"a guest":       {method: "POST", path: post, body: fix, by: guest},
		"nobody":        {method: "POST", path: post, body: fix},
		"a guest reads": {path: "/api/memory/lines", by: guest},
		"a guest looks": {path: "/owner/memory", by: guest},
	} {
		if res := f.ask(c); res.StatusCode != http.StatusNotFound && res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s gets %d", name, res.StatusCode)
		}
	}
	f.want(t, 403, asking{method: "POST", path: post, body: fix, by: boss, header: http.Header{ownHeader: nil}})
	f.want(t, 403, asking{method: "POST", path: post, body: fix, by: boss, header: http.Header{"Origin": {"https://evil.example"}}})
	if line("beagle").Text != rex.Text {
		t.Error("somebody changed the memory")
	}
	f.want(t, 200, asking{method: "POST", path: post, body: fix, by: boss})
	f.want(t, 409, asking{method: "POST", path: post, body: fix, by: boss})
	f.want(t, 400, asking{method: "POST", path: post, body: `{"file":"MEMORY.md","line":"x"}`, by: boss})
	f.want(t, 404, asking{method: "POST", path: post, body: `{"file":"AGENTS.md","text":"x"}`, by: boss})
	f.want(t, 404, asking{method: "POST", path: post + "?who=telegram:9", body: fix, by: boss})
	f.want(t, 409, asking{method: "POST", path: "/api/memory/changes/1/accept", body: `{}`, by: boss})
	if o := line("terrier").Origin; o.By != "page" {
		t.Errorf("what the owner wrote is by %+v", o)
	}
	last := f.audited[len(f.audited)-1]
	f.want(t, 200, asking{method: "POST", path: "/api/memory/changes/2/accept", body: `{}`, by: boss})
	f.want(t, 409, asking{method: "POST", path: "/api/memory/changes/2/accept", body: `{}`, by: boss})
	if l := line("Has a dog"); l.File != "USER.md" || l.Origin.Change != "2" || l.Origin.Sources[0].Session != "telegram:1" {
		t.Errorf("what was proposed comes from %+v", l)
	}
	page := read(t, f.want(t, 200, asking{path: "/owner/memory?q=terrier", by: boss}))
	if !strings.Contains(page, "you, on this page") || strings.Contains(page, "Ortega") {
		t.Errorf("the search shows %s", page)
	}
	if last != "memory owner corrected MEMORY.md of owner, change 3" {
		t.Errorf("the audit log has %q", last)
	}
}

// R-S5: what a memory and its sources say is text.
func TestHostileMemory(t *testing.T) {
	for _, text := range webtest.Hostile {
		notes := remembered(t)
		if _, err := notes.Remember(t.Context(), chat.TheOwner, text, "evil"); err != nil {
			t.Fatal(err)
		}
		f := newFace(t, withMemory(notes))
		page := read(t, f.want(t, 200, asking{path: "/owner/memory?q=" + url.QueryEscape(text), by: f.owner(t)}))
		page += read(t, f.want(t, 200, asking{path: "/owner/memory", by: f.owner(t)}))
		if faults := webtest.Active(page); len(faults) > 0 || !webtest.Shows(page, strings.TrimSpace(text)) {
			t.Errorf("%q: %q", text, faults)
		}
	}
}

// In a real browser: memory is read, searched and corrected, a change is undone, and what was changed meanwhile is
// not lost; at the size of a desk and of a phone, in both colours.
func TestBrowserMemory(t *testing.T) {
	ctx, end := context.WithTimeout(webtest.Browser(t), 5*time.Minute)
	defer end()
	notes := remembered(t)
	at, f := served(t, withMemory(notes))
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
	until := func(script string) {
		t.Helper()
		webtest.Until(ctx, t, script)
	}
	goTo := func(path string) {
		t.Helper()
		_, _ = chromedp.Run(ctx, chromedp.Navigate(at+path))
		until(`location.pathname + location.search + location.hash === "` + path + `"`)
	}
	look := func(page string) {
		t.Helper()
		fitsPhone(t, ctx, page)
		webtest.AxeEverywhere(ctx, t, page)
		shoot(t, ctx, page)
	}
	_, _ = chromedp.Run(ctx, chromedp.Navigate(link))
	until(`document.body.innerText.includes("chat / for owner")`)
	goTo("/owner/memory")
	look("/owner/memory")
	until(`document.querySelectorAll(".heard .state.warn").length >= 1`)
	js(`for (const line of document.querySelectorAll(".lines details")) if (/beagle|TAP|Ortega/.test(line.innerText)) line.open = true`)
	until(`[...document.querySelectorAll('.more a[href="/owner/talks/telegram:1"]')].some((a) => a.checkVisibility())`)
	until(`document.body.innerText.includes("the line is older than")`)
	look("/owner/memory/open")
	js(`const line = [...document.querySelectorAll(".lines details")].find((l) => /beagle/.test(l.innerText));
		line.querySelector("textarea").value = "- Rex is a terrier."; window.before = true; line.querySelector("button.main").click()`)
	until(`!window.before && document.body.innerText.includes("Rex is a terrier")`)
	js(`window.confirm = () => true; window.before = true; [...document.querySelectorAll(".lines details")].find((l) => /terrier/.test(l.innerText)).querySelector("button.remove").click()`)
	until(`!window.before && !document.querySelector(".lines").innerText.includes("Rex")`)
	goTo("/owner/memory/changes/3")
	look("/owner/memory/change")
	goTo("/owner/memory/changes/4")
	js(`window.confirm = () => true; document.querySelector("[data-sure]").click()`)
	until(`location.pathname === "/owner/memory/changes"`)
	goTo("/owner/memory?who=owner&q=terrier")
	until(`document.querySelectorAll(".lines details").length === 1`)
	look("/owner/memory/found")
	goTo("/owner/memory/edit?who=owner&file=USER.md")
	look("/owner/memory/edit")
	if _, err := notes.Correct(t.Context(), chat.TheOwner, memory.Correction{File: "USER.md", Line: 3, Was: "- Name: Ann", Text: "- Name: Anna"}); err != nil {
		t.Fatal(err)
	}
	js(`document.getElementById("text").value = "mine"; document.querySelector(".whole button").click()`)
	until(`document.getElementById("said").textContent.includes("was changed in the meantime") && document.getElementById("text").value === "mine"`)
	goTo("/owner/memory?who=telegram%3A42")
	until(`document.body.innerText.includes("has a cat") && !document.body.innerText.includes("terrier")`)
}
