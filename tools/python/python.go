// Package python lets the agent run Python code in a sandbox.
package python

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/chat"
	"parley/lazyregexp"
	"parley/tools"
	"parley/tools/sandbox"
)

// Category is the category of the tools, also while they are not offered.
const Category = "code"

// maxAtOnce is how many programs run at the same time: each may take a processor and maxMemory.
const maxAtOnce = 4

// A Level says what code may do.
type Level string

// The levels, from the loosest to the strictest.
const (
	Lenient  Level = "lenient"
	Standard Level = "standard"
	Strict   Level = "strict"
)

// A Sandbox runs programs, and knows how well it confines them. [sandbox.Auto] is one.
type Sandbox interface {
	sandbox.Runner
	Choice(context.Context) (sandbox.Choice, error)
}

// A Config configures an Interpreter.
type Config struct {
	Sandbox Sandbox            // nil: no code is run
	Default Level              // for calls that name none; "" is Standard
	Extra   map[Level][]string // modules that code may import besides those of its level
	Log     *slog.Logger

	// MaxStored returns how many bytes of files each person may have in the workspace. Owners have
	// no limit. If it is nil, or returns 0 or less, nobody has.
	MaxStored func() int64
}

// An Interpreter runs Python code. It is a [tools.Source], and is safe for concurrent use.
type Interpreter struct {
	cfg    Config
	find   func() (string, error) // where the interpreter is
	tools  []tools.Tool
	levels map[Level]rules
	places chan struct{}
	sweep  sync.Once
	fonts  *fontList

	mu    sync.Mutex
	extra map[Level][]string
}

// New returns an Interpreter. The error is that of RegisterExtraModules.
func New(cfg Config) (*Interpreter, error) {
	p := &Interpreter{
		cfg:    cfg,
		find:   Find,
		levels: levelRules(),
		places: make(chan struct{}, maxAtOnce),
		extra:  map[Level][]string{},
		fonts:  newFontList(cfg.Log),
	}
	for level, modules := range cfg.Extra {
		if err := p.RegisterExtraModules(level, modules...); err != nil {
			return nil, err
		}
	}
	p.tools = p.newTools()
	return p, nil
}

// moduleName matches the full name of a module.
var moduleName = lazyregexp.New(`^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$`)

