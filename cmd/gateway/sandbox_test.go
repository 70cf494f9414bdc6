package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/chat"
	"parley/cmd/gateway/sandboxes"
	"parley/config"
	"parley/llm/llmtest"
	"parley/store/mem"
	"parley/texts"
	"parley/timetest"
	"parley/tools"
	"parley/tools/files"
	"parley/tools/sandbox"
	"parley/tools/shell"
)

// fakeRunner runs nothing.
type fakeRunner struct{}

func (fakeRunner) Run(context.Context, sandbox.Spec) (sandbox.Outcome, error) {
	return sandbox.Outcome{}, errors.New("nothing runs here")
}

// TestSandboxIsTold: the operator reads in the log and owners in /status which sandbox is used, and are warned if there
// is none (R-S16).
func TestSandboxIsTold(t *testing.T) {
	for _, c := range []struct {
		use, driver string // driver holds
		level       string
		log, status string
	}{
		{"auto", "strong", "INFO", "programs of models run in a sandbox\" driver=strong", "Programs run in a sandbox: strong."},
		{"auto", "weak", "INFO", "driver=weak", "Programs run in a sandbox: weak."},
		{"auto", "", "WARN", "programs of models do not run, because no sandbox works", "Programs do not run here"},
		{"strong", "weak", "WARN", "programs of models do not run", "Programs do not run here"},
		{"none", "strong", "WARN", "programs of models run without a sandbox", "Programs run WITHOUT a sandbox"},
	} {
		timetest.TestWithOthers(t, func(t *testing.T) {
			var probes atomic.Int32
			probe := func(_ context.Context, r sandbox.Runner) ([]sandbox.Attempt, error) {
				probes.Add(1)
				return []sandbox.Attempt{{Name: "escape", Held: *r.(*namedRunner).name == c.driver}}, nil
			}
			runner := func(name string) sandbox.Candidate {
				return sandbox.Candidate{Name: name, Runner: &namedRunner{name: &name}}
			}
			auto := sandbox.NewAuto(probe, runner("strong"), runner("weak"), sandbox.Candidate{Name: "none", Runner: fakeRunner{}, Bare: true})
			auto.Use(c.use)
			var log bytes.Buffer
			done := make(chan struct{})
			go func() {
				defer close(done)
				sandboxes.LogChoice(t.Context(), auto, slog.New(slog.NewTextHandler(&log, nil)))
			}()
			timetest.Sleep(sandboxes.Delay - time.Second)
			if probes.Load() > 0 {
				t.Error("a sandbox is tried out while Parley starts")
			}
			<-done
			if got := log.String(); !strings.Contains(got, c.log) || !strings.Contains(got, "level="+c.level) || strings.Count(got, "\n") != 1 {
				t.Errorf("%s, %s holds: logged %s", c.use, c.driver, got)
			}
			if got := sandboxes.StatusLine(t.Context(), auto, texts.English().Gateway.Report); !strings.HasPrefix(got, c.status) {
				t.Errorf("%s, %s holds: %s", c.use, c.driver, got)
			}
		})
	}
}

type namedRunner struct {
	fakeRunner
	name *string
}

// TestDoctorTriesSandboxes: the doctor tries sandboxes out on this machine, and warns of having none.
func TestDoctorTriesSandboxes(t *testing.T) {
	_, out := doctored(t, `{"http": {"listen": ""}, "tools": {"exec": {"sandbox": "none"}}}`)
	want(t, out, "warn  config", `tools.exec.sandbox is "none": programs that models run may do all that Parley may`)
	want(t, out, "warn  sandbox", "none, as config says")
	want(t, out, strings.Repeat(" ", 24)+"landlock")
	want(t, out, strings.Repeat(" ", 24)+"-> set tools", `set tools.exec.sandbox to "auto"`)
	t.Setenv("PATH", t.TempDir())
	code, out := doctored(t, `{"http": {"listen": ""}, "tools": {"exec": {"sandbox": "docker"}}}`)
	want(t, out, "warn  sandbox", "so models can run no programs")
	want(t, out, strings.Repeat(" ", 24)+"docker", "find Docker")
	want(t, out, strings.Repeat(" ", 24)+"-> docker", "docker pull NAME")
	if code != 0 { // Parley works without
		t.Errorf("exit code %d", code)
	}
}

// TestStatusTellsTheSandbox: an owner sees in /status which sandbox programs run in, or that they run without one.
func TestStatusTellsTheSandbox(t *testing.T) {
	t.Parallel()
	answer := func(context.Context, llmtest.Request) llmtest.Reply { return llmtest.Reply{} }
	for sandbox, want := range map[string]string{"none": "Programs run WITHOUT a sandbox", "auto": "Programs run in a sandbox: "} {
		w := newTestGateway(t, answer)
		w.more = map[string]any{"tools": map[string]any{"exec": map[string]any{"sandbox": sandbox}}}
		w.start()
		w.logs("web       http", 1) // or /status is answered without the gateway
		out := w.status()
		for late := time.Now().Add(waitTime); strings.Contains(out, "still finding out") && time.Now().Before(late); {
			out = w.status() // which waits for three seconds itself
		}
		if !strings.Contains(out, want) {
			t.Errorf("%s: %s", sandbox, out)
		}
		w.stop() // what it says at the start may come after its first answer
		banner := w.log.String()
		if strings.Contains(banner, "may do all that Parley may") != (sandbox == "none") {
			t.Errorf("%s: at the start: %s", sandbox, banner)
		}
	}
}

// R-S16: where it is known that no sandbox holds, there is no exec; where one is mended, it is there again.
func TestNoExecWithoutSandbox(t *testing.T) {
	var holds atomic.Bool
	probe := func(context.Context, sandbox.Runner) ([]sandbox.Attempt, error) {
		return []sandbox.Attempt{{Name: "escape", Held: holds.Load()}}, nil
	}
	auto := sandbox.NewAuto(probe, sandbox.Candidate{Name: "strong", Runner: fakeRunner{}})
	c := &config.Config{}
	c.Tools.Web.Search.Provider = "duckduckgo"
	c.Tools.Exec.Enable = true
	commands := shell.New(shell.Config{Store: mem.New(), Runner: auto})
	sources, err := toolSources(c, toolHost{files: files.New(files.Rules{}), sandbox: auto, shell: commands})
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string, want bool) {
		t.Helper()
		kit, err := tools.NewKit(t.Context(), tools.Scope{From: chat.Sender{Role: chat.Owner}}, sources)
		if err != nil {
			t.Fatal(err)
		}
		listed := false
		for _, spec := range kit.Specs() {
			listed = listed || strings.HasPrefix(spec.Name, "exec") && spec.Name != "execute_python"
		}
		if listed != want {
			t.Errorf("%s: exec is listed: %v", when, listed)
		}
	}
	check("before anybody has looked", true)
	if got := sandboxes.StatusLine(t.Context(), auto, texts.English().Gateway.Report); !strings.HasPrefix(got, "Programs do not run here") {
		t.Error(got)
	}
	check("none holds", false)
	holds.Store(true)
	sandboxes.StatusLine(t.Context(), auto, texts.English().Gateway.Report)
	check("after /status has looked again", true)
}
