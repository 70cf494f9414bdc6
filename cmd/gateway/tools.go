package main

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"parley/chat"
	"parley/cmd/gateway/sandboxes"
	"parley/config"
	"parley/tools"
	"parley/tools/agents"
	"parley/tools/cron"
	"parley/tools/custom"
	"parley/tools/data"
	"parley/tools/files"
	"parley/tools/mcp"
	"parley/tools/message"
	"parley/tools/python"
	"parley/tools/recall"
	"parley/tools/sandbox"
	"parley/tools/shell"
	"parley/tools/web"
)

// A toolHost is what tools reach of the gateway.
type toolHost struct {
	files    []tools.Tool // those of files, which remember what each session has read
	say      chat.Send
	ask      message.Ask
	withdraw func(ctx context.Context, question string) error
	recall   func(ctx context.Context, who chat.Person, words string, most int) ([]recall.Found, error)
	cron     cron.Manager
	agents   agents.Config
	log      *slog.Logger
	stored   func() int64   // bytes of files that a person may have in the workspace
	sandbox  *sandbox.Auto  // what every tool that starts a program starts it with
	custom   *custom.Source // the tools of the owners; nil: only the others are wanted
	shell    *shell.Shell
	mcp      tools.Source // the tools of MCP servers; nil: there are none
}

// toolSources are what offers tools, from the lowest layer to the highest. A new
// tool is a file of its own and a line here; rules may name its category.
func toolSources(c *config.Config, h toolHost) ([]tools.Source, error) {
	lookups, err := c.Tools.Web.Lookups()
	if err != nil {
		return nil, err
	}
	lookups.Log = h.log
	web, err := web.New(lookups)
	if err != nil {
		return nil, err
	}
	extra := c.Tools.Python.ExtraModules
	interpreter, err := python.New(python.Config{
		Sandbox:   h.sandbox,
		Default:   python.Level(c.Tools.Python.Default),
		Extra:     map[python.Level][]string{python.Standard: extra.Standard, python.Strict: extra.Strict},
		Log:       h.log,
		MaxStored: h.stored,
	})
	if err != nil {
		return nil, err
	}
	builtIn := slices.Concat(
		h.files,
		web,
		data.New(data.Config{Zone: c.Zone(), Weather: weather(c.Tools.Weather)}),
		[]tools.Tool{
			message.New(h.say),
			message.NewAsk(h.ask, h.withdraw),
			recall.New(h.recall),
			cron.New(h.cron),
		},
	)
	var commands []tools.Tool
	if c.Tools.Exec.Enable {
		commands = h.shell.Tools(commandSettings(c.Tools.Exec))
	}
	textMode := func(model string) bool {
		m := c.Models[model]
		return m != nil && m.ToolCalls == "text"
	}
	for i := range builtIn {
		if builtIn[i].Timeout == 0 {
			builtIn[i].Timeout = c.Tools.Timeout
		}
	}
	sources := []tools.Source{
		message.Completion(textMode),
		tools.Fixed(builtIn),
		sandboxes.Offer(tools.Fixed(commands), h.sandbox),
		interpreter,
		agents.New(h.agents),
	}
	if h.mcp != nil {
		sources = append(sources, h.mcp)
	}
	if h.custom == nil {
		return sources, nil
	}
	return h.custom.Above(sources...)
}

// commandSettings returns what the commands of exec may use.
func commandSettings(e config.Exec) shell.Settings {
	return shell.Settings{
		Timeout:     e.Timeout,
		Network:     e.Network,
		HostNetwork: e.HostNetwork,
		Env:         e.Env,
		Memory:      e.Memory,
		Processes:   e.Processes,
		OnlyOwners:  e.Sandbox == "none",
	}
}

// builtInTools are the tools that there are. They are made to see what they are, and not called.
func builtInTools() (list []tools.Tool) {
	c := &config.Config{}
	c.Tools.Web.Search.Provider = "duckduckgo"
	c.Tools.Exec.Enable = true
	sources, _ := toolSources(c, toolHost{files: files.New(files.Rules{})}) // the provider is known
	owner := tools.Scope{From: chat.Sender{Role: chat.Owner}}
	for _, source := range sources {
		all, _ := source.Tools(context.Background(), owner) // none of these fails
		list = append(list, all...)
	}
	return list
}

// toolCategories lists the categories of the tools there are, sorted.
func toolCategories() []string {
	list := []string{python.Category, custom.Category, mcp.CategoryAll} // also where there is no Python
	for _, t := range builtInTools() {
		list = append(list, t.Kind())
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// weather returns what knows the weather, nil if it is to be made up.
func weather(c config.Weather) func(context.Context, string) (data.Weather, error) {
	if c.Provider == "" {
		return nil
	}
	return data.OpenMeteo(&http.Client{Timeout: 30 * time.Second}, c.BaseURL)
}