// RegisterExtraModules lets code of a level import more modules, from its next run on. At
// Lenient everything can be imported anyway.
func (p *Interpreter) RegisterExtraModules(level Level, modules ...string) error {
	if _, known := p.levels[level]; !known {
		return unknownLevel(level)
	}
	for _, name := range modules {
		if !moduleName.MatchString(name) {
			return fmt.Errorf("extra modules of level %s: %q is not the name of a module", level, name)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.extra[level] = append(slices.Clip(p.extra[level]), modules...)
	return nil
}

func unknownLevel(level Level) error {
	return fmt.Errorf("Invalid strictness level: %s. Must be one of: %s, %s, %s", //nolint:staticcheck // A-046
		level, Lenient, Standard, Strict)
}

// Find returns the path of the interpreter, which is looked up where programs in a sandbox are.
func Find() (string, error) { return sandbox.Spec{Args: []string{"python3"}}.LookProgram() }

const description = "Run Python 3 code in a sandbox, without network and files of the workspace. Returns what it " +
	"prints, and the value of its last line. Files that it writes to the current folder, such as a chart, are sent " +
	"with your answer. strictness: standard (10 s) has harmless modules of the standard library, no open and no " +
	"eval; strict (5 s) even less; lenient (30 s) all that the sandbox allows."

type args struct {
	Code       string `json:"code" limit:"min=1"`
	Strictness Level  `json:"strictness,omitempty" limit:"enum=lenient|standard|strict"`
}

type aliasArgs struct {
	Code       string `json:"code_block" limit:"min=1"`
	Strictness Level  `json:"strictness,omitempty" limit:"enum=lenient|standard|strict"`
}

// Tools implements [tools.Source]. Without an interpreter on this machine there are none.
func (p *Interpreter) Tools(context.Context, tools.Scope) ([]tools.Tool, error) {
	if _, err := p.find(); err != nil {
		return nil, nil // parley doctor says so
	}
	return p.tools, nil
}

func (p *Interpreter) newTools() []tools.Tool {
	main := tools.New("execute_python", description, p.execute)
	main.Aliases = map[string]string{ // E-004
		"code_block": "code", "python": "code", "script": "code", "source": "code", "level": "strictness",
	}
	alias := tools.New("run_python_code", description, func(
		ctx context.Context, c tools.Call, in aliasArgs,
	) (tools.Result, error) {
		return p.execute(ctx, c, args(in))
	})
	alias.AliasOf = main.Name
	alias.Aliases = map[string]string{"code": "code_block", "python": "code_block", "script": "code_block"}
	all := []tools.Tool{main, alias}
	for i := range all {
		all[i].Category = Category
		all[i].Use = tools.Rare
		all[i].Display = "Python"
		all[i].JSON = true
		all[i].Timeout = fontLimit + time.Minute // a run that makes the list of fonts has its own time besides
		all[i].Invalid = p.explainLevel
		all[i].Repeatable = true // it can change nothing, and its files always have the same names
	}
	return all
}

// explainLevel tells the model of a level that there is not.
func (p *Interpreter) explainLevel(args map[string]any) string {
	level, given := args["strictness"].(string)
	if _, known := p.levels[Level(level)]; known || !given {
		return ""
	}
	return unknownLevel(Level(level)).Error()
}

// An answer is what the model is told of code that ran.
type answer struct {
	Success    bool            `json:"success"`
	Output     string          `json:"output"`
	Strictness Level           `json:"strictness"`
	Timeout    int             `json:"timeout"` // seconds
	Result     json.RawMessage `json:"result,omitempty"`
	Files      []string        `json:"files,omitempty"` // in the workspace
	Note       string          `json:"note,omitempty"`
}

// execute implements execute_python.
func (p *Interpreter) execute(ctx context.Context, c tools.Call, in args) (tools.Result, error) {
	level := cmp.Or(in.Strictness, p.cfg.Default, Standard)
	rules, known := p.levels[level]
	if !known {
		return tools.Failf(tools.CodeInvalid, "%v", unknownLevel(level)), nil
	}
	if refused := p.refuse(ctx, c); refused.Failed {
		return refused, nil
	}
	if p.draws(level, in.Code) { // before it takes a place: others need not wait for the list
		if err := p.fonts.prepare(ctx, p.makeFonts); err != nil {
			return tools.Result{}, err
		}
	}
	select {
	case p.places <- struct{}{}:
		defer func() { <-p.places }()
	case <-ctx.Done():
		return tools.Result{}, ctx.Err()
	}
	p.sweep.Do(func() { sandbox.SweepTemp(scratchPrefix, scratchAge) })
	folder, err := makeScratch()
	if err != nil {
		return tools.Result{}, err
	}
	defer folder.remove()
	done, err := p.run(ctx, folder, level, in.Code)
	switch {
	case ctx.Err() != nil:
		return tools.Result{}, ctx.Err()
	case errors.Is(err, sandbox.ErrNoSandbox):
		return p.withoutSandbox(err), nil
	case err != nil:
		return tools.Result{}, fmt.Errorf("run Python: %w", err)
	case done.problem != "":
		return tools.Failf(done.code, "%s", done.problem), nil
	}
	a := answer{
		Success:    true,
		Output:     done.output,
		Strictness: level,
		Timeout:    int(rules.timeout / time.Second),
		Result:     done.result,
	}
	kept := p.keep(c, folder)
	a.Files = kept.shown
	a.Note = kept.note
	return tools.Result{Data: a, Attached: kept.paths, Pictures: kept.pictures}, nil
}

// refuse returns a failure if c may run no code here.
func (p *Interpreter) refuse(ctx context.Context, c tools.Call) tools.Result {
	if p.cfg.Sandbox == nil {
		return p.withoutSandbox(sandbox.ErrNoSandbox)
	}
	choice, err := p.cfg.Sandbox.Choice(ctx)
	switch {
	case err != nil:
		return tools.Failf("", "%v", err)
	case choice.Driver == "":
		return p.withoutSandbox(sandbox.ErrNoSandbox)
	case choice.Bare && c.From.Role != chat.Owner:
		return tools.Failf(tools.CodeDenied, "Code is run without a sandbox here, and so only for owners. "+
			"Do not try again; answer without running code.")
	}
	return tools.Result{}
}

// withoutSandbox tells the model that no code is run here, and the operator why.
func (p *Interpreter) withoutSandbox(err error) tools.Result {
	if p.cfg.Log != nil {
		p.cfg.Log.Warn("Python was not run", "err", err)
	}
	return tools.Failf(tools.CodeDenied, "Python cannot be run: no sandbox works on this machine, and code is never "+
		"run without one unless the config says so. parley doctor says what an owner can do about it. Do not try "+
		"again; answer without running code.")
}

// isPublic reports whether a file of that name is meant for people: code and libraries keep what is
// their own in hidden ones.
func isPublic(name string) bool { return !strings.HasPrefix(filepath.Base(name), ".") }
