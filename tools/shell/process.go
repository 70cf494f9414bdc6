package shell

import (
	"context"
	"errors"
	"time"

	"parley/chat"
	"parley/tools"
	"parley/tools/sandbox"
	"parley/tools/shell/recording"
)

// A run is a command that is ready to be run.
type run struct {
	spec  sandbox.Spec
	limit time.Duration
	named tools.Result // untrusted if the command names files that are, or has such variables
	ended func()       // is called at the end of one that goes on in the background

	watched bool // what it writes is untrusted from the start if it may reach the network
}

// mayReachOut reports whether what a program with the network n writes may come from it.
func mayReachOut(n sandbox.Network) bool { return n.All || len(n.Hosts) > 0 }

// A process is a command at work, or how it ended.
type process struct {
	output  recording.Recorder
	limit   time.Duration
	work    context.Context // of the command
	cancel  context.CancelCauseFunc
	network sandbox.Network
	named   tools.Result   // as in run
	writing *writing       // what it writes may be untrusted; nil if it is not
	ended   func()         // as in run
	session chat.SessionID // for which it runs in the background; "" if it is waited for
	done    chan struct{}  // closed when it has ended; then the rest is set
	noted   chan struct{}  // closed when the end of one in the background was noted

	outcome sandbox.Outcome
	err     error // why it did not run
}

// Why a process is ended.
var (
	errStopped = errors.New("stopped")
	errClosing = tools.ErrClosing
)

// start runs a command. It does not end with ctx. The caller waits for it, or has adopt do so.
func (s *Shell) start(ctx context.Context, c tools.Call, r run) (*process, error) {
	var writes *writing
	if c.Tainted || r.named.Tainted || r.spec.Network.All || r.watched && mayReachOut(r.spec.Network) {
		var err error
		if writes, err = s.beginWriting(ctx, c); err != nil {
			return nil, err
		}
	}
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	p := &process{
		limit:   r.limit,
		work:    work,
		cancel:  cancel,
		network: r.spec.Network,
		named:   r.named,
		writing: writes,
		ended:   r.ended,
		done:    make(chan struct{}),
		noted:   make(chan struct{}),
	}
	r.spec.Stdout, r.spec.Stderr = p.output.Streams()
	go func() {
		defer cancel(nil)
		defer close(p.done)
		p.outcome, p.err = s.cfg.Runner.Run(work, r.spec)
	}()
	return p, nil
}

// reachedOut reports whether what p, which has ended, has written may come from the network.
func (p *process) reachedOut() bool { return p.network.All || len(p.outcome.Reached) > 0 }

// await waits for a command. It returns moved and what to tell the model if the command goes on in
// the background, and an error if ctx ended.
func (s *Shell) await(
	ctx context.Context, c tools.Call, in execArgs, p *process,
) (moved bool, r tools.Result, err error) {
	timer := time.NewTimer(waitTime)
	defer timer.Stop()
	for {
		select {
		case <-p.done:
			return false, r, nil
		case <-ctx.Done():
			p.cancel(context.Cause(ctx))
			<-p.done
			return false, r, context.Cause(ctx)
		case <-timer.C:
			if p.limit <= waitTime || !mayBeInBackground(c) {
				continue
			}
			r, err := s.moveToBackground(ctx, c, in, p)
			if err != nil {
				s.cfg.Log.Error("a command cannot go on in the background", "session", c.Session, "err", err)
				continue
			}
			return true, r, nil
		}
	}
}
