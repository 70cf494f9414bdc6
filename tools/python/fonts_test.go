package python

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/llm"
	"parley/requiretest"
	"parley/timetest"
	"parley/tools"
	"parley/tools/sandbox"
)

// chart draws with matplotlib.
const chart = "import numpy as np\nimport matplotlib.pyplot as plt\nx = np.linspace(0, 6, 50)\n" +
	"plt.plot(x, np.sin(x), label='wave')\nplt.legend()\nplt.savefig('chart.png')"

// wantMark fails unless matplotlib takes its list from the file that the run was given, and puts a mark into that file.
const wantMark = `
import glob, json, os
name, = glob.glob(os.environ['MPLCONFIGDIR'] + '/fontlist-*.json')
fonts = json.load(open(name))
assert 'mark' not in fonts and fonts['ttflist']
fonts['mark'] = 'marked'
json.dump(fonts, open(name, 'w'))
from matplotlib import font_manager
assert font_manager.fontManager.mark == 'marked'
`

// damageFonts draws although its list is damaged.
const damageFonts = `
import glob, os
name, = glob.glob(os.environ['MPLCONFIGDIR'] + '/fontlist-*.json')
open(name, 'w').write('{"_version": ')
` + chart

// patient gives the levels of p so much time that no machine is too slow.
func patient(p *Interpreter) {
	for level, rules := range p.levels {
		rules.timeout = 10 * time.Minute
		p.levels[level] = rules
	}
}

// matplotlib draws in the real sandboxes, with the memory and the threads of the level. Its list of fonts is made
// once, by our own program, and what a run does to its copy reaches no other run.
func TestMatplotlib(t *testing.T) {
	for name, box := range sandboxes(t) {
		t.Run(name, func(t *testing.T) {
			counted := &counter{Sandbox: box}
			p := interpreter(t, Config{Sandbox: counted, Extra: map[Level][]string{Standard: {"matplotlib", "numpy"}}})
			patient(p)
			u := owner(t, p)
			if _, problem := u.run(Lenient, "import importlib.util\nassert importlib.util.find_spec('matplot' + 'lib')"); problem != "" {
				requiretest.Missing(t, problem)
			}
			for _, code := range []string{chart, damageFonts} {
				level := Standard
				if code != chart {
					level = Lenient
				}
				r := u.call("execute_python", map[string]any{"code": code, "strictness": level})
				if len(r.Attached) != 1 || len(r.Pictures) != 1 {
					t.Errorf("%s: %+v", level, r)
				}
			}
			for range 2 {
				if _, problem := u.run(Lenient, wantMark); problem != "" {
					t.Error(problem)
				}
			}
			if n := counted.made.Load(); n != 1 {
				t.Errorf("the list was made %d times", n)
			}
		})
	}
}

// A counter counts how often the list of fonts is made.
type counter struct {
	Sandbox

	made atomic.Int64
}

func (c *counter) Run(ctx context.Context, s sandbox.Spec) (sandbox.Outcome, error) {
	if makesFonts(s) {
		c.made.Add(1)
	}
	return c.Sandbox.Run(ctx, s)
}

func makesFonts(s sandbox.Spec) bool { return slices.Contains(s.Args, fontProgram) }

// A stage is a Sandbox in which nothing runs. make is called to make the list of fonts.
type stage struct {
	make func(ctx context.Context, s sandbox.Spec) (sandbox.Outcome, error)

	mu    sync.Mutex
	given []string // the list that each run was given
}

func (*stage) Choice(context.Context) (sandbox.Choice, error) {
	return sandbox.Choice{Driver: "stage"}, nil
}

func (g *stage) Run(ctx context.Context, s sandbox.Spec) (sandbox.Outcome, error) {
	if makesFonts(s) {
		return g.make(ctx, s)
	}
	found, err := filepath.Glob(filepath.Join(s.Env["MPLCONFIGDIR"], "*"))
	list := ""
	if len(found) == 1 {
		var text []byte
		text, err = os.ReadFile(found[0])
		list = filepath.Base(found[0]) + "=" + string(text)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.given = append(g.given, list)
	return sandbox.Outcome{End: sandbox.Exited}, err
}

// runs returns what the runs so far were given.
func (g *stage) runs() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.given)
}

// writeFonts is what matplotlib does.
func writeFonts(s sandbox.Spec, text string) error {
	dir := s.Env["MPLCONFIGDIR"]
	return errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "fontlist-v1.json"), []byte(text), 0o600))
}

// staged returns an owner whose code runs on g, and what is logged.
func staged(t *testing.T, g *stage) (u *person, logged *bytes.Buffer) {
	logged = &bytes.Buffer{}
	log := slog.New(slog.NewTextHandler(logged, nil))
	p := interpreter(t, Config{Sandbox: g, Log: log, Extra: map[Level][]string{Standard: {"matplotlib"}}})
	p.find = func() (string, error) { return "/usr/bin/python3", nil }
	return owner(t, p), logged
}

