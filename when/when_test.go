package when_test

import (
	"strings"
	"testing"
	"time"

	"parley/when"
)

// now is a Wednesday.
var now = time.Date(2026, 11, 25, 10, 30, 0, 0, time.UTC)

func TestParse(t *testing.T) {
	every := func(d time.Duration) when.Schedule { return when.Schedule{Every: d} }
	cron := func(spec string) when.Schedule { return when.Schedule{Cron: spec} }
	at := func(time string) when.Schedule { return when.Schedule{At: time} }
	for _, c := range []struct {
		text string
		want when.Schedule
	}{
		{"every weekday at 9", cron("0 9 * * 1-5")},
		{"Every weekday at 9 am.", cron("0 9 * * 1-5")},
		{"at 9 every weekday", cron("0 9 * * 1-5")},
		{"on weekdays at 9:05", cron("5 9 * * 1-5")},
		{"monday to friday at 9", cron("0 9 * * 1-5")},
		{"mon-fri 9:00", cron("0 9 * * 1-5")},
		{"friday to monday at 9", cron("0 9 * * 0,1,5,6")},
		{"every day at 9 and 17", cron("0 9,17 * * *")},
		{"every day at 7.30", cron("30 7 * * *")},
		{"every day at half past seven", cron("30 7 * * *")},
		{"every day at quarter to 8", cron("45 7 * * *")},
		{"daily at noon", cron("0 12 * * *")},
		{"every midnight", cron("0 0 * * *")},
		{"every morning", cron("0 9 * * *")},
		{"every morning at 7", cron("0 7 * * *")},
		{"every evening at 7", cron("0 19 * * *")},
		{"every day at 3 in the afternoon", cron("0 15 * * *")},
		{"every day at 12am", cron("0 0 * * *")},
		{"every day at 12:15 p.m.", cron("15 12 * * *")},
		{"every monday and friday at 7:15", cron("15 7 * * 1,5")},
		{"every mon, wed, and fri at 6pm", cron("0 18 * * 1,3,5")},
		{"mondays and fridays at 7:15", cron("15 7 * * 1,5")},
		{"every week on sunday at 10", cron("0 10 * * 0")},
		{"at weekends at 10 o'clock", cron("0 10 * * 0,6")},
		{"every weekend at 10", cron("0 10 * * 0,6")},
		{"on the 1st of each month at 8", cron("0 8 1 * *")},
		{"every month on the 1st at 8", cron("0 8 1 * *")},
		{"on the 1st and the 15th of every month at 8:30", cron("30 8 1,15 * *")},
		{"monthly on the 3rd at 8", cron("0 8 3 * *")},
		{"every 1st of the month at 8", cron("0 8 1 * *")},
		{"every year on 24 december at 18:00", cron("0 18 24 12 *")},
		{"every december 24th at 18:00", cron("0 18 24 12 *")},
		{"yearly on the 29th of february at 8", cron("0 8 29 2 *")},
		{"every 2 hours", every(2 * time.Hour)},
		{"every hour", every(time.Hour)},
		{"hourly", every(time.Hour)},
		{"every half an hour", every(30 * time.Minute)},
		{"every 30m", every(30 * time.Minute)},
		{"every ten seconds", every(10 * time.Second)},
		{"every second", every(time.Second)},
		{"every other day", every(48 * time.Hour)},
		{"every second week", every(14 * 24 * time.Hour)},
		{"every week", every(7 * 24 * time.Hour)},
		{"every 2 hours from 9 to 17", cron("0 9-17/2 * * *")},
		{"every hour between 9 and 17 on weekdays", cron("0 9-17 * * 1-5")},
		{"every 15 minutes on saturdays", cron("*/15 * * * 6")},
		{"every 2 hours on weekdays", cron("0 */2 * * 1-5")},

		{"tomorrow at 18:30", at("2026-11-26T18:30:00")},
		{"tomorrow morning", at("2026-11-26T09:00:00")},
		{"the day after tomorrow at 9", at("2026-11-27T09:00:00")},
		{"today at 10:31", at("2026-11-25T10:31:00")},
		{"at 18", at("2026-11-25T18:00:00")},
		{"at 9", at("2026-11-26T09:00:00")},
		{"18:30", at("2026-11-25T18:30:00")},
		{"on friday at 9", at("2026-11-27T09:00:00")},
		{"wednesday at 9", at("2026-12-02T09:00:00")},
		{"this wednesday at 11", at("2026-11-25T11:00:00")},
		{"on 24 december at 18:00", at("2026-12-24T18:00:00")},
		{"24th of december at 18:00", at("2026-12-24T18:00:00")},
		{"on january 2nd at 8", at("2027-01-02T08:00:00")},
		{"1 june 2027 at 8", at("2027-06-01T08:00:00")},
		{"29 february at 8", at("2028-02-29T08:00:00")},
		{"24.12.2026 at 18:00", at("2026-12-24T18:00:00")},
		{"2026-12-24 18:00", at("2026-12-24T18:00:00")},
		{"2026-12-24T18:00", at("2026-12-24T18:00:00")},
		{"in 20 minutes", at("2026-11-25T10:50:00Z")},
		{"in 2h", at("2026-11-25T12:30:00Z")},
		{"in an hour", at("2026-11-25T11:30:00Z")},
		{"in half an hour", at("2026-11-25T11:00:00Z")},
		{"in 3 days", at("2026-11-28T10:30:00")},
		{"in two weeks at 9", at("2026-12-09T09:00:00")},

		{"0 9 * * 1-5", cron("0 9 * * 1-5")},
		{"*/5  9-17 * * mon,FRI", cron("*/5 9-17 * * mon,FRI")},
		{"@daily", cron("@daily")},
	} {
		got, err := when.Parse(c.text, now)
		if err != nil || got != c.want {
			t.Errorf("%q: got %+v, %v; want %+v", c.text, got, err, c.want)
		}
	}
}

