package web

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"parley/chat"
	"parley/scheduler"
	"parley/scheduler/rehearsal"
	"parley/store"
	"parley/web/schedule"
)

// clock is a real one that nobody has wound up, with a job of an evil person and
// one of the house.
func (f *face) clock() Scheduler {
	ctx := context.Background()
	dream := scheduler.Job{ID: "dream", Name: "dream", System: true, Schedule: scheduler.Schedule{Cron: "0 4 * * *"}, Runs: []scheduler.Run{{Outcome: scheduler.Failed}}}
	s := scheduler.New(scheduler.Config{Store: f.store, Zone: time.UTC, System: []scheduler.System{{ID: dream.ID, Schedule: dream.Schedule}}})
	dream.Next = time.Date(2030, 1, 1, 4, 0, 0, 0, time.UTC)
	if _, err := store.NewTable(f.store.Bucket("jobs"), store.Report[scheduler.Job]).Put(ctx, dream.ID, dream, 0); err != nil {
		panic(err)
	}
	_, err := s.Add(ctx, scheduler.Job{
		ID: "mallory", Name: evil, Text: evil, At: chat.Address{Channel: "telegram", Chat: evil}, By: chat.Sender{ID: "7", Name: evil},
		Schedule: scheduler.Schedule{Cron: "0 9 * * *", Zone: "Asia/Tokyo"}, Tool: evil, Args: `{"text":"<img onerror>"}`,
	})
	if err != nil {
		panic(err)
	}
	if err := s.Fire(ctx, "mallory", "", false); err != nil {
		panic(err)
	}
	f.schedule = &schedule.Pages{
		Jobs: s.Jobs, NextTimes: s.NextTimes, Preview: s.Preview, Zone: time.UTC, Audit: func(kind, who, what string) {},
		Forecast: func(ctx context.Context, days int) (rehearsal.Report, error) {
			return rehearsal.Forecast(ctx, rehearsal.Config{
				Jobs: s.Jobs, Due: s.Due, Zone: time.UTC, Limits: func() (none rehearsal.Limits) { return none },
				Reach: func(context.Context, scheduler.Job) string { return evil },
			}, days)
		},
	}
	did := func(what, id string, err error) error {
		if err == nil {
			f.note(&f.did, what, id)
		}
		return err
	}
	return Scheduler{
		Jobs:      s.Jobs,
		NextTimes: s.NextTimes,
		Order: func(ctx context.Context, id string, ask Order) (scheduler.Job, error) {
			if id != "" {
				j, err := s.Edit(ctx, id, func(j *scheduler.Job) error { j.Off = ask.Enabled != nil && !*ask.Enabled; return nil })
				return j, did("edit", id, err)
			}
			j, err := s.Add(ctx, scheduler.Job{
				Text: ask.Message, At: chat.Address{Channel: "telegram", Chat: "42"}, By: chat.Sender{Role: chat.Owner}, Schedule: scheduler.Schedule{Cron: ask.Cron},
			})
			if err != nil {
				return j, err
			}
			return j, did("add", ask.Message, nil)
		},
		Fire: func(ctx context.Context, id, _ string, force bool) error {
			if id == "mallory" {
				return s.Fire(ctx, id, "", force) // it is running
			}
			return did("run", id, s.Fire(ctx, id, "", force))
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
		{"POST", "/api/cron", `{"message":1}`, 400, ": message must be text\"", ""},
		{"POST", "/api/cron", `{"every_seconds":1.5}`, 400, ": every_seconds must be a whole number\"", ""},
		{"POST", "/api/cron", `{"quiet":"yes"}`, 400, ": quiet must be true or false\"", ""},
		{"POST", "/api/cron", `{"args":[]}`, 400, ": args must be an object\"", ""},
		{"POST", "/api/cron", `[]`, 400, ": it must be an object\"", ""},
		{"POST", "/api/cron", `{"text":"x"}`, 400, `: unknown field \"text\"; there are name, message, every_seconds, cron_expr, tz, at, isolated, quiet, model, missed, tool, args, when, enabled, to"`, ""},
		{"POST", "/api/people", `{"nam":"x"}`, 400, `: unknown field \"nam\"; there are name"`, ""},
		{"POST", "/api/cron", `{"message":`, 400, "unexpected JSON", ""},
		{"PATCH", "/api/cron/mallory", `{"enabled":false}`, 200, `"enabled":false`, "cron owner changed: mallory"},
		{"PATCH", "/api/cron/absent", `{}`, 404, "not found", ""},
		{"PATCH", "/api/cron/dream", `{}`, 409, "belongs to Parley", ""},
		{"POST", "/api/cron/mallory/run", "", 400, "switched off", ""},
		{"POST", "/api/cron/mallory/run?force=1", "", 400, "running already", ""},
		{"POST", "/api/cron/dream/run", "", 204, "", "cron owner run now: dream"},
		{"POST", "/api/cron/absent/run", "", 404, "not found", ""},
		{"DELETE", "/api/cron/dream", "", 409, "belongs to Parley", ""},
		{"DELETE", "/api/cron/mallory", "", 204, "", "cron owner removed: mallory"},
		{"DELETE", "/api/cron/mallory", "", 404, "not found", ""},
	} {
		f.audited = nil
		got := read(t, f.want(t, c.status, asking{method: c.method, path: c.path, body: c.body, by: boss}))
		if told := strings.Join(f.audited, "; "); !strings.Contains(got, c.says) || !strings.HasPrefix(told, c.audited) || c.audited == "" && told != "" {
			t.Errorf("%s %s %s answered %s and told %q", c.method, c.path, c.body, got, told)
		}
	}
}

// D-095: a job is told as it is asked for, with what is only told: times as in RFC
// 3339, and how long things take in seconds.
func TestToldJob(t *testing.T) {
	zone := time.FixedZone("", 2*60*60)
	at := time.Date(2030, 6, 1, 9, 0, 0, 0, zone)
	f := newFace(t)
	f.Server.cfg.Gateway.Scheduler.NextTimes = func(j scheduler.Job, n int) []time.Time { return make([]time.Time, 0, n) }
	for _, c := range []struct {
		job  scheduler.Job
		want string
	}{
		{
			scheduler.Job{
				ID: "j", Name: "N", Text: "T", Schedule: scheduler.Schedule{Cron: "@daily", Zone: "UTC"}, At: chat.Address{Channel: "telegram", Chat: "1", Thread: "2"},
				Quiet: true, Model: "small", Missed: scheduler.Skip, Created: at, Next: at,
				Runs: []scheduler.Run{{N: 1, Due: at, Began: at, Seconds: 90, Outcome: scheduler.Failed, Note: "no", Tokens: 7, Cost: 0.5}},
			},
			`{"name":"N","message":"T","cron_expr":"@daily","tz":"UTC","isolated":false,"quiet":true,"model":"small","missed":"skip","enabled":true,"to":"telegram:1/2",` +
				`"id":"j","created":"2030-06-01T09:00:00+02:00","next":"2030-06-01T09:00:00+02:00","soon":[],` +
				`"runs":[{"n":1,"due":"2030-06-01T09:00:00+02:00","began":"2030-06-01T09:00:00+02:00","seconds":90,"outcome":"failed","note":"no","tokens":7,"cost":0.5}]}`,
		},
		{
			scheduler.Job{ID: "j", Name: "t", Tool: "t", Args: `{"a":[1]}`, Schedule: scheduler.Schedule{At: at}, Off: true, Why: "no", System: true, Created: at},
			`{"name":"t","at":"2030-06-01T09:00:00+02:00","isolated":false,"quiet":false,"missed":"once","tool":"t","args":{"a":[1]},"enabled":false,` +
				`"id":"j","system":true,"created":"2030-06-01T09:00:00+02:00","soon":[],"why":"no","runs":[]}`,
		},
		{
			scheduler.Job{ID: "j", Name: "T", Text: "T", Schedule: scheduler.Schedule{Every: time.Hour}, Created: at},
			`{"name":"T","message":"T","every_seconds":3600,"isolated":false,"quiet":false,"missed":"once","enabled":true,` +
				`"id":"j","created":"2030-06-01T09:00:00+02:00","soon":[],"runs":[]}`,
		},
	} {
		if got, err := json.Marshal(f.admin.job(c.job)); err != nil || string(got) != c.want {
			t.Errorf("%s, %v\nnot\n%s", got, err, c.want)
		}
	}
}
