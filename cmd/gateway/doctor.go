package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"parley/backup"
	"parley/channels"
	"parley/channels/console"
	"parley/channels/network"
	"parley/config"
	"parley/host"
	"parley/llm"
	"parley/store/bolt"
	"parley/store/mem"
	"parley/web"
)

// An examination looks at one thing that may be wrong. It changes nothing.
type examination struct {
	name string
	look func(context.Context) finding
}

// A finding is what came of it.
type finding struct {
	state state
	text  string
	todo  string // what helps, unless all is well
}

type state string

const (
	fine state = "ok"
	odd  state = "warn"
	bad  state = "FAIL"
)

const patience = 10 * time.Second // with each examination

// doctor prints what is wrong and what helps, and fails if Parley cannot work.
func (p *program) doctor(ctx context.Context) error {
	c, err := p.load()
	if err != nil {
		todo := cmp.Or(host.AccessAdvice(err), "mend the lines named, or move the file away and run parley onboard")
		p.print("config", finding{bad, err.Error(), todo})
		return exit{code: exitUsage}
	}
	well, exams := true, examinations(c, holder(ctx, c))
	for i, f := range lookAll(ctx, exams) {
		found := <-f
		p.print(exams[i].name, found)
		well = well && found.state != bad
	}
	if !well {
		return exit{code: exitFailure}
	}
	return nil
}

func (p *program) print(name string, f finding) {
	lines := strings.Split(p.redact.String(f.text), "\n")
	fmt.Fprintf(p.stdout, "%-4s  %-14s  %s\n", f.state, name, lines[0])
	for _, l := range lines[1:] {
		fmt.Fprintf(p.stdout, "%22s  %s\n", "", l)
	}
	if f.todo != "" {
		fmt.Fprintf(p.stdout, "%22s  -> %s\n", "", p.redact.String(f.todo))
	}
}

// lookAll starts all examinations; each channel brings one finding, in time.
func lookAll(ctx context.Context, exams []examination) []chan finding {
	var found []chan finding
	for _, e := range exams {
		f := make(chan finding, 1)
		found = append(found, f)
		go func() {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			f <- e.look(ctx)
		}()
	}
	return found
}

// examinations lists what is to be looked at, while the process pid holds the data.
func examinations(c *config.Config, pid int) (all []examination) {
	add := func(name string, look func(context.Context) finding) { all = append(all, examination{name, look}) }
	port := func(name, addr string) {
		add(name+" port", func(ctx context.Context) finding { return lookAtPort(ctx, addr, pid) })
	}
	add("config", func(context.Context) finding { return lookAtConfig(c) })
	add("data", func(context.Context) finding { return lookAtFolder(c.DataDir, c.Workspace) })
	add("workspace", func(context.Context) finding { return lookAtWorkspace(c) })
	add("gateway", func(ctx context.Context) finding { return lookAtHolder(ctx, c, pid) })
	add("store", func(ctx context.Context) finding { return lookAtStore(ctx, c, pid, probeInChild) })
	for _, name := range append([]string{c.Agent.Model}, c.Agent.Fallback...) {
		add("model "+name, func(ctx context.Context) finding {
			return lookAtModel(ctx, name, c.Models[name], newModel(name, c.Models[name]))
		})
	}
	for _, name := range networks(c) {
		made, err := c.Channels[name].Driver.(network.Driver).Build(network.NewHost(name, mem.New()))
		if err != nil {
			add(name, func(context.Context) finding { return notConfigured(name, err) })
			continue
		}
		add(name, func(ctx context.Context) finding { return lookAtChannel(ctx, name, c.Channels[name], made) })
		if listen, _, _ := webhookOf(made); listen != "" {
			port(name, listen)
		}
	}
	if c.HTTP.Listen != "" {
		add("web port", func(ctx context.Context) finding { return lookAtWebPort(ctx, c, pid) })
	}
	return all
}

func lookAtConfig(c *config.Config) finding {
	if !c.Found {
		return finding{odd, "defaults: there is no " + c.File, "parley onboard writes one"}
	}
	if info, err := os.Stat(c.File); err == nil && info.Mode().Perm()&0o077 != 0 {
		return finding{odd, c.File + " can be read by others on this machine", "chmod 600 " + c.File}
	}
	if ws := warningsOf(c); len(ws) > 0 {
		return finding{odd, strings.Join(ws, "\n"), "mend owners and allow in " + c.File + " unless you mean it"}
	}
	return finding{fine, c.File, ""}
}

const (
	littleSpace = 500 << 20 // bytes free
	noSpace     = 20 << 20
)

