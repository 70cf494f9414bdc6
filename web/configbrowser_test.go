package web

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"parley/web/configpages"
	"parley/web/layout"
	"parley/web/webtest"
)

const someConfig = `{
  // Who may give orders.
  "owners": ["console", "web"],
  "models": {
    "main": { "type": "openai", "model": "gpt-5-mini", "apiKey": "${OPENAI_API_KEY}" }
  },
  "channels": { "console": {}, "web": {} },
  "log": { "level": "info" }
}
`

// withConfig has the page on which a config is edited. Its texts are wrong where they say "modles".
func withConfig(t *testing.T, text string) (path string, change func(*Config)) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "config.json")
	if text != "" {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(text string) (v configpages.Verdict) {
		for i, line := range strings.Split(text, "\n") {
			if at := strings.Index(line, `"modles"`); at >= 0 {
				v.Faults = append(v.Faults, configpages.Fault{Line: i + 1, Column: at + 1, Text: "modles: unknown key; allowed: agent, channels, cron, models, owners"})
			}
		}
		if len(v.Faults) == 0 {
			v.Changed = []string{"log.level"}
			v.Restart = []string{"http.listen"}
			v.Warnings = []string{`channels.telegram.allow has "*": everybody on telegram may talk`}
		}
		return v
	}
	return path, func(c *Config) {
		c.Gateway.Pages = []layout.Pages{&configpages.Pages{
			File: &configpages.File{Path: path, History: filepath.Join(filepath.Dir(path), "history")}, First: "{} // the first\n",
			Check: check, Zone: time.UTC, Audit: c.Audit,
		}}
	}
}

// Only an owner's own page changes the config: no guest, no other site, no request without the header of our pages,
// and no API key.
func TestConfigIsTheOwners(t *testing.T) {
	path, change := withConfig(t, someConfig)
	f := newFace(t, change)
	boss := f.owner(t)
	sum := decoded[struct{ Sum string }](t, f.want(t, 200, asking{path: "/api/config", by: boss})).Sum
	body := `{"base":"` + sum + `","text":"{}"}`
	post := asking{method: "POST", path: "/api/config", body: body, by: boss}
	guest := f.invited(t, "gast")
	for _, c := range []struct {
		status int
		change func(*asking)
	}{
		{401, func(a *asking) { a.by = "" }},
		{404, func(a *asking) { a.by = guest }},
		{403, func(a *asking) { a.header = http.Header{ownHeader: nil} }},
		{403, func(a *asking) { a.header = http.Header{"Origin": {"https://evil.example"}} }},
		{403, func(a *asking) { a.header = http.Header{"Sec-Fetch-Site": {"cross-site"}} }},
		{409, func(a *asking) { a.body = `{"base":"","text":"{}"}` }},
		{400, func(a *asking) { a.body = `{"base":"` + sum + `","text":"{\"modles\":1}"}` }},
		{400, func(a *asking) { a.body = `{"base":"` + sum + `","text":"` + strings.Repeat("x", 129<<10) + `"}` }},
	} {
		a := post
		c.change(&a)
		f.want(t, c.status, a)
		if text, err := os.ReadFile(path); err != nil || string(text) != someConfig {
			t.Fatalf("after %d the file says %q, %v", c.status, text, err)
		}
	}
	for _, at := range []string{"/owner/config", "/api/config", "/api/config/versions/1"} {
		f.want(t, 404, asking{path: at, by: guest})
	}
	f.want(t, 200, post)
	if text, err := os.ReadFile(path); err != nil || string(text) != "{}" {
		t.Errorf("the file says %q, %v", text, err)
	}
	if last := f.audited[len(f.audited)-1]; last != "config owner config.json saved on the owner's page: log.level, http.listen" {
		t.Errorf("the audit log has %q", last)
	}
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	if page := read(t, f.want(t, 200, asking{path: "/owner/config", by: boss})); !strings.Contains(page, "It cannot be changed here: the file is marked as read-only.") || !strings.Contains(page, "readonly") {
		t.Errorf("the page does not say that it is read-only: %s", page)
	}
	_, change = withConfig(t, "")
	f = newFace(t, change)
	if page := read(t, f.want(t, 200, asking{path: "/owner/config", by: f.owner(t)})); !strings.Contains(page, "There is no config file yet") || !strings.Contains(page, "{} // the first") {
		t.Errorf("without a file the page is %s", page)
	}
}

