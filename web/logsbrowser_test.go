package web

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"parley/redact"
	"parley/web/layout"
	"parley/web/live"
	"parley/web/logs"
	"parley/web/webtest"
)

// In a real browser: lines of the log come by themselves, none while paused, and what came meanwhile after that.
// The filter holds for them. On a phone and in the dark everything can be read.
func TestLogsLive(t *testing.T) {
	ctx, end := context.WithTimeout(webtest.Browser(t), 5*time.Minute)
	defer end()
	recent := new(redact.Recent)
	log := redact.NewLog(io.Discard, slog.LevelInfo, new(redact.Redactor), recent)
	log.Info("gateway started", "version", "1.2.3")
	at, f := served(t, func(c *Config) {
		streams := live.New()
		t.Cleanup(streams.Close)
		c.Gateway.Pages = []layout.Pages{&logs.Pages{Recent: recent, Streams: streams, Zone: time.UTC}}
	})
	link, err := f.Link(t.Context(), ownerName)
	if err != nil {
		t.Fatal(err)
	}
	visit := func(url string) {
		t.Helper()
		if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
			t.Fatal(err)
		}
	}
	click := func(css string) {
		t.Helper()
		if err := chromedp.Do(ctx, chromedp.Click(chromedp.CSS(css))); err != nil {
			t.Fatal(err)
		}
	}
	first := func(words string) string {
		return `document.querySelector("#lines li b")?.textContent === "` + words + `"`
	}
	visit(link)
	webtest.Until(ctx, t, `document.body.innerText.includes("chat / for owner")`)
	visit(at + "/owner/logs")
	webtest.Until(ctx, t, first("gateway started")+` && document.getElementById("tail").textContent === "Live"`)
	log.Warn("a channel is slow", "channel", "telegram")
	webtest.Until(ctx, t, first("a channel is slow"))
	click("#pause")
	webtest.Until(ctx, t, `document.getElementById("tail").textContent === "Paused"`)
	log.Error("model request failed", "model", "main", "err", "unreachable")
	click("#pause")
	webtest.Until(ctx, t, first("model request failed")+` && document.querySelectorAll("#lines li").length === 3`)
	webtest.AxeEverywhere(ctx, t, "the log")
	fitsPhone(t, ctx, "/owner/logs")
	shoot(t, ctx, "/owner/logs")
	visit(at + "/owner/logs?level=ERROR")
	webtest.Until(ctx, t, `document.querySelectorAll("#lines li").length === 1 && document.getElementById("tail").textContent === "Live"`)
	log.Warn("not wanted")
	log.Error("wanted")
	webtest.Until(ctx, t, first("wanted")+` && document.querySelectorAll("#lines li").length === 2`)
}
