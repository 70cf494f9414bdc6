package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// A watcher reads config.json again when it changes, or when told to by Hup.
// A file with faults changes nothing: the faults are logged and the running
// config stays (P22).
type watcher struct {
	File   string
	Parse  func(src []byte) (*Config, error)
	Hup    <-chan os.Signal
	Settle time.Duration // how long the file must have been left alone
	Log    *slog.Logger
}

// Run watches until ctx ends. It calls apply, one call at a time, with each
// new config; what cannot change at run time is in it as it was. An error of
// apply means that nothing has changed.
func (w watcher) Run(ctx context.Context, now *Config, apply func(*Config) error) {
	var events chan fsnotify.Event
	var errs chan error
	fw, err := fsnotify.NewWatcher()
	if err == nil {
		defer fw.Close()
		events, errs = fw.Events, fw.Errors
		err = w.follow(fw)
	}
	if err != nil {
		w.Log.Warn("config file is not watched: send SIGHUP after a change", "file", w.File, "err", err)
	}
	seen := now.sum
	settled := time.NewTimer(0) // at once: the file may have changed since it was loaded
	defer settled.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case ev := <-events:
			if w.concerns(ev) {
				settled.Reset(w.Settle)
			}
		case err := <-errs:
			w.Log.Debug("events of the config file were lost", "err", err)
			settled.Reset(w.Settle)
		case <-w.Hup:
			seen = [sha256.Size]byte{}
			settled.Reset(0)
		case <-settled.C:
			if fw != nil {
				_ = w.follow(fw) // a link may lead elsewhere now; Run told of what fails at first
			}
			now, seen = w.reload(now, seen, apply)
		}
	}
}

// follow watches the folder of the file and the one that a link leads to:
// editors and Kubernetes put a new file in place of the old.
func (w watcher) follow(fw *fsnotify.Watcher) error {
	err := fw.Add(filepath.Dir(w.File))
	if real, e := filepath.EvalSymlinks(w.File); e == nil {
		err = errors.Join(err, fw.Add(filepath.Dir(real)))
	}
	return err
}

// concerns tells the file from its neighbours, the store among them, which are
// written all the time: of those only new names count, since a link may go through one.
func (w watcher) concerns(ev fsnotify.Event) bool {
	name := filepath.Base(ev.Name)
	real, _ := filepath.EvalSymlinks(w.File)
	return ev.Has(fsnotify.Create|fsnotify.Rename) || name == filepath.Base(w.File) || name == filepath.Base(real)
}

// reload reads the file if it is not the one seen, and returns the config to
// go on with and what was seen.
func (w watcher) reload(now *Config, seen [sha256.Size]byte, apply func(*Config) error) (*Config, [sha256.Size]byte) {
	src, err := os.ReadFile(w.File)
	sum := sha256.Sum256(src)
	if sum == seen {
		return now, seen
	}
	if err != nil {
		w.Log.Warn("config cannot be read: the running one stays", "err", err)
		return now, sum
	}
	next, err := w.Parse(src)
	if err != nil {
		w.Log.Error("config has faults: the running one stays", "file", w.File)
		for fault := range strings.Lines(err.Error()) {
			w.Log.Error(strings.TrimSpace(fault))
		}
		return now, sum
	}
	next, changed, restart := renew(now, next)
	if len(changed) > 0 || now.fellBack != nil {
		if err := apply(next); err != nil {
			w.Log.Error("config cannot be applied: the running one stays", "err", err)
			return now, sum
		}
		now = next
	}
	switch {
	case len(changed) > 0:
		w.Log.Info("config reloaded", "changed", strings.Join(changed, ", "))
	case len(restart) == 0:
		w.Log.Info("config reloaded: nothing has changed")
	}
	for _, key := range restart {
		w.Log.Warn("restart needed: " + key)
	}
	return now, sum
}

// renew returns next with what cannot change at run time as it is in old, the
// keys that have changed, and the keys that wait for a restart.
func renew(old, next *Config) (now *Config, changed, restart []string) {
	c := *next
	compare(&restart, "dataDir", &old.DataDir, &c.DataDir, true)
	compare(&restart, "workspace", &old.Workspace, &c.Workspace, true)
	compare(&restart, "store", &old.Store, &c.Store, true)
	compare(&restart, "timezone", &old.Timezone, &c.Timezone, true)
	compare(&restart, "agent.maxConcurrentTurns", &old.Agent.MaxConcurrentTurns, &c.Agent.MaxConcurrentTurns, true)
	compare(&changed, "owners", &old.Owners, &c.Owners, false)
	compare(&changed, "models", &old.Models, &c.Models, false)
	compare(&changed, "agent", &old.Agent, &c.Agent, false)
	compare(&changed, "tools", &old.Tools, &c.Tools, false)
	compare(&changed, "log", &old.Log, &c.Log, false)
	person := *next.Limits["person"]
	c.Limits = maps.Clone(next.Limits)
	c.Limits["person"] = &person
	compare(&restart, "limits.person.jobs", &old.Limits["person"].Jobs, &person.Jobs, true)
	compare(&changed, "limits", &old.Limits, &c.Limits, false)
	compare(&restart, "cron", &old.Cron, &c.Cron, true)
	compare(&restart, "heartbeat", &old.Heartbeat, &c.Heartbeat, true)
	compare(&restart, "dream", &old.Dream, &c.Dream, true)
	compare(&restart, "channels.console", &old.Channels.Console, &c.Channels.Console, true)

	compare(&restart, "channels.web", &old.Channels.Web, &c.Channels.Web, true)
	compare(&restart, "http", &old.HTTP, &c.HTTP, true)
	compare(&restart, "transcription", &old.Transcription, &c.Transcription, true)
	c.Channels.Telegram = renewBots(old.Channels.Telegram, next.Channels.Telegram, &changed, &restart)
	c.Channels.Discord = renewBots(old.Channels.Discord, next.Channels.Discord, &changed, &restart)
	return &c, changed, restart
}

// renewBots is renew for the channels of one type: of these, who is allowed may
// change at run time.
func renewBots[Bot any](old, next map[string]*Bot, changed, restart *[]string) map[string]*Bot {
	bots := maps.Clone(next)
	for _, name := range slices.Sorted(maps.Keys(union(old, next))) {
		was, is := old[name], next[name]
		switch {
		case was == nil:
			delete(bots, name)
			*restart = append(*restart, join("channels", name)+" (added)")
		case is == nil:
			bots[name] = was
			*restart = append(*restart, join("channels", name)+" (removed)")
		default:
			bot := *is
			bots[name] = &bot
			from, to := reflect.ValueOf(was).Elem(), reflect.ValueOf(&bot).Elem()
			for f := range from.Type().Fields() {
				a, b, key := from.FieldByIndex(f.Index), to.FieldByIndex(f.Index), f.Tag.Get("json")
				if reflect.DeepEqual(a.Interface(), b.Interface()) {
					continue
				}
				if key = join("channels", name) + "." + key; f.Name == "Allow" {
					*changed = append(*changed, key)
					continue
				}
				*restart = append(*restart, key)
				b.Set(a)
			}
		}
	}
	return bots
}

func union[K comparable, V any](a, b map[K]V) map[K]V {
	all := maps.Clone(a)
	if all == nil {
		all = map[K]V{}
	}
	maps.Copy(all, b)
	return all
}

// compare adds key to keys if was and is differ, and puts back what was if it is to be kept.
func compare[T any](keys *[]string, key string, was, is *T, keep bool) {
	if reflect.DeepEqual(*was, *is) {
		return
	}
	*keys = append(*keys, key)
	if keep {
		*is = *was
	}
}
