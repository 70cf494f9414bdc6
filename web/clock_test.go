package web

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"parley/chat"
	"parley/scheduler"
	"parley/store"
)

// clock is a real one that nobody has wound up, with a job of an evil person and
// one of the house.
func (f *face) clock() Clock {
	ctx := context.Background()
	dream := scheduler.Job{ID: "dream", Name: "dream", System: true, Schedule: scheduler.Schedule{Cron: "0 4 * * *"}, Runs: []scheduler.Run{{Outcome: scheduler.Failed}}}
	s := scheduler.New(scheduler.Config{Store: f.store, Zone: time.UTC, System: []scheduler.System{{ID: dream.ID, Schedule: dream.Schedule}}})
	dream.Next = time.Date(2030, 1, 1, 4, 0, 0, 0, time.UTC)
	if _, err := store.Save(ctx, f.store.Bucket("jobs"), dream.ID, dream, 0); err != nil {
		panic(err)
	}
	_, err := s.Add(ctx, scheduler.Job{
		ID: "mallory", Name: evil, Text: evil, At: chat.Address{Channel: "telegram", Chat: evil}, By: chat.Sender{ID: "7", Name: evil},
		Schedule: scheduler.Schedule{Cron: "0 9 * * *", Zone: "Asia/Tokyo"}, Tool: evil, Args: `{"text":"<img onerror>"}`,
	})
	if err != nil {
		panic(err)
	}
	if err := s.Fire(ctx, "mallory", ""); err != nil {
		panic(err)
	}
	did := func(what, id string, err error) error {
		if err == nil {
			f.note(&f.did, what, id)
		}
		return err
	}
	return Clock{
		Jobs: func(ctx context.Context) (all []Job, err error) {
			jobs, err := s.Jobs(ctx)
			for _, j := range jobs {
				all = append(all, Job{Job: j, Soon: s.Soon(j, 3)})
			}
			return all, err
		},
		Order: func(ctx context.Context, id string, o json.RawMessage) (scheduler.Job, error) {
			var ask struct {
				Message string
				Cron    string `json:"cron_expr"`
				Enabled bool
			}
			if err := json.Unmarshal(o, &ask); err != nil {
				return scheduler.Job{}, Wrong(err)
			}
			if id != "" {
				j, err := s.Edit(ctx, id, func(j *scheduler.Job) error { j.Off = !ask.Enabled; return nil })
				return j, did("edit", id, err)
			}
			j, err := s.Add(ctx, scheduler.Job{
				Text: ask.Message, At: chat.Address{Channel: "telegram", Chat: "42"}, By: chat.Sender{Role: chat.Owner}, Schedule: scheduler.Schedule{Cron: ask.Cron},
			})
			if err != nil {
				return j, Wrong(err)
			}
			return j, did("add", ask.Message, nil)
		},
		Fire: func(ctx context.Context, id string) error {
			if id == "mallory" {
				return Wrong(s.Fire(ctx, id, "")) // it is running
			}
			return did("run", id, s.Fire(ctx, id, ""))
		},
		Remove: func(ctx context.Context, id string) error { return did("remove", id, s.Remove(ctx, id)) },
	}
}

