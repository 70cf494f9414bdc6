package traffic

import (
	"maps"
	"math"
	"slices"
	"time"
)

// A histogram counts durations by how long they are. Two of them add up to that of all, however many each has, so that
// what an hour had before a restart counts as what comes after it.
type histogram map[int]bin // by binOf

// A bin has the durations of about one length.
type bin struct {
	N   int   `json:"n"`
	Sum int64 `json:"ms"` // milliseconds
}

const (
	binWidth = 1.05           // the longest duration of a bin, in shortest ones: what a quantile may be off by
	longest  = 24 * time.Hour // what takes longer counts as this
)

// binOf returns the number of the bin for d.
func binOf(d time.Duration) int {
	ms := max(d.Milliseconds(), 1)
	return int(math.Log2(float64(ms)) / math.Log2(binWidth))
}

func (h histogram) add(d time.Duration) {
	d = min(d, longest)
	h.merge(histogram{binOf(d): bin{1, d.Milliseconds()}})
}

func (h histogram) merge(more histogram) {
	for i, b := range more {
		h[i] = bin{h[i].N + b.N, h[i].Sum + b.Sum}
	}
}

// quantile returns about the shortest duration that so much of all is no longer than: 0 of none.
func (h histogram) quantile(share float64) time.Duration {
	all, sofar := 0, 0
	for _, b := range h {
		all += b.N
	}
	for _, i := range slices.Sorted(maps.Keys(h)) {
		b := h[i]
		sofar += b.N
		if float64(sofar) >= share*float64(all)-1e-6 && b.N > 0 {
			return time.Duration(b.Sum/int64(b.N)) * time.Millisecond
		}
	}
	return 0
}
