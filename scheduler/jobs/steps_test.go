package jobs

import "testing"

// What people see of a step names the job and says when it is due, on their clock, not its ID and what the model wrote.
func TestStepsOfJobs(t *testing.T) {
	inBubble(t, func(t *testing.T, w *fixture) { // it is 2000-01-01 01:00 in Berlin
		tip := func(o Order) string {
			t.Helper()
			r, err := w.Order(t.Context(), inPrivate, "", o)
			if err != nil {
				t.Error(err)
			}
			return r.Shown
		}
		for _, c := range []struct {
			o    Order
			want string
		}{
			{Order{Action: "add", ID: "a", Change: Change{Name: "stretch", Message: "Reminder: stretch", At: "2000-01-01T21:59:33Z"}}, "“stretch” for 22:59"},
			{Order{Action: "add", ID: "b", Change: Change{Message: "Call Anna", At: "2000-01-02T08:00:00"}}, "“Call Anna” for 2 January, 08:00"},
			{Order{Action: "add", ID: "c", Change: Change{Message: "x", At: "2001-01-01T08:00:00"}}, "“x” for 1 January 2001, 08:00"},
			{Order{Action: "add", ID: "d", Change: Change{Name: "hi", Message: "x", Every: 10}}, "“hi” every 10 seconds"},
			{Order{Action: "add", ID: "e", Change: Change{Name: "news", Message: "x", Cron: "0 9 * * 1-5"}}, "“news” every weekday at 9:00"},
			{Order{Action: "add", ID: "f", Change: Change{Name: "news", Message: "x", Cron: "0 9 * * *", Zone: "Asia/Tokyo"}}, "“news” every day at 9:00 (Asia/Tokyo)"},
			{Order{Action: "edit", ID: "e", Change: Change{Cron: "0 8 * * 1-5"}}, "“news” changed"},
			{Order{Action: "disable", ID: "hi"}, "“hi” switched off"},
			{Order{Action: "enable", ID: "hi"}, "“hi” switched on"},
			{Order{Action: "run", ID: "hi"}, "“hi” run now"},
			{Order{Action: "remove", ID: "a"}, "“stretch” removed"},
			{Order{Action: "remove", ID: "unknown"}, ""},
			{Order{Action: "list"}, ""},
		} {
			w.says(tip(c.o), c.want)
		}
		failed := Order{Action: "edit", ID: "e", Change: Change{Cron: "nonsense"}}
		if r, err := w.Order(t.Context(), inPrivate, "", failed); err == nil || r.Shown != "" {
			t.Errorf("of what failed with %v people see %q", err, r.Shown)
		}
	})
}
