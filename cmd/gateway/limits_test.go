package main

import (
	"context"
	"fmt"
	"testing"

	"parley/llm"
	"parley/llm/llmtest"
)

// TestRS15LimitsOfADay: what a person may have of a day is told when it runs
// out, in one clear sentence, over a restart too; an owner can raise it, and
// nobody else (R-S15).
func TestRS15LimitsOfADay(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		reply := echo(ctx, r)
		reply.Usage = &llm.Usage{In: 10, Out: 5}
		return reply
	})
	w.more["limits"] = map[string]any{"person": map[string]any{"turns": 2}}
	w.start()
	s, other := w.telegramSpot(), w.at(asker)
	own := fmt.Sprint("telegram:", asker)
	enough := "Today's limit for you is reached: 2 of 2 answers. It resets at midnight (UTC). An owner can raise it with /raise " + own + "."
	other.asks("one", "heard one")
	other.asks("two", "heard two\n\n100 % of today's limit for you is used: 2 of 2 answers.")
	other.asks("three", enough)
	if code := w.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	w.start()
	other.asks("four", enough)
	if n := len(w.asked()); n != 2 {
		t.Errorf("the model was asked %d times", n)
	}
	const usage = "Tokens used in this conversation:\nmain: 20 in (0 from cache), 10 out\n\nToday, until midnight (UTC):\n• you: 2 of %d answers, 30 of %s tokens, 0 of %d background tasks, 0.1 of %d megabytes"
	w.tg.Say(asker, "/usage")
	w.says(asker, fmt.Sprintf(usage, 2, "20,000,000", 100, 200))
	other.asks("/raise "+own, "Only owners may raise limits.")
	s.asks("/raise "+own, "Raised, until midnight (UTC):\n• "+own+": 2 of 4 answers")
	w.tg.Say(asker, "/usage")
	w.says(asker, fmt.Sprintf(usage, 4, "40,000,000", 200, 400))
	other.asks("five", "five")
	s.asks("mine", "heard mine") // each has their own
}

// TestRS15JobsOfAPerson: a person has so many jobs on the clock as the file says
// by now (R-S24).
func TestRS15JobsOfAPerson(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	add := func() (string, int) {
		return w.run("", "cron", "add", "--every", "1h", "--to", "console:local", "Stretch")
	}
	for reloads, c := range []struct{ most, more int }{{1, 1}, {2, 1}, {-1, 3}} {
		w.more["limits"] = map[string]any{"person": map[string]any{"jobs": c.most}}
		if reloads == 0 {
			w.start()
			w.base() // it is open
		} else {
			w.config()
			w.logs("config reloaded", reloads)
		}
		for range c.more {
			if out, code := add(); code != 0 {
				t.Errorf("of %d: %s", c.most, out)
			}
		}
		if c.most > 0 {
			add()
			w.logs(fmt.Sprintf("parley: there are %d jobs already, and %[1]d are allowed", c.most), 1)
		}
	}
}
