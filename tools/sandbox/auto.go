package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/workspace"
)

// probeTimeout is how long the probe of one driver may take.
const probeTimeout = 20 * time.Second

// A Candidate is a driver that Auto may choose.
type Candidate struct {
	Name      string // as config has it: "bwrap"
	Runner    Runner
	Advice    string // what an operator can do if it does not work
	OnRequest bool   // it is used only if config names it
	Bare      bool   // it confines nothing, so there is nothing to probe
}

// A Probe tries, in a sandbox of r, what programs there must not be able to do, and returns how
// each attempt came out. The error says why r could not run it.
type Probe func(ctx context.Context, r Runner) ([]Attempt, error)

// An Attempt is one thing that a Probe tried.
type Attempt struct {
	Name   string // "read a hidden file"
	Held   bool   // the sandbox did what it should
	Detail string // what happened: "permission denied"
}

// A Report says how a driver did on this machine.
type Report struct {
	Driver   string
	Attempts []Attempt // nil if it was not probed
	Err      error     // why it could not be probed; nil if it was
	Advice   string    // what would help; "" if it holds
}

// Holds reports whether a program in this sandbox can do nothing that it may not.
func (r Report) Holds() bool {
	return len(r.Attempts) > 0 && len(r.Failed()) == 0 && r.Err == nil
}

// Failed returns the attempts against which the sandbox did not hold.
func (r Report) Failed() []Attempt {
	held := func(a Attempt) bool { return a.Held }
	return slices.DeleteFunc(slices.Clone(r.Attempts), held)
}

// String says in one line what r found.
func (r Report) String() string {
	if r.Err != nil {
		return r.Driver + ": " + r.Err.Error()
	}
	failed := r.Failed()
	if len(failed) == 0 {
		n := len(r.Attempts)
		return fmt.Sprintf("%s: %d of %d attempts to get out failed, as they should", r.Driver, n, n)
	}
	var parts []string
	for _, a := range failed {
		parts = append(parts, a.Name+" ("+a.Detail+")")
	}
	return r.Driver + " does not hold: " + strings.Join(parts, ", ")
}

// A Choice says which driver runs programs, and why.
type Choice struct {
	Driver  string   // "" if none holds
	Bare    bool     // Driver confines nothing, because config says so
	Reports []Report // of the drivers that were probed so far, from the strongest down
}

// Auto is a [Runner] that uses the strongest driver that holds on this machine. It finds out by
// having each one run a program that tries what it must not be able to do: neither a version nor
// the presence of a program says whether a sandbox works. It does so when a program is run for the
// first time, or when somebody asks.
type Auto struct {
	probe   Probe
	hidden  []Folder      // from every program
	probing chan struct{} // holds an element while drivers are probed, which may take long

	mu         sync.Mutex  // held for moments only
	all        []Candidate // from the strongest down
	candidates []Candidate // those of all that may be used
	uses       int         // how often candidates was set
	chosen     *Candidate  // nil: to be found out
	missing    bool        // it was found out that none of candidates holds
	reports    map[string]Report
}

// NewAuto returns an Auto that chooses among candidates, which are in order of strength.
func NewAuto(probe Probe, candidates ...Candidate) *Auto {
	a := &Auto{probe: probe, probing: make(chan struct{}, 1), all: candidates, reports: map[string]Report{}}
	a.Use("auto")
	return a
}

// Use has a choose among all candidates, for "auto", or use no other than the one of that name. A
// name that no candidate has leaves none.
func (a *Auto) Use(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.candidates = slices.DeleteFunc(slices.Clone(a.all), func(c Candidate) bool {
		if name == "auto" {
			return c.OnRequest || c.Bare
		}
		return c.Name != name
	})
	a.uses++
	a.chosen = nil
	a.missing = false
}

// Hide keeps what is at paths from every program, although it may be in a folder that all of them
// see, such as /usr. What is granted below them stays granted. It must be called before Run.
func (a *Auto) Hide(paths ...string) {
	system := ProgramFolders()
	if slices.ContainsFunc(paths, func(path string) bool { return workspace.Within(path, "/etc") }) {
		system = SystemFolders() // to look for the files of /etc takes time at each start
	}
	for _, path := range paths {
		within := func(folder string) bool { return workspace.Within(path, folder) }
		if slices.ContainsFunc(system, within) { // nothing else is seen anyway
			a.hidden = append(a.hidden, Folder{Path: path, Access: Hidden})
		}
	}
}

// Run implements [Runner]. If no driver holds, it runs nothing and returns ErrNoSandbox. A driver that
// cannot confine a program to hosts runs it without a network, and Outcome.WithoutHosts says so.
func (a *Auto) Run(ctx context.Context, s Spec) (Outcome, error) {
	chosen, err := a.choose(ctx)
	if err != nil {
		return Outcome{}, err
	}
	s.Folders = slices.Concat(a.hidden, s.Folders)
	o, err := chosen.Runner.Run(ctx, s)
	if errors.Is(err, ErrHosts) {
		s.Network = Network{}
		o, err = chosen.Runner.Run(ctx, s)
		o.WithoutHosts = true
	}
	return o, err
}

