package chat

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Steps are the steps on the way to one reply, in the order in which they began.
type Steps []Step

// Add applies an update of a step, and returns the step and whether anything has
// changed. Updates of steps that have ended (C-007) or never began change nothing.
func (ss *Steps) Add(s Step) (merged Step, news bool) {
	i := slices.IndexFunc(*ss, func(o Step) bool { return o.Call == s.Call })
	switch {
	case i < 0 && s.State == "":
		return s, false
	case i < 0:
		merged = Step{}.Merge(s)
		*ss = append(*ss, merged)
		return merged, true
	}
	old := (*ss)[i]
	merged = old.Merge(s)
	(*ss)[i] = merged
	return merged, !reflect.DeepEqual(merged, old)
}

// StepCounts says of the steps to a reply how many there were, how they ended, and how long they took in all. The
// zero StepCounts says that no tool was used.
type StepCounts struct {
	All     int   `json:"all"`
	Failed  int   `json:"failed,omitempty"`
	Refused int   `json:"refused,omitempty"`
	Took    int64 `json:"took,omitempty"` // milliseconds in which one of them was at work
}

// CountSteps counts steps. It returns nil if there are none.
func CountSteps(steps []Step) *StepCounts {
	if len(steps) == 0 {
		return nil
	}
	n := StepCounts{All: len(steps)}
	for _, s := range steps {
		switch s.State {
		case Failed:
			n.Failed++
		case Refused:
			n.Refused++
		}
	}
	n.Took = atWork(steps).Milliseconds()
	return &n
}

// atWork returns the time in which any of steps was at work.
func atWork(steps []Step) (total time.Duration) {
	steps = slices.Clone(steps)
	slices.SortStableFunc(steps, func(a, b Step) int { return a.Began.Compare(b.Began) })
	var until time.Time
	for _, s := range steps {
		if s.Began.IsZero() || !s.Ended.After(s.Began) || !s.Ended.After(until) {
			continue
		}
		if s.Began.After(until) {
			until = s.Began
		}
		total += s.Ended.Sub(until)
		until = s.Ended
	}
	return total
}

// Sum describes steps in one line, such as "🔧 web_search, read_file ×3 – 4 s, 1
// failed", or returns "" if there are none. They are in the order in which they
// began. failures says that n of them failed.
func Sum(steps []Step, failures func(n int) string) string {
	var names []string
	times, failed := map[string]int{}, 0
	for _, s := range steps {
		name := cmp.Or(s.Name, s.Tool)
		if times[name]++; times[name] == 1 {
			names = append(names, name)
		}
		if s.State == Failed {
			failed++
		}
	}
	if names == nil {
		return ""
	}
	for i, name := range names {
		if n := times[name]; n > 1 {
			names[i] += fmt.Sprint(" ×", n)
		}
	}
	line := "🔧 " + strings.Join(names, ", ")
	if took := atWork(steps); took >= 100*time.Millisecond {
		line += " – " + Span(took)
	}
	if failed > 0 {
		line += ", " + failures(failed)
	}
	return line
}

// Span formats d for people: "0.2 s", "125 s".
func Span(d time.Duration) string {
	if d = d.Round(100 * time.Millisecond); d < 2*time.Second {
		return fmt.Sprintf("%g s", d.Seconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}

// Label says how many steps there were: "3 steps · 12 s · 1 failed".
func (n StepCounts) Label() string {
	label := fmt.Sprintf("%d steps", n.All)
	if n.All == 1 {
		label = "1 step"
	}
	if took := time.Duration(n.Took) * time.Millisecond; took >= 100*time.Millisecond {
		label += " · " + Span(took)
	}
	if n.Failed > 0 {
		label += fmt.Sprintf(" · %d failed", n.Failed)
	}
	if n.Refused > 0 {
		label += fmt.Sprintf(" · %d not allowed", n.Refused)
	}
	return label
}
