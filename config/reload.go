package config

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"parley/host"
)

// A Watcher reads config.json again when it changes, or when told to by Hup.
// A file with faults changes nothing: the faults are logged and the running
// config stays (P22).
type Watcher struct {
	File   string
	Parse  func(src []byte) (*Config, error)
	Hup    <-chan os.Signal
	Settle time.Duration // how long the file must have been left alone
	Log    *slog.Logger
}

// Run watches until ctx ends. It calls apply, one call at a time, with each
// new config; what cannot change at run time is in it as it was. An error of
// apply means that nothing has changed.
func (w Watcher) Run(ctx context.Context, now *Config, apply func(*Config) error) {
	var events chan fsnotify.Event
	var errs chan error
	fw, real, err := w.watch()
	if err != nil {
		w.Log.Warn("config file is not watched: send SIGHUP after a change", "file", w.File, "err", err)
	}
	if fw != nil {
		defer fw.Close()
		events = fw.Events
		errs = fw.Errors
	}
	seen := now.sum
	settled := time.NewTimer(0) // at once: the file may have changed since it was loaded
	defer settled.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case ev := <-events:
			if w.concerns(ev, real) {
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
				real, _ = w.follow(fw) // a link may lead elsewhere now; Run told of what fails at first
			}
			now, seen = w.reload(now, seen, apply)
		}
	}
}

// watch returns a watcher that follows the file, and where a link leads. With an
// error the watcher may be nil.
func (w Watcher) watch() (fw *fsnotify.Watcher, real string, err error) {
	fw, err = fsnotify.NewWatcher()
	if err != nil {
		return nil, "", err
	}
	real, err = w.follow(fw)
	return fw, real, err
}

// follow watches the folder of the file and the one that a link leads to, and
// returns where that is: editors and Kubernetes put a new file in place of the old.
func (w Watcher) follow(fw *fsnotify.Watcher) (real string, err error) {
	err = fw.Add(filepath.Dir(w.File))
	real, missing := filepath.EvalSymlinks(w.File)
	if missing != nil { // there may be no file yet
		return real, err
	}
	return real, errors.Join(err, fw.Add(filepath.Dir(real)))
}

// concerns tells the file from its neighbours, the store among them, which are
// written all the time: of those only new names count, since a link may go through one.
func (w Watcher) concerns(ev fsnotify.Event, real string) bool {
	name := filepath.Base(ev.Name)
	return ev.Has(fsnotify.Create|fsnotify.Rename) || name == filepath.Base(w.File) || name == filepath.Base(real)
}

// reload reads the file if it is not the one seen, and returns the config to
// go on with and what was seen.
func (w Watcher) reload(now *Config, seen [sha256.Size]byte, apply func(*Config) error) (*Config, [sha256.Size]byte) {
	src, err := os.ReadFile(w.File)
	sum := sha256.Sum256(src)
	if sum == seen {
		return now, seen
	}
	if errors.Is(err, fs.ErrNotExist) && !now.Found { // a terminal that closes sends SIGHUP, too
		w.Log.Debug("no config file: nothing to reload", "file", w.File)
		return now, sum
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
	changed, restart := Renew(now, next)
	if len(changed) > 0 || now.FellBack != nil {
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

// Renew makes next what it can be at run time: what cannot change is as it is
// in old. It returns the keys that have changed, and those that wait for a restart.
func Renew(old, next *Config) (changed, restart []string) {
	var r renewal
	r.value(reflect.ValueOf(old).Elem(), reflect.ValueOf(next).Elem(), "", false)
	next.Store = old.Store // with its driver
	slices.Sort(r.changed)
	slices.Sort(r.restart)
	return r.changed, r.restart
}

// A renewal is what differs between two configs.
type renewal struct{ changed, restart []string }

// value compares two values of the key path.
func (r *renewal) value(old, next reflect.Value, path string, live bool) {
	if was, ok := old.Interface().(map[string]*Channel); ok {
		r.channels(was, next.Interface().(map[string]*Channel), path)
		return
	}
	switch {
	case old.Kind() == reflect.Struct:
		to := map[string]reflect.Value{}
		for _, f := range fields(next) {
			to[f.name] = f.value
		}
		for _, f := range fields(old) {
			if is, ok := to[f.name]; ok {
				r.value(f.value, is, join(path, f.name), live || f.tag.Get("live") != "")
			}
		}
	case reflect.DeepEqual(old.Interface(), next.Interface()):
	case live:
		r.changed = append(r.changed, path)
	default:
		r.restart = append(r.restart, path)
		next.Set(old)
	}
}

// channels compares the entries of channels.
func (r *renewal) channels(old, next map[string]*Channel, path string) {
	note := func(name string, c *Channel, what string) {
		key := join(path, name)
		if c.Senders != nil {
			key += " (" + what + ")"
		}
		r.restart = append(r.restart, key)
	}
	for name, was := range old {
		if next[name] == nil {
			next[name] = was
			note(name, was, "removed")
		}
	}
	for name, is := range next {
		if was := old[name]; was != nil {
			r.value(reflect.ValueOf(was).Elem(), reflect.ValueOf(is).Elem(), join(path, name), false)
			continue
		}
		delete(next, name)
		note(name, is, "added")
	}
}

// LastGood is where a service keeps the last config that worked, beside the config.
func LastGood(file string) string { return file + ".last-good" }

// KeepGood keeps c, which works, for FallBack.
func (c *Config) KeepGood() error {
	if !c.Found || c.FellBack != nil {
		return nil
	}
	return host.WriteFile(LastGood(c.File), c.src)
}

// FallBack returns the last config that worked, for a service whose config has
// the fault reason: it must not stop, or start again and again, because of it.
// It returns nil when there is none, or it does not work any more either.
func FallBack(s Source, reason error) *Config {
	src, err := os.ReadFile(LastGood(s.File))
	if err != nil {
		return nil
	}
	c, err := Parse(s, src)
	if err != nil {
		return nil
	}
	c.FellBack = reason
	c.sum = [len(c.sum)]byte{} // the file itself is read as soon as it is watched
	return c
}