// R-S5: what the file says is text.
func TestHostileConfig(t *testing.T) {
	for _, text := range webtest.Hostile {
		_, change := withConfig(t, text)
		f := newFace(t, change)
		page := read(t, f.want(t, 200, asking{path: "/owner/config", by: f.owner(t)}))
		if faults := webtest.Active(page); len(faults) > 0 || !webtest.Shows(page, text) {
			t.Errorf("%q: %q", text, faults)
		}
	}
}

// In a real browser: a mistake is shown with its place, and where the cursor goes; differences are shown before a text
// is saved; an earlier text comes back; what somebody else wrote meanwhile stays, and so does what was typed.
func TestBrowserConfig(t *testing.T) {
	ctx, end := context.WithTimeout(webtest.Browser(t), 5*time.Minute)
	defer end()
	path, change := withConfig(t, someConfig)
	at, f := served(t, change)
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
	look := func(page string) {
		t.Helper()
		fitsPhone(t, ctx, page)
		webtest.AxeEverywhere(ctx, t, page)
		shoot(t, ctx, page)
	}
	says := func(want string) {
		t.Helper()
		if text, err := os.ReadFile(path); err != nil || string(text) != want {
			t.Fatalf("the file says %q, %v", text, err)
		}
	}
	edit := func(from, to string) {
		t.Helper()
		js(`{ const text = document.getElementById("text"); text.value = text.value.replace(` + "`" + from + "`, `" + to + "`" + `);
			text.dispatchEvent(new Event("input")); document.getElementById("review").click() }`)
	}
	_, _ = chromedp.Run(ctx, chromedp.Navigate(link))
	until(`document.body.innerText.includes("chat / for owner")`)
	_, _ = chromedp.Run(ctx, chromedp.Navigate(at+"/owner/config"))
	until(`document.getElementById("numbers")?.textContent.startsWith("1\n2\n3\n")`)
	look("/owner/config")

	edit(`"models": {`, `"modles": {`)
	until(`document.querySelectorAll("#faults button").length === 1 && document.querySelector("#numbers b").textContent === "4" && document.getElementById("save").hidden`)
	until(`document.activeElement.id === "text" && document.getElementById("text").selectionStart === document.getElementById("text").value.indexOf('"modles"')`)
	look("/owner/config/broken")
	says(someConfig)

	edit(`"modles": {`, `"models": {`)
	until(`document.getElementById("verdict").textContent === "Nothing has changed"`)
	edit(`"level": "info"`, `"level": "debug"`)
	until(`document.querySelector("#diff .add")?.textContent.includes("debug") && !document.getElementById("save").hidden && document.getElementById("effects").textContent.includes("Waits for the next start of Parley: http.listen.")`)
	look("/owner/config/review")
	says(someConfig)
	js(`window.before = true; document.getElementById("save").click()`)
	until(`!window.before && document.getElementById("said").textContent.startsWith("Saved. Takes effect at once: log.level.") && document.querySelectorAll(".versions a").length === 1`)
	says(strings.Replace(someConfig, "info", "debug", 1))
	look("/owner/config/saved")

	js(`document.querySelector(".versions a").click()`)
	until(`location.search.startsWith("?version=") && document.querySelector("#diff .add")?.textContent.includes("info")`)
	if err := os.WriteFile(path, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	js(`document.getElementById("save").click()`)
	until(`document.getElementById("said").textContent.includes("changed in the meantime") && document.getElementById("text").value.includes("info")`)
	says("{}\n")
	js(`window.before = true; location.reload()`)
	until(`!window.before && document.querySelector("#diff .add")?.textContent !== undefined`)
	js(`window.before = true; document.getElementById("save").click()`)
	until(`!window.before && document.getElementById("said").textContent.startsWith("Saved.")`)
	says(someConfig)
}