// R-S24, D-096: what a program asks of the clock, and what it is answered. Only
// what was done is in the audit log.
func TestClockAPI(t *testing.T) {
	f := newFace(t)
	boss := f.owner(t)
	for _, c := range []struct {
		method, path, body string
		status             int
		says, audited      string
	}{
		{"POST", "/api/cron", `{"message":"Make tea","cron_expr":"@daily"}`, 201, `"name":"Make tea"`, "cron owner added: "},
		{"POST", "/api/cron", `{"message":"Make tea"}`, 400, "either every_seconds, cron_expr, or at is required", ""},
		{"POST", "/api/cron", `{"message":1}`, 400, "cannot unmarshal", ""},
		{"POST", "/api/cron", `{"message":`, 400, "not the JSON expected", ""},
		{"PATCH", "/api/cron/mallory", `{"enabled":false}`, 200, `"off":true`, "cron owner changed: mallory"},
		{"PATCH", "/api/cron/absent", `{}`, 404, "no such thing", ""},
		{"PATCH", "/api/cron/dream", `{}`, 409, "belongs to the house", ""},
		{"POST", "/api/cron/mallory/run", "", 400, "running already", ""},
		{"POST", "/api/cron/dream/run", "", 204, "", "cron owner run now: dream"},
		{"POST", "/api/cron/absent/run", "", 404, "no such thing", ""},
		{"DELETE", "/api/cron/dream", "", 409, "belongs to the house", ""},
		{"DELETE", "/api/cron/mallory", "", 204, "", "cron owner removed: mallory"},
		{"DELETE", "/api/cron/mallory", "", 404, "no such thing", ""},
	} {
		f.audited = nil
		got := read(t, f.want(t, c.status, asking{method: c.method, path: c.path, body: c.body, by: boss}))
		if told := strings.Join(f.audited, "; "); !strings.Contains(got, c.says) || !strings.HasPrefix(told, c.audited) || c.audited == "" && told != "" {
			t.Errorf("%s %s %s answered %s and told %q", c.method, c.path, c.body, got, told)
		}
	}
	var all struct{ Jobs []map[string]any }
	body := read(t, f.want(t, 200, asking{path: "/api/cron", by: boss}))
	if err := json.Unmarshal([]byte(body), &all); err != nil || len(all.Jobs) != 2 {
		t.Fatalf("%s, %v", body, err)
	}
	for _, key := range []string{"id", "name", "schedule", "next", "soon", "created"} {
		if all.Jobs[0][key] == nil {
			t.Errorf("no %s in %s", key, body)
		}
	}
}

// R-S5, D-096: the page shows what others wrote as text, times in the zone of
// the job, and no way to change what is the house's.
func TestClockPage(t *testing.T) {
	f := newFace(t)
	page := read(t, f.want(t, 200, asking{path: "/owner/cron", by: f.owner(t)}))
	if strings.Contains(page, "<img") {
		t.Error("what others wrote is markup")
	}
	for text, times := range map[string]int{
		" 09:00 JST<br>": 3, "0 9 * * * (Asia/Tokyo)": 1, " 04:00 UTC<br>": 3, "waiting": 2, "&lt;img src=x": 6, "model:": 0 /* for a tool */, `<span class="bad">failed</span>`: 1,
		`data-post="/api/cron/mallory/run"`: 1, `data-patch="/api/cron/mallory" data-body='{"enabled":false}'`: 1, `data-delete="/api/cron/mallory"`: 1,
		`data-post="/api/cron/dream/run"`: 1, `data-patch="/api/cron/dream"`: 0, `data-delete="/api/cron/dream"`: 0,
	} {
		if n := strings.Count(page, text); n != times {
			t.Errorf("%q stands there %d times, not %d", text, n, times)
		}
	}
	if t.Failed() {
		t.Log(page)
	}
}

// D-095: what has been is told in the zone of the config, as what is to come is,
// whatever the machine's own zone.
func TestPagesTellTimesInTheZoneOfTheConfig(t *testing.T) {
	zone := time.FixedZone("", 13*3600+45*60)
	f := newFace(t, func(c *Config) { c.Zone = zone })
	page := read(t, f.want(t, 200, asking{path: "/owner/cron", by: f.owner(t)}))
	due, ok := "", false
	for i := range 3 { // the minute may change between the job and the page
		due = `<span>waiting</span><br><span class="times">` + time.Now().Add(time.Duration(-i)*time.Minute).In(zone).Format("2006-01-02 15:04")
		ok = ok || strings.Contains(page, due)
	}
	if !ok {
		t.Errorf("not as %s: %s", due, page)
	}
}
