package sandboxes

import (
	"context"
	"log/slog"
	"time"

	"parley/texts"
	"parley/tools/sandbox"
)

const (
	// Delay is how long after the start sandboxes are tried out, if nobody needs one before.
	// Starting has more urgent things to do.
	Delay = 3 * time.Second

	// statusTimeout is how long /status waits to hear which sandbox is used.
	statusTimeout = 3 * time.Second
)

// LogChoice tells the operator which sandbox is used.
func LogChoice(ctx context.Context, runner *sandbox.Auto, log *slog.Logger) {
	select {
	case <-time.After(Delay):
	case <-ctx.Done():
		return
	}
	choice, err := runner.Choice(ctx)
	switch {
	case err != nil: // Parley is ending
	case choice.Bare:
		log.Warn("programs of models run without a sandbox, because tools.exec.sandbox is none")
	case choice.Driver == "":
		log.Warn("programs of models do not run, because no sandbox works; parley doctor tells more")
	default:
		log.Info("programs of models run in a sandbox", "driver", choice.Driver)
	}
	for _, r := range choice.Reports {
		log.Debug("sandbox tried out", "driver", r.Driver, "result", r.String())
	}
}

// StatusLine tells an owner which sandbox is used.
func StatusLine(ctx context.Context, runner *sandbox.Auto, say texts.Report) string {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	choice, err := runner.Choice(ctx)
	switch {
	case err != nil:
		return say.SandboxNotKnown
	case choice.Bare:
		return say.NoSandbox
	case choice.Driver == "":
		return say.SandboxMissing
	}
	return say.Sandbox.With(choice.Driver)
}
