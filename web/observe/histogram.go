package observe

import (
	"fmt"
	"io"
	"strconv"
	"sync"
)

// A histogram counts durations by fixed bounds, as Prometheus does. Its methods
// may be called concurrently. (Versions of the metrics library that have one
// print to standard error at the start of the program.)
type histogram struct {
	bounds []float64 // seconds, ascending

	mu     sync.Mutex
	counts []int // of what is at most bounds[i] and more than the bound before; the last has no bound
	sum    float64
}

// Update counts a duration of so many seconds.
func (h *histogram) Update(seconds float64) {
	i := 0
	for i < len(h.bounds) && seconds > h.bounds[i] {
		i++
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts[i]++
	h.sum += seconds
}

// write writes the series of h, which has these label pairs, in the text format.
func (h *histogram) write(w io.Writer, name, labels string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	inBucket, braces := labels, ""
	if labels != "" {
		inBucket, braces = labels+",", "{"+labels+"}"
	}
	total := 0
	for i, n := range h.counts {
		total += n
		bound := "+Inf"
		if i < len(h.bounds) {
			bound = strconv.FormatFloat(h.bounds[i], 'g', -1, 64)
		}
		fmt.Fprintf(w, "%s_bucket{%sle=%q} %d\n", name, inBucket, bound, total)
	}
	fmt.Fprintf(w, "%s_sum%s %g\n%s_count%s %d\n", name, braces, h.sum, name, braces, total)
}