// lookAtFolder looks at a folder, without the one in it that is looked at by itself.
func lookAtFolder(dir, without string) finding {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return finding{fine, dir + " is not there yet: parley makes it", ""}
	} else if err != nil {
		return finding{bad, err.Error(),
			cmp.Or(host.AccessAdvice(err), "give the user that runs parley the right to use it")}
	} else if !info.IsDir() {
		return finding{bad, dir + " is no folder", "move it away, or name another folder in the config"}
	}
	f, err := os.CreateTemp(dir, ".doctor-*")
	if err != nil {
		return finding{bad, "cannot write: " + err.Error(), cmp.Or(host.AccessAdvice(err), "free some space")}
	}
	_ = errors.Join(f.Close(), os.Remove(f.Name()))
	free, _, known := host.FreeSpace(dir)
	text := dir
	if known {
		text += fmt.Sprintf(", %d MiB free", free>>20)
	}
	switch {
	case known && free < noSpace:
		return finding{bad, text, "free some space: nothing can be accepted on a full disk"}
	case known && free < littleSpace:
		return finding{odd, text, "free some space soon"}
	}
	exposed, err := host.Exposed(dir, without)
	if err != nil {
		return finding{odd, "cannot look at all files: " + err.Error(), host.AccessAdvice(err)}
	}
	if n := len(exposed); n > 0 {
		const open = "%s is open to others on this machine: files and folders: %d, the first is %s"
		return finding{odd, fmt.Sprintf(open, dir, n, exposed[0]),
			"start parley, which closes them, or run: chmod -R go-rwx " + dir}
	}
	return finding{fine, text, ""}
}

// lookAtWorkspace looks at the agent's folder, which is there if there is a store.
func lookAtWorkspace(c *config.Config) finding {
	stored := c.Store.Type != "mem" && len(backup.Existing(filepath.Join(c.DataDir, "parley.db"))) > 0
	if stored && len(backup.Existing(c.Workspace)) == 0 {
		return finding{
			bad,
			c.Workspace + " is gone or empty, though there is a store: the agent's memory and files are missing",
			"mount it or put it back, or take it from a backup; to begin with an empty one: " +
				c.Command("run", "--begin-anew"),
		}
	}
	return lookAtFolder(c.Workspace, "")
}

// lookAtHolder asks the gateway that runs what troubles it, such as another one
// in its workspace.
func lookAtHolder(ctx context.Context, c *config.Config, pid int) finding {
	text := "runs"
	switch {
	case pid == 0:
		return finding{fine, "does not run", ""}
	case pid > 0:
		text = fmt.Sprintf("runs, with process id %d", pid)
	}
	a := adminOf(c)
	defer a.CloseIdleConnections()
	var o web.Overview
	err := a.ask(ctx, "GET", "/api/status", nil, &o) // lookAtStoreInUse tells of err
	if troubles := append(o.Reasons, o.Warnings...); err == nil && len(troubles) > 0 {
		return finding{odd, strings.Join(append([]string{text}, troubles...), "\n"), "parley status tells more"}
	}
	return finding{fine, text, ""}
}

// lookAtStore looks at the file of the store. probe reads it all, in another process.
func lookAtStore(
	ctx context.Context, c *config.Config, holder int, probe func(context.Context, string) ([]string, error),
) finding {
	file := filepath.Join(c.DataDir, "parley.db")
	restore := "keep a copy of " + c.DataDir + " and put parley.db of the latest backup in place"
	_, unmarked := os.Stat(file + ".mark") // the mark says that there was a store
	switch info, err := os.Stat(file); {
	case c.Store.Type == "mem":
		return finding{odd, "in memory: everything is forgotten at the end", `write "store": { "type": "bolt" }`}
	case c.Store.Type != "bolt":
		return finding{fine, "configured: " + c.Store.Type, ""}
	case holder != 0:
		return lookAtStoreInUse(ctx, c)
	case errors.Is(err, fs.ErrNotExist) && len(backup.Copies(c.DataDir)) > 0 && unmarked != nil:
		return finding{bad, file + " is gone, though there are copies of it",
			"put it back, or: " + c.Command("restore", backup.Copies(c.DataDir)[0])}
	case errors.Is(err, fs.ErrNotExist) && unmarked == nil:
		return finding{bad, file + " is missing", restore}
	case errors.Is(err, fs.ErrNotExist):
		return finding{fine, file + " is not there yet: parley makes it", ""}
	case err == nil && info.Size() == 0:
		return finding{bad, file + " is empty", restore}
	}
	for _, path := range backup.Existing(filepath.Join(c.DataDir, "lock"), file+".mark", file) {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return finding{bad, err.Error(), host.AccessAdvice(err)}
		}
		_ = f.Close()
	}
	damaged, err := probe(ctx, file)
	if err != nil {
		return finding{bad, err.Error(), restore}
	}
	if n := len(damaged); n > 0 {
		return finding{bad, fmt.Sprintf("damaged values in %s: %d, the first is %s", file, n, damaged[0]),
			"the rest works; put the latest backup in its place to have them again"}
	}
	if err := bolt.CheckLatest(file); err != nil {
		return finding{bad, err.Error(),
			"put the right file back; with this one parley run does not start, and says how to go on"}
	}
	return finding{fine, file + " is whole", ""}
}

