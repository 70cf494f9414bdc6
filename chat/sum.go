package chat

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Sum says in one line what was done, such as "🔧 web_search, read_file ×3 – 4 s,
// 1 failed". It is "" if nothing was.
func Sum(steps []Step) string {
	if len(steps) == 0 {
		return ""
	}
	var names []string
	times, failed := map[string]int{}, 0
	var began, ended time.Time
	for _, s := range steps {
		name := cmp.Or(s.Name, s.Tool)
		if times[name]++; times[name] == 1 {
			names = append(names, name)
		}
		if s.State == Failed {
			failed++
		}
		if !s.Began.IsZero() && (began.IsZero() || s.Began.Before(began)) {
			began = s.Began
		}
		ended = slices.MaxFunc([]time.Time{ended, s.Ended}, time.Time.Compare)
	}
	for i, name := range names {
		if n := times[name]; n > 1 {
			names[i] += fmt.Sprint(" ×", n)
		}
	}
	line := "🔧 " + strings.Join(names, ", ")
	if !began.IsZero() && ended.After(began) {
		line += " – " + Span(ended.Sub(began))
	}
	if failed > 0 {
		line += fmt.Sprintf(", %d failed", failed)
	}
	return line
}

// Span writes d for people: "0.2 s", "4 s", "2 min 5 s".
func Span(d time.Duration) string {
	switch d = d.Round(100 * time.Millisecond); {
	case d < 2*time.Second:
		return fmt.Sprintf("%g s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	d = d.Round(time.Second)
	return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
}
