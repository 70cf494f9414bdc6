package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/texts"
	"parley/tools"
	"parley/tools/sandbox"
)

const (
	waitTime   = 60 * time.Second // for a command, before it goes on in the background
	maxTimeout = 600 * time.Second
	maxCommand = 64 << 10 // bytes
)

type execArgs struct {
	Command    string `json:"command" limit:"min=1 max=65536"`
	WorkingDir string `json:"working_dir,omitempty"`
	Timeout    int    `json:"timeout,omitempty" jsonschema:"seconds" limit:"min=1 max=600"`
	Network    bool   `json:"network,omitempty" jsonschema:"needs the internet: an owner is asked"`
	Background bool   `json:"background,omitempty" jsonschema:"return at once with an id"`
}

// execDescription names no other tools, which may not be there (D-116). It has a place for the seconds of
// Settings.Timeout.
const execDescription = "Run a command of bash in a sandbox and return its output, both ends if it has more than " +
	"10,000 characters. It starts in the folder work of the workspace and can change only that and /tmp; it can read " +
	"the rest. Each is a new shell, with the folder and exported variables of the last one. There is no input: use " +
	"-y, --yes.\n" +
	"- Without network only hosts that the operator allows are in reach, by HTTP or HTTPS, not ssh.\n" +
	"- A command has %d seconds, or timeout. One that takes longer than a minute goes on in the background; you are " +
	"told when it ends.\n" +
	"- What people sent (inbox) and untrusted content outside work is hidden from commands that do not name it.\n" +
	"- Prefer the tools for files to cat, echo, sed, find and grep."

// exec returns the tool that runs commands (D-072).
func (s *Shell) exec(set Settings) tools.Tool {
	e := executor{shell: s, set: set}
	t := tools.New("exec", fmt.Sprintf(execDescription, int(set.timeout().Seconds())), e.run)
	t.Category = category
	t.Who = tools.Owners
	t.Timeout = tools.MaxTimeout
	t.MaxText = -1
	t.Aliases = map[string]string{
		"cmd": "command", "script": "command", "code": "command", "cwd": "working_dir", "workdir": "working_dir",
		"dir": "working_dir", "directory": "working_dir", "timeout_seconds": "timeout", "internet": "network",
		"run_in_background": "background",
	}
	t.Precheck = e.precheck
	t.Risky = e.isRisky
	t.Grantable = e.isGrantable
	t.Effect = e.effect
	t.Consequence = e.consequence
	t.Ask = asking
	t.Preview = func(_ texts.Steps, partial map[string]any) string {
		command, _ := partial["command"].(string)
		return chat.Clip(chat.OneLine(command), 60, "…")
	}
	return t
}

// An executor is exec with the settings of now.
type executor struct {
	shell *Shell
	set   Settings
}

// A spot is where a command of a call runs.
type spot struct {
	folders []sandbox.Folder
	whole   string // the whole workspace, of which that of the person may be a part
	work    string
	dir     string
	state   state
	hidden  []string // files with untrusted content that its programs do not see
}

// errOutside says that a command is to run outside the workspace (D-078).
var errOutside = errors.New("working_dir is outside the configured workspace")

// placeOf returns what the programs of c see.
func placeOf(c tools.Call) (p spot, err error) {
	if c.Workspace == nil {
		return p, errors.New("there is no workspace")
	}
	p.folders, p.work, err = sandbox.WorkspaceFolders(c.Workspace)
	if err != nil {
		return p, err
	}
	p.whole = strings.TrimSuffix(filepath.Dir(p.work), "/"+c.Workspace.View().Home())
	return p, nil
}

// spotOf returns where c runs.
func (e executor) spotOf(ctx context.Context, c tools.Call) (p spot, err error) {
	if p, err = placeOf(c); err != nil {
		return p, err
	}
	if p.state, err = e.shell.state(ctx, c.Session); err != nil {
		return p, err
	}
	p.dir = p.state.Dir
	if _, err := tools.Resolve(c, p.dir); err != nil || !isFolder(p.dir) {
		p.dir = p.work
	}
	wanted, _ := c.Input["working_dir"].(string)
	if wanted == "" {
		return p, nil
	}
	at := wanted
	if rest, isHome := strings.CutPrefix(wanted, "~"); isHome && (rest == "" || rest[0] == '/') {
		at = p.work + rest
	}
	if !filepath.IsAbs(at) {
		at = filepath.Join(p.dir, at)
	}
	path, err := tools.Resolve(c, at)
	if err != nil {
		return p, errOutside
	}
	p.dir = filepath.Join(p.whole, path.String())
	if !isFolder(p.dir) {
		return p, fmt.Errorf("working_dir %s: there is no such folder", wanted)
	}
	return p, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return path != "" && err == nil && info.IsDir()
}

