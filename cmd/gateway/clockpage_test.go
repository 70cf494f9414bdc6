package main

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"parley/scheduler"
	"parley/scheduler/jobs"
	"parley/tools/network/networktest"
	"parley/web/webtest"
)

// TestClockPage: in a real browser an owner puts something on the clock, has it
// done now, which Telegram shows, switches it off and removes it, and has the
// agent dream of what was said (points 2 and 5).
func TestClockPage(t *testing.T) {
	t.Parallel()
	browser := webtest.Browser(t)
	s := newTestGateway(t, mindful)
	s.more["http"] = map[string]any{"listen": networktest.FreeAddress(t)}
	s.start()
	chat := s.telegramSpot()
	chat.asks("fact: I drink tea.", "heard fact: I drink tea.")
	base, code := s.face()
	w := newWindow(t, browser)
	w.visit(base + "/signin#" + code)
	w.until(`document.querySelector("#state")?.dataset.text === ""`)

	w.visit(base + "/owner/cron")
	press := func(button string) { w.does(chromedp.Click(chromedp.CSS(button), chromedp.NodeVisible)) }
	w.does(chromedp.SendKeys(chromedp.CSS("#new-message"), "Make <b>tea</b>"))
	w.does(chromedp.SendKeys(chromedp.CSS("#new-when"), "0 9 * * 1-5"))
	press("#new button.main")
	const row = `[...document.querySelectorAll(".jobs > li")].find((r) => r.innerText.includes("Make <b>tea</b>"))`
	w.until(row + `.innerText.includes("telegram:7001") && ` + row + `.innerText.includes("0 9 * * 1-5") && (` + row + `.innerText.match(/09:00/g) ?? []).length === 3`)
	w.shot("clock")
	press("button[data-patch] + button[data-post$='/run']")
	chat.last("heard Make <b>tea</b>")
	for _, j := range s.jobs() {
		if j.ID != jobs.DreamID && j.ID != jobs.HeartbeatID {
			s.job(j.ID, "delivered", hasEnded(scheduler.Delivered))
		}
	}
	w.visit(base + "/owner/cron")
	w.until(row + `.innerText.includes("delivered")`)
	press("button[data-patch]")
	w.until(row + `.innerText.includes("paused") && document.querySelector("button[data-patch]").innerText === "Resume"`)
	w.eval(`window.confirm = () => true; ""`)
	press("button[data-delete]")
	w.until(`document.querySelectorAll("button[data-delete]").length === 0 && document.body.innerText.includes("dream")`)

	w.visit(base + "/owner/memory")
	press("button[data-post='/api/cron/dream/run']")
	w.until(`location.pathname === "/owner/cron"`)
	if r := s.dreamt(); r.Outcome != scheduler.Done || !strings.Contains(r.Note, "1 change") {
		t.Errorf("the dream came out as %s: %s", r.Outcome, r.Note)
	}
	w.visit(base + "/owner/memory/changes?who=owner")
	w.until(`document.body.innerText.includes("facts were told")`)
	w.visit(base + "/owner/memory/changes/1?who=owner")
	w.until(`document.querySelector("pre.diff").innerText.includes("+- I drink tea")`)
	w.shot("memory")
}
