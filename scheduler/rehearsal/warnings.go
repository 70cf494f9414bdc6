package rehearsal

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"parley/scheduler"
)

// The hours of the night, in which few want to be written to.
const (
	nightBegin = 22
	nightEnd   = 7
)

// estimate sets what a run takes, by the runs that there were.
func (told *Job) estimate(j scheduler.Job) {
	var n, tokens, secs int
	var cost float64
	for _, r := range j.Runs {
		asked := r.Seconds > 0 && r.Outcome != scheduler.Running && r.Outcome != scheduler.Interrupted
		if !asked || r.Outcome == scheduler.Refused {
			continue
		}
		n++
		tokens += r.Tokens
		cost += r.Cost
		secs += r.Seconds
	}
	told.Known = n > 0 || j.Tool != ""
	if n > 0 {
		told.RunTokens = (tokens + n/2) / n
		told.RunCost = cost / float64(n)
		told.RunSeconds = (secs + n/2) / n
	}
}

func (f *forecast) warn(kind, job, format string, args ...any) {
	f.report.Warnings = append(f.report.Warnings, Warning{kind, job, fmt.Sprintf(format, args...)})
}

// warnJob adds the warnings about one job.
func (f *forecast) warnJob(ctx context.Context, j scheduler.Job, told Job, night int) {
	if told.Runs == 0 {
		return
	}
	if why := f.Reach(ctx, j); why != "" {
		f.warn("unreachable", j.ID, "%s: %s", j.Name, why)
	}
	if told.Skipped > 0 {
		const text = "%s takes %v on average, longer than the time to its next run: %d of its runs would be skipped"
		f.warn("overlap", j.ID, text, j.Name, time.Duration(told.RunSeconds)*time.Second, told.Skipped)
	}
	if night > 0 && !j.System && !j.Quiet {
		const text = "%s says something between %d:00 and %d:00, %s"
		f.warn("night", j.ID, text, j.Name, nightBegin, nightEnd, timesOf(night))
	}
}

func timesOf(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// warnOverlaps warns of jobs that would run in the same conversation at the same time:
// the later one waits for the other.
func (f *forecast) warnOverlaps() {
	type run struct {
		at  time.Time
		job *Job
	}
	places := map[string][]run{}
	for i := range f.report.Jobs {
		told := &f.report.Jobs[i]
		for _, at := range told.Times {
			if !told.System && !told.Apart {
				places[told.To] = append(places[told.To], run{at, told})
			}
		}
	}
	pairs := map[[2]string]int{}
	first := map[[2]string]run{}
	for _, place := range slices.Sorted(maps.Keys(places)) {
		runs := places[place]
		slices.SortStableFunc(runs, func(a, b run) int { return a.at.Compare(b.at) })
		for i := 1; i < len(runs); i++ {
			before, next := runs[i-1], runs[i]
			end := before.at.Add(time.Duration(max(before.job.RunSeconds, 1)) * time.Second)
			if before.job == next.job || !next.at.Before(end) {
				continue
			}
			names := []string{before.job.ID, next.job.ID}
			slices.Sort(names)
			pair := [2]string(names)
			pairs[pair]++
			if _, known := first[pair]; !known {
				first[pair] = next
			}
		}
	}
	byName := func(a, b [2]string) int { return cmp.Compare(strings.Join(a[:], " "), strings.Join(b[:], " ")) }
	for _, pair := range slices.SortedFunc(maps.Keys(pairs), byName) {
		const text = "%s and %s run at the same time in %s %s, first on %s: one waits for the other"
		at := first[pair].at.Format("Mon 2 Jan 15:04")
		f.warn("overlap", first[pair].job.ID, text, f.name(pair[0]), f.name(pair[1]), first[pair].job.To,
			timesOf(pairs[pair]), at)
	}
}

// name returns the name of a job.
func (f *forecast) name(id string) string {
	i := slices.IndexFunc(f.report.Jobs, func(j Job) bool { return j.ID == id })
	return f.report.Jobs[i].Name
}

// spend adds what a run of j would use to the accounts of its day.
func (f *forecast) spend(j scheduler.Job, told Job, due time.Time) {
	day := due.In(f.Zone).Format(time.DateOnly)
	if f.spent[day] == nil {
		f.spent[day] = map[account]Limit{}
	}
	accounts := []account{{job: j.ID}, {}}
	if !j.System {
		accounts = append(accounts, account{person: j.Whose()})
	}
	for _, a := range accounts {
		used := f.spent[day][a]
		f.spent[day][a] = Limit{used.Tokens + told.RunTokens, used.Money + told.RunCost}
	}
}

// warnBudget warns of limits of a day that the jobs alone would reach: once for each
// account, on the first such day.
func (f *forecast) warnBudget() {
	limits := f.Limits()
	warned := map[account]bool{}
	for _, day := range slices.Sorted(maps.Keys(f.spent)) {
		accounts := slices.SortedFunc(maps.Keys(f.spent[day]), func(a, b account) int {
			return cmp.Or(cmp.Compare(a.job, b.job), cmp.Compare(a.person, b.person))
		})
		for _, a := range accounts {
			limit, whose := limits.Everybody, "the limit on everybody together"
			switch {
			case a.job != "":
				limit, whose = limits.Job, "the limit on "+f.name(a.job)
			case a.person != "":
				limit, whose = limits.Person, "the limit on "+string(a.person)
			}
			used := f.spent[day][a]
			if over := overLimit(used, limit); over != "" && !warned[a] {
				warned[a] = true
				const text = "on %s the jobs would reach %s: %s; later runs of that day are refused"
				f.warn("budget", a.job, text, day, whose, over)
			}
		}
	}
}

// overLimit says what is used that a limit does not allow; "" if nothing.
func overLimit(used, limit Limit) string {
	switch {
	case limit.Tokens > 0 && used.Tokens >= limit.Tokens:
		return fmt.Sprintf("%d of %d tokens", used.Tokens, limit.Tokens)
	case limit.Money > 0 && used.Money >= limit.Money:
		return fmt.Sprintf("%.2f of %.2f", used.Money, limit.Money)
	}
	return ""
}
