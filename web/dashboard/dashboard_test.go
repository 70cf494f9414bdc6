package dashboard

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/timetest"
	"parley/web/live"
	"parley/web/traffic"
	"parley/web/webtest"
)

// spentOn is what was spent on days that are so long ago.
func spentOn(now time.Time, cost float64, ago ...int) (all []llm.Spent) {
	for _, n := range ago {
		all = append(all, llm.Spent{Day: now.AddDate(0, 0, -n).Format(time.DateOnly), Turns: 1, Usage: llm.Usage{In: 90, Out: 10}, Cost: cost})
	}
	return all
}

// The forecast is made of whole days, says of how many, and there is none of fewer than
// three. Days without use count, and what was used before the month does not.
func TestForecast(t *testing.T) {
	now := time.Date(2026, 11, 10, 15, 0, 0, 0, time.UTC) // 20 days are left after it
	for name, c := range map[string]struct {
		spent []llm.Spent
		days  int
		cost  float64
	}{
		"nothing":       {nil, 0, 0},
		"today only":    {spentOn(now, 5, 0), 0, 0},
		"two days":      {spentOn(now, 1, 0, 1, 2), 2, 0},
		"three days":    {spentOn(now, 1, 1, 2, 3), 3, 3 + 1 + 20},
		"a dear today":  {append(spentOn(now, 1, 1, 2, 3), spentOn(now, 7, 0)...), 3, 3 + 7 + 20},
		"one in four":   {spentOn(now, 4, 4), 4, 4 + 1 + 20},
		"over a month":  {spentOn(now, 3, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1), 12, 27 + 3 + 60},
		"long ago":      {spentOn(now, 3, 40), 0, 0},
		"a whole month": {spentOn(now, 30, 30), 30, 0 + 1 + 20},
	} {
		f := forecast(c.spent, now)
		if f.Days != c.days || math.Abs(f.Cost-c.cost) > 1e-9 || f.Known() != (c.days >= 3) {
			t.Errorf("%s: %+v, want %v from %d days", name, f, c.cost, c.days)
		}
	}
	if f := forecast(spentOn(now, 1, 1, 2, 3), now); f.Tokens != 2400 {
		t.Errorf("%d tokens", f.Tokens)
	}
}

// Days are those of the zone of the pages, and the change of summer time loses none.
func TestDays(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 10, 27, 0, 30, 0, 0, zone) // two days after the change
	all := days(spentOn(now, 2, 0, 2, 2, 3), now, 4)
	for i, want := range []string{"24 2", "25 4", "26 0", "27 2"} {
		if got := fmt.Sprint(all[i].Date.Day(), " ", all[i].Cost); got != want {
			t.Errorf("day %d is %s, want %s", i, got, want)
		}
	}
}

func newDashboard(text string, fail *error, asked *int) *Dashboard {
	return New(Config{
		Zone:    time.UTC,
		Traffic: traffic.New(),
		Streams: live.New(),
		Usage: func(context.Context) ([]llm.Spent, error) {
			*asked++
			return []llm.Spent{{Day: time.Now().UTC().Format(time.DateOnly), Who: text, Model: text, Turns: 3, Cost: 2}}, *fail
		},
		Problems: func(time.Time) (int, int, bool) { return 0, 1, false },
		Disk: func(context.Context) (Disk, error) {
			return Disk{Measured: time.Now(), Bytes: map[string]int64{text: 3_000_000, "other": 1}, Free: 5e9, Grown: 1000}, nil
		},
		Waiting: func(context.Context) (int, error) { return 0, nil },
		Models:  func() []string { return []string{text} },
		Work: func(context.Context) ([]chat.Work, error) {
			return []chat.Work{{ID: text, Kind: chat.WorkTask, What: text, Doing: text, Session: chat.SessionID(text), Since: time.Now()}}, nil
		},
	})
}

// Whatever texts there are, they are no markup.
func TestHostileTexts(t *testing.T) {
	for _, text := range webtest.Hostile {
		var fail error
		asked := 0
		d := newDashboard(text, &fail, &asked)
		d.Traffic.Request(text, text)
		d.Traffic.Request("other", "")
		parts, err := d.Parts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		page := Content("/events", parts).(interface{ String() string }).String()
		if faults := webtest.Active(page); len(faults) > 0 || !webtest.Shows(page, text) {
			t.Errorf("%q: %q in %s", text, faults, page)
		}
	}
}

// What is on disk is read every ten seconds at most, however many look, and again after an error.
func TestDiskIsSpared(t *testing.T) {
	timetest.TestWithOthers(t, func(t *testing.T) {
		fail := errors.New("broken")
		asked := 0
		d := newDashboard("x", &fail, &asked)
		if _, err := d.Load(t.Context()); err == nil {
			t.Error("an error is lost")
		}
		fail = nil
		for range 20 {
			if _, err := d.Load(t.Context()); err != nil {
				t.Fatal(err)
			}
			timetest.Sleep(time.Second)
		}
		if asked != 3 {
			t.Errorf("%d times in 20 seconds", asked)
		}
	})
}

// Numbers and lengths of time are short.
func TestWords(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 999: "999", 1000: "1.00k", 9994: "9.99k", 9996: "10.0k", 12345: "12.3k", 123456: "123k", 2.5e6: "2.50M", 7e9: "7.00G"} {
		if got := amount(v); got != want {
			t.Errorf("amount(%v) = %s, want %s", v, got, want)
		}
	}
	for d, want := range map[time.Duration]string{51 * time.Millisecond: "51 ms", 2500 * time.Millisecond: "2.5 s", 90 * time.Second: "90 s", 5 * time.Minute: "5 min", 3 * time.Hour: "3 h"} {
		if got := span(d); got != want {
			t.Errorf("span(%v) = %s, want %s", d, got, want)
		}
	}
	var today Today
	today.Forecast = Forecast{Days: 2}
	d := newDashboard("x", new(error), new(int))
	if note := d.money(today).(fmt.Stringer).String(); !strings.Contains(note, "Not enough yet for a forecast: 2 of 3 whole days.") {
		t.Errorf("the note is %s", note)
	}
	today.Forecast, today.Priced = Forecast{Days: 9, Cost: 12.345}, true
	if note := d.money(today).(fmt.Stringer).String(); !strings.Contains(note, "about 12.3") || !strings.Contains(note, "from 9 days") {
		t.Errorf("the note is %s", note)
	}
}
