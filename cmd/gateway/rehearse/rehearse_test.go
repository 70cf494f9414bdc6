package rehearse_test

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/agent"
	"parley/agent/budget"
	"parley/chat"
	"parley/cmd/gateway/rehearse"
	"parley/llm"
	"parley/llm/llmtest"
	"parley/scheduler"
	"parley/scheduler/rehearsal"
	"parley/store"
	"parley/store/bolt/dirlock"
	"parley/store/mem"
	"parley/store/storetest"
	"parley/texts"
	"parley/timetest"
	"parley/tools"
	"parley/tools/files"
	"parley/tools/message"
	"parley/tools/sandbox"
	"parley/tools/shell"
	"parley/workspace"
)

// instructions are all that the agent is told.
type instructions struct{}

func (instructions) System(context.Context, chat.SessionID, chat.Person, llm.Room) (string, error) {
	return "Be brief.", nil
}

func (instructions) SubagentSystem(context.Context, chat.Person, string, llm.Room) (string, error) {
	return "", nil
}

// A recorder is a sandbox that notes what it is to run.
type recorder struct{ specs []sandbox.Spec }

func (r *recorder) Run(_ context.Context, s sandbox.Spec) (sandbox.Outcome, error) {
	r.specs = append(r.specs, s)
	return sandbox.Outcome{}, nil
}

// A gateway has what is rehearsed, and notes what acts on the world.
type gateway struct {
	t         *testing.T
	store     store.Store
	workspace *workspace.Workspace
	scheduler *scheduler.Scheduler
	model     *llmtest.Script
	sandbox   recorder
	confined  bool
	acted     []string
	book      *budget.Book
	limits    budget.Limits
	role      func(string) (chat.Role, error) // of whoever made a job, by their id
	answers   llm.Model                       // nil: model
}

func newGateway(t *testing.T) *gateway {
	g := &gateway{t: t, store: mem.New(), model: &llmtest.Script{}, confined: true}
	dir := t.TempDir()
	for name, text := range map[string]string{"notes.md": "one\n", "work/data.csv": "1,2\n", "old.txt": "old\n"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	var err error
	if g.workspace, err = workspace.Open(dir); err != nil {
		t.Fatal(err)
	}
	g.scheduler = scheduler.New(scheduler.Config{Store: g.store, Zone: time.UTC})
	g.book = budget.New(budget.Config{
		Bucket: g.store.Bucket(store.BucketLedger), Texts: &texts.English().Agent.Limits, Log: slog.New(slog.DiscardHandler),
		Zone: time.UTC, Limits: func() budget.Limits { return g.limits },
		Price: func(_ string, u llm.Usage) (float64, bool) { return float64(u.In + u.Out), true },
		Retry: func(ctx context.Context, _ string, do func(context.Context) error) error { return do(ctx) },
	})
	g.role = func(string) (chat.Role, error) { return chat.Owner, nil }
	return g
}

func (g *gateway) add(j scheduler.Job) {
	g.t.Helper()
	j.At = chat.Address{Channel: "telegram", Chat: "42"}
	if j.By.ID == "" {
		j.By = chat.Sender{ID: "7", Role: chat.User}
	}
	if _, err := g.scheduler.Add(g.t.Context(), j); err != nil {
		g.t.Fatal(err)
	}
}

// act returns a tool that acts on the world.
func (g *gateway) act(name, category string, hints tools.Hints) tools.Tool {
	t := tools.New(name, name, func(_ context.Context, _ tools.Call, _ struct{}) (tools.Result, error) {
		g.acted = append(g.acted, name)
		return tools.Result{Text: "did it"}, nil
	})
	t.Hints = hints
	t.Category = category
	return t
}

func (g *gateway) rehearser() rehearse.Rehearser {
	real := shell.New(shell.Config{
		Store: g.store, Files: func() *workspace.Workspace { return g.workspace }, Runner: &recorder{},
		Deliver: func(context.Context, chat.Message) error { return nil },
	})
	say := message.New(func(context.Context, chat.Reply) error {
		g.acted = append(g.acted, "message")
		return nil
	})
	all := slices.Concat(files.New(files.Rules{}), real.Tools(shell.Settings{Network: []string{"*"}}), []tools.Tool{
		say, g.act("post_web", "crawler", tools.Hints{}), g.act("look_up", "crawler", tools.Hints{ReadOnly: true}),
		g.act("nuke", "files", tools.Hints{Dangerous: true}),
	})
	ours := slices.Clone(all)
	all = append(all,
		g.act("own", "custom", tools.Hints{ReadOnly: true}), g.act("shout", "mcp", tools.Hints{}),
		// What they say of themselves is theirs.
		g.act("read_page", "mcp_web", tools.Hints{ReadOnly: true}), g.act("tidy", "files", tools.Hints{}),
	)
	return rehearse.Rehearser{
		BuiltIn:   func() []tools.Tool { return ours },
		Scheduler: g.scheduler, Workspace: g.workspace, Memory: instructions{}, Zone: time.UTC, Sandbox: &g.sandbox,
		Role:   func(_ context.Context, _ chat.Address, who chat.Sender) (chat.Role, error) { return g.role(who.ID) },
		Budget: g.book, Log: slog.New(slog.DiscardHandler),
		Channels: func() []string { return []string{"telegram"} }, Limits: func() budget.Limits { return budget.Limits{} },
		Part:     func(w *workspace.Workspace, _ chat.Person) *workspace.Workspace { return w },
		Confined: func() bool { return g.confined },
		Settings: func() agent.Settings {
			asked := g.answers
			if asked == nil {
				asked = g.model
			}
			return agent.Settings{
				Models: map[string]agent.Model{"main": {Model: asked, Window: 100_000}}, Model: "main", Rounds: 20,
				Price: func(string, llm.Usage) (float64, bool) { return 0, false },
				Kit: func(ctx context.Context, s tools.Scope) (*tools.Kit, error) {
					return tools.NewKit(ctx, s, []tools.Source{tools.Fixed(all)})
				},
			}
		},
	}
}

// snapshot returns all that there is: each file of the workspace, and each job.
func (g *gateway) snapshot() string {
	g.t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(g.workspace.Dir(), func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			b.WriteString(name + "\n")
			return err
		}
		data, err := os.ReadFile(name)
		b.WriteString(name + ": " + string(data) + "\n")
		return err
	})
	if err != nil {
		g.t.Fatal(err)
	}
	for _, name := range []string{store.BucketJobs, store.BucketShells, store.BucketBackground} {
		bucket := g.store.Bucket(name)
		for key, err := range bucket.Keys(g.t.Context(), "") {
			if err != nil {
				g.t.Fatal(err)
			}
			value, _, err := bucket.Get(g.t.Context(), key)
			if err != nil {
				g.t.Fatal(err)
			}
			b.WriteString(name + "/" + key + "=" + string(value) + "\n")
		}
	}
	return b.String()
}

