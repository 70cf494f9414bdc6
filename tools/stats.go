package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"parley/store"
	"parley/tools/arguments"
)

// Stats counts the results of the calls of each tool. The zero value counts in
// memory only. It is safe for concurrent use.
type Stats struct {
	disk *store.WriteBehind // nil: in memory only

	mu    sync.Mutex
	tools map[string]*Stat
}

// A Stat has the counts of one tool (C-043). Calls that were not executed only
// count as CacheHits or Skipped, and calls that a person stopped do not count at
// all.
type Stat struct {
	Tool            string  `json:"toolName"`
	Runs            int     `json:"executionCount"`
	Successes       int     `json:"successCount"`
	Failures        int     `json:"failureCount"`
	TotalDuration   float64 `json:"totalDuration"`   // of all runs, in milliseconds
	AverageDuration float64 `json:"averageDuration"` // in milliseconds
	CacheHits       int     `json:"cacheHits"`
	Skipped         int     `json:"skipped"`    // identical calls within a round
	Duplicates      int     `json:"duplicates"` // repeated lookups within a turn (E-034)
	Rollbacks       int     `json:"rollbacks"`
}

// OpenStats returns Stats that survive restarts in bucket. Changes are written
// while Run runs.
func OpenStats(ctx context.Context, bucket store.Bucket, log *slog.Logger) (*Stats, error) {
	s := &Stats{disk: store.NewWriteBehind(bucket, log, "tool statistics"), tools: map[string]*Stat{}}
	err := s.disk.Load(ctx, func(tool string, value []byte) error {
		n := &Stat{}
		if err := json.Unmarshal(value, n); err != nil {
			return err
		}
		s.tools[tool] = n
		return nil
	})
	return s, err
}

// Run writes changes to the bucket until ctx ends. It is for Stats from OpenStats.
func (s *Stats) Run(ctx context.Context) { s.disk.Run(ctx, nil) }

// save writes the counts of one tool. The caller holds s.mu.
func (s *Stats) save(n *Stat) { s.disk.Set(n.Tool, []byte(arguments.JSON(n))) }

// note counts a call of tool with the result r.
func (s *Stats) note(tool string, r Result) {
	if r.Took == 0 && r.Twin == "" && !r.Cached {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.of(tool)
	if r.Skipped {
		n.Skipped++
	} else if r.Twin != "" {
		n.Duplicates++
	}
	switch {
	case r.Cached:
		n.CacheHits++
	case r.Took == 0:
	case r.Failed:
		n.Failures++
	default:
		n.Successes++
	}
	n.Runs = n.Successes + n.Failures
	n.TotalDuration += float64(r.Took.Microseconds()) / 1000
	n.AverageDuration = n.TotalDuration / float64(max(n.Runs, 1))
	s.save(n)
}

// RolledBack counts a round that was rolled back because of a poor result of tool
// (E-034).
func (s *Stats) RolledBack(tool string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.of(tool)
	n.Rollbacks++
	s.save(n)
}

// of returns the counts of tool. The caller holds s.mu.
func (s *Stats) of(tool string) *Stat {
	if s.tools == nil {
		s.tools = map[string]*Stat{}
	}
	if s.tools[tool] == nil {
		s.tools[tool] = &Stat{Tool: tool}
	}
	return s.tools[tool]
}

// All returns the counts of all tools, sorted by name.
func (s *Stats) All() (all []Stat) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.tools)) {
		all = append(all, *s.tools[name])
	}
	return all
}

// Of returns the counts of one tool, or an error if there are none (C-044).
func (s *Stats) Of(tool string) (Stat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.tools[tool]; n != nil {
		return *n, nil
	}
	return Stat{}, fmt.Errorf("No stats found for tool: %s", tool) //nolint:staticcheck // the text is C-044's
}

// Reset clears the counts of the named tools, or of all (C-044).
func (s *Stats) Reset(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.tools {
		if len(names) == 0 || slices.Contains(names, name) {
			delete(s.tools, name)
			s.disk.Set(name, nil)
		}
	}
}

// Unreliable returns the names of the tools with at least 5 runs, of which half or
// more failed (C-045).
func (s *Stats) Unreliable() (names []string) {
	for _, n := range s.All() {
		if n.Runs >= 5 && 2*n.Failures >= n.Runs {
			names = append(names, n.Tool)
		}
	}
	return names
}
