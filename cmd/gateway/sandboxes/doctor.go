package sandboxes

import (
	"context"
	"log/slog"
	"os"

	"parley/doctor"
)

// Check tries out the sandboxes, as a gateway would with the one that use names and the image. dataDir is
// that gateway's.
func Check(ctx context.Context, use, image, dataDir string) doctor.Finding {
	folder, err := os.MkdirTemp("", "parley-doctor-")
	if err != nil {
		return doctor.Finding{Status: doctor.Fail, Text: err.Error(), Advice: "make room on the disk"}
	}
	defer os.RemoveAll(folder)
	runner := New(Config{
		Log:    slog.New(slog.DiscardHandler),
		Folder: folder,
		Image:  func() string { return image },
		Owner:  "doctor of " + dataDir, // the containers of a gateway are none of its business
	})
	runner.Use(use)
	return doctor.Sandbox{Examine: runner.Examine, Root: os.DirFS("/"), UID: os.Getuid()}.Check(ctx)
}
