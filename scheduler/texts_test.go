package scheduler_test

import (
	"context"
	"errors"
	"regexp"
	"testing"
	"time"

	"parley/chat"
	"parley/scheduler"
	"parley/texts/textstest"
	"parley/timetest"
)

// TestAllFromCatalogue has jobs missed, skipped, refused, lost, interrupted and
// failing, with a catalogue in full-width letters: every note of a run, every reason
// why a job is off or refused, and every message to a chat comes from the catalogue.
func TestAllFromCatalogue(t *testing.T) {
	data := regexp.MustCompile(`\b(tea|NOTE|cron|Mars/Olympus|often)\b`)
	said := map[string]bool{}
	catalogued := func(t *testing.T, text string) {
		t.Helper()
		said[text] = text != ""
		if rest := textstest.Foreign(text, data); rest != "" {
			t.Errorf("%q is not in the catalogue, of\n%s", rest, text)
		}
	}
	look := func(t *testing.T, w *world) {
		t.Helper()
		jobs, err := w.s.Jobs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range jobs {
			catalogued(t, j.Why)
			for _, r := range j.Runs {
				catalogued(t, r.Note)
			}
		}
		for _, text := range w.told {
			catalogued(t, text)
		}
	}
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.texts = &textstest.Wide().Scheduler
		w.add(scheduler.Job{Name: "tea", Schedule: scheduler.Schedule{At: at(1)}})
		w.add(scheduler.Job{Name: "tea", Schedule: hourly})
		w.add(scheduler.Job{Name: "tea", Missed: scheduler.Skip, Schedule: scheduler.Schedule{Cron: "0 9 * * *"}})
		w.add(scheduler.Job{Name: "tea", Schedule: scheduler.Schedule{Cron: "* * * * *"}})
		seed(t, w.store, scheduler.Job{ID: "zone", At: home, By: alice, Created: at(0), Next: at(1), Schedule: scheduler.Schedule{Cron: "0 * * * *", Zone: "Mars/Olympus"}})
		seed(t, w.store, scheduler.Job{ID: "fields", At: home, By: alice, Created: at(0), Next: at(1), Schedule: scheduler.Schedule{Cron: "often"}})
		seed(t, w.store, scheduler.Job{ID: "none", At: home, By: alice, Created: at(0), Next: at(1)})
		for id, text := range map[string]string{"bad": "{", "empty": "{}"} {
			if _, err := w.store.Bucket("jobs").Put(t.Context(), id, []byte(text), 0); err != nil {
				t.Fatal(err)
			}
		}
		w.wait(34 * time.Hour)
		w.result = scheduler.Ended{Outcome: scheduler.Failed, Note: "NOTE"}
		w.open()
		w.wait(4 * time.Hour)
		w.set(func() { w.hold = true })
		w.wait(25 * time.Hour)
		w.set(func() { w.roles["7"] = chat.Unknown })
		w.wait(25 * time.Hour)
		look(t, w)
	})
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.texts = &textstest.Wide().Scheduler
		w.hold = true
		w.system = []scheduler.System{{ID: "tea", Schedule: hourly, Do: func(ctx context.Context, _ scheduler.Job, _ scheduler.Run) (scheduler.Ended, error) {
			<-ctx.Done()
			return scheduler.Ended{}, ctx.Err()
		}}}
		s := w.open()
		off := w.add(scheduler.Job{Off: true, Schedule: hourly})
		runs := w.add(scheduler.Job{Schedule: hourly})
		w.wait(61 * time.Minute)
		refused := func(err error) {
			t.Helper()
			text := scheduler.Say(w.texts.Refusals, err)
			if text == "" {
				t.Errorf("%v is in no words for people", err)
			}
			catalogued(t, text)
		}
		add := func(sch scheduler.Schedule) error {
			_, err := s.Add(t.Context(), scheduler.Job{Text: "x", At: home, By: alice, Schedule: sch})
			return err
		}
		refused(s.Fire(t.Context(), off.ID, "", false))
		refused(s.Fire(t.Context(), runs.ID, "", false))
		refused(add(scheduler.Schedule{At: at(0)}))
		refused(add(scheduler.Schedule{Every: time.Second}))
		refused(add(scheduler.Schedule{Cron: "often"}))
		refused(add(scheduler.Schedule{Cron: "@daily", Zone: "Mars/Olympus"}))
		if text := scheduler.Say(w.texts.Refusals, errors.New("disk full")); text != "" {
			t.Errorf("a person is told %q", text)
		}
		w.stop()
		look(t, w)
		if err := scheduler.New(w.config()).AbandonRuns(t.Context()); err != nil {
			t.Fatal(err)
		}
		look(t, w)
	})
	delete(said, "")
	if len(said) < 18 {
		t.Errorf("only %d texts: %v", len(said), said)
	}
}
