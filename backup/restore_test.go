package backup

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/store"
	"parley/store/bolt"
)

// TestRestoreKilledStore: the file of a store that was killed is restored with its log. If
// that is not beside it, the report says that its latest changes are lost.
func TestRestoreKilledStore(t *testing.T) {
	for _, withLog := range []bool{true, false} {
		dir := t.TempDir()
		s, err := bolt.Open(t.Context(), bolt.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.Bucket("b").Put(t.Context(), "k", []byte("v"), store.Any); err != nil {
			t.Fatal(err)
		}
		killed := filepath.Join(t.TempDir(), "killed.db")
		if err := copyStore(killed, filepath.Join(dir, StoreFile)); err != nil {
			t.Fatal(err)
		}
		if !withLog {
			if err := os.RemoveAll(bolt.LogOf(killed)); err != nil {
				t.Fatal(err)
			}
		}
		r := Restorer{
			DataDir:   t.TempDir(),
			Workspace: filepath.Join(t.TempDir(), "workspace"),
			Settle:    func(context.Context, *bolt.Store) (w Waiting, err error) { return w, nil },
			Log:       slog.New(slog.DiscardHandler),
		}
		report, err := r.Restore(t.Context(), killed, false)
		if err != nil || (report.Lost == nil) != withLog {
			t.Fatalf("with its log: %v: lost %v, %v", withLog, report.Lost, err)
		}
		var text strings.Builder
		report.Print(&text, time.UTC)
		if says := strings.Contains(text.String(), "are lost"); says == withLog {
			t.Errorf("with its log: %v: %s", withLog, &text)
		}
		restored, err := bolt.Open(t.Context(), bolt.Config{Dir: r.DataDir})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := restored.Bucket("b").Get(t.Context(), "k"); (err == nil) != withLog {
			t.Errorf("with its log: %v: %v", withLog, err)
		}
		if err := restored.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
