package sizes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"parley/texts"
)

const (
	day       = 24 * time.Hour
	maxListed = 6 // parts in a line
)

// Line tells what the latest of samples found, and how much that has grown in a day and a
// week.
func Line(samples []Sample, zone *time.Location, say texts.Report) string {
	if len(samples) == 0 {
		return say.NotMeasured
	}
	last := samples[len(samples)-1]
	if last.Total() == 0 {
		return say.NothingKept
	}
	line := say.Sizes.With(Format(last.Total()), largest(last), last.Time.In(zone).Format(minutes))
	told := last.Time
	for _, days := range []time.Duration{1, 7} {
		if s := before(samples, days*day); s.Time.Before(told) {
			told = s.Time
			line += " " + say.Growth.With(told.In(zone).Format(time.DateOnly), grown(last.Total()-s.Total()))
		}
	}
	return line
}

// minutes is a layout of time.
const minutes = "2006-01-02 15:04"

// largest lists the largest parts of s.
func largest(s Sample) string {
	names := slices.SortedFunc(maps.Keys(s.Bytes), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.Bytes[b], s.Bytes[a]), cmp.Compare(a, b))
	})
	var listed []string
	for _, name := range names[:min(len(names), maxListed)] {
		if s.Bytes[name] > 0 {
			listed = append(listed, name+" "+Format(s.Bytes[name]))
		}
	}
	return strings.Join(listed, ", ")
}

// before returns the sample of that long before the last, or the first that is later.
func before(samples []Sample, age time.Duration) Sample {
	last := samples[len(samples)-1]
	for _, s := range samples {
		if d := last.Time.Sub(s.Time); d >= 0 && d <= age+day/2 {
			return s
		}
	}
	return last
}

// grown returns a difference with its sign.
func grown(n int64) string {
	if n < 0 {
		return "-" + Format(-n)
	}
	return "+" + Format(n)
}

// Format returns a number of bytes for people.
func Format(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n < 1e3:
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.0f kB", float64(n)/1e3)
}