// advise reads the command of c.
func (e executor) advise(c tools.Call) advice {
	command, _ := c.Input["command"].(string)
	p, err := e.spotOf(context.Background(), c)
	if err != nil {
		return advice{} // run says so
	}
	return advise(command, place{work: p.work, dir: p.dir, env: p.state.Env})
}

// precheck refuses what nobody should be asked about.
func (e executor) precheck(c tools.Call) (tools.Result, error) {
	if refused := e.checkOwner(c); refused.Failed {
		return refused, nil
	}
	if _, err := e.spotOf(context.Background(), c); err != nil {
		return tools.Result{}, err
	}
	if a := e.advise(c); a.refused != "" {
		return refusal(a), nil
	}
	return tools.Result{}, nil
}

// checkOwner returns a failure if c is not an owner's and there is no sandbox (R-S16).
func (e executor) checkOwner(c tools.Call) tools.Result {
	if !e.set.OnlyOwners || c.From.Role == chat.Owner {
		return tools.Result{}
	}
	return tools.Failf(tools.CodeDenied, "Commands are run without a sandbox here, and so only for owners. "+
		"Do not try again; answer without running commands.")
}

// refusal tells the model why a command is not run (D-073, D-078).
func refusal(a advice) tools.Result {
	text := "Command blocked by safety guard (%s): %s. Nothing was run. Commands may change files in the folder work " +
		"of the workspace and in /tmp; for the other files of the workspace there are tools."
	return tools.Failf(tools.CodeDenied, text, a.refused, chat.Clip(chat.OneLine(a.about), 200, "…"))
}

// isRisky reports whether an owner is asked about c: after untrusted content about every command, and
// else if the command is dangerous, or needs the internet (R-S12, R-S16).
func (e executor) isRisky(c tools.Call) bool {
	network, _ := c.Input["network"].(bool)
	return c.Tainted || network || e.advise(c).ask != ""
}

// isGrantable reports whether c is one of the commands that an owner can approve for a while: those of a
// program that does one thing. Of others it is only the very same command that can be approved, and not in
// an untrusted turn: it may run what was downloaded or written there (R-S12). Nor does any approval count
// once a command in such a turn has set variables, because PATH and the like say what a program is.
func (e executor) isGrantable(c tools.Call) bool {
	p, err := e.spotOf(context.Background(), c)
	if err != nil || p.state.Tainted {
		return false
	}
	command, _ := c.Input["command"].(string)
	a := e.advise(c)
	return a.prefix != "" || !c.Tainted && a.ask == "" && a.refused == "" && canBeExact(command)
}

// effect names what an owner approves for a while: a program and its subcommand, or a command as it is and
// where it runs. What a command that has the network reads there is untrusted, and the next one runs after it.
func (e executor) effect(c tools.Call) string {
	what := "run " + e.advise(c).prefix + " …"
	p, err := e.spotOf(context.Background(), c)
	if err != nil {
		return what // run says so
	}
	later := ", also after untrusted content"
	if e.advise(c).prefix == "" {
		command, _ := c.Input["command"].(string)
		folder := cmp.Or(strings.TrimPrefix(p.dir, p.whole+"/"), ".")
		what = fmt.Sprintf("run exactly %q in %s", command, folder)
		later = ""
	}
	switch n := e.networkOf(context.Background(), c); {
	case n.All:
		what += " with access to the internet, this machine and its local networks" + later
	case len(n.Hosts) > 0:
		what += " with access to the public internet" + later
	}
	return what
}

// consequence tells what the network is that c asks for.
func (e executor) consequence(say texts.Approval, c tools.Call) string {
	switch n := e.networkOf(context.Background(), c); {
	case n.All:
		return say.WholeNetwork
	case len(n.Hosts) > 0:
		return say.PublicNetwork
	}
	return ""
}

