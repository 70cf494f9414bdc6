package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	refusalWindow  = 10 * time.Minute // one record sums up the refusals of this period
	maxRefusals    = 100              // different refusals counted separately per window
	listedRefusals = 5                // listed in a record, the most frequent first
)

// A refusal is an action that was refused to somebody.
type refusal struct{ what, who string }

// refusals counts the refusals since the last record. The zero value is ready to
// use.
type refusals struct {
	mu    sync.Mutex
	began time.Time
	total int
	count map[refusal]int // of the first maxRefusals different ones
}

func (r *refusals) add(who, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.total == 0 {
		r.began = time.Now()
		r.count = map[refusal]int{}
	}
	r.total++
	one := refusal{what, who}
	if _, known := r.count[one]; known || len(r.count) < maxRefusals {
		r.count[one]++
	}
}

// takeSum returns one event for all refusals since the last call, if there were
// any.
func (r *refusals) takeSum() (e Event, any bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.total == 0 {
		return Event{}, false
	}
	byFrequency := func(a, b refusal) int {
		return cmp.Or(r.count[b]-r.count[a], cmp.Compare(a.what, b.what), cmp.Compare(a.who, b.who))
	}
	most := slices.SortedFunc(maps.Keys(r.count), byFrequency)
	rest := r.total
	var parts []string
	for _, one := range most[:min(len(most), listedRefusals)] {
		rest -= r.count[one]
		parts = append(parts, fmt.Sprintf("%s from %s: %d", one.what, one.who, r.count[one]))
	}
	if rest > 0 {
		parts = append(parts, fmt.Sprintf("others: %d", rest))
	}
	since := r.began.UTC().Format(time.DateTime + " MST")
	what := fmt.Sprintf("%s (since %s)", strings.Join(parts, "; "), since)
	r.total = 0
	r.count = nil
	return Event{Time: time.Now(), Kind: KindRefused, Who: most[0].who, What: what}, true
}
