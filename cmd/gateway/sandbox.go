package main

import (
	"context"
	"log/slog"
	"os"

	"parley/cmd/gateway/sandboxes"
	"parley/config"
	"parley/doctor"
)

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