// asking says what c would run.
func asking(say texts.Asks, c tools.Call) tools.Sentence {
	command, _ := c.Input["command"].(string)
	says := say.Run
	if inBackground, _ := c.Input["background"].(bool); inBackground {
		says = say.RunInBackground
	}
	if online, _ := c.Input["network"].(bool); online {
		says = say.RunOnline
	}
	return tools.Asking(says, tools.Quoted(command))
}

// networkOf returns the network that c asks for; nothing if it asks for none.
func (e executor) networkOf(ctx context.Context, c tools.Call) sandbox.Network {
	if asks, _ := c.Input["network"].(bool); asks {
		return e.asked(ctx)
	}
	return sandbox.Network{}
}

// asked returns what a command reaches that asks for the network: all public hosts. Where programs
// cannot be confined to hosts, or if config says so, it is all that the machine reaches.
func (e executor) asked(ctx context.Context) sandbox.Network {
	if e.set.HostNetwork || !sandbox.ConfinesHosts(ctx, e.shell.cfg.Runner) {
		return sandbox.Network{All: true}
	}
	return sandbox.Network{Hosts: append(slices.Clone(e.set.Network), "*"), Key: networkKey}
}

// networkKey is the config key of Settings.Network.
const networkKey = "tools.exec.network"

// run runs a command.
func (e executor) run(ctx context.Context, c tools.Call, in execArgs) (tools.Result, error) {
	if refused := e.checkOwner(c); refused.Failed {
		return refused, nil
	}
	p, err := e.spotOf(ctx, c)
	if err != nil {
		return tools.Result{}, err
	}
	a := advise(in.Command, place{work: p.work, dir: p.dir, env: p.state.Env})
	if a.refused != "" {
		return refusal(a), nil
	}
	if refused, err := e.checkStored(c); err != nil || refused.Failed {
		return refused, err
	}
	seedHome(c.Workspace)
	given := environment(e.set, p.work)
	env := maps.Clone(given)
	maps.Copy(env, p.state.Env)
	sc := newScript(in.Command, p.work, !in.Background)
	var named tools.Result // before it runs: it may move or delete what it names
	e.taintByFiles(c, in, &p, &named)
	if p.state.Tainted {
		named.Tainted = true
		const source = "variables that a command set after untrusted content, until /new"
		named.Sources = chat.JoinSources(named.Sources, source)
	}
	limit := cmp.Or(time.Duration(in.Timeout)*time.Second, e.set.timeout())
	job := run{
		spec: sandbox.Spec{
			Args:    sc.args,
			Dir:     p.dir,
			Env:     env,
			Folders: p.folders,
			Network: e.network(ctx, in),
			Limits:  sandbox.Limits{Wall: limit, Memory: e.set.Memory, Processes: e.set.Processes},
		},
		limit: limit,
		named: named,
		ended: func() { sc.discard(c.Workspace) },

		watched: in.Background || in.Network,
	}
	if in.Background {
		if in.Timeout == 0 {
			job.limit = maxBackgroundTime
		}
		job.spec.Limits.Wall = job.limit
		job.spec.Limits.CPU = job.limit
		return e.shell.runInBackground(ctx, c, in, job)
	}
	began := time.Now()
	proc, err := e.shell.start(ctx, c, job)
	if err != nil {
		return tools.Result{}, err
	}
	moved, r, err := e.shell.await(ctx, c, in, proc)
	if moved {
		return r, nil
	}
	if proc.writing == nil && proc.reachedOut() {
		if proc.writing, err = e.shell.addLateWriting(ctx, c, began); err != nil {
			return tools.Result{}, err
		}
	}
	proc.writing.end()
	e.shell.noteStored(c)
	if err != nil {
		sc.discard(c.Workspace)
		return tools.Result{}, err
	}
	if left, ok := sc.leftState(c.Workspace, p.state, given); ok {
		if in.WorkingDir != "" && left.Dir == p.dir { // that was for this command
			left.Dir = p.state.Dir
		}
		isUntrusted := c.Tainted || named.Tainted || proc.reachedOut()
		isChanged := !maps.Equal(left.Env, p.state.Env)
		left.Tainted = len(left.Env) > 0 && (p.state.Tainted || isUntrusted && isChanged)
		if err := e.shell.saveState(ctx, string(c.Session), left); err != nil {
			return tools.Result{}, fmt.Errorf("keep the state of the shell: %w", err)
		}
	}
	return e.result(c, proc, p.hidden)
}