// What is not understood, or may mean two things, is refused, and the refusal says what to write.
func TestRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "every weekday at 9"},
		{"every fortnight", `"fortnight" is not understood; write, for example: every weekday at 9`},
		{"whenever it rains", `"whenever" is not understood`},
		{"every day", "at what time?"},
		{"every weekday", "at what time?"},
		{"every weekday 9", `"9" is not understood`},
		{"tomorrow", "at what time?"},
		{"on friday", "at what time?"},
		{"next friday at 9", `"next" can mean two days`},
		{"03/04/2027 at 8", "name of the month"},
		{"on the 1st at 8", "of which month?"},
		{"monday and friday at 9", "once, or every week?"},
		{"every month at 8", "on which day of the month?"},
		{"every week at 8", "on which day?"},
		{"every december at 8", "on which day?"},
		{"every 2 days at 9", "every monday and thursday at 9"},
		{"every other monday at 9", "not a time that jobs have"},
		{"every 3 months on the 1st at 8", "not a time that jobs have"},
		{"every 2 hours at 9", "and at a time besides"},
		{"every 7 minutes on weekdays", "equal parts"},
		{"on the last day of the month at 8", "the last day of a month"},
		{"tonight", "does not say when"},
		{"tomorrow afternoon", "does not say when"},
		{"today at 9", `9:00 is over today; write "tomorrow at 9:00"`},
		{"24 december 2020 at 8", "is over"},
		{"31 february at 8", "February has no day 31"},
		{"every 30 february at 8", "February has 29 days"},
		{"at 25:00", `"25:00" is not a time of day`},
		{"every day at 13pm", `"13pm" is not a time of day`},
		{"every day at 9 and 17:30", "are two jobs"},
		{"tomorrow at 9 and 17", "are two jobs"},
		{"tomorrow every day at 9", "once, or again and again?"},
		{"tomorrow on friday at 9", "more than one day"},
		{"every monday on the 1st at 9", "write one of them"},
		{"every 0 hours", "not a time that a job can have"},
		{"every 900000 weeks", "not a time that a job can have"},
		{"in 0 minutes", "not a time that a job can have"},
		{"in 2 months", "write the date"},
		{"every 5 minuts", `"minuts" is not understood`},
		{"every five minuts", `"minuts" is not understood`},
		{"in 5 minuts", `"minuts" is not understood`},
		{"every 9 weekdays", `"9" is not understood`},
		{"every 9 and 10", `"9" is not understood`},
		{"in the rain", `"in the rain" is not understood`},
		{"every day at 15 in the morning", "15:00 is not in the morning"},
		{"from 9 to 17", "how often?"},
		{"every hour from 17 to 9", "to a later one"},
		{"every", `"every" is not understood`},
		{"at", `"" is not understood`},
		{strings.Repeat("every day at 9 ", 20), "too long"},
	} {
		got, err := when.Parse(c.text, now)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %+v, %v; want %s", c.text, got, err, c.want)
		}
	}
}

