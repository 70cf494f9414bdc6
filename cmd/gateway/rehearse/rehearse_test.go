package rehearse_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	"parley/store/mem"
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
	return g
}

func (g *gateway) add(j scheduler.Job) {
	g.t.Helper()
	j.At, j.By = chat.Address{Channel: "telegram", Chat: "42"}, chat.Sender{ID: "7", Role: chat.User}
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
		Role:     func(context.Context, chat.Address, chat.Sender) (chat.Role, error) { return chat.Owner, nil },
		Channels: func() []string { return []string{"telegram"} }, Limits: func() budget.Limits { return budget.Limits{} },
		Part:     func(w *workspace.Workspace, _ chat.Person) *workspace.Workspace { return w },
		Confined: func() bool { return g.confined },
		Settings: func() agent.Settings {
			return agent.Settings{
				Models: map[string]agent.Model{"main": {Model: g.model, Window: 100_000}}, Model: "main", Rounds: 20,
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