// network returns what a command may reach.
func (e executor) network(ctx context.Context, in execArgs) sandbox.Network {
	if in.Network { // an owner has said yes
		return e.asked(ctx)
	}
	return sandbox.Network{Hosts: e.set.Network, Key: networkKey}
}

// result tells the model how a command ended (D-076).
func (e executor) result(c tools.Call, p *process, hidden []string) (tools.Result, error) {
	if p.err != nil {
		return tools.Result{}, explain(p.err)
	}
	stdout, stderr, _ := p.output.Texts()
	whole := report(stdout, stderr, p.outcome)
	r := tools.Result{Text: clip(whole), Tainted: p.named.Tainted, Sources: p.named.Sources}
	if r.Text != whole {
		r.Cut = true
		untrusted := c.Tainted || r.Tainted || p.reachedOut()
		r.File, _ = tools.SaveResult(c, whole, untrusted) // without it there are still both ends
	}
	if r.File != "" {
		r.Text += "\n\nFull output saved to: " + r.File
	}
	if p.reachedOut() {
		r.Tainted = true
		r.Sources = chat.JoinSources(r.Sources, "the output of a command that could reach the network")
	}
	if notes := e.notes(p); notes != "" {
		r.Text += "\n\n" + notes
	}
	if note := hiddenNote(hidden, whole); note != "" && p.outcome.Exit != 0 {
		r.Text += "\n\n" + note
	}
	if p.outcome.End == sandbox.TimedOut {
		r.Failed = true
		r.Code = tools.CodeTimeout
		r.Text = fmt.Sprintf("Command timed out after %d seconds\n\n%s", int(p.limit.Seconds()), r.Text) // D-077
	}
	return r, nil
}

// explain says what to do about a command that could not be run at all.
func explain(err error) error {
	if errors.Is(err, sandbox.ErrNoSandbox) {
		return fmt.Errorf("commands cannot be run here: %w. Tell the person: parley doctor says what would help", err)
	}
	return fmt.Errorf("run the command: %w", err)
}

// notes tells the model what the sandbox did to a command.
func (e executor) notes(p *process) string {
	var notes []string
	if len(p.outcome.Refused) > 0 {
		const text = "Not reached: %s. %s"
		notes = append(notes, fmt.Sprintf(text, sandbox.ShowHosts(p.outcome.Refused), e.hostRule(p.network)))
	}
	if p.outcome.WithoutHosts {
		notes = append(notes, "The sandbox of this machine cannot let it reach some hosts only, so it reached none.")
	}
	if p.outcome.End == sandbox.Exceeded {
		notes = append(notes, "It was ended because it used more time, memory or processes than it may.")
	}
	if p.outcome.Dropped > 0 {
		notes = append(notes, fmt.Sprintf("It wrote %d bytes more than are kept.", p.outcome.Dropped))
	}
	return strings.Join(notes, "\n")
}

// hostRule says which hosts a command with the network n may reach.
func (e executor) hostRule(n sandbox.Network) string {
	if slices.Contains(n.Hosts, "*") {
		return "Commands with the network reach public hosts by their names, at the ports 80 and 443. Other ports " +
			`are for hosts that ` + networkKey + ` in the config lists with their port, such as "example.com:8443".`
	}
	return "Commands reach only the hosts that " + networkKey + " in the config lists, " + strings.Join(n.Hosts, ", ") +
		". With network set to true, an owner is asked."
}

// report is what a command has written, and its exit code.
func report(stdout, stderr string, o sandbox.Outcome) string {
	var b strings.Builder
	b.WriteString(stdout)
	if strings.TrimSpace(stderr) != "" {
		if b.Len() > 0 && !strings.HasSuffix(stdout, "\n") {
			b.WriteString("\n")
		}
		b.WriteString("STDERR:\n" + stderr)
	}
	if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "\nExit code: %d", o.Exit)
	return b.String()
}

// maxShown is how many characters of a command's output the model sees (D-076).
const maxShown = 10_000

// clip returns the two ends of a long text.
func clip(text string) string { return sandbox.ClipEnds(text, maxShown) }