// The list is made for code that may draw, and by nothing that the code says; the call has the time for it.
func TestFontsAreForCharts(t *testing.T) {
	made := 0
	g := &stage{make: func(_ context.Context, s sandbox.Spec) (sandbox.Outcome, error) {
		made++
		if s.Stdin != nil || len(s.Folders) != 1 || s.Folders[0].Path != s.Dir || s.Network.All || s.Limits.Wall != fontLimit {
			t.Errorf("%+v", s)
		}
		return sandbox.Outcome{End: sandbox.Exited}, writeFonts(s, "{}")
	}}
	u, _ := staged(t, g)
	for _, c := range []struct {
		level Level
		code  string
	}{{Strict, chart}, {Lenient, "print(1)"}, {Standard, "import numpy"}} {
		if _, problem := u.run(c.level, c.code); problem != "" || made > 0 {
			t.Errorf("%s: %s %s", c.level, c.code, problem)
		}
	}
	for _, code := range []string{chart, "import seaborn", "from pylab import *", "frame.plot()"} {
		if _, problem := u.run(Standard, code); problem != "" {
			t.Error(problem)
		}
	}
	list := "fontlist-v1.json={}"
	if want := []string{"", "", "", list, list, list, list}; !slices.Equal(g.runs(), want) || made != 1 {
		t.Errorf("%q, want %q; it was made %d times", g.runs(), want, made)
	}
	all, err := u.p.Tools(t.Context(), u.scope)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range all {
		if tool.Timeout < fontLimit+u.p.levels[Lenient].timeout {
			t.Errorf("%s may take %v", tool.Name, tool.Timeout)
		}
	}
}

// Runs without a list go on, the operator is told once, and it is tried again an hour later.
func TestFontsThatAreNotMade(t *testing.T) {
	for name, fail := range map[string]func(s sandbox.Spec) (sandbox.Outcome, error){
		"no matplotlib": func(s sandbox.Spec) (sandbox.Outcome, error) {
			_, err := io.WriteString(s.Stderr, "Traceback:\nModuleNotFoundError: no matplotlib\n")
			return sandbox.Outcome{End: sandbox.Exited, Exit: 1}, err
		},
		"the program ended: timeout": func(s sandbox.Spec) (sandbox.Outcome, error) {
			return sandbox.Outcome{End: sandbox.TimedOut, Exit: -1}, writeFonts(s, "{}")
		},
		"it wrote none": func(sandbox.Spec) (sandbox.Outcome, error) { return sandbox.Outcome{End: sandbox.Exited}, nil },
		"fontlist-v1.json is not JSON": func(s sandbox.Spec) (sandbox.Outcome, error) {
			return sandbox.Outcome{End: sandbox.Exited}, writeFonts(s, "{")
		},
		"broken pipe": func(sandbox.Spec) (sandbox.Outcome, error) { return sandbox.Outcome{}, errors.New("broken pipe") },
	} {
		t.Run(name, func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				made := 0
				g := &stage{make: func(_ context.Context, s sandbox.Spec) (sandbox.Outcome, error) {
					made++
					if made > 2 {
						return sandbox.Outcome{End: sandbox.Exited}, writeFonts(s, "{}")
					}
					return fail(s)
				}}
				u, logged := staged(t, g)
				for _, pause := range []time.Duration{0, time.Minute, fontRetry, fontRetry - time.Minute, time.Minute} {
					timetest.Sleep(pause)
					if _, problem := u.run(Standard, chart); problem != "" {
						t.Error(problem)
					}
				}
				if want := []string{"", "", "", "", "fontlist-v1.json={}"}; !slices.Equal(g.runs(), want) || made != 3 {
					t.Errorf("%q, want %q; it was tried %d times", g.runs(), want, made)
				}
				if strings.Count(logged.String(), "\n") != 1 || !strings.Contains(logged.String(), name) {
					t.Errorf("%q", logged)
				}
			})
		})
	}
}

// Runs that need the list at the same time wait for one making of it. If the run for which it is made ends, the next one
// makes it.
func TestFontsAreMadeForAll(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		made := 0
		proceed := make(chan struct{})
		g := &stage{make: func(ctx context.Context, s sandbox.Spec) (sandbox.Outcome, error) {
			made++
			select {
			case <-proceed:
				return sandbox.Outcome{End: sandbox.Exited}, writeFonts(s, "{}")
			case <-ctx.Done():
				return sandbox.Outcome{End: sandbox.Cancelled}, nil
			}
		}}
		u, logged := staged(t, g)
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		run := func(ctx context.Context) {
			running.Go(func() {
				if _, err := u.p.execute(ctx, u.chartCall(), args{Code: chart, Strictness: Standard}); !errors.Is(err, ctx.Err()) {
					t.Error(err)
				}
			})
		}
		run(ctx)
		synctest.Wait()
		for range 2 {
			run(t.Context())
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(proceed)
		running.Wait()
		list := "fontlist-v1.json={}"
		if want := []string{list, list}; !slices.Equal(g.runs(), want) || made != 2 || logged.Len() > 0 {
			t.Errorf("%q, want %q; it was made %d times; %s", g.runs(), want, made, logged)
		}
	})
}

// chartCall returns a call of u.
func (u *person) chartCall() tools.Call {
	return tools.Call{ToolCall: llm.ToolCall{ID: "c"}, Scope: u.scope}
}

// Runs that wait for the list take no places: those that draw nothing go on.
func TestFontsHoldNobodyUp(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		proceed := make(chan struct{})
		g := &stage{make: func(_ context.Context, s sandbox.Spec) (sandbox.Outcome, error) {
			<-proceed
			return sandbox.Outcome{End: sandbox.Exited}, writeFonts(s, "{}")
		}}
		u, _ := staged(t, g)
		var running sync.WaitGroup
		ended := 0
		for range maxAtOnce + 1 {
			running.Go(func() {
				if _, err := u.p.execute(t.Context(), u.chartCall(), args{Code: chart, Strictness: Standard}); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		running.Go(func() {
			if _, err := u.p.execute(t.Context(), u.chartCall(), args{Code: "print(1)"}); err != nil {
				t.Error(err)
			}
			ended++
		})
		synctest.Wait()
		if ended != 1 {
			t.Error("a run that draws nothing waits for the list of fonts")
		}
		close(proceed)
		running.Wait()
		if runs := g.runs(); len(runs) != maxAtOnce+2 || runs[0] != "" || slices.Contains(runs[1:], "") {
			t.Errorf("the runs were given %q", runs)
		}
	})
}
