package config

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

// A watching is a Watcher at work on a real file.
type watching struct {
	t       *testing.T
	file    string
	hup     chan os.Signal
	applied chan *Config
	logged  chan string
	refuse  error
}

// Write takes one line of the log.
func (w *watching) Write(p []byte) (int, error) {
	w.logged <- string(bytes.TrimSpace(p))
	return len(p), nil
}

func watchFile(t *testing.T, file, text string) *watching {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	w := &watching{t: t, file: file, hup: make(chan os.Signal, 1), applied: make(chan *Config, 9), logged: make(chan string, 99)}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := Source{File: file, Data: "/data", Environ: Environ{}, Drivers: drivers()}
	now, err := Load(s)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var live sync.WaitGroup
	live.Go(func() {
		Watcher{
			File: file, Parse: func(src []byte) (*Config, error) { return Parse(s, src) },
			Hup: w.hup, Settle: 20 * time.Millisecond, Log: slog.New(slog.NewTextHandler(w, nil)),
		}.Run(ctx, now, func(c *Config) error {
			w.applied <- c
			return w.refuse
		})
	})
	t.Cleanup(func() { stop(); live.Wait() })
	return w
}

// next waits for a config to be applied.
func (w *watching) next() *Config {
	w.t.Helper()
	select {
	case c := <-w.applied:
		return c
	case <-time.After(time.Minute):
		w.t.Fatal("nothing was applied")
		return nil
	}
}

// says waits for a line of the log that holds text, and returns it with those before.
func (w *watching) says(text string) (lines string) {
	w.t.Helper()
	for late := time.After(time.Minute); ; {
		select {
		case l := <-w.logged:
			if lines += l + "\n"; strings.Contains(l, text) {
				return lines
			}
		case <-late:
			w.t.Fatalf("the log does not say %q:\n%s", text, lines)
		}
	}
}