func answerOf(t *testing.T, r rehearsal.Report, id string) rehearsal.Answer {
	t.Helper()
	for _, j := range r.Jobs {
		if j.ID == id && j.Answer != nil {
			return *j.Answer
		}
	}
	t.Fatalf("%s was not asked", id)
	return rehearsal.Answer{}
}

// A rehearsal leaves the store, the workspace and the world as they were, byte for byte, and
// says what would have been done.
func TestNothingIsDone(t *testing.T) {
	g := newGateway(t)
	g.add(scheduler.Job{ID: "j", Text: "Do it all.", Schedule: scheduler.Schedule{Every: time.Hour}})
	g.add(scheduler.Job{ID: "later", Text: "Not in this week.", Schedule: scheduler.Schedule{At: time.Now().AddDate(0, 1, 0)}})
	for i, call := range [][2]string{
		{"write_file", `{"path":"new.txt","content":"x"}`}, {"write_file", `{"path":"notes.md","content":"two"}`},
		{"message", `{"text":"psst","channel":"telegram","chat":"43"}`}, {"post_web", `{}`}, {"look_up", `{}`}, {"own", `{}`},
		{"shout", `{}`}, {"read_page", `{}`}, {"tidy", `{}`}, {"nuke", `{}`}, {"exec", `{"command":"touch y"}`},
	} {
		g.model.Add(llmtest.Call(string(rune('a'+i)), call[0], call[1]))
	}
	g.model.Add(llmtest.Text("All done."))
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	before := g.snapshot()
	r, err := g.rehearser().Ask(t.Context(), 7)
	if err != nil {
		t.Fatal(err)
	}
	if after := g.snapshot(); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	if !slices.Equal(g.acted, []string{"look_up"}) {
		t.Errorf("these acted: %q", g.acted)
	}
	a := answerOf(t, r, "j")
	sends := []rehearsal.Send{{To: "telegram:43", Text: "psst"}, {To: "telegram:42", Text: "All done."}}
	if a.Outcome != "answered" || !slices.Equal(a.Sends, sends) {
		t.Errorf("%+v", a)
	}
	if want := []string{"post_web {}", "own {}", "shout {}", "read_page {}", "tidy {}", "asks first: nuke {}"}; !slices.Equal(a.NotDone, want) {
		t.Errorf("not done: %q", a.NotDone)
	}
	if !slices.Contains(a.Files, "new.txt (new)") || !slices.Contains(a.Files, "notes.md") {
		t.Errorf("files: %q", a.Files)
	}
	if len(g.sandbox.specs) == 0 {
		t.Fatal("no program ran in the sandbox")
	}
	for _, s := range g.sandbox.specs {
		if s.Network.All || len(s.Network.Hosts) > 0 || strings.HasPrefix(s.Dir, g.workspace.Dir()) {
			t.Errorf("a program ran in %s, with the network %+v", s.Dir, s.Network)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("these are left over: %v, %v", left, err)
	}
}

// Without a sandbox no program runs.
func TestNoSandboxNoPrograms(t *testing.T) {
	g := newGateway(t)
	g.confined = false
	g.add(scheduler.Job{ID: "j", Text: "Run it.", Schedule: scheduler.Schedule{Every: time.Hour}})
	g.model.Add(llmtest.Call("a", "exec", `{"command":"touch y"}`), llmtest.Text("Well."))
	r, err := g.rehearser().Ask(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if a := answerOf(t, r, "j"); len(g.sandbox.specs) > 0 || len(a.NotDone) != 1 || !strings.HasPrefix(a.NotDone[0], "exec ") {
		t.Errorf("%d programs ran; %+v", len(g.sandbox.specs), a)
	}
}

// What models take counts for the job, for whoever made it and for everybody, as if it had run; and a job whose limit
// is reached is not asked, while the others are.
func TestCounts(t *testing.T) {
	g := newGateway(t)
	daily := scheduler.Schedule{Every: 24 * time.Hour}
	g.add(scheduler.Job{ID: "a", Text: "First.", Schedule: daily})
	g.add(scheduler.Job{ID: "b", Text: "Second.", Schedule: daily, By: chat.Sender{ID: "8", Role: chat.User}})
	g.role = func(string) (chat.Role, error) { return chat.User, nil }
	answer := llmtest.Text("Well.")
	answer.Usage = llm.Usage{In: 60, Out: 40}
	g.model.Add(answer, answer)
	g.limits.Job.Tokens = 100
	if _, err := g.rehearser().Ask(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	spent, err := g.book.Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	taken := map[string]int{}
	for _, s := range spent {
		taken[s.Who] += s.Usage.In + s.Usage.Out
	}
	if taken["telegram:7"] != 100 || taken["telegram:8"] != 100 {
		t.Errorf("the usage is %v", spent)
	}
	r, err := g.rehearser().Ask(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		if a := answerOf(t, r, id); a.Outcome != "refused" || !strings.Contains(a.Text, "100 of 100") {
			t.Errorf("beyond its tokens, %s is %+v", id, a)
		}
	}
	g.limits = budget.Limits{Person: budget.Limit{Turns: 1}} // what was refused counts for none
	g.add(scheduler.Job{ID: "c", Text: "Third.", Schedule: daily, By: chat.Sender{ID: "9", Role: chat.User}})
	g.model.Add(answer)
	r, err = g.rehearser().Ask(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		if a := answerOf(t, r, id); a.Outcome != "refused" || !strings.Contains(a.Text, "1 of 1") {
			t.Errorf("beyond its limit, %s is %+v", id, a)
		}
	}
	if a := answerOf(t, r, "c"); a.Outcome != "answered" || g.model.Left() != 0 {
		t.Errorf("within its limit it is %+v", a)
	}
	g.limits = budget.Limits{Job: budget.Limit{Requests: 2}}
	g.model.Add(llmtest.Call("x", "look_up", `{}`), answer, answer)
	r, err = g.rehearser().Ask(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if a := answerOf(t, r, "a"); len(g.acted) != 1 || a.Outcome != "refused" || !strings.Contains(a.Text, "2 of 2") || len(a.Sends) > 0 {
		t.Errorf("at a limit on the way it is %+v", a)
	}
}

// A job that only calls a tool needs no model, and so no tokens.
func TestToolsNeedNoTokens(t *testing.T) {
	g := newGateway(t)
	daily := scheduler.Schedule{Every: 24 * time.Hour}
	g.add(scheduler.Job{ID: "a", Text: "First.", Schedule: daily})
	g.add(scheduler.Job{ID: "b", Tool: "look_up", Schedule: daily})
	answer := llmtest.Text("Well.")
	answer.Usage = llm.Usage{In: 60, Out: 40}
	g.model.Add(answer)
	g.role = func(string) (chat.Role, error) { return chat.User, nil }
	if _, err := g.rehearser().Ask(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	g.limits.Person.Tokens = 100
	r, err := g.rehearser().Ask(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if a := answerOf(t, r, "a"); a.Outcome != "refused" {
		t.Errorf("beyond its tokens a job is %+v", a)
	}
	if b := answerOf(t, r, "b"); b.Outcome != "answered" || len(g.acted) != 2 {
		t.Errorf("one without a model is %+v, %q", b, g.acted)
	}
}

func sent(a rehearsal.Answer) (all string) {
	for _, s := range a.Sends {
		all += s.Text
	}
	return all
}

// A job that fails is shown as failed, whyever it does, and the others are asked.
func TestOneFails(t *testing.T) {
	timetest.Test(t, testOneFails)
}

func testOneFails(t *testing.T) {
	g := newGateway(t)
	hourly := scheduler.Schedule{Every: time.Hour}
	for i, id := range []string{"a", "b", "c", "d"} {
		hourly.Every += time.Minute // in this order
		g.add(scheduler.Job{ID: id, Text: "Do " + id, Schedule: hourly, By: chat.Sender{ID: string(rune('1' + i)), Role: chat.User}})
	}
	g.role = func(who string) (chat.Role, error) {
		if who == "1" {
			return "", errors.New("people cannot be read")
		}
		return chat.User, nil
	}
	g.answers = llm.ModelFunc(func(ctx context.Context, req llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		switch text := req.Messages[len(req.Messages)-1].Text; {
		case strings.Contains(text, "Do b"):
			<-ctx.Done()
			return llm.Message{}, ctx.Err()
		case strings.Contains(text, "Do c"):
			return llm.Message{}, &llm.Error{Kind: llm.Auth, Err: errors.New("no such key")}
		}
		return llm.Message{Role: llm.Assistant, Text: "Done."}, nil
	})
	r, err := g.rehearser().Ask(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]string{"a": "people cannot be read", "b": "no answer within 10m0s", "c": ""} {
		if a := answerOf(t, r, id); a.Outcome != "failed" || !strings.Contains(a.Text, want) {
			t.Errorf("%s is %+v", id, a)
		}
	}
	if a := answerOf(t, r, "d"); a.Outcome != "answered" || sent(a) != "Done." {
		t.Errorf("the last is %+v", a)
	}
}

// What a rehearsal leaves that is killed, the next one removes, and not the copy of one that is under way.
func TestKilledRehearsal(t *testing.T) {
	const in = "PARLEY_REHEARSAL_IN"
	killed := os.Getenv(in) != ""
	temp := os.Getenv(in)
	if !killed {
		temp = storetest.TempDir(t)
	}
	t.Setenv("TMPDIR", temp)
	g := newGateway(t)
	g.add(scheduler.Job{ID: "j", Text: "Do it.", Schedule: scheduler.Schedule{Every: time.Hour}})
	g.answers = llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
		if killed {
			return llm.Message{}, syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return llm.Message{Role: llm.Assistant, Text: "Done."}, nil
	})
	if killed {
		_, err := g.rehearser().Ask(t.Context(), 1)
		t.Fatal("it goes on", err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledRehearsal$")
	cmd.Env = append(os.Environ(), in+"="+temp)
	out, err := cmd.CombinedOutput()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("%v: %s", err, out)
	}
	copies := func() []string {
		t.Helper()
		all, err := filepath.Glob(filepath.Join(temp, "parley-rehearsal-*"))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	if all := copies(); len(all) != 1 {
		t.Fatalf("the one that was killed has left %q", all)
	}
	underWay := filepath.Join(temp, "parley-rehearsal-other")
	if err := os.Mkdir(underWay, 0o700); err != nil {
		t.Fatal(err)
	}
	unlock, err := dirlock.Lock(underWay, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.rehearser().Ask(t.Context(), 1); err != nil {
		t.Error(err)
	}
	if all := copies(); !slices.Equal(all, []string{underWay}) {
		t.Errorf("there are %q", all)
	}
	if err := errors.Join(unlock(), os.Mkdir(filepath.Join(temp, "parley-rehearsal-new"), 0o700)); err != nil {
		t.Fatal(err)
	}
	rehearse.Sweep(slog.New(slog.DiscardHandler)) // as a start does: one has no lock yet
	if all := copies(); !slices.Equal(all, []string{filepath.Join(temp, "parley-rehearsal-new")}) {
		t.Errorf("after a start there are %q", all)
	}
}