// What Words writes, Parse reads as the same.
func TestWords(t *testing.T) {
	for _, c := range []struct {
		schedule when.Schedule
		want     string
	}{
		{when.Schedule{Every: time.Hour}, "every hour"},
		{when.Schedule{Every: 90 * time.Minute}, "every 90 minutes"},
		{when.Schedule{Every: 10 * time.Second}, "every 10 seconds"},
		{when.Schedule{Every: 14 * 24 * time.Hour}, "every 2 weeks"},
		{when.Schedule{Cron: "0 9 * * 1-5"}, "every weekday at 9:00"},
		{when.Schedule{Cron: "30 8,17 * * *"}, "every day at 8:30 and 17:30"},
		{when.Schedule{Cron: "15 7 * * 0,1,5"}, "every monday, friday and sunday at 7:15"},
		{when.Schedule{Cron: "0 8 1,15 * *"}, "on the 1st and 15th of each month at 8:00"},
		{when.Schedule{Cron: "0 18 24 12 *"}, "every 24 December at 18:00"},
		{when.Schedule{At: "2026-12-24T18:00:00"}, "24 December 2026 at 18:00"},
		{when.Schedule{Cron: "*/5 9-17 * * 1-5"}, "*/5 9-17 * * 1-5"},
		{when.Schedule{Cron: "0 9 1 * 1"}, "0 9 1 * 1"},
	} {
		got := when.Words(c.schedule)
		if got != c.want {
			t.Errorf("%+v: got %q, want %q", c.schedule, got, c.want)
		}
		if back, err := when.Parse(got, now); err != nil || back != c.schedule {
			t.Errorf("%q: got %+v, %v; want %+v", got, back, err, c.schedule)
		}
	}
}

func TestFind(t *testing.T) {
	for _, c := range []struct{ text, before, after, cron string }{
		{"every weekday at 9, say hi", "", " say hi", "0 9 * * 1-5"},
		{"say  good morning every day at 7:30.", "say  good morning ", "", "30 7 * * *"},
		{"please, on mondays at 8 do it", "please, ", " do it", "0 8 * * 1"},
		{"every day I go running", "every day I go running", "", ""},
		{"", "", "", ""},
	} {
		s, before, after, ok := when.Find(c.text, now)
		if s.Cron != c.cron || before != c.before || after != c.after || ok != (c.cron != "") {
			t.Errorf("%q: got %+v, %q, %q, %v", c.text, s, before, after, ok)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range append(when.Examples, "every mon, wed at half past 7", "24.12.2026 18:00", "in an hour", "1 2 3 4 5",
		"every day at quarter to 8 and", "on the 1st and the 15th of", "every hour from 9 to") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := when.Parse(text, now)
		set := 0
		for _, is := range []bool{s.Every != 0, s.Cron != "", s.At != ""} {
			if is {
				set++
			}
		}
		if err == nil && set != 1 || err != nil && (set != 0 || err.Error() == "") {
			t.Fatalf("%q: got %+v, %v", text, s, err)
		}
		if err != nil {
			return
		}
		if back, err := when.Parse(when.Words(s), now.AddDate(-20, 0, 0)); err == nil && s.At == "" && back != s && s.Cron == "" {
			t.Fatalf("%q: %+v is %q, which is %+v", text, s, when.Words(s), back)
		}
	})
}
