package chat

import (
	"fmt"
	"testing"
	"time"
)

// §2.10: what remains of the steps is one line.
func TestSum(t *testing.T) {
	at := func(s float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(s * float64(time.Second))) }
	read := Step{Tool: "read_file", State: Done, Began: at(1), Ended: at(2)}
	for want, steps := range map[string][]Step{
		"":                  nil,
		"🔧 clock":           {{Tool: "clock", State: Done}},
		"🔧 read_file – 1 s": {read},
		"🔧 The web – 0.2 s": {{Tool: "web_search", Name: "The web", State: Done, Began: at(1), Ended: at(1.17)}},
		"🔧 a, b, 2 failed":  {{Tool: "a", State: Failed}, {Tool: "b", State: Failed}},
		"🔧 c – 125 s":       {{Tool: "c", State: Done, Began: at(0), Ended: at(125.2)}},
		"🔧 d":               {{Tool: "d", State: Running, Began: at(0)}},
		"🔧 web_search, read_file ×3 – 4 s, 1 failed": {{Tool: "web_search", State: Failed, Began: at(0), Ended: at(3.8)}, read, read, read},
	} {
		if got := Sum(steps, func(n int) string { return fmt.Sprint(n, " failed") }); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// C-007, C-010: there is news of a step only if there is something new of it.
func TestStepsAdd(t *testing.T) {
	var ss Steps
	for _, c := range []struct {
		s    Step
		news bool
	}{
		{Step{Call: "1", Tip: "a stray"}, false}, // which never began
		{Step{Call: "1", Tool: "look", State: Waiting, Params: map[string]any{"at": "se"}}, true},
		{Step{Call: "1", Tool: "look", State: Waiting, Params: map[string]any{"at": "se"}}, false},
		{Step{Call: "1", Params: map[string]any{"at": "sea"}}, true},
		{Step{Call: "1", State: Done, Result: "blue"}, true},
		{Step{Call: "1", State: Running}, false},
		{Step{Call: "2", State: Running}, true},
	} {
		if _, news := ss.Add(c.s); news != c.news {
			t.Errorf("%+v: news is %v", c.s, news)
		}
	}
	if len(ss) != 2 || ss[0].Result != "blue" || ss[0].Params["at"] != "sea" || ss[0].Name != "look" || ss[1].Call != "2" {
		t.Errorf("%+v", ss)
	}
}

// What a step waited for somebody's yes is no part of the time that it took, nor is what came between steps.
func TestStepTimeWithoutWaiting(t *testing.T) {
	at := func(s float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(s * float64(time.Second))) }
	var ss Steps
	for _, s := range []Step{
		{Call: "1", Tool: "read", State: Running, Began: at(0)}, {Call: "1", State: Done, Ended: at(1)},
		{Call: "2", Tool: "delete", State: Waiting, Asked: true, Began: at(2)}, {Call: "2", State: Running, Began: at(60)}, {Call: "2", State: Done, Ended: at(60.5)},
		{Call: "3", Tool: "mail", State: Waiting, Asked: true, Began: at(61)}, {Call: "3", State: Refused, Ended: at(90)},
	} {
		ss.Add(s)
	}
	if ss[0].Took != 1000 || ss[1].Took != 500 || ss[2].Took != 0 {
		t.Errorf("the steps took %d, %d and %d ms", ss[0].Took, ss[1].Took, ss[2].Took)
	}
	if n := CountSteps(ss[:2]); n.Took != 1500 {
		t.Errorf("together they took %d ms", n.Took)
	}
	if line := Sum(ss[:2], nil); line != "🔧 read, delete – 1.5 s" {
		t.Errorf("the line is %s", line)
	}
}
