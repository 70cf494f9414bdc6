package web

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"parley/tools/policy"
	"parley/web/webtest"
)

// In a real browser, under the real policy of the pages: a tool is written, tested and
// changed in two windows at once, a version is restored, a category is switched off
// and an approval is revoked. Everything has a name and fits on a phone.
func TestBrowserTools(t *testing.T) {
	ctx, end := context.WithTimeout(webtest.Browser(t), 5*time.Minute)
	defer end()
	at, f := served(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	js := func(script string) string {
		t.Helper()
		got, err := chromedp.Run(ctx, chromedp.Evaluate[string](script+`; ""`))
		must(err)
		return got
	}
	until := func(script string) {
		t.Helper()
		webtest.Until(ctx, t, script)
	}
	goTo := func(path string) {
		t.Helper()
		must(chromedp.Do(ctx, chromedp.Navigate(at+path)))
	}
	link, err := f.Link(t.Context(), ownerName)
	must(err)
	_, _ = chromedp.Run(ctx, chromedp.Navigate(link))
	until(`document.body.innerText.includes("chat / for owner")`)

	goTo("/admin/custom-tools/edit")
	js(`for (const [id, value] of Object.entries({id: "text_len", description: "Counts characters", execution_code: "print(len({text}))", meta: '{"owner": "Ada"}'})) document.getElementById(id).value = value;
		document.getElementById("icon").value = "calculator.svg"; document.querySelector("#editor button.main").click()`)
	until(`location.search === "?id=text_len" && document.querySelector("#versions") !== null && document.getElementById("meta").value.includes("Ada")`)
	js(`document.getElementById("arguments").value = '{"text": "abc"}'; document.querySelector("form[data-show] button").click()`)
	until(`!document.getElementById("outcome").hidden && document.querySelector("[data-out=arguments]").textContent.includes('"abc"') && document.querySelector("[data-out=output]").textContent.includes("<img")`)
	shoot(t, ctx, "/admin/custom-tools/edit")
	js(`document.getElementById("arguments").value = '{'; document.querySelector("form[data-show] button").click()`)
	until(`document.getElementById("said").textContent === "the arguments are not JSON."`)

	d, err := f.cfg.Gateway.ToolAdmin.Custom.Get("text_len")
	must(err)
	_, err = f.cfg.Gateway.ToolAdmin.Custom.Save(draftWithCode("text_len", "print(0)\n", d.Revision), "other")
	must(err)
	js(`document.getElementById("description").value = "Mine"; document.querySelector("#editor button.main").click()`)
	until(`document.getElementById("said").textContent.includes("changed by somebody else") && document.getElementById("description").value === "Mine" && !document.querySelector("#editor [data-conflict]").hidden`)
	js(`window.before = true; document.querySelector("#editor [data-conflict]").click()`)
	until(`!window.before && document.readyState === "complete" && document.querySelectorAll("[aria-labelledby=versions] tbody tr").length === 3`)
	shoot(t, ctx, "/admin/custom-tools/saved")
	goTo("/admin/custom-tools/diff?id=text_len&version=1")
	fitsPhone(t, ctx, "diff")
	shoot(t, ctx, "/admin/custom-tools/diff")
	js(`window.confirm = () => true; document.querySelector("[data-post$=restore]").click()`)
	until(`location.pathname === "/admin/custom-tools/edit" && document.getElementById("description")?.value === "Counts characters"`)

	goTo("/admin/policy?type=role&value=owner")
	js(`window.before = true; document.getElementsByName("state:custom")[0].value = "off"; document.getElementsByName("tool:text_len")[0].value = "net"; document.querySelector("form[data-post] button.main").click()`)
	until(`!window.before && document.readyState === "complete" && document.getElementsByName("tool:text_len")[0]?.value === "net" && document.getElementsByName("state:custom")[0].value === "off" && document.getElementById("said").textContent === "The policy was saved."`)
	c, err := f.cfg.Gateway.ToolAdmin.Policy.Of(t.Context(), policy.Target{Type: policy.Role, Value: "owner"})
	must(err)
	if off := c.ForcedCategoryStates["custom"]; off == nil || *off {
		t.Errorf("stored %+v", c)
	}
	goTo("/admin/approvals")
	js(`window.before = true; document.querySelector("[data-post$=revoke]").click()`)
	until(`!window.before && document.readyState === "complete"`)

	for _, page := range []string{"/admin/policy", "/admin/policy?type=role&value=owner", "/admin/custom-tools", "/admin/custom-tools/edit?id=calc", "/admin/custom-tools/edit?id=broken", "/admin/approvals"} {
		goTo(page)
		until(`location.pathname + location.search === "` + page + `"`)
		if bare := js(`window.bare = [...document.querySelectorAll("a,button,input:not([type=hidden]),select,textarea,table")].filter(e => !(e.ariaLabel || e.getAttribute("aria-labelledby") || e.labels?.length || e.textContent.trim())).map(e => e.outerHTML).join()`); bare != "" {
			t.Errorf("%s: %s", page, bare)
		}
		if bare, err := chromedp.Run(ctx, chromedp.Evaluate[string](`window.bare`)); err != nil || bare != "" {
			t.Errorf("%s: without a name: %s %v", page, bare, err)
		}
		if wide, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`document.documentElement.scrollWidth > innerWidth`)); err != nil || wide {
			t.Errorf("%s is wider than the window: %v", page, err)
		}
		fitsPhone(t, ctx, page)
		shoot(t, ctx, page)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if strings.Join(f.did, ",") != "revoke telegram:-100/7" {
		t.Errorf("did %q", f.did)
	}
}