func (w *watching) write(text string) {
	w.t.Helper()
	if err := os.WriteFile(w.file, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// replace does as most editors do.
func (w *watching) replace(text string) {
	w.t.Helper()
	err := os.WriteFile(w.file+"~", []byte(text), 0o600)
	if err = errors.Join(err, os.Rename(w.file+"~", w.file)); err != nil {
		w.t.Fatal(err)
	}
}

const rounds = `{"agent": {"maxRounds": %d}}`

// TestReload: changes come in by every way a file can change; a bad file keeps
// the old config (P22).
func TestReload(t *testing.T) {
	w := watchFile(t, filepath.Join(t.TempDir(), "config.json"), "{}")
	w.write(fmt.Sprintf(rounds, 7))
	if c := w.next(); c.Agent.MaxRounds != 7 {
		t.Errorf("%+v", c.Agent)
	}
	w.replace(fmt.Sprintf(rounds, 8))
	if c := w.next(); c.Agent.MaxRounds != 8 {
		t.Errorf("%+v", c.Agent)
	}
	w.says("changed=agent")

	w.write("{\n\"agent\": {\"maxRounds\": 0},\n\"ownres\": []}")
	said := w.says("ownres")
	if !strings.Contains(said, "config.json:2:") || !strings.Contains(said, "the running one stays") {
		t.Error(said)
	}
	if err := os.Remove(w.file); err != nil {
		t.Fatal(err)
	}
	w.says("cannot be read: the running one stays")

	w.write(fmt.Sprintf(rounds, 9))
	if c := w.next(); c.Agent.MaxRounds != 9 {
		t.Errorf("%+v", c.Agent)
	}
	if n := len(w.applied); n != 0 {
		t.Errorf("%d more configs were applied", n)
	}
}

func TestReloadByHangup(t *testing.T) {
	w := watchFile(t, filepath.Join(t.TempDir(), "config.json"), "{}")
	w.hup <- syscall.SIGHUP
	w.says("config reloaded") // and nothing to apply
	w.refuse = errors.New("no such luck")
	w.write(fmt.Sprintf(rounds, 7))
	w.next()
	w.says("no such luck")
	w.hup <- syscall.SIGHUP // once more: it was not taken
	if c := w.next(); c.Agent.MaxRounds != 7 {
		t.Errorf("%+v", c.Agent)
	}
}

// TestHangupWithoutFile: a terminal that closes sends SIGHUP. Without a config file there is
// nothing to warn of.
func TestHangupWithoutFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.json")
	now, err := Load(Source{File: file, Data: t.TempDir(), Environ: Environ{}, Drivers: drivers()})
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	w := Watcher{File: file, Log: slog.New(slog.NewTextHandler(&log, nil))}
	w.reload(now, [sha256.Size]byte{}, nil)
	if log.Len() > 0 {
		t.Errorf("logged %s", log.String())
	}
}

// TestReloadThroughLinks: Kubernetes swaps a link to a folder, others keep the file elsewhere.
func TestReloadThroughLinks(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) {
		err := os.Mkdir(filepath.Join(dir, name), 0o700)
		if err = errors.Join(err, os.WriteFile(filepath.Join(dir, name, "config.json"), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	put("v1", "{}")
	file := filepath.Join(dir, "config.json")
	if err := errors.Join(os.Symlink("v1", filepath.Join(dir, "..data")), os.Symlink("..data/config.json", file)); err != nil {
		t.Fatal(err)
	}
	w := watchFile(t, file, "{}")
	put("v2", fmt.Sprintf(rounds, 2))
	if err := errors.Join(os.Symlink("v2", filepath.Join(dir, "..new")), os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data"))); err != nil {
		t.Fatal(err)
	}
	if c := w.next(); c.Agent.MaxRounds != 2 {
		t.Errorf("%+v", c.Agent)
	}
	w.says("config reloaded")
	w.write(fmt.Sprintf(rounds, 3)) // in the folder the link leads to
	if c := w.next(); c.Agent.MaxRounds != 3 {
		t.Errorf("%+v", c.Agent)
	}
}

// TestNoticesWhatCameBefore: the file changed after it was loaded and before it was watched.
func TestNoticesWhatCameBefore(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, []byte(fmt.Sprintf(rounds, 5)), 0o600); err != nil {
		t.Fatal(err)
	}
	s := Source{File: file, Data: "/data", Environ: Environ{}, Drivers: drivers()}
	old, err := Parse(s, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	got := 0
	Watcher{File: file, Parse: func(src []byte) (*Config, error) { return Parse(s, src) }, Log: slog.New(slog.DiscardHandler)}.
		Run(ctx, old, func(c *Config) error {
			got = c.Agent.MaxRounds
			stop()
			return nil
		})
	if got != 5 {
		t.Errorf("maxRounds %d", got)
	}
}

func TestRenew(t *testing.T) {
	old, err := parseText(`{
		"models": {"a": {"type": "demo"}},
		"channels": {"console": {}, "telegram": {"token": "1:a", "allow": ["1"]}, "telegram:old": {"token": "2:a"}},
	}`)
	if err != nil {
		t.Fatal(err)
	}
	next, err := parseText(`{
		"dataDir": "/elsewhere", "workspace": "/work", "timezone": "UTC", "owners": [], "store": {"type": "mem"}, "log": {"level": "debug"},
		"models": {"b": {"type": "demo"}}, "tools": {"timeout": "2s"}, "agent": {"maxConcurrentTurns": 5},
		"limits": {"person": {"turns": 3, "jobs": 7}}, "cron": {"minInterval": "1m"}, "heartbeat": {"every": "1h"}, "dream": {"cron": ""},
		"channels": {"telegram": {"token": "3:a", "allow": ["2"], "apiUrl": "http://h", "groups": "all", "rate": 1,
			"webhook": {"url": "https://h", "secret": "0123456789012345678901"}}, "telegram:new": {"token": "4:a"}},
	}`)
	if err != nil {
		t.Fatal(err)
	}
	changed, restart := Renew(old, next)
	if d := cmp.Diff([]string{"agent.model", "channels.telegram.allow", "limits", "log.level", "models", "owners", "tools.timeout"}, changed); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"agent.maxConcurrentTurns", "channels.console", "channels.telegram.apiUrl", "channels.telegram.groups", "channels.telegram.rate",
		"channels.telegram.token", "channels.telegram.webhook", "channels.telegram:new (added)", "channels.telegram:old (removed)",
		"cron.minInterval", "dataDir", "dream.cron", "heartbeat.every", "store.type", "timezone", "workspace"}, restart); d != "" {
		t.Error(d)
	}
	now := next
	bot := telegramOf(old, "telegram")
	if !cmp.Equal(telegramOf(now, "telegram"), bot) || !cmp.Equal(now.Channels["telegram"].Senders.Allow, []string{"2"}) ||
		now.Channels["telegram:old"] == nil || now.Channels["telegram:new"] != nil ||
		now.DataDir != old.DataDir || now.Store != old.Store || now.Models["b"] == nil || now.Channels["console"] == nil {
		t.Errorf("%+v", now.Channels)
	}
	if l := now.Limits["person"]; l.Turns != 3 || l.Jobs != 7 || now.Cron != old.Cron || now.Dream != old.Dream || now.Heartbeat != old.Heartbeat {
		t.Errorf("%+v, %+v, %+v, %+v", l, now.Cron, now.Heartbeat, now.Dream)
	}
	if changed, restart := Renew(old, old); len(changed)+len(restart) > 0 {
		t.Error(changed, restart)
	}
}
