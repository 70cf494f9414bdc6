package traffic

import (
	"testing"
	"testing/synctest"
	"time"

	"parley/timetest"
)

// Hours are counted apart, the durations of an hour have a median and a 95th percentile,
// and what is a day old is forgotten.
func TestHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New() // at midnight
		c.Message()
		for i := range 100 {
			c.Turn(time.Duration(i+1)*time.Second, i == 0)
		}
		c.Turn(0, true)
		timetest.Sleep(time.Hour + time.Minute)
		c.Turn(7*time.Second, false)
		all := c.Hours(3)
		if got, want := all[1], (Count{Start: all[1].Start, Messages: 1, Turns: 101, Failed: 2, Answered: 100, Median: 50 * time.Second, Percentile95: 95 * time.Second}); got != want {
			t.Errorf("the hour is %+v, want %+v", got, want)
		}
		if got := all[2]; got.Turns != 1 || got.Median != 7*time.Second || got.Percentile95 != 7*time.Second || all[0].Turns != 0 {
			t.Errorf("the hours are %+v", all)
		}
		if got := c.Since(c.Began()); got.Turns != 102 || got.Answered != 101 {
			t.Errorf("in all %+v", got)
		}
		timetest.Sleep(24 * time.Hour)
		c.Message()
		if got := c.Since(c.Began()); got.Turns != 1 || len(c.hours) != 2 {
			t.Errorf("a day later %+v, of %d hours", got, len(c.hours))
		}
	})
}

// However many turns an hour has, its memory is bounded.
func TestHoursAreBounded(t *testing.T) {
	c := New()
	for range 10 * samples {
		c.Turn(time.Second, false)
	}
	if h := c.current(); len(h.took) != samples || h.answered != 10*samples {
		t.Errorf("%d durations of %d", len(h.took), h.answered)
	}
}

// A model works if its last request was answered. A nil Counter counts nothing.
func TestModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New()
		for _, why := range []string{"", "overloaded"} {
			c.Request("main", why)
			c.Request("other", "")
			timetest.Sleep(time.Second)
		}
		all := c.Models()
		if len(all) != 2 || all[0].Works() || all[0].Why != "overloaded" || all[0].Requests != 2 || all[0].Failed != 1 || !all[1].Works() {
			t.Errorf("models are %+v", all)
		}
		var none *Counter
		none.Message()
		none.Turn(time.Second, true)
		none.Request("main", "")
	})
}
