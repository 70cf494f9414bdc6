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
	"parley/agent/budget"
	"parley/chat"
	"parley/llm"
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
// on a copy of the workspace and a store of its own, and keeps back what would be sent. What the models take
// counts as if the job had run; a job that is beyond its limits, or fails, says so, and the others go on.
func (r Rehearser) Ask(ctx context.Context, days int) (report rehearsal.Report, err error) {
	report, err = r.Forecast(ctx, days)
	if err != nil {
		return report, err
	}
	c, err := copyOf(r.Workspace.Dir(), r.Log)
	if err != nil {
		return report, err
	}
	defer func() { err = errors.Join(err, c.remove()) }()
	files, err := workspace.Open(c.files())
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
	running.Go(func() { programs.Run(ctx) })
	report.Asked = true
	for i, told := range report.Jobs {
		if told.System || told.Runs == 0 {
			continue
		}
		a, err := s.ask(ctx, told)
		if err != nil && ctx.Err() == nil {
			r.Log.Warn("job could not be rehearsed", "job", told.ID, "err", err)
			a.Outcome = string(scheduler.Failed)
			a.Text = strings.TrimSpace(a.Text + "\n" + err.Error())
		}
		report.Jobs[i].Answer = &a
		if ctx.Err() != nil {
			break
		}
	}
	return report, ctx.Err()
}

// pool returns what answers one job at the expense of who, with a store and a book of its own.
func (s stage) pool(who budget.Spender, ended chan<- agent.End) *agent.Pool {
	real := s.Settings()
	models := map[string]agent.Model{}
	for name, m := range real.Models {
		m.Model = s.metered(who, name, m.Model)
		models[name] = m
	}
	return agent.New(agent.Config{
		Store: mem.New(), Memory: s.Memory, Workspace: s.files, Log: s.Log, Zone: s.Zone,
		Brief: true, Grace: turnGrace,
		Sees: func(who chat.Person) *workspace.Workspace { return s.Part(s.files, who) },
		Send: func(_ context.Context, r chat.Reply) error {
			s.kept.reply(r)
			return nil
		},
		Ended: func(_ context.Context, e agent.End) error {
			select {
			case ended <- e:
			default: // it has ended before
			}
			return nil
		},
	}, agent.Settings{
		Models: models, Model: real.Model, ModelsOff: real.ModelsOff, Rounds: real.Rounds, Price: real.Price,
		Kit: s.kit,
	})
}

// metered returns model, at the expense of who. That their limit is reached is kept.
func (s stage) metered(who budget.Spender, name string, model llm.Model) llm.Model {
	model = s.Budget.Meter(who, name, model)
	return llm.ModelFunc(func(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Message, error) {
		answer, err := model.Generate(ctx, req, stream)
		if over, is := errors.AsType[*budget.LimitError](err); is {
			s.kept.limit(over.Text)
		}
		return answer, err
	})
}

// ask asks one job of its model, in a conversation of its own. With an error, the answer is what there is of it.
func (s stage) ask(ctx context.Context, told rehearsal.Job) (a rehearsal.Answer, err error) {
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
	m := s.Scheduler.Message(j, scheduler.Run{N: j.N + 1, Due: told.Times[0], Began: told.Times[0]})
	m.In = chat.SessionID("rehearsal:" + j.ID)
	who := budget.Spender{Person: chat.Whose(m.At, m.From, m.Group), Group: m.Group, Job: j.ID}
	err = s.begin(ctx, who, j)
	if over, is := errors.AsType[*budget.LimitError](err); is {
		a.Outcome = string(scheduler.Refused)
		a.Text = over.Text
		return a, nil
	}
	if err != nil {
		return a, err
	}
	before, err := contents(s.files.Dir())
	if err != nil {
		return a, err
	}
	began := time.Now()
	e, err := s.answer(ctx, m, who)
	a.Outcome, a.Text = e.Outcome, e.Text
	a.Tokens, a.Cost = e.Tokens, e.Cost
	a.Seconds = int(time.Since(began).Round(time.Second) / time.Second)
	s.kept.take(&a)
	after, err2 := contents(s.files.Dir())
	if err2 != nil {
		return a, errors.Join(err, err2)
	}
	a.Files = append(a.Files, changed(before, after)...)
	return a, err
}

// begin counts a turn of j for who, unless a limit is reached.
func (s stage) begin(ctx context.Context, who budget.Spender, j scheduler.Job) error {
	if j.Tool == "" { // else no model is asked
		if err := s.Budget.Allow(ctx, who); err != nil {
			return err
		}
	}
	return s.Budget.Spend(ctx, who, "", budget.Amounts{budget.Turns: 1})
}

// answer has m answered at the expense of who. When it returns, nothing of that is under way any more.
func (s stage) answer(ctx context.Context, m chat.Message, who budget.Spender) (e agent.End, err error) {
	ctx, cancel := context.WithTimeout(ctx, maxTurn)
	ended := make(chan agent.End, 1)
	pool := s.pool(who, ended)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { _ = pool.Run(ctx) }) // its store is in memory
	if err := pool.Deliver(ctx, m); err != nil {
		return e, err
	}
	select {
	case e := <-ended:
		return e, nil
	case <-ctx.Done():
		return e, fmt.Errorf("there was no answer within %v", maxTurn)
	}
}

// A keeper holds what a rehearsal kept back.
type keeper struct {
	mu      sync.Mutex
	sends   []rehearsal.Send
	notDone []string
	limited string // by which limit the job was broken off
}

func (k *keeper) limit(text string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.limited = text
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
	if k.limited != "" { // the turn only knows that its model has failed
		a.Sends = slices.DeleteFunc(a.Sends, func(s rehearsal.Send) bool { return s.Text == a.Text })
		a.Outcome = string(scheduler.Refused)
		a.Text = k.limited
	}
	k.sends, k.notDone = nil, nil
	k.limited = ""
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
