package main

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"parley/backup"
	"parley/store/bolt"
)

// TestUpgrade: a store and a recording of each release are in the tree, and this
// version goes on with them. Whoever raises bolt.Format adds those of the
// release before.
func TestUpgrade(t *testing.T) {
	stores, err := filepath.Glob("testdata/releases/*.db.gz")
	if err != nil || len(stores) <= bolt.Format {
		t.Fatalf("stores of releases: %q, %v; want one of each format up to %d", stores, err, bolt.Format)
	}
	for _, from := range stores {
		t.Run(filepath.Base(from), func(t *testing.T) {
			t.Parallel()
			w := newTestGateway(t, echo)
			unzip(t, filepath.Join(w.dir, backup.StoreFile), from)
			w.fillWorkspace()
			w.start()
			w.tg.Say(person, "after the upgrade")
			w.says(person, "heard after the upgrade")
			w.holdsRelease()
			w.stop()
			if out, code := w.run("", "doctor"); code != 0 {
				t.Errorf("doctor: %d\n%s", code, out)
			}
			recording := strings.TrimSuffix(from, ".db.gz") + ".jsonl"
			if out, code := w.run("", "replay", recording, "--run"); code != 0 || strings.Count(out, "the same") != 2 {
				t.Errorf("replay: %d\n%s", code, out)
			}
		})
	}
}

// holdsRelease wants all that the stores of releases hold to be there.
func (w *testGateway) holdsRelease() {
	w.t.Helper()
	if out := w.exported("console:local"); !strings.Contains(out, "Hello from a store of this release") || !strings.Contains(out, "You said: And once more") {
		w.t.Errorf("the conversation is another one:\n%s", out)
	}
	if out, code := w.run("", "cron", "list"); code != 0 || !strings.Contains(out, "Say good morning") {
		w.t.Errorf("cron list: %d\n%s", code, out)
	}
	if out, code := w.run("", "audit"); code != 0 || !strings.Contains(out, "as it was written") {
		w.t.Errorf("audit: %d\n%s", code, out)
	}
}

// fillWorkspace makes the workspace that a store of a release knows: it is not
// begun anew unasked.
func (w *testGateway) fillWorkspace() {
	w.t.Helper()
	files := fstest.MapFS{"NOTES.md": {Data: []byte("from then")}}
	if err := os.CopyFS(filepath.Join(w.dir, "workspace"), files); err != nil {
		w.t.Fatal(err)
	}
}

func unzip(t *testing.T, to, from string) {
	t.Helper()
	f, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