// ConfinesHosts implements [HostConfiner]. It is that of the driver that is used.
func (a *Auto) ConfinesHosts(ctx context.Context) bool {
	chosen, err := a.choose(ctx)
	return err == nil && ConfinesHosts(ctx, chosen.Runner)
}

// Choice returns which driver is used, and probes as many as it takes to know. The error is that of
// ctx.
func (a *Auto) Choice(ctx context.Context) (Choice, error) {
	chosen, err := a.choose(ctx)
	if err != nil && !errors.Is(err, ErrNoSandbox) {
		return Choice{}, err
	}
	c := Choice{Driver: chosen.Name, Bare: chosen.Bare}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, candidate := range a.all {
		if r, probed := a.reports[candidate.Name]; probed {
			c.Reports = append(c.Reports, r)
		}
	}
	return c, nil
}

// Missing reports whether it is known that no driver holds, so that no program is run. Before the first
// probe it is not.
func (a *Auto) Missing() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.missing
}

// Examine is Choice after a probe of all drivers that "auto" chooses from. One that did not hold is
// probed again: an operator may have mended it.
func (a *Auto) Examine(ctx context.Context) (Choice, error) {
	if err := a.probeAll(ctx); err != nil {
		return Choice{}, err
	}
	return a.Choice(ctx)
}

// probeAll probes the drivers that "auto" chooses from, and forgets which one was chosen.
func (a *Auto) probeAll(ctx context.Context) error {
	endProbes, err := a.beginProbes(ctx)
	if err != nil {
		return err
	}
	defer endProbes()
	for _, c := range a.all {
		if !c.OnRequest && !c.Bare {
			a.report(ctx, c)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.chosen = nil
	return nil
}

// beginProbes waits until nobody else probes drivers, or for the end of ctx.
func (a *Auto) beginProbes(ctx context.Context) (end func(), err error) {
	select {
	case a.probing <- struct{}{}:
		return func() { <-a.probing }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// choose returns the strongest candidate that holds. It is remembered; that none does is not.
func (a *Auto) choose(ctx context.Context) (Candidate, error) {
	if c, found := a.decided(); found {
		return c, nil
	}
	endProbes, err := a.beginProbes(ctx)
	if err != nil {
		return Candidate{}, err
	}
	defer endProbes()
	if c, found := a.decided(); found { // while this waited
		return c, nil
	}
	a.mu.Lock()
	candidates := a.candidates
	uses := a.uses
	a.mu.Unlock()
	c, err := a.strongest(ctx, candidates)
	if ctx.Err() != nil {
		return Candidate{}, ctx.Err()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	isCurrent := uses == a.uses // else the config has changed, and it counts for this call only
	if err != nil {
		a.missing = a.missing || isCurrent
		return Candidate{}, err
	}
	if isCurrent {
		a.missing = false
		a.chosen = &c
	}
	return c, nil
}

// decided returns the driver that is used, if that is known or needs no probe.
func (a *Auto) decided() (c Candidate, found bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.chosen != nil:
		return *a.chosen, true
	case len(a.candidates) > 0 && a.candidates[0].Bare:
		return a.candidates[0], true
	}
	return c, false
}

// strongest returns the first of candidates that holds, or an ErrNoSandbox that says why none does.
func (a *Auto) strongest(ctx context.Context, candidates []Candidate) (Candidate, error) {
	var reasons []string
	for _, c := range candidates {
		r := a.report(ctx, c)
		if r.Holds() {
			return c, nil
		}
		if ctx.Err() != nil {
			return Candidate{}, ctx.Err()
		}
		reasons = append(reasons, r.String())
	}
	if len(reasons) == 0 {
		return Candidate{}, fmt.Errorf("%w: no driver was built for it", ErrNoSandbox)
	}
	return Candidate{}, fmt.Errorf("%w: %s", ErrNoSandbox, strings.Join(reasons, "; "))
}

// report returns how c does on this machine, and remembers it if it holds. The caller has begun probes.
func (a *Auto) report(ctx context.Context, c Candidate) Report {
	a.mu.Lock()
	r, probed := a.reports[c.Name]
	a.mu.Unlock()
	if probed && r.Holds() {
		return r
	}
	SweepTemp(tempPrefix, tempAge)
	limited, stop := context.WithTimeout(ctx, probeTimeout)
	defer stop()
	r = Report{Driver: c.Name}
	r.Attempts, r.Err = a.probe(limited, c.Runner)
	if ctx.Err() != nil { // it says nothing about c
		return r
	}
	if !r.Holds() {
		r.Advice = c.Advice
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reports[c.Name] = r
	return r
}
