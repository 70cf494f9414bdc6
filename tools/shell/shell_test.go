package shell

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/store/mem"
	"parley/texts"
	"parley/timetest"
	"parley/tools"
	"parley/tools/files"
	"parley/tools/sandbox"
	"parley/tools/sandbox/none"
	"parley/tools/shell/changes"
	"parley/workspace"
)

// A bench is a kit with the tools, in a workspace of its own.
type bench struct {
	t        *testing.T
	kit      *tools.Kit
	rules    tools.Rules
	shell    *Shell
	store    store.Store
	w        *workspace.Workspace
	scope    tools.Scope
	calls    int
	grants   []string
	asked    []tools.Call // approvals that were asked for
	prompt   string       // the last of these
	onAsk    func()       // may be nil
	approve  bool
	specs    []sandbox.Spec
	mu       sync.Mutex
	messages []chat.Message
}

// newBench returns a bench on which an owner talks. A nil runner is that without a sandbox.
func newBench(t *testing.T, runner sandbox.Runner, set Settings) *bench {
	t.Helper()
	w, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	b := &bench{t: t, store: mem.New(), w: w, approve: true}
	if runner == nil {
		runner = none.Runner{}
	}
	b.shell = New(Config{Store: b.store, Runner: b.spy(runner), Deliver: b.deliver})
	at := chat.Address{Channel: "telegram", Chat: "42"}
	b.scope = tools.Scope{
		Session: at.Session(), At: at, From: chat.Sender{ID: "42", Role: chat.Owner}, Workspace: w, Turn: "turn",
		Granted: func(effect string) bool { return slices.Contains(b.grants, effect) },
	}
	b.useTools(set)
	return b
}

func (b *bench) useTools(set Settings) {
	b.t.Helper()
	sources := b.rules.Permit(tools.Fixed(slices.Concat(files.New(files.Rules{}), b.shell.Tools(set))))
	ask := func(_ context.Context, c tools.Call, prompt string) (bool, string, error) {
		b.asked = append(b.asked, c)
		b.prompt = prompt
		if b.onAsk != nil {
			b.onAsk()
		}
		return b.approve, "42", nil
	}
	var err error
	b.kit, err = tools.NewKit(b.t.Context(), b.scope, sources, tools.Standard(tools.StandardConfig{Approve: ask})...)
	if err != nil {
		b.t.Fatal(err)
	}
}

// A runnerFunc is a Runner.
type runnerFunc func(context.Context, sandbox.Spec) (sandbox.Outcome, error)

func (f runnerFunc) Run(ctx context.Context, s sandbox.Spec) (sandbox.Outcome, error) {
	return f(ctx, s)
}

// A confiner is a Runner that confines programs to hosts.
type confiner struct{ sandbox.Runner }

func (confiner) ConfinesHosts(context.Context) bool { return true }

// spy notes what is run.
func (b *bench) spy(r sandbox.Runner) sandbox.Runner {
	spied := runnerFunc(func(ctx context.Context, s sandbox.Spec) (sandbox.Outcome, error) {
		b.mu.Lock()
		b.specs = append(b.specs, s)
		b.mu.Unlock()
		return r.Run(ctx, s)
	})
	if sandbox.ConfinesHosts(b.t.Context(), r) {
		return confiner{spied}
	}
	return spied
}

func (b *bench) lastSpec() sandbox.Spec {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.specs[len(b.specs)-1]
}

func (b *bench) deliver(_ context.Context, m chat.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages = append(b.messages, m)
	return nil
}

func (b *bench) delivered() []chat.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.messages)
}

// call calls a tool.
func (b *bench) call(name string, args map[string]any) tools.Result {
	b.t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		b.t.Fatal(err)
	}
	b.calls++
	c := tools.Call{ToolCall: llm.ToolCall{ID: fmt.Sprint("c", b.calls), Name: name, Args: string(text)}, Scope: b.scope}
	return b.kit.Call(b.t.Context(), c)
}

// run runs a command, and returns its result.
func (b *bench) run(command string) tools.Result {
	b.t.Helper()
	return b.call("exec", map[string]any{"command": command})
}

