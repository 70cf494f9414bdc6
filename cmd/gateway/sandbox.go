package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"parley/cmd/gateway/sandboxes"
	"parley/config"
	"parley/doctor"
	"parley/texts"
	"parley/tools/sandbox"
)

const (
	// sandboxDelay is how long after the start sandboxes are tried out, if nobody needs one before.
	// Starting has more urgent things to do.
	sandboxDelay = 3 * time.Second

	// sandboxPatience is how long /status waits to hear which sandbox is used.
	sandboxPatience = 3 * time.Second
)

// logSandbox tells the operator which sandbox is used.
func logSandbox(ctx context.Context, runner *sandbox.Auto, log *slog.Logger) {
	select {
	case <-time.After(sandboxDelay):
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

// sandboxLine tells an owner which sandbox is used.
func sandboxLine(ctx context.Context, runner *sandbox.Auto, say texts.Report) string {
	ctx, cancel := context.WithTimeout(ctx, sandboxPatience)
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

// checkSandbox tries out the sandboxes, as a gateway with the config c would.
func checkSandbox(ctx context.Context, c *config.Config) doctor.Finding {
	runner := sandboxes.New(sandboxes.Config{
		Log:   slog.New(slog.DiscardHandler),
		Image: func() string { return c.Tools.Exec.Image },
		Owner: "doctor of " + c.DataDir, // the containers of a gateway are none of its business
	})
	runner.Use(c.Tools.Exec.Sandbox)
	return doctor.Sandbox{Examine: runner.Examine, Root: os.DirFS("/"), UID: os.Getuid()}.Check(ctx)
}