// lookAtStoreInUse asks the gateway that runs what it found.
func lookAtStoreInUse(ctx context.Context, c *config.Config) finding {
	a := adminOf(c)
	defer a.CloseIdleConnections()
	var o web.Overview
	if err := a.ask(ctx, "GET", "/api/status", nil, &o); err != nil {
		return finding{odd, "in use by the gateway, which does not tell of it: " + err.Error(),
			"look at the log of the gateway"}
	}
	if n := len(o.Damaged); n > 0 {
		return finding{bad, fmt.Sprintf("entries that cannot be read: %d, the first is %s", n, o.Damaged[0]),
			"look at the disk; the rest works, and backups made before have what is lost"}
	}
	return finding{fine, "in use by the gateway, which has found no damage", ""}
}

func lookAtModel(ctx context.Context, name string, m *config.Model, model llm.Model) finding {
	if m.Type == "demo" {
		return finding{odd, "the demo model is no real one",
			"set OPENAI_API_KEY, or write models and agent.model in the config"}
	}
	start := time.Now()
	_, err := model.Generate(ctx, llm.Request{
		Messages: []llm.Message{{Role: llm.User, Text: "Answer with the word OK."}},
	}, nil)
	if err == nil {
		return finding{fine, fmt.Sprintf("%s answered in %.1f s", m.Model, time.Since(start).Seconds()), ""}
	}
	kind := llm.TimedOut
	if e, ok := errors.AsType[*llm.Error](err); ok {
		kind = e.Kind
	}
	return finding{bad, fmt.Sprintf("%s: %v", m.Model, err), advice(kind, name)}
}

// advice says what to do about a model that does not answer.
func advice(kind llm.Kind, name string) string {
	help := map[llm.Kind]string{
		llm.Auth:        "put a valid key in models.NAME.apiKey, or in OPENAI_API_KEY",
		llm.Quota:       "add credit at the provider, or name another model in agent.fallback",
		llm.BadRequest:  "check models.NAME.model and models.NAME.baseUrl: the provider may not have that model",
		llm.TooLong:     "lower models.NAME.maxTokens and models.NAME.contextWindow",
		llm.RateLimited: "wait a little, or name another model in agent.fallback",
		llm.Overloaded:  "wait a little, or name another model in agent.fallback",
		llm.Unreachable: "check models.NAME.baseUrl, the network and HTTPS_PROXY",
		llm.Cut:         "try again; if it stays so, ask the provider or a proxy in between",
		llm.TimedOut:    "try again; a local model may need time to load",
	}[kind]
	return strings.ReplaceAll(help, "NAME", name)
}

// notConfigured tells that the channel of that name cannot be made or reached.
func notConfigured(name string, err error) finding {
	const todo = "check channels.%[1]s.token, the other keys of channels.%[1]s, and the network"
	return finding{bad, err.Error(), fmt.Sprintf(todo, name)}
}

// lookAtChannel asks the network of a channel who the bot is.
func lookAtChannel(ctx context.Context, name string, c *config.Channel, made channels.Channel) finding {
	text := "configured"
	if bot, ok := made.(network.Identifier); ok {
		who, err := bot.Check(ctx)
		if err != nil {
			return notConfigured(name, err)
		}
		text = who
	}
	if len(c.Senders.Allow) == 0 {
		text += "; nobody is on its allow list, so people need a code (parley pair CODE)"
	}
	return finding{fine, text, ""}
}

// lookAtWebPort looks where the web page is or will be. The default port may be
// in use: then the gateway takes another one.
func lookAtWebPort(ctx context.Context, c *config.Config, holder int) finding {
	if c.HTTP.Listen != config.DefaultListen || c.HTTP.PublicURL != "" {
		return lookAtPort(ctx, c.HTTP.Listen, holder)
	}
	const todo = "end that program and start parley again, or set http.listen in the config to a free port"
	taken := config.DefaultListen + " is in use by another program, so the web page "
	if holder == 0 {
		f := lookAtPort(ctx, config.DefaultListen, 0)
		if f.state == bad {
			f = finding{odd, taken + "gets another port", todo}
		}
		return f
	}
	a := adminOf(c)
	defer a.CloseIdleConnections()
	var o web.Overview
	if err := a.ask(ctx, "GET", "/api/status", nil, &o); err == nil && o.Page != "http://"+config.DefaultListen {
		return finding{odd, taken + "is at " + o.Page, todo}
	}
	return lookAtPort(ctx, config.DefaultListen, holder)
}

func lookAtPort(ctx context.Context, addr string, holder int) finding {
	if holder != 0 {
		return finding{fine, addr + " is left to the gateway that runs", ""}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return finding{bad, err.Error(), "end the program that uses the port, or name another in the config"}
	}
	_ = l.Close()
	return finding{fine, addr + " is free", ""}
}

// holder returns the process id of the gateway that runs, 0 for none. It takes
// no lock, which might keep a gateway from starting.
func holder(ctx context.Context, c *config.Config) int {
	if !console.Running(ctx, socketOf(c)) {
		return 0
	}
	return cmp.Or(bolt.Holder(c.DataDir), -1)
}
