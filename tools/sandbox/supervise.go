package sandbox

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

const (
	// How often a running program is compared with its limits: less often the longer it runs.
	minSampleInterval = 50 * time.Millisecond
	maxSampleInterval = 2 * time.Second

	// How often a program that nothing keeps from making processes is looked at.
	crowdInterval = 5 * time.Millisecond

	// drainTimeout is how long output is read after all processes have ended.
	drainTimeout = 2 * time.Second
)

// A Supervisor runs commands for drivers. Whatever a command has started ends with it: when the
// program is done, exceeds a limit, or its context ends. If Parley dies, so does the command. The
// zero value is ready to use; one for all runs of a driver saves time.
type Supervisor struct {
	look   sync.Once
	places cgroupPlaces // set by look

	threads recentCount // of this user's processes
}

// A recentCount is a number that takes long to find and need not be exact.
type recentCount struct {
	mu    sync.Mutex
	found time.Time
	count int
}

// countTTL is for how long a recentCount is used.
const countTTL = 5 * time.Second

// get returns the number that count returned a short while ago.
func (r *recentCount) get(count func() int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.found) > countTTL {
		r.count = count()
		r.found = time.Now()
	}
	return r.count
}

// Run starts c for s, and waits until everything it started has ended. It uses the arguments,
// environment, folders and network of s for nothing: that is what c is for.
func (v *Supervisor) Run(ctx context.Context, s Spec, c Command) (Outcome, error) {
	if err := s.Check(); err != nil {
		return Outcome{}, err
	}
	if ctx.Err() != nil {
		return Outcome{End: Cancelled, Exit: -1}, nil
	}
	limits := s.Limits.WithDefaults()
	p, err := openPipes(s)
	if err != nil {
		return Outcome{}, fmt.Errorf("open pipes: %w", err)
	}
	defer p.close()
	begin := time.Now()
	child, err := v.start(c, p.theirs, limits)
	p.closeTheirs()
	if err != nil {
		return Outcome{}, fmt.Errorf("start %s: %w", filepath.Base(c.Args[0]), err)
	}
	passed := output{left: limits.Output}
	if s.Started != nil {
		s.Started(child.handle.Pid)
	}
	p.copyAll(s, &passed)
	o := Outcome{End: child.wait(ctx, limits), Exit: -1}
	if o.End == Exited && child.exceeded(limits) {
		o.End = Exceeded
	}
	err = child.end()
	p.drain()
	o.Took = time.Since(begin)
	passed.mu.Lock()
	o.Dropped = passed.dropped
	passed.mu.Unlock()
	if err != nil {
		return o, err
	}
	if o.End != Exited {
		return o, nil
	}
	code, ran := child.exitCode()
	if !ran {
		driver := filepath.Base(c.Args[0])
		return Outcome{}, fmt.Errorf("%s did not start the program: %s", driver, passed.firstComplaint())
	}
	if exceededCPU(code, o.Took, limits) {
		o.End = Exceeded
		return o, nil
	}
	o.Exit = code
	return o, nil
}

// What the codes of programs that the CPU limit ended are: 128 and the number of the signal.
const (
	exitSIGKILL = 128 + 9
	exitSIGXCPU = 128 + 24
)

// exceededCPU reports whether code tells that a process had used all its time.
func exceededCPU(code int, took time.Duration, limits Limits) bool {
	return code == exitSIGXCPU || code == exitSIGKILL && took >= limits.CPU
}

// wait waits until p has ended or must end, and returns why.
func (p *process) wait(ctx context.Context, limits Limits) End {
	wall := time.NewTimer(limits.Wall)
	defer wall.Stop()
	begin := time.Now()
	sample := time.NewTimer(minSampleInterval)
	defer sample.Stop()
	var crowd <-chan time.Time
	if p.mayCrowd() {
		ticker := time.NewTicker(crowdInterval)
		defer ticker.Stop()
		crowd = ticker.C
	}
	for {
		select {
		case <-p.exited:
			return Exited
		case <-ctx.Done():
			return Cancelled
		case <-wall.C:
			return TimedOut
		case <-crowd:
			if p.crowds(limits) {
				return Exceeded
			}
		case <-sample.C:
			if p.exceeded(limits) {
				return Exceeded
			}
			sample.Reset(min(max(time.Since(begin)/20, minSampleInterval), maxSampleInterval))
		}
	}
}

// pipes are the standard files of a program. What it holds of them open, or hands on, does not
// keep Parley waiting: its own ends can be closed at any time.
type pipes struct {
	theirs []*os.File // of the child: 0, 1 and 2
	lent   []*os.File // those of theirs that belong to whoever made the Spec
	ours   []*os.File
	stdin  *os.File // of ours; nil if there is nothing to copy
	stdout *os.File // of ours; nil if the program has that of the Spec
	stderr *os.File // of ours; nil if it goes where stdout goes

	copying sync.WaitGroup
}

func openPipes(s Spec) (_ *pipes, err error) {
	p := &pipes{}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if err := p.openStdin(s.Stdin); err != nil {
		return nil, err
	}
	if file, ok := s.Stdout.(*os.File); ok {
		p.theirs = append(p.theirs, file)
		p.lent = append(p.lent, file)
	} else {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		p.theirs = append(p.theirs, w)
		p.ours = append(p.ours, r)
		p.stdout = r
	}
	if SameWriter(s.Stdout, s.Stderr) {
		p.theirs = append(p.theirs, p.theirs[1])
		return p, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.theirs = append(p.theirs, w)
	p.ours = append(p.ours, r)
	p.stderr = r
	return p, nil
}

func (p *pipes) openStdin(from io.Reader) error {
	switch from := from.(type) {
	case nil:
		null, err := os.Open(os.DevNull)
		if err != nil {
			return err
		}
		p.theirs = append(p.theirs, null)
	case *os.File:
		p.theirs = append(p.theirs, from)
		p.lent = append(p.lent, from)
	default:
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		p.theirs = append(p.theirs, r)
		p.ours = append(p.ours, w)
		p.stdin = w
	}
	return nil
}

// copyAll copies what is to be read and what is written, until p is drained.
func (p *pipes) copyAll(s Spec, passed *output) {
	if p.stdin != nil {
		p.copying.Go(func() {
			_, _ = io.Copy(p.stdin, s.Stdin) // the program need not read it all
			_ = p.stdin.Close()
		})
	}
	if p.stdout != nil {
		p.copying.Go(func() { passed.copyAll(s.Stdout, p.stdout, p.stderr == nil) })
	}
	if p.stderr != nil {
		p.copying.Go(func() { passed.copyAll(s.Stderr, p.stderr, true) })
	}
}

// drain waits until all that was written has been copied. Nobody can write any more.
func (p *pipes) drain() {
	late := time.AfterFunc(drainTimeout, p.close)
	defer late.Stop()
	if p.stdin != nil {
		_ = p.stdin.Close()
	}
	p.copying.Wait()
}

func (p *pipes) closeTheirs() {
	for _, f := range p.theirs {
		if !slices.Contains(p.lent, f) {
			_ = f.Close()
		}
	}
}

func (p *pipes) close() {
	p.closeTheirs()
	for _, f := range p.ours {
		_ = f.Close()
	}
}
