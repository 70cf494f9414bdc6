package scheduler

import "time"

// Soon returns when j is due next, at most n times, in the zone of its schedule.
func (s *Scheduler) Soon(j Job, n int) (times []time.Time) {
	p, err := s.plan(j.Schedule, j.Created)
	for t := j.Next; err == nil && !j.Off && !t.IsZero() && len(times) < n; t = p.next(t) {
		times = append(times, t.In(p.zone))
	}
	return times
}

// Took returns how long the run took, to the second; 0 if it has not ended.
func (r Run) Took() time.Duration {
	if r.Began.IsZero() || r.Ended.IsZero() {
		return 0
	}
	return max(time.Second, r.Ended.Sub(r.Began).Round(time.Second))
}
