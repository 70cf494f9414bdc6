package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/backup"
	"parley/retention"
	"parley/store"
	"parley/store/mem"
)

// P28: an archive that cannot be written is among what /status, parley status, parley doctor
// and the owner's page say.
func TestArchiveFaultIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, w *watch) {
		w.verifier = backup.NewVerifier(mem.New(), slog.New(slog.DiscardHandler))
		dir := filepath.Join(t.TempDir(), "archive")
		if err := os.WriteFile(dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		keeper := retention.Keeper{
			Parts: []retention.Part{{
				Name:   "conversations",
				Period: func() time.Duration { return time.Hour },
				Trim:   func(_ context.Context, t store.Trimming) error { return t.Save("name", []byte("line")) },
			}},
			Archive: retention.Archive{Dir: dir, Wanted: func() bool { return true }},
			Log:     slog.New(slog.DiscardHandler),
			Faults:  upkeepOf(w.gateway).Faults,
		}
		told := func() (lines []string) {
			for _, line := range (ownerAPI{w.gateway}).notices() {
				if strings.HasPrefix(line, "What is old (conversations) is not removed, because the archive cannot be written: ") {
					lines = append(lines, line)
				}
			}
			return lines
		}
		keeper.TrimAll(t.Context(), time.Now())
		if got := told(); len(got) != 1 || !strings.Contains(got[0], dir) {
			t.Errorf("told is %q", got)
		}
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		keeper.TrimAll(t.Context(), time.Now())
		if got := told(); len(got) > 0 {
			t.Errorf("told is %q still", got)
		}
	})
}
