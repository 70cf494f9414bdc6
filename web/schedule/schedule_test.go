package schedule_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the machine may have none

	"github.com/chromedp/chromedp"

	"parley/chat"
	"parley/response"
	"parley/scheduler"
	"parley/scheduler/rehearsal"
	"parley/store"
	"parley/store/mem"
	"parley/web/schedule"
	"parley/web/webtest"
)

// newPages returns the pages of a scheduler in Berlin with these jobs.
func newPages(t *testing.T, all ...scheduler.Job) *schedule.Pages {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	memory := mem.New()
	s := scheduler.New(scheduler.Config{Store: memory, Zone: zone, System: []scheduler.System{{ID: "heartbeat", Schedule: scheduler.Schedule{Every: 30 * time.Minute}}}})
	for _, j := range all {
		runs, failed := j.Runs, j.Failed
		j.By = chat.Sender{ID: "7", Role: chat.Owner}
		if j.At == (chat.Address{}) {
			j.At = chat.Address{Channel: "telegram", Chat: "42"}
		}
		added, err := s.Add(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		table := store.NewTable(memory.Bucket(store.BucketJobs), store.Report[scheduler.Job])
		_, _, err = table.Update(t.Context(), added.ID, func(j *scheduler.Job) error {
			j.Runs, j.Failed = runs, failed
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	forecast := func(ctx context.Context, days int) (rehearsal.Report, error) {
		return rehearsal.Forecast(ctx, rehearsal.Config{
			Jobs: s.Jobs, Due: s.Due, Zone: zone, Limits: func() (none rehearsal.Limits) { return none },
			Reach: func(_ context.Context, j scheduler.Job) string {
				if j.At.Channel == "discord" {
					return "there is no channel discord any more"
				}
				return ""
			},
		}, days)
	}
	return &schedule.Pages{
		Jobs: s.Jobs, NextTimes: s.NextTimes, Preview: s.Preview, Forecast: forecast, Zone: zone, Audit: func(string, string, string) {},
		Ask: func(ctx context.Context, days int) (rehearsal.Report, error) {
			r, err := forecast(ctx, days)
			r.Asked = true
			for i := range r.Jobs {
				r.Jobs[i].Answer = &rehearsal.Answer{
					Outcome: "answered", Text: "x", Sends: []rehearsal.Send{{To: "telegram:42", Text: "Good morning! " + r.Jobs[i].Name}},
					NotDone: []string{`spawn {"task":"x"}`}, Files: []string{"work/news.md (new)"}, Tokens: 1234, Seconds: 2,
				}
			}
			return r, err
		},
	}
}

// someJobs are jobs as somebody may have them.
func someJobs() []scheduler.Job {
	ago := func(d time.Duration) time.Time { return time.Now().Add(-d).Truncate(time.Minute) }
	run := func(n uint64, d time.Duration, o scheduler.Outcome, note string) scheduler.Run {
		return scheduler.Run{N: n, Due: ago(d), Began: ago(d), Accepted: ago(d), Seconds: 6, Outcome: o, Note: note, Tokens: 4200 + int(n)*31, Cost: .0123}
	}
	const day = 24 * time.Hour
	return []scheduler.Job{
		{ID: "morning", Name: "Morning briefing", Text: "Look at my mail, the calendar and the weather, and tell me what matters today.",
			Schedule: scheduler.Schedule{Cron: "30 7 * * 1-5"}, Isolated: true, Runs: []scheduler.Run{
				run(1, 6*day, scheduler.Delivered, ""), run(2, 5*day, scheduler.Delivered, ""), run(3, 3*day, scheduler.Failed, "the model did not answer"),
				{Due: ago(2 * day), Times: 1, Outcome: scheduler.Missing, Note: "Parley was not running at that time"}, run(4, day, scheduler.Delivered, ""),
			}},
		{ID: "plants", Name: "Water the plants", Text: "Remind me to water the plants.", Schedule: scheduler.Schedule{Cron: "0 18 * * 1,5"},
			Runs: []scheduler.Run{run(1, 3*day, scheduler.Delivered, ""), run(2, 2*time.Hour, scheduler.Sending, "")}},
		{ID: "watch", Name: "Watch the tickets", Text: "Look whether there are tickets.", Quiet: true, Schedule: scheduler.Schedule{Every: 2 * time.Hour},
			Runs: []scheduler.Run{run(1, 4*time.Hour, scheduler.Silent, ""), run(2, 2*time.Hour, scheduler.Undelivered, "Forbidden: bot was blocked by the user")}},
		{ID: "rent", Name: "Pay the rent", Text: "Remind me.", Schedule: scheduler.Schedule{Cron: "0 8 1 * *"}},
		{ID: "old", Name: "Old report", Text: "Report.", Off: true, Schedule: scheduler.Schedule{Cron: "0 23 * * *"}, At: chat.Address{Channel: "discord", Chat: "9"}},
	}
}

// serve serves the pages, with the style sheet and script of all pages.
func serve(t *testing.T, p *schedule.Pages) *httptest.Server {
	mux := http.NewServeMux()
	for _, rt := range p.Routes() {
		mux.HandleFunc(rt.Pattern, func(w http.ResponseWriter, r *http.Request) {
			err := rt.Handle(w, r, chat.Sender{ID: "owner", Role: chat.Owner})
			if problem, ok := errors.AsType[response.Problem](err); ok {
				response.JSON(w, problem.Status, map[string]string{"error": problem.Text})
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	for _, name := range []string{"owner.css", "owner.js"} {
		mux.HandleFunc("GET /assets/"+name, func(w http.ResponseWriter, r *http.Request) {
			http.ServeFile(w, r, filepath.Join("..", "assets", name))
		})
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func get(t *testing.T, s *httptest.Server, path string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// The page has each run of the week, many of one job as one mark, and how runs ended: a
// message that its network has not taken yet is waiting.
func TestPage(t *testing.T) {
	_, page := get(t, serve(t, newPages(t, someJobs()...)), "/owner/cron")
	for _, want := range []string{
		"Every weekday at 7:30", "Every 2 hours", "On the 1st of each month at 8:00", ">waiting to be delivered<",
		"not delivered: Forbidden: bot was blocked by the user", "failed: the model did not answer", "not known yet", ">Your next job<", "\u202f278 tokens, 0.0123, 6s",
		`href="/owner/talks/cron:morning"`, `href="/owner/talks/telegram:42"`, ">paused<", " × 12</b>", ": delivered at ",
		`data-patch="/api/cron/old" data-body="{&#34;enabled&#34;:true}"`, `data-post="/api/cron/old/run?force=1"`, `data-delete="/api/cron/plants"`,
		`data-post="/api/cron/heartbeat/run"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	for _, other := range []string{`data-patch="/api/cron/heartbeat"`, `data-delete="/api/cron/heartbeat"`, "style="} {
		if strings.Contains(page, other) {
			t.Errorf("the page has %s", other)
		}
	}
	if t.Failed() {
		t.Log(page)
	}
}

// What jobs take that never ran is not said to be nothing.
func TestUnknownTokens(t *testing.T) {
	s := serve(t, newPages(t, scheduler.Job{ID: "new", Name: "New", Text: "x", Schedule: scheduler.Schedule{Cron: "0 9 * * *"}}))
	for _, path := range []string{"/owner/cron", "/owner/cron/rehearsal"} {
		_, page := get(t, s, path)
		_, figures, _ := strings.Cut(page, ">Tokens")
		if figures, _, _ = strings.Cut(figures, "not counted"); !strings.Contains(figures, "not known yet") || len(figures) > 300 {
			t.Errorf("%s: %s", path, figures)
		}
	}
}

// What others wrote is no markup (R-S5).
func TestHostile(t *testing.T) {
	for _, text := range webtest.Hostile {
		j := scheduler.Job{ID: "x", Name: text, Text: text, Schedule: scheduler.Schedule{Every: time.Hour}, At: chat.Address{Channel: "telegram", Chat: text}}
		j.Runs = []scheduler.Run{{N: 1, Due: time.Now(), Seconds: 1, Outcome: scheduler.Failed, Note: text, Result: text}}
		p := newPages(t, j)
		p.Ask = nil
		s := serve(t, p)
		for _, path := range []string{"/owner/cron", "/owner/cron/rehearsal"} {
			_, page := get(t, s, path)
			if faults := webtest.Active(page); len(faults) > 0 {
				t.Errorf("%s of %q: %q", path, text, faults)
			}
		}
	}
}

// A preview says what was understood and when that is, or what to write instead.
func TestPreview(t *testing.T) {
	s := serve(t, newPages(t))
	for _, c := range []struct {
		when, tz string
		status   int
		says     string
	}{
		{"every weekday at 9", "", 200, `"cron_expr":"0 9 * * 1-5"`},
		{"every weekday at 9", "Asia/Tokyo", 200, "09:00 JST"},
		{"mondays at 7", "", 200, `"words":"every monday at 7:00"`},
		{"in 20 minutes", "", 200, `"words":"`},
		{"every day", "", 400, "at what time?"},
		{"every second", "", 400, "at least this many seconds: 10"},
		{"every hour", "Asia/Tokyo", 400, "a time zone can only be given with days"},
		{"every day at 9", "Mars", 400, "unknown timezone"},
	} {
		status, body := get(t, s, "/api/cron/preview?"+url.Values{"when": {c.when}, "tz": {c.tz}}.Encode())
		if status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s: %d %s; want %s", c.when, status, body, c.says)
		}
	}
	_, body := get(t, s, "/api/cron/preview?when=every+day+at+9")
	var told struct{ Times, Shown []string }
	if err := json.Unmarshal([]byte(body), &told); err != nil || len(told.Times) != 5 || len(told.Shown) != 5 {
		t.Errorf("%v: %s", err, body)
	}
}

// In a browser: the next times are shown while the words are typed, an example fills in the
// field, and nothing is wider than a phone. Axe finds no fault.
func TestBrowser(t *testing.T) {
	ctx := webtest.Browser(t)
	p := newPages(t, someJobs()...)
	s := serve(t, p)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	visit := func(path string) { must(chromedp.Do(ctx, chromedp.Navigate(s.URL+path))) }
	write := func(text string) {
		must(chromedp.Do(ctx, chromedp.SendKeys(chromedp.CSS("#new-when"), text)))
	}
	press := func(button string) {
		must(chromedp.Do(ctx, chromedp.Click(chromedp.CSS(button), chromedp.NodeVisible)))
	}
	shot := func(name string) {
		dir := os.Getenv("PARLEY_ARTIFACTS")
		if dir == "" {
			return
		}
		picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, size := range []struct {
		name          string
		width, height int64
	}{{"desktop", 1200, 900}, {"phone", 390, 844}} {
		for _, scheme := range []string{"light", "dark"} {
			if err := webtest.Look(ctx, size.width, size.height, scheme); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{"/owner/cron", "/owner/cron/rehearsal"} {
				visit(path)
				webtest.Until(ctx, t, `document.documentElement.scrollWidth <= innerWidth`)
				webtest.Axe(ctx, t, path+" "+size.name+" "+scheme)
				shot("schedule" + strings.ReplaceAll(path, "/", "-") + "-" + size.name + "-" + scheme)
			}
		}
		visit("/owner/cron")
		webtest.Until(ctx, t, `document.querySelector("#new-when")`)
		write("mondays and fridays at 7:15")
		webtest.Until(ctx, t, `document.querySelectorAll("#new-next li").length === 5 && document.querySelector("#new-next").innerText.includes("every monday and friday at 7:15")`)
		shot("schedule-preview-" + size.name)
		write(" sometimes")
		webtest.Until(ctx, t, `document.querySelector("#new-next.bad")?.innerText.includes("does not say when")`)
		press("#new [data-example='every 2 hours']")
		webtest.Until(ctx, t, `document.querySelector("#new-next:not(.bad)")?.innerText.includes("Next times") && document.querySelector("#new-when").value === "every 2 hours"`)
	}
	visit("/owner/cron/rehearsal")
	webtest.Until(ctx, t, `(window.confirm = () => true) && document.querySelector("button[data-ask]")`)
	press("button[data-ask]")
	webtest.Until(ctx, t, `location.search.includes("asked=1") && document.body.innerText.includes("Good morning! Morning briefing")`)
	shot("schedule-asked-phone")
	if err := webtest.Look(ctx, 1200, 900, "light"); err != nil {
		t.Fatal(err)
	}
	shot("schedule-asked-desktop")
}
