// Package doctor finds out why Parley does not work on a machine, or soon will
// not: it checks files, the store, models, networks and ports, and says what helps.
package doctor

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// A Check looks at one thing that may be wrong. It changes nothing.
type Check struct {
	Name string
	Run  func(context.Context) Finding
}

// A Finding is the result of a check.
type Finding struct {
	Status Status
	Text   string
	Advice string // what to do; "" if the status is OK
}

// A Status says how bad a finding is.
type Status string

// Parley works with what is OK or a warning.
const (
	OK   Status = "ok"
	Warn Status = "warn"
	Fail Status = "FAIL"
)

// checkTimeout is the time that each check may take.
const checkTimeout = 10 * time.Second

// Run runs all checks at once and passes their findings to report, in the order of
// the checks. It reports whether none of them failed.
func Run(ctx context.Context, checks []Check, report func(name string, f Finding)) (healthy bool) {
	findings := make([]chan Finding, len(checks))
	for i, check := range checks {
		findings[i] = make(chan Finding, 1)
		go func() {
			ctx, cancel := context.WithTimeout(ctx, checkTimeout)
			defer cancel()
			findings[i] <- check.Run(ctx)
		}()
	}
	healthy = true
	for i, check := range checks {
		f := <-findings[i]
		report(check.Name, f)
		healthy = healthy && f.Status != Fail
	}
	return healthy
}

// Print writes the finding of a check to w.
func Print(w io.Writer, name string, f Finding) {
	lines := strings.Split(f.Text, "\n")
	fmt.Fprintf(w, "%-4s  %-14s  %s\n", f.Status, name, lines[0])
	for _, line := range lines[1:] {
		fmt.Fprintf(w, "%22s  %s\n", "", line)
	}
	for line := range strings.Lines(f.Advice) {
		fmt.Fprintf(w, "%22s  -> %s\n", "", strings.TrimSuffix(line, "\n"))
	}
}
