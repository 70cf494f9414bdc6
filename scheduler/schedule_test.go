package scheduler

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func zone(t testing.TB, name string) *time.Location {
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func made(t testing.TB, spec, in string) *plan {
	t.Helper()
	p, err := New(Config{Store: none{}}).plan(Schedule{Cron: spec, Zone: in}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// When clocks change, a job at a fixed hour runs once: right after a skipped hour,
// and the first time in a repeated one. A job of any hour goes on as usual (P13).
func TestP13DST(t *testing.T) {
	for name, c := range map[string]struct {
		zone, spec, from string
		want             []string // UTC
	}{
		"New York, gap":          {"America/New_York", "30 2 * * *", "2026-03-07T12:00:00Z", []string{"03-08T07:00", "03-09T06:30"}},
		"New York, gap, many":    {"America/New_York", "*/15 2 * * *", "2026-03-08T06:59:00Z", []string{"03-08T07:00", "03-09T06:00", "03-09T06:15"}},
		"New York, gap, border":  {"America/New_York", "0 2,3 * * *", "2026-03-08T06:59:00Z", []string{"03-08T07:00", "03-09T06:00", "03-09T07:00"}},
		"New York, overlap":      {"America/New_York", "30 1 * * *", "2026-10-31T12:00:00Z", []string{"11-01T05:30", "11-02T06:30"}},
		"New York, wild, gap":    {"America/New_York", "*/30 * * * *", "2026-03-08T06:31:00Z", []string{"03-08T07:00", "03-08T07:30"}},
		"New York, wild, twice":  {"America/New_York", "*/30 * * * *", "2026-11-01T05:01:00Z", []string{"11-01T05:30", "11-01T06:00", "11-01T06:30", "11-01T07:00"}},
		"New York, hourly":       {"America/New_York", "@hourly", "2026-11-01T04:01:00Z", []string{"11-01T05:00", "11-01T06:00", "11-01T07:00"}},
		"New York, after once":   {"America/New_York", "30 1 * * *", "2026-11-01T05:45:00Z", []string{"11-02T06:30"}},
		"Berlin, gap":            {"Europe/Berlin", "30 2 * * *", "2026-03-28T12:00:00Z", []string{"03-29T01:00", "03-30T00:30"}},
		"Berlin, overlap":        {"Europe/Berlin", "30 2 * * *", "2026-10-24T12:00:00Z", []string{"10-25T00:30", "10-26T01:30"}},
		"Berlin, steps":          {"Europe/Berlin", "0 */2 * * *", "2026-03-28T22:59:00Z", []string{"03-28T23:00", "03-29T02:00", "03-29T04:00"}},
		"Lord Howe, gap of 30":   {"Australia/Lord_Howe", "10 2 * * *", "2026-10-03T00:00:00Z", []string{"10-03T15:30", "10-04T15:10"}},
		"Lord Howe, overlap":     {"Australia/Lord_Howe", "45 1 * * *", "2026-04-04T00:00:00Z", []string{"04-04T14:45", "04-05T15:15"}},
		"Lord Howe, wild":        {"Australia/Lord_Howe", "*/20 * * * *", "2026-04-04T14:30:00Z", []string{"04-04T14:40", "04-04T15:10", "04-04T15:30"}},
		"Apia loses a day":       {"Pacific/Apia", "0 9 * * *", "2011-12-29T12:00:00Z", []string{"12-29T19:00", "12-30T10:00", "12-30T19:00"}},
		"Santiago, no midnight":  {"America/Santiago", "@daily", "2026-09-05T05:00:00Z", []string{"09-06T04:00", "09-07T03:00"}},
		"Sao Paulo, that day":    {"America/Sao_Paulo", "*/20 * 15 10 *", "2017-10-15T02:00:00Z", []string{"10-15T03:00", "10-15T03:20"}},
		"leap day":               {"UTC", "0 0 29 2 *", "2096-03-01T00:00:00Z", nil}, // 2100 is no leap year, and the parser looks less than eight years ahead
		"leap day, 2028":         {"UTC", "0 0 29 2 *", "2026-11-21T00:00:00Z", []string{"02-29T00:00", "02-29T00:00"}},
		"new year's day in Apia": {"Pacific/Apia", "0 0 1 1 *", "2026-11-21T00:00:00Z", []string{"12-31T11:00"}},
	} {
		p := made(t, c.spec, c.zone)
		at, err := time.Parse(time.RFC3339, c.from)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for range c.want {
			at = p.next(at)
			got = append(got, at.UTC().Format("01-02T15:04"))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Schedules that are refused, with the exact errors (D-095).
func TestD095Texts(t *testing.T) {
	s := New(Config{Store: none{}, MinInterval: 10 * time.Second, Zone: time.UTC})
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		Schedule
		want string
	}{
		{Schedule{}, "either every_seconds, cron_expr, or at is required"},
		{Schedule{Every: time.Hour, Cron: "0 9 * * *"}, "only one of every_seconds, cron_expr, and at can be used"},
		{Schedule{Every: time.Hour, Zone: "Europe/Berlin"}, "tz can only be used with cron_expr"},
		{Schedule{At: now.Add(time.Hour), Zone: "Europe/Berlin"}, "tz can only be used with cron_expr"},
		{Schedule{Cron: "0 9 * * *", Zone: "Mars/Olympus"}, "unknown timezone 'Mars/Olympus'"},
		{Schedule{Cron: "0 9 * * *", Zone: "../../etc/passwd"}, "unknown timezone '../../etc/passwd'"},
		{Schedule{Every: 9 * time.Second}, "every_seconds must be at least 10"},
		{Schedule{Every: -time.Hour}, "every_seconds must be at least 10"},
		{Schedule{At: now}, "at is in the past: it is 2026-11-21T12:00:00 now"},
		{Schedule{Cron: "TZ=0"}, "invalid cron_expr 'TZ=0': the time zone goes into tz"},
		{Schedule{Cron: " CRON_TZ=UTC 0 9 * * *"}, "invalid cron_expr ' CRON_TZ=UTC 0 9 * * *': the time zone goes into tz"},
		{Schedule{Cron: "@every 1h"}, "invalid cron_expr '@every 1h': use every_seconds instead"},
		{Schedule{Cron: "@reboot"}, "invalid cron_expr '@reboot': unrecognized descriptor: @reboot"},
		{Schedule{Cron: "0 0 31 2 *"}, "invalid cron_expr '0 0 31 2 *': it is never due"},
		{Schedule{Cron: ", 9 * * *"}, "invalid cron_expr ', 9 * * *': it is never due"},
		{Schedule{Cron: "9 o'clock"}, "invalid cron_expr '9 o'clock': expected exactly 5 fields, found 2: [9 o'clock]"},
		{Schedule{Cron: "@daily"}, ""}, {Schedule{Cron: "0 9 * * MON-FRI", Zone: "Europe/Berlin"}, ""}, {Schedule{Every: 10 * time.Second}, ""},
		{Schedule{At: now.Add(time.Second)}, ""},
	} {
		p, err := s.plan(c.Schedule, now)
		if err == nil {
			err = s.checkPlan(p, now)
		}
		if got := ""; err != nil {
			got = err.Error()
			if got != c.want {
				t.Errorf("%+v: %q", c.Schedule, got)
			}
		} else if c.want != "" {
			t.Errorf("%+v is taken", c.Schedule)
		}
	}
	s.MinInterval = 5 * time.Minute
	p := made(t, "0,1 9 * * *", "")
	if err := s.checkPlan(p, now); err == nil || err.Error() != "cron_expr '0,1 9 * * *' is due more often than every 300 seconds" {
		t.Error(err)
	}
}

// Sunday is 0 or 7, as in a crontab (D-094). Steps and other fields are unchanged.
func TestD094Sunday(t *testing.T) {
	for seven, zero := range map[string]string{
		"0 9 * * 7": "0 9 * * 0", "0 9 * * 5-7": "0 9 * * 5,6,0", "0 9 * * 1,7": "0 9 * * 0,1", "0 9 * * 0-7": "0 9 * * 0-6", "0 9 * * 7,3-7": "0 9 * * 0,3-6",
		"0 9 * * fri-7": "0 9 * * 0,5,6", "*/7 7 7 7 */7": "*/7 7 7 7 0", "7 7 1-7 * *": "7 7 1-7 * *",
	} {
		one, two := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
		p, q := made(t, seven, "UTC"), made(t, zero, "UTC")
		for range 12 {
			if one, two = p.next(one), q.next(two); !one.Equal(two) {
				t.Errorf("%s is due at %s, %s at %s", seven, one, zero, two)
				break
			}
		}
	}
	for _, spec := range []string{"0 9 * * 8", "0 9 * * 7-8", "0 9 * * -7", "0 9 * * 7-5"} {
		if err := CheckSpec(spec); err == nil {
			t.Errorf("%s is taken", spec)
		}
	}
}

func TestD095Show(t *testing.T) {
	for want, s := range map[string]Schedule{
		"every 1h": {Every: time.Hour}, "every 1m30s": {Every: 90 * time.Second}, "every 10s": {Every: 10 * time.Second},
		"every 1h30m": {Every: 90 * time.Minute}, "every 20m": {Every: 20 * time.Minute}, "every 10h": {Every: 10 * time.Hour},
		"0 9 * * *": {Cron: "0 9 * * *"}, "0 9 * * * (Europe/Berlin)": {Cron: "0 9 * * *", Zone: "Europe/Berlin"},
		"at 2026-12-24 18:00": {At: time.Date(2026, 12, 24, 18, 0, 0, 0, time.UTC)},
	} {
		if got := s.String(); got != want {
			t.Errorf("%q is not %q", got, want)
		}
	}
}

func TestD095At(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	for text, want := range map[string]string{
		"2026-12-24T18:00:00":       "2026-12-24T18:00:00+01:00",
		" 2026-12-24 18:00":         "2026-12-24T18:00:00+01:00",
		"2026-12-24T18:00:00Z":      "2026-12-24T19:00:00+01:00",
		"2026-12-24T18:00:00-05:00": "2026-12-25T00:00:00+01:00",
		"2026-03-29T02:30:00":       "2026-03-29T03:00:00+02:00",
		"2026-10-25T02:30:00":       "2026-10-25T02:30:00+02:00",
		"2026-12-24":                "2026-12-24T00:00:00+01:00",
	} {
		if got, err := ParseAt(text, berlin); err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%s is %s, %v", text, got.Format(time.RFC3339), err)
		}
	}
	_, err := ParseAt("tomorrow", berlin)
	if err == nil || err.Error() != "invalid ISO datetime format 'tomorrow'. Expected format: YYYY-MM-DDTHH:MM:SS" {
		t.Error(err)
	}
}

// For any spec, next returns a later time, and the spec is not due in between
// (D-094, P13).
func TestPropertyNext(t *testing.T) {
	zones := []string{"America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "UTC"}
	specs := []string{"*/5 * * * *", "30 2 * * *", "0 */3 * * *", "15 1,2,3 * * 0", "0 0 29 2 *", "7 * 1 * *"}
	rapid.Check(t, func(t *rapid.T) {
		s := New(Config{Store: none{}})
		sch := Schedule{Cron: rapid.SampledFrom(specs).Draw(t, "spec"), Zone: rapid.SampledFrom(zones).Draw(t, "zone")}
		if rapid.Bool().Draw(t, "every") {
			sch = Schedule{Every: time.Duration(rapid.IntRange(10, 100000).Draw(t, "seconds")) * time.Second}
		}
		p, err := s.plan(sch, time.Unix(1.7e9, 0))
		if err != nil {
			t.Fatal(err)
		}
		at := time.Unix(rapid.Int64Range(1.3e9, 2e9).Draw(t, "at"), 0)
		next := p.next(at)
		between := at.Add(time.Duration(rapid.Int64Range(0, int64(next.Sub(at))-1).Draw(t, "between")))
		if !next.After(at) || !p.next(between).Equal(next) || p.isStale(next, at) {
			t.Fatalf("after %s comes %s, after %s %s", at, next, between, p.next(between))
		}
	})
}

func FuzzCron(f *testing.F) {
	for _, spec := range []string{"0 9 * * *", "TZ=0", "@daily", "@every 1h", "*/5,,/ * * * *", "0 0 31 2 *", "1-/2 * * * *", "0/99999999999999999999 * * * *", "* ? L W #"} {
		f.Add(spec)
	}
	s := New(Config{Store: none{}})
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, spec string) {
		p, err := s.plan(Schedule{Cron: spec}, now)
		if err != nil {
			return
		}
		next := p.next(now)
		if spec != "" && !next.After(now) {
			t.Errorf("%q is taken and never due", spec)
		}
		if p.isStale(next, now) { // it would be computed again forever
			t.Errorf("%q is due at %s, and is not", spec, next)
		}
	})
}