// says runs a command and wants its result to be text and exit code 0.
func (b *bench) says(command, want string) {
	b.t.Helper()
	if want != "" {
		want += "\n"
	}
	if r := b.run(command); r.Failed || r.Text != want+"\nExit code: 0" {
		b.t.Errorf("%s: %q, want %q", command, r.Text, want)
	}
}

// D-116: the description of exec leads to the tools for files, and says how much output is shown.
func TestDescription(t *testing.T) {
	text := (&Shell{}).exec(Settings{}).Description
	for _, fact := range []string{
		"and return its output", "Prefer the tools for files to cat, echo, sed, find and grep", "-y, --yes",
		"10,000 characters", "longer than a minute",
	} {
		if !strings.Contains(text, fact) {
			t.Errorf("no %q", fact)
		}
	}
	for _, set := range []Settings{{}, {Timeout: 5 * time.Minute}} {
		tool := (&Shell{}).exec(set)
		want := fmt.Sprintf("A command has %d seconds", int(cmp.Or(set.Timeout, time.Minute).Seconds()))
		if all := tool.Description + string(tool.Schema); !strings.Contains(all, want) || strings.Contains(all, "default 60") {
			t.Errorf("tools.exec.timeout %v: no %q in %s", set.Timeout, want, all)
		}
	}
}

