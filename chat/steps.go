package chat

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Steps are those on the way to one reply, in the order in which they began.
type Steps []Step

// Add merges s with what is known of it and returns that. There is no news of a
// step that was over (C-007), of one that never began, and in what was known.
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

// Sum says in one line what was done, such as "🔧 web_search, read_file ×3 – 4 s,
// 1 failed". It is "" if nothing was. The first of the steps began first. failures
// says that n of them failed.
func Sum(steps []Step, failures func(n int) string) string {
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
		began = cmp.Or(began, s.Began)
		if s.Ended.After(ended) {
			ended = s.Ended
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
	if took := ended.Sub(began); !began.IsZero() && took >= 100*time.Millisecond {
		line += " – " + Span(took)
	}
	if failed > 0 {
		line += ", " + failures(failed)
	}
	return line
}

// Span writes d for people: "0.2 s", "125 s".
func Span(d time.Duration) string {
	if d = d.Round(100 * time.Millisecond); d < 2*time.Second {
		return fmt.Sprintf("%g s", d.Seconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}
