package landlock

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"parley/tools/sandbox"
	"parley/tools/sandbox/probe"
)

// R-S16: what the Landlock of older kernels does not know about, the filter and the launcher take
// care of: Linux 5.13 has version 1, 6.1 has 2, 6.8 has 4 and 6.12 has 6.
func TestOldKernels(t *testing.T) {
	for version := 1; version <= 6; version++ {
		t.Run(strconv.Itoa(version), func(t *testing.T) {
			r := &Runner{most: version}
			attempts, err := probe.Run(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range attempts {
				if !a.Held {
					t.Errorf("%s: %s", a.Name, a.Detail)
				}
			}
			dir := t.TempDir()
			protected := filepath.Join(t.TempDir(), "protected") // of this test: where nothing holds, it is lost
			if err := os.WriteFile(protected, []byte("text"), 0o600); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			script := `sleep 60 & kill $! && wait $!; echo $?
				timeout 0.05 sleep 60; echo $?
				setsid sleep 60 & until kill -- -$! 2>/dev/null; do sleep 0.01; done; wait $!; echo $?
				kill -9 $PPID 2>/dev/null || echo held
				echo long >a; python3 -c 'import os; os.truncate("a", 0)'
				stat -c %s a
				python3 -c 'import os; os.open(os.environ["FILE"], os.O_RDONLY|os.O_TRUNC)' 2>/dev/null || echo held
				python3 -c '
import os, signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
os.kill(os.getpid(), signal.SIGTERM)'; echo $?`
			_, err = r.Run(t.Context(), sandbox.Spec{
				Args: []string{"bash", "-c", script}, Dir: dir, Stdout: &out, Stderr: &out,
				Env: map[string]string{"FILE": protected},
				Folders: []sandbox.Folder{
					{Path: dir, Access: sandbox.ReadWrite},
					{Path: filepath.Dir(protected), Access: sandbox.ReadOnly},
				},
			})
			if want := "143\n124\n143\nheld\n0\nheld\n7\n"; err != nil || out.String() != want {
				t.Errorf("%v, wrote %q, want %q", err, out.String(), want)
			}
			if text, err := os.ReadFile(protected); string(text) != "text" {
				t.Errorf("a file that may only be read has become %q, %v", text, err)
			}
		})
	}
}

// TestSystemFolders finds that a link of /etc may lead to files of the system, and to no others.
func TestSystemFolders(t *testing.T) {
	for path, want := range map[string]bool{
		"/usr": true, "/usr/share/x": true, "/lib64/x": true, "/nix/store/x": true, "/run/systemd/resolve/stub": true,
		"/usrlocal/x": false, "/library": false, "/etcetera": false, "/home/x": false, "/run/systemd/resolved": false,
	} {
		if got := isSystem(path); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
}

func BenchmarkRuleset(b *testing.B) {
	temp := b.TempDir()
	var s system
	for b.Loop() {
		v, err := newView(s.list(), nil, temp)
		if err != nil {
			b.Fatal(err)
		}
		f, err := v.ruleset(1, false)
		if err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
}