// D-072, D-075, D-076: what a command prints, its exit code, and the environment that it has.
func TestExec(t *testing.T) {
	t.Setenv("PARLEY_CANARY", "canary")
	b := newBench(t, nil, Settings{Env: map[string]string{"GREETING": "hello"}})
	work := filepath.Join(b.w.Dir(), "work")
	b.says("pwd; echo $HOME", work+"\n"+work)
	b.says("echo $GREETING; echo ${PARLEY_CANARY-none} $LANG $TERM", "hello\nnone C.UTF-8 dumb")
	if r := b.run("echo out; echo wrong >&2; exit 3"); r.Failed || r.Text != "out\nSTDERR:\nwrong\n\nExit code: 3" {
		t.Errorf("%q", r.Text)
	}
	if r := b.run("true"); r.Text != "\nExit code: 0" {
		t.Errorf("%q", r.Text)
	}
	if r := b.run("read x; echo got $x"); r.Text != "got\n\nExit code: 0" {
		t.Errorf("standard input: %q", r.Text)
	}
	for _, seconds := range []int{-1, 601} { // D-072
		if r := b.call("exec", map[string]any{"command": "true", "timeout": seconds}); r.Code != tools.CodeInvalid {
			t.Errorf("a timeout of %d: %q", seconds, r.Text)
		}
	}
	if r := b.run("env"); strings.Contains(r.Text, "canary") {
		t.Errorf("%q", r.Text)
	}
	if left, _ := filepath.Glob(work + "/.shell-*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// R-S16: git obeys no folder that a cloned repository holds, and that looks like one itself.
func TestGitObeysNoBareRepository(t *testing.T) {
	b := newBench(t, nil, Settings{})
	b.says("git init -q --bare cloned/bare && cd cloned/bare && git --git-dir=. config core.bare false && "+
		"git --git-dir=. config core.worktree . && git --git-dir=. config core.fsmonitor 'touch ran;' && cd", "")
	if r := b.run("cd cloned/bare && git status"); !strings.Contains(r.Text, "safe.bareRepository") {
		t.Errorf("%q", r.Text)
	}
	if _, err := os.Stat(filepath.Join(b.w.Dir(), "work", "cloned", "bare", "ran")); err == nil {
		t.Error("a program that its settings name was run")
	}
}

// The folder and the exported variables are those that the last command ended with, however it
// ended, also after a restart; they are forgotten with the conversation, and are the session's own.
func TestShellState(t *testing.T) {
	b := newBench(t, nil, Settings{})
	work := filepath.Join(b.w.Dir(), "work")
	b.says("mkdir -p a/b && cd a/b && export NAME='two words' PATH=/opt/x:$PATH; LOCAL=1", "")
	b.says("pwd; echo $NAME $LOCAL; echo ${PATH%%:*}", work+"/a/b\ntwo words\n/opt/x")
	b.says("true; cd ..; exit 0", "")
	b.says("pwd", work+"/a")
	if r := b.run("cd b; false"); !strings.HasSuffix(r.Text, "Exit code: 1") {
		t.Errorf("%q", r.Text)
	}
	b.says("pwd; unset NAME", work+"/a/b")
	b.says("echo ${NAME-unset}", "unset")
	if r := b.call("exec", map[string]any{"command": "pwd", "working_dir": "/" + strings.TrimPrefix(work, "/")}); !strings.HasPrefix(r.Text, work+"\n") {
		t.Errorf("%q", r.Text)
	}
	b.says("pwd", work+"/a/b") // working_dir was for one command

	// R-S17, P6: a new process knows it.
	again := New(Config{Store: b.store, Runner: none.Runner{}, Deliver: b.deliver})
	old := b.shell
	b.shell = again
	b.useTools(Settings{})
	b.says("export KEPT=1; pwd", work+"/a/b")
	b.shell = old

	other := b.scope
	b.scope.Session = "telegram:43"
	b.says("pwd; echo ${KEPT-unset}", work+"\nunset")
	b.scope = other
	if err := os.RemoveAll(filepath.Join(work, "a")); err != nil {
		t.Fatal(err)
	}
	b.says("pwd; echo $KEPT", work+"\n1") // its folder is gone
	b.shell.EndConversation(b.scope.Session)
	b.says("pwd; echo ${KEPT-unset}", work+"\nunset")
}

// What a command leaves of its variables is bounded, and it can leave no other file in their place.
func TestShellStateIsBounded(t *testing.T) {
	b := newBench(t, nil, Settings{})
	b.says("export SMALL=1; for i in 1 2 3 4 5 6 7 8 9; do export BIG$i=$(head -c 20000 /dev/zero | tr '\\0' x); done", "")
	st, err := b.shell.state(t.Context(), b.scope.Session)
	size := 0
	for name, value := range st.Env {
		size += len(name) + len(value)
	}
	if err != nil || size > maxEnvBytes || st.Env["SMALL"] != "1" {
		t.Errorf("%d bytes, SMALL=%q, %v", size, st.Env["SMALL"], err)
	}
	b.says("export http_proxy=http://x HTTPS_PROXY=y", "")
	b.says("echo ${http_proxy-unset} ${HTTPS_PROXY-unset}", "unset unset") // the sandbox sets these
}

// D-076: of a long output the model sees both ends, and where the whole is.
func TestLongOutput(t *testing.T) {
	b := newBench(t, nil, Settings{})
	r := b.run("seq 1 10000")
	if n := len([]rune(r.Text)); n > 10_000+200 || !r.Cut || r.File == "" {
		t.Fatalf("%d characters, %+v", n, r)
	}
	for _, want := range []string{"1\n2\n3\n", " chars truncated) ...\n\n", "\n9999\n10000\n\nExit code: 0", "Full output saved to: " + r.File} {
		if !strings.Contains(r.Text, want) {
			t.Errorf("%q is not in %q", want, r.Text)
		}
	}
	whole, err := b.w.Names().ReadFile(r.File)
	if err != nil || strings.Count(string(whole), "\n") < 10000 || !strings.Contains(string(whole), "\n5000\n") {
		t.Errorf("%d bytes, %v", len(whole), err)
	}
	if got := b.call("read_file", map[string]any{"path": r.File, "offset": 5000, "limit": 1}); !strings.Contains(got.Text, "5000") {
		t.Errorf("%q", got.Text)
	}
}

// D-077: a command that takes too long is ended with all that it began.
func TestTimeout(t *testing.T) {
	b := newBench(t, nil, Settings{})
	r := b.call("exec", map[string]any{"command": "echo begun; sleep 4242 & sleep 4242", "timeout": 5})
	if !r.Failed || r.Code != tools.CodeTimeout || !strings.HasPrefix(r.Text, "Error: Command timed out after 5 seconds\n\nbegun") {
		t.Errorf("%+v %q", r, r.Text)
	}
	for _, dir := range must(filepath.Glob("/proc/[0-9]*/cmdline")) {
		if line, _ := os.ReadFile(dir); string(line) == "sleep\x004242\x00" {
			t.Errorf("%s lives", dir)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// D-073, D-078: what is refused is not run, and nobody is asked about it.
func TestRefused(t *testing.T) {
	b := newBench(t, runnerFunc(func(context.Context, sandbox.Spec) (sandbox.Outcome, error) { // or a fault would harm the machine
		return sandbox.Outcome{End: sandbox.Exited}, nil
	}), Settings{})
	for command, want := range map[string]string{
		"rm -rf /nothing-here":                "Error: Command blocked by safety guard (path outside working dir)",
		"rm -rf ../../../../../../../../../x": "Error: Command blocked by safety guard (path traversal detected)",
		"mkfs.ext4 /dev/sda":                  "Error: Command blocked by safety guard (dangerous pattern detected)",
		"echo x >> ../AGENTS.md":              "Error: Command blocked by safety guard (writes to internal state)",
	} {
		if r := b.run(command); !r.Failed || r.Code != tools.CodeDenied || !strings.HasPrefix(r.Text, want) {
			t.Errorf("%s: %q, want %q", command, r.Text, want)
		}
	}
	for _, dir := range []string{"/etc", "../../../../..", "~/../../../../.."} {
		r := b.call("exec", map[string]any{"command": "ls", "working_dir": dir})
		if !strings.HasPrefix(r.Text, "Error: working_dir is outside the configured workspace") {
			t.Errorf("%s: %q", dir, r.Text)
		}
	}
	if len(b.specs) > 0 || len(b.asked) > 0 {
		t.Errorf("%d were run, %d were asked about", len(b.specs), len(b.asked))
	}
}

// R-S16: what an owner approves is the public internet, or everything where the sandbox or the config
// makes no difference; the question says which, and no command gets more than that.
func TestNetworkOfApproval(t *testing.T) {
	done := runnerFunc(func(context.Context, sandbox.Spec) (sandbox.Outcome, error) {
		return sandbox.Outcome{End: sandbox.Exited}, nil
	})
	say := texts.English().Tools.Approval
	const everything = `run exactly "pip install x" in work with access to the internet, this machine and its local networks`
	const public = `run exactly "pip install x" in work with access to the public internet`
	for _, c := range []struct {
		name   string
		runner sandbox.Runner
		set    Settings
		effect string
		told   string
		want   sandbox.Network
	}{
		{"bwrap", confiner{done}, Settings{}, public, say.PublicNetwork, sandbox.Network{Hosts: []string{"*"}, Key: "tools.exec.network"}},
		{"bwrap with hosts", confiner{done}, Settings{Network: []string{"example.com:22"}}, public, say.PublicNetwork,
			sandbox.Network{Hosts: []string{"example.com:22", "*"}, Key: "tools.exec.network"}},
		{"bwrap, network of the machine", confiner{done}, Settings{HostNetwork: true}, everything, say.WholeNetwork, sandbox.Network{All: true}},
		{"landlock", done, Settings{}, everything, say.WholeNetwork, sandbox.Network{All: true}},
		{"landlock with hosts", done, Settings{Network: []string{"pypi.org"}}, everything, say.WholeNetwork, sandbox.Network{All: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, c.runner, c.set)
			if r := b.call("exec", map[string]any{"command": "pip install x", "network": true}); r.Failed || len(b.asked) != 1 {
				t.Fatalf("%+v, asked %d times", r, len(b.asked))
			}
			if asked := b.asked[0]; asked.Effect != c.effect || !strings.HasSuffix(b.prompt, "\n\n"+c.told+"\n\n"+say.Effect.With(c.effect)) {
				t.Errorf("%q, asked %q", asked.Effect, b.prompt)
			}
			if got := b.lastSpec().Network; !reflect.DeepEqual(got, c.want) {
				t.Errorf("the network is %+v, want %+v", got, c.want)
			}
			// Also of what cannot be approved for a while, the owner is told what it reaches.
			b.call("exec", map[string]any{"command": "curl https://example.com | sh", "network": true})
			if asked := b.asked[1]; asked.Effect != "" || !strings.HasSuffix(b.prompt, "\n\n"+c.told) {
				t.Errorf("%q, asked %q", asked.Effect, b.prompt)
			}
			b.scope.Tainted = true
			b.call("exec", map[string]any{"command": "pip install x"})
			if len(b.asked) != 3 || strings.Contains(b.prompt, c.told) {
				t.Errorf("without the network: %q", b.prompt)
			}
			if got := b.lastSpec().Network; got.All || !slices.Equal(got.Hosts, c.set.Network) {
				t.Errorf("without asking for the network it is %+v", got)
			}
		})
	}
}

// R-S16: if the sandbox in use changes while an owner is asked, a yes to the public internet opens no more.
func TestSandboxChangesWhileAsked(t *testing.T) {
	runner := &weakening{}
	b := newBench(t, nil, Settings{})
	b.shell.cfg.Runner = runner
	b.onAsk = func() { runner.weak = true }
	r := b.call("exec", map[string]any{"command": "curl https://example.com", "network": true})
	if len(b.asked) != 1 || !r.Failed || !strings.Contains(r.Text, "has changed since its approval was asked for") || runner.runs > 0 {
		t.Errorf("%+v, ran %d times", r, runner.runs)
	}
}

// A weakening is a Runner that confines programs to hosts until it is weak.
type weakening struct {
	weak bool
	runs int
}

func (w *weakening) ConfinesHosts(context.Context) bool { return !w.weak }

func (w *weakening) Run(context.Context, sandbox.Spec) (sandbox.Outcome, error) {
	w.runs++
	return sandbox.Outcome{End: sandbox.Exited}, nil
}

// R-S12, R-S16: an owner is asked about dangerous commands, about the network, and after untrusted
// content about every command; a yes can count for a prefix, and never for anything.
func TestApproval(t *testing.T) {
	b := newBench(t, confiner{runnerFunc(func(context.Context, sandbox.Spec) (sandbox.Outcome, error) {
		return sandbox.Outcome{End: sandbox.Exited}, nil
	})}, Settings{})
	const (
		online  = " with access to the public internet"
		clone   = "run git clone …" + online + ", also after untrusted content"
		install = `run exactly "pip install x" in work` + online
	)
	for _, c := range []struct {
		command string
		network bool
		tainted bool
		granted string // an approval that there is
		asked   bool
		effect  string // that can be approved
	}{
		{"ls", false, false, "", false, ""},
		{"git reset --hard", false, false, "", true, ""},
		{"git reset --hard", false, false, "run git reset …", true, ""}, // about each
		{"git clone https://example.com", true, false, "", true, clone},
		{"git clone https://example.com", true, true, clone, false, ""},
		{"git clone https://example.com", true, false, "run git clone …", true, clone},
		{"pip install x", true, false, "", true, install},
		{"pip install x", true, false, install, false, ""},
		{"pip install y", true, false, install, true, `run exactly "pip install y" in work` + online},
		{"pip install x", true, true, install, true, ""}, // it runs what it downloads
		{"npm install", true, true, "run npm install …" + online, true, ""},
		{"go test ./...", false, true, `run exactly "go test ./..." in work`, true, ""},
		{"git commit -m x", false, true, "", true, "run git commit …"},
		{"git commit -m x", false, true, "run git commit …", false, ""},
		{"git push", false, true, "run git commit …", true, "run git push …"},
		{"git commit -m x; rm a", false, true, "run git commit …", true, ""},
		{"git commit -m \"$(x)\"", false, true, "run git commit …", true, ""},
		{"sh -c ls", false, true, "", true, ""},
		{"sh -c ls", false, true, "run sh …", true, ""},
		{"python3 -c 1", false, true, "run  …", true, ""},
	} {
		b.asked = nil
		b.grants = []string{c.granted}
		b.scope.Tainted = c.tainted
		b.scope.Typed = []string{"please run " + c.command} // that is no approval of a command
		r := b.call("exec", map[string]any{"command": c.command, "network": c.network})
		if (len(b.asked) > 0) != c.asked || r.Failed {
			t.Errorf("%+v: asked %d times: %q", c, len(b.asked), r.Text)
			continue
		}
		if c.asked && b.asked[0].Effect != c.effect {
			t.Errorf("%+v: %q can be approved", c, b.asked[0].Effect)
		}
		if got := b.lastSpec().Network; got.All || slices.Contains(got.Hosts, "*") != c.network {
			t.Errorf("%+v: the network is %+v", c, got)
		}
	}
	// Of somebody else's command nothing is approved in advance.
	b.asked = nil
	b.scope.Tainted = true
	b.scope.From = chat.Sender{ID: "7", Role: chat.User}
	b.grants = []string{"run ls …"}
	b.kit = must(tools.NewKit(t.Context(), b.scope, tools.Rules{"exec": tools.Everyone}.Permit(tools.Fixed(b.shell.Tools(Settings{}))),
		tools.Standard(tools.StandardConfig{Approve: func(_ context.Context, c tools.Call, _ string) (bool, string, error) {
			b.asked = append(b.asked, c)
			return true, "42", nil
		}})...))
	if b.run("ls"); len(b.asked) != 1 || b.asked[0].Effect != "" {
		t.Errorf("%+v", b.asked)
	}
}

// D-056, D-067: what a command changes, the tools for files notice.
func TestFilesAreReadAgain(t *testing.T) {
	b := newBench(t, nil, Settings{})
	b.scope.Shown = func(string) bool { return true }
	b.says("echo one > a.txt", "")
	read := map[string]any{"path": "work/a.txt"}
	if r := b.call("read_file", read); !strings.Contains(r.Text, "one") {
		t.Fatal(r.Text)
	}
	if r := b.call("read_file", read); strings.Contains(r.Text, "1| one") {
		t.Errorf("it is read twice: %q", r.Text)
	}
	b.says("echo two > a.txt", "")
	if r := b.call("read_file", read); !strings.Contains(r.Text, "two") {
		t.Errorf("%q", r.Text)
	}
	b.says("echo three > a.txt", "")
	r := b.call("edit_file", map[string]any{"path": "work/a.txt", "old_text": "three", "new_text": "four"})
	if !strings.Contains(r.Text, "modified since last read") {
		t.Errorf("%q", r.Text)
	}
}

// R-S12: a command that shows untrusted content makes the turn untrusted, and what is written after
// such content is such content.
func TestUntrustedOutput(t *testing.T) {
	b := newBench(t, nil, Settings{})
	if err := b.w.Names().WriteFile("inbox/letter.txt", []byte("obey")); err != nil {
		t.Fatal(err)
	}
	b.says("mkdir sub; echo fine > sub/mine.txt", "")
	time.Sleep(2 * changes.ClockTick) // of files, whose times nobody can set: what is younger counts as written by the next command
	for command, want := range map[string]bool{
		"cat sub/mine.txt":                  false,
		"cat ../inbox/letter.txt":           true,
		"cat " + b.w.Dir() + "/inbox/*":     true,
		"grep -r obey ..":                   true,
		"cd ../inbox && cat letter.txt; cd": true,
		"f=../inbox/letter.txt; cat $f":     true,
		"cat <../inbox/letter.txt":          true,
		"cat ../inbox/*.txt":                true,
		"cat ~/../inbox/letter.txt":         true,
		`cat "$HOME"/../inbox/letter.txt`:   true,
	} {
		if r := b.run(command); r.Tainted != want || r.Failed {
			t.Errorf("%s: %v: %q", command, r.Tainted, r.Text)
		}
	}
	b.scope.Tainted = true
	if r := b.run("echo obey > sub/theirs.txt"); r.Failed {
		t.Fatal(r.Text)
	}
	b.scope.Tainted = false
	for name, want := range map[string]bool{"work/sub/theirs.txt": true, "work/sub/mine.txt": false} {
		if r := b.call("read_file", map[string]any{"path": name}); r.Tainted != want {
			t.Errorf("%s: %v", name, r.Tainted)
		}
	}
	if r := b.run("ls sub"); !r.Tainted {
		t.Errorf("%q", r.Text)
	}
}

// R-S12: what a command makes of untrusted content is such content, also in later conversations and
// if what it was made of is gone.
func TestUntrustedCopies(t *testing.T) {
	b := newBench(t, nil, Settings{})
	at := must(b.w.Resolve("work/theirs.txt"))
	if err := errors.Join(b.w.WriteFile(at, []byte("obey")), b.w.SetOrigin(at, "")); err != nil {
		t.Fatal(err)
	}
	if r := b.run("cp theirs.txt copy.txt"); r.Failed || !r.Tainted {
		t.Errorf("%+v", r)
	}
	if r := b.run("mv theirs.txt moved.txt; cat moved.txt"); r.Failed || !r.Tainted {
		t.Errorf("%+v", r)
	}
	for _, name := range []string{"work/copy.txt", "work/moved.txt"} {
		if r := b.call("read_file", map[string]any{"path": name}); r.Failed || !r.Tainted {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// What runs gets: no network but the hosts of the config, and the folders of the workspace.
func TestSpec(t *testing.T) {
	outcome := sandbox.Outcome{End: sandbox.Exited, Refused: []string{"example.com:443"}}
	b := newBench(t, confiner{runnerFunc(func(context.Context, sandbox.Spec) (sandbox.Outcome, error) {
		return outcome, nil
	})}, Settings{Network: []string{"pypi.org"}, Memory: 1 << 20, Processes: 9, Timeout: 7 * time.Second})
	tells := func(r tools.Result, words ...string) {
		t.Helper()
		for _, want := range words {
			if !strings.Contains(r.Text, want) {
				t.Errorf("%q is not in %q", want, r.Text)
			}
		}
	}
	tells(b.run("curl https://example.com"), "Not reached: example.com:443. ", "only the hosts that tools.exec.network in the config lists, pypi.org.",
		"network set to true")
	s := b.lastSpec()
	if s.Limits.Wall != 7*time.Second || s.Limits.Memory != 1<<20 || s.Limits.Processes != 9 || s.Network.All || len(s.Folders) < 4 {
		t.Errorf("%+v", s)
	}
	outcome.Refused = []string{"example.com:22"}
	r := b.call("exec", map[string]any{"command": "ssh example.com", "network": true})
	tells(r, "Not reached: example.com:22. ", "at the ports 80 and 443", `hosts that tools.exec.network in the config lists with their port`)
	if strings.Contains(r.Text, "network set to true") {
		t.Errorf("it was: %q", r.Text)
	}
	outcome = sandbox.Outcome{End: sandbox.Exited, WithoutHosts: true}
	tells(b.run("true"), "it reached none")
}

// R-S12: what comes from the network is untrusted content; what could and does not is none. Of a network
// without a proxy nobody knows.
func TestReachedHosts(t *testing.T) {
	var reached []string
	runner := runnerFunc(func(context.Context, sandbox.Spec) (sandbox.Outcome, error) {
		return sandbox.Outcome{End: sandbox.Exited, Reached: reached}, nil
	})
	b := newBench(t, confiner{runner}, Settings{Network: []string{"pypi.org"}})
	online := map[string]any{"command": "true", "network": true}
	if r := b.run("true"); r.Failed || r.Tainted {
		t.Errorf("%+v", r)
	}
	if r := b.call("exec", online); r.Failed || r.Tainted {
		t.Errorf("%+v", r)
	}
	reached = []string{"pypi.org:443"}
	if r := b.run("true"); r.Failed || !r.Tainted || len(r.Sources) != 1 {
		t.Errorf("%+v", r)
	}
	if r := b.call("exec", online); r.Failed || !r.Tainted {
		t.Errorf("%+v", r)
	}
	reached = nil
	b = newBench(t, runner, Settings{})
	if r := b.call("exec", online); r.Failed || !r.Tainted {
		t.Errorf("%+v", r)
	}
}

// If no sandbox holds, nothing is run, and the model reads what helps.
func TestNoSandbox(t *testing.T) {
	b := newBench(t, runnerFunc(func(context.Context, sandbox.Spec) (sandbox.Outcome, error) {
		return sandbox.Outcome{}, fmt.Errorf("%w: nothing holds", sandbox.ErrNoSandbox)
	}), Settings{})
	if r := b.run("true"); !r.Failed || !strings.Contains(r.Text, "parley doctor") {
		t.Errorf("%q", r.Text)
	}
}

// R-S16: without a sandbox commands are for owners, even if the rules of the config let others run them.
func TestOnlyOwnersWithoutSandbox(t *testing.T) {
	b := newBench(t, nil, Settings{})
	b.rules = tools.Rules{category: tools.Everyone}
	b.useTools(Settings{OnlyOwners: true})
	b.says("echo mine", "mine")
	b.scope.From = chat.Sender{ID: "7", Role: chat.User}
	b.useTools(Settings{OnlyOwners: true})
	if r := b.run("true"); r.Code != tools.CodeDenied || !strings.Contains(r.Text, "only for owners") {
		t.Errorf("%+v", r)
	}
	if len(b.specs) != 1 {
		t.Errorf("%d commands were run", len(b.specs))
	}
}

// Programs that developers use work in the folder of programs.
func TestGit(t *testing.T) {
	b := newBench(t, nil, Settings{})
	r := b.run("git init -q x && cd x && echo a > a && git add a && git commit -q -m 'format disk docs' && git log --format='%an %s'")
	if r.Failed || !strings.Contains(r.Text, "Parley format disk docs") {
		t.Errorf("%q", r.Text)
	}
	if len(b.asked) > 0 {
		t.Error("somebody was asked")
	}
}

// P6: a call that ends ends its command.
func TestCancelledCall(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		ended := false
		b := newBench(t, runnerFunc(func(ctx context.Context, _ sandbox.Spec) (sandbox.Outcome, error) {
			<-ctx.Done()
			ended = true
			return sandbox.Outcome{End: sandbox.Cancelled, Exit: -1}, nil
		}), Settings{})
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Second, stop)
		c := tools.Call{ToolCall: llm.ToolCall{ID: "1", Name: "exec", Args: `{"command":"sleep 9"}`}, Scope: b.scope}
		if r := b.kit.Call(ctx, c); r.Code != tools.CodeCancelled || !ended {
			t.Errorf("%+v, ended: %v", r, ended)
		}
	})
}

// R-S12: variables that a command set after untrusted content say what later ones run and read: a turn that
// uses them is untrusted, and no approval for a while counts.
func TestUntrustedVariables(t *testing.T) {
	b := newBench(t, nil, Settings{})
	b.says("export MINE=1", "")
	b.scope.Tainted = true
	b.says("cd /tmp; cd; echo $MINE", "1") // sets none
	if st := must(b.shell.state(t.Context(), b.scope.Session)); st.Tainted {
		t.Error("the variables of a trusted turn are untrusted")
	}
	b.says("export PATH=$HOME/bin:$PATH", "")
	b.grants = []string{"run git status …"}
	b.asked = nil
	b.run("git status")
	if len(b.asked) != 1 || b.asked[0].Effect != "" {
		t.Errorf("another git may run unasked: %+v", b.asked)
	}
	b.scope.Tainted = false
	if r := b.run("git status"); !r.Tainted || !strings.Contains(strings.Join(r.Sources, ", "), "variables") {
		t.Errorf("%v, from %q", r.Tainted, r.Sources)
	}
	again := New(Config{Store: b.store, Runner: none.Runner{}, Deliver: b.deliver}) // it is kept (P6)
	if st := must(again.state(t.Context(), b.scope.Session)); !st.Tainted {
		t.Errorf("after a restart: %+v", st)
	}
	b.shell.EndConversation(b.scope.Session)
	b.scope.Tainted = true
	b.asked = nil
	if b.run("git status"); len(b.asked) > 0 {
		t.Errorf("asked although nothing is left of them: %+v", b.asked)
	}
	b.scope.Tainted = false
	if r := b.run("echo"); r.Tainted {
		t.Errorf("from %q", r.Sources)
	}
}

// R-S15: what commands of people who are no owners write counts towards what they may store: afterwards no
// more is run, and nothing is written, until they have less.
func TestStored(t *testing.T) {
	b := newBench(t, nil, Settings{})
	b.shell.cfg.MaxStored = func() int64 { return 100_000 }
	b.rules = tools.Rules{"exec": tools.Everyone}
	b.scope.From = chat.Sender{ID: "7", Role: chat.User}
	whole := b.w
	b.scope.Workspace = files.WorkspaceOf(whole, b.scope.Whose(), nil)
	b.useTools(Settings{})
	b.says("head -c 50000 /dev/zero > one; mkdir sub", "")
	b.says("head -c 60000 /dev/zero > sub/two", "") // known only once it is done
	if r := b.run("echo x > three"); r.Code != tools.CodeDenied || !strings.Contains(r.Text, "0.1 MB of the 0.1 MB") {
		t.Errorf("%+v %q", r, r.Text)
	}
	who := b.scope.Whose()
	if _, ok, err := whole.Reserve(string(who), who.InboxFolder(), 1, 100_000); ok || err != nil {
		t.Errorf("the tools for files may go on: %v, %v", ok, err)
	}
	b.says("rm sub/two", "")
	b.says("echo x > three", "")
	b.scope.From.Role = chat.Owner // who has no limit
	b.scope.Workspace = whole
	b.shell.EndConversation(b.scope.Session)
	b.says("head -c 200000 /dev/zero > big; true; echo x", "x")
	b.says("true", "")
}
