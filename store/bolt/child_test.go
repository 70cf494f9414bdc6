package bolt_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"parley/store/bolt"
)

// children are what this program does instead of testing if the environment names one.
// os.Args are its arguments.
var children = map[string]func(args []string) error{
	"open": func(args []string) error {
		_, err := bolt.Open(context.Background(), bolt.Config{Dir: args[0]})
		return err
	},
	"write":  writeForEver,
	"flip":   flipBits,
	"fill":   fillToLimit,
	"zeroed": useZeroed,
}

const childEnv = "PARLEY_BOLT_CHILD"

func TestMain(m *testing.M) {
	child, ok := children[os.Getenv(childEnv)]
	if !ok {
		os.Exit(m.Run())
	}
	if err := child(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// child returns a command that runs one of children in a process of its own.
func child(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), childEnv+"="+name, "GORACE=atexit_sleep_ms=0")
	return cmd
}

// childAs is child as another user, which needs root.
func childAs(t *testing.T, uid uint32, name string, args ...string) *exec.Cmd {
	cmd := child(t.Context(), name, args...)
	program := filepath.Join(t.TempDir(), "program") // the test's own may be where nobody else gets
	for dir := filepath.Dir(program); len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range args {
		for ; len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	data, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(program, data, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd.Path = program
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	return cmd
}

// A logged is a log that reports when it gets a certain line.
type logged struct {
	text string
	seen chan struct{}
	once sync.Once
}

func logLine(text string) *logged { return &logged{text: text, seen: make(chan struct{})} }

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

func (l *logged) Write(p []byte) (int, error) {
	if strings.Contains(string(p), l.text) {
		l.once.Do(func() { close(l.seen) })
	}
	return len(p), nil
}
