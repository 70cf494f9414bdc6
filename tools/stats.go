package tools

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Stats counts what came of the calls of each tool. The zero value is ready;
// it is safe for use by several goroutines, and a nil *Stats counts nothing.
type Stats struct {
	mu    sync.Mutex
	tools map[string]Stat
}

// A Stat is what Stats knows of one tool (C-043). Calls that were not executed
// count under CacheHits or Skipped only, those a person stopped not at all.
type Stat struct {
	Tool            string  `json:"toolName"`
	Runs            int     `json:"executionCount"`
	Successes       int     `json:"successCount"`
	Failures        int     `json:"failureCount"`
	TotalDuration   float64 `json:"totalDuration"`   // of the runs, in milliseconds
	AverageDuration float64 `json:"averageDuration"` // in milliseconds
	CacheHits       int     `json:"cacheHits"`
	Skipped         int     `json:"skipped"`    // twins within a round
	Duplicates      int     `json:"duplicates"` // lookups that were repeated in their turn (E-034)
	Rollbacks       int     `json:"rollbacks"`
}

// note counts a call of tool with the result r.
func (s *Stats) note(tool string, r Result) {
	s.change(tool, func(n *Stat) {
		switch {
		case r.Skipped:
			n.Skipped++
		case r.Twin != "":
			n.Duplicates++
		}
		switch {
		case r.Cached:
			n.CacheHits++
		case r.Took > 0:
			n.Runs++
			n.TotalDuration += float64(r.Took) / float64(time.Millisecond)
			n.AverageDuration = n.TotalDuration / float64(n.Runs)
			if r.Failed {
				n.Failures++
			} else {
				n.Successes++
			}
		}
	})
}

// RolledBack counts a round that was taken back for a poor result of tool (E-034).
func (s *Stats) RolledBack(tool string) { s.change(tool, func(n *Stat) { n.Rollbacks++ }) }

func (s *Stats) change(tool string, f func(*Stat)) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.tools[tool]
	n.Tool = tool
	if f(&n); n == (Stat{Tool: tool}) {
		return
	}
	if s.tools == nil {
		s.tools = map[string]Stat{}
	}
	s.tools[tool] = n
}

// All returns what is known, by name.
func (s *Stats) All() []Stat {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.tools), func(a, b Stat) int { return strings.Compare(a.Tool, b.Tool) })
}

// Of returns what is known of one tool, or an error if that is nothing (C-044).
func (s *Stats) Of(tool string) (Stat, error) {
	for _, n := range s.All() {
		if n.Tool == tool {
			return n, nil
		}
	}
	return Stat{}, fmt.Errorf("No stats found for tool: %s", tool) //nolint:staticcheck // the text is C-044's
}

// Reset forgets the tools named, or all (C-044).
func (s *Stats) Reset(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(names) == 0 {
		clear(s.tools)
	}
	for _, name := range names {
		delete(s.tools, name)
	}
}

// Unreliable names the tools of which at least 5 runs are known and half failed (C-045).
func (s *Stats) Unreliable() (names []string) {
	for _, n := range s.All() {
		if n.Runs >= 5 && 2*n.Failures >= n.Runs {
			names = append(names, n.Tool)
		}
	}
	return names
}
