package rehearse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/agent"
	"parley/chat"
	"parley/scheduler"
	"parley/scheduler/rehearsal"
	"parley/store/mem"
	"parley/tools"
	"parley/tools/shell"
	"parley/workspace"
)

const (
	maxCopy   = 1 << 30 // bytes of a workspace that is copied
	maxTurn   = 10 * time.Minute
	turnGrace = 5 * time.Second
)

// Ask has each job that would run in the coming days asked once of its model. It works
// on a copy of the workspace and a store of its own, and keeps back what would be sent.
func (r Rehearser) Ask(ctx context.Context, days int) (report rehearsal.Report, err error) {
	report, err = r.Forecast(ctx, days)
	if err != nil {
		return report, err
	}
	dir, err := os.MkdirTemp("", "parley-rehearsal-")
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := copyFiles(r.Workspace.Dir(), dir); err != nil {
		return report, fmt.Errorf("copy the workspace: %w", err)
	}
	files, err := workspace.Open(dir)
	if err != nil {
		return report, err
	}
	s := stage{Rehearser: r, files: files, kept: &keeper{}}
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	programs := shell.New(shell.Config{
		Store: mem.New(), Files: func() *workspace.Workspace { return files }, Runner: r.Sandbox, Log: r.Log,
		MaxStored: func() int64 { return maxCopy },
		Deliver:   func(context.Context, chat.Message) error { return nil },
	})
	s.programs = programs.Tools(shell.Settings{})
	ended := make(chan agent.End, 1)
	pool := s.pool(ended)
	running.Go(func() { programs.Run(ctx) })
	running.Go(func() { _ = pool.Run(ctx) }) // its store is in memory
	report.Asked = true
	for i, told := range report.Jobs {
		if told.System || told.Runs == 0 {
			continue
		}
		a, err := s.ask(ctx, pool, ended, told)
		if err != nil {
			return report, err
		}
		report.Jobs[i].Answer = &a
	}
	return report, ctx.Err()
}

// pool returns what answers, with a store and a book of its own.
func (s stage) pool(ended chan<- agent.End) *agent.Pool {
	real := s.Settings()
	return agent.New(agent.Config{
		Store: mem.New(), Memory: s.Memory, Workspace: s.files, Log: s.Log, Zone: s.Zone,
		Brief: true, Grace: turnGrace,
		Sees: func(who chat.Person) *workspace.Workspace { return s.Part(s.files, who) },
		Send: func(_ context.Context, r chat.Reply) error {
			s.kept.reply(r)
			return nil
		},
		Ended: func(ctx context.Context, e agent.End) error {
			select {
			case ended <- e:
			case <-ctx.Done():
			}
			return nil
		},
	}, agent.Settings{
		Models: real.Models, Model: real.Model, ModelsOff: real.ModelsOff, Rounds: real.Rounds, Price: real.Price,
		Kit: s.kit,
	})
}

// ask asks one job of its model, in a conversation of its own.
func (s stage) ask(
	ctx context.Context, pool *agent.Pool, ended <-chan agent.End, told rehearsal.Job,
) (a rehearsal.Answer, err error) {
	a = rehearsal.Answer{Sends: []rehearsal.Send{}, NotDone: []string{}, Files: []string{}}
	j, err := s.Scheduler.Job(ctx, told.ID)
	if err != nil {
		return a, err
	}
	role, err := s.Role(ctx, j.At, j.By)
	if err != nil {
		return a, err
	}
	if role == chat.Unknown {
		a.Outcome = string(scheduler.Refused)
		return a, nil
	}
	j.By.Role = role
	before, err := contents(s.files.Dir())
	if err != nil {
		return a, err
	}
	began := time.Now()
	m := s.Scheduler.Message(j, scheduler.Run{N: j.N + 1, Due: told.Times[0], Began: told.Times[0]})
	m.In = chat.SessionID("rehearsal:" + j.ID)
	ctx, cancel := context.WithTimeout(ctx, maxTurn)
	defer cancel()
	if err := pool.Deliver(ctx, m); err != nil {
		return a, err
	}
	var e agent.End
	select {
	case e = <-ended:
	case <-ctx.Done():
		return a, fmt.Errorf("ask %s: %w", j.Name, ctx.Err())
	}
	a.Outcome, a.Text = e.Outcome, e.Text
	a.Tokens, a.Cost = e.Tokens, e.Cost
	a.Seconds = int(time.Since(began).Round(time.Second) / time.Second)
	s.kept.take(&a)
	after, err := contents(s.files.Dir())
	if err != nil {
		return a, err
	}
	a.Files = append(a.Files, changed(before, after)...)
	return a, nil
}

// A keeper holds what a rehearsal kept back.
type keeper struct {
	mu      sync.Mutex
	sends   []rehearsal.Send
	notDone []string
}

func (k *keeper) note(text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.notDone = append(k.notDone, text)
}

// reply keeps an answer back.
func (k *keeper) reply(r chat.Reply) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.sends = append(k.sends, rehearsal.Send{To: string(r.To.Session()), Text: r.Text})
}

// send keeps back what the tool message says.
func (k *keeper) send(c tools.Call) {
	text := func(names ...string) string {
		for _, name := range names {
			if s, _ := c.Input[name].(string); s != "" {
				return s
			}
		}
		return ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	to := string(c.At.Session())
	if other := text("chat_id", "chat", "to"); other != "" {
		to = strings.TrimPrefix(text("channel")+":"+other, ":")
	}
	k.sends = append(k.sends, rehearsal.Send{To: to, Text: text("text", "content", "message")})
}

// take moves what was kept back into a.
func (k *keeper) take(a *rehearsal.Answer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	a.Sends = append(a.Sends, k.sends...)
	a.NotDone = append(a.NotDone, k.notDone...)
	k.sends, k.notDone = nil, nil
}

// copyFiles copies the files of a workspace. Links are left out: they may lead out of it.
func copyFiles(from, to string) error {
	root, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer root.Close()
	size := int64(0)
	return fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		target := filepath.Join(to, filepath.FromSlash(name))
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		copied, err := copyFile(root, name, target, maxCopy-size)
		size += copied
		return err
	})
}

// copyFile copies a file of at most that many bytes.
func copyFile(root *os.Root, name, target string, most int64) (size int64, err error) {
	in, err := root.Open(name)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	out, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	size, err = io.CopyN(out, in, most+1)
	if errors.Is(err, io.EOF) {
		return size, out.Close()
	}
	if size > most {
		err = fmt.Errorf("it has more than %d MB", maxCopy>>20)
	}
	return size, errors.Join(err, out.Close())
}

// A fileState tells whether a file was written.
type fileState struct {
	size    int64
	changed time.Time
}

// contents returns the files of a folder, but those of Parley itself.
func contents(dir string) (map[string]fileState, error) {
	all := map[string]fileState{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == ".parley":
			return filepath.SkipDir
		case !d.Type().IsRegular():
			return nil
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		all[filepath.ToSlash(relative)] = fileState{info.Size(), info.ModTime()}
		return nil
	})
	return all, err
}

// changed lists the files that are not as before.
func changed(before, after map[string]fileState) (names []string) {
	for name, was := range before {
		is, kept := after[name]
		switch {
		case !kept:
			names = append(names, name+" (deleted)")
		case was != is:
			names = append(names, name)
		}
	}
	for name := range maps.Keys(after) {
		if _, known := before[name]; !known {
			names = append(names, name+" (new)")
		}
	}
	slices.Sort(names)
	return names
}
