// Package config reads config.json: JSON with comments, in which ${NAME} stands
// for an environment variable. It reports all faults of a file at once, each with
// its line and column, and follows the file while the gateway runs.
//
// A key is a struct field with a json tag. Further tags say what its value may be:
//
//	default   the value where the file has none: text, or JSON
//	allowed   the texts that it may be, separated by commas; of a map, its values
//	from, to  the smallest and the largest number or length of time
//	url       the schemes that an address may have
//	listen    it is an address and a port of this machine
//	names     it is the name of an entry of models
//	optional  "", 0 and "0s" are allowed, too
//	unique    no two channels may have the same value; the tag says why
//	live      a running gateway takes over a new value
//	also      a second name of the key
//	not       of what is true or false: a key of other programs that says the opposite
//	seconds   a length of time may be a number, too
//	unknown   of a table of structs: keys that are not known are ignored
//	plain     it is no secret even if it comes from the environment
//	secret    it is never shown; "byName", of a table: if its name says that it is secret
//
// What tags cannot say, a method Check of the struct says: [Checker]. The tag
// inline makes the fields of a struct keys of the struct around it.
//
// Channels, models and stores are made by drivers. The part of an entry that only
// its driver understands is a struct with these tags in the driver's package, which
// does not import this one. [Drivers] lists them.
package config

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/lazyregexp"
	"parley/tools/mcp"
	"parley/tools/sandbox/proxy"
)

// Config is config.json with the defaults filled in and every value checked.
type Config struct {
	DataDir   string              `json:"dataDir" plain:"yes"`   // absolute
	Workspace string              `json:"workspace" plain:"yes"` // absolute
	Timezone  string              `json:"timezone" plain:"yes"`  // "" is the machine's own
	Owners    []string            `json:"owners" live:"yes" default:"[\"console\", \"web\"]"`
	Models    map[string]*Model   `json:"models" live:"yes"`
	Agent     Agent               `json:"agent"`
	Channels  map[string]*Channel `json:"channels" default:"{\"console\": {}, \"web\": {}}"` // by their whole names
	Tools     Tools               `json:"tools" live:"yes"`
	Shared    []*Shared           `json:"shared" live:"yes"`
	Limits    map[string]*Limit   `json:"limits" live:"yes"` // per day, by whose they are
	Cron      Cron                `json:"cron"`
	Heartbeat Heartbeat           `json:"heartbeat"`
	Dream     Dream               `json:"dream"`
	Retention Retention           `json:"retention" live:"yes"`
	HTTP      HTTP                `json:"http"`
	Store     Store               `json:"store" default:"{}"`
	Log       Log                 `json:"log" live:"yes"`

	Transcription *Transcription `json:"transcription"` // nil: voice messages are not understood

	File    string   `json:"-"` // where it was read, or would have been
	Source  Source   `json:"-"` // how the file was found
	Found   bool     `json:"-"` // whether there is such a file
	ByEnv   string   `json:"-"` // the variable that Models was made from if the file has none
	Secrets []string `json:"-"` // what must never be shown: keys, tokens and what came from the environment
	Vars    []string `json:"-"` // the environment variables that held secrets

	// Removed has a warning for each key of an earlier release that is in the file.
	Removed []string `json:"-"`

	// FellBack is the fault of the file because of which this is the last config
	// that worked; nil if it is the file's.
	FellBack error `json:"-"`

	src    []byte   // the text of the file
	unset  []string // the environment variables that it names and that are not set
	faulty bool     // it has faults besides
	sum    [sha256.Size]byte
}

// String shows nothing that must not be seen.
func (c Config) String() string { return "config " + c.File }

// GoString is String.
func (c Config) GoString() string { return c.String() }

// DreamModel names the model that consolidates memory.
func (c *Config) DreamModel() string { return cmp.Or(c.Dream.Model, c.Agent.Model) }

// TitleModel names the model that names conversations, "" if none does.
func (c *Config) TitleModel() string {
	if !c.Agent.Titles {
		return ""
	}
	return c.DreamModel()
}

// Zone returns the time zone in which the agent is told the time.
func (c *Config) Zone() *time.Location {
	zone, err := time.LoadLocation(c.Timezone)
	if c.Timezone == "" || err != nil { // a wrong one is a fault
		return time.Local
	}
	return zone
}

// A Channel is an entry of channels.
type Channel struct {
	Type    string   // of its driver: its name up to the colon
	Senders *Senders `json:"-" inline:"yes"` // nil if its driver is no [Network]
	Driver  any      `json:"-" inline:"yes"`
}

// Senders says who may talk on a Network.
type Senders struct {
	Allow []string `json:"allow" live:"yes"` // ids, or "*"; empty is nobody (R-S7)
}

// A Model is an entry of models. Its driver may read the same keys.
type Model struct {
	Type          string `json:"type"`
	Model         string `json:"model" plain:"yes"`                        // as the provider names it
	ContextWindow int    `json:"contextWindow" from:"1000" to:"100000000"` // tokens
	MaxTokens     int    `json:"maxTokens"`                                // of one answer; 0 leaves it to the provider
	ToolCalls     string `json:"toolCalls" allowed:"native, text"`         // text for models that know no tools
	Price         *Price `json:"price"`                                    // nil: not known
	Driver        any    `json:"-" inline:"yes"`
}

// Check implements [Checker].
func (m *Model) Check(report func(key, problem string)) {
	if most := max(m.ContextWindow-1, 0); m.MaxTokens < 0 || m.MaxTokens > most {
		report("maxTokens", fmt.Sprintf("is %d, must be from 0 to %d", m.MaxTokens, most))
	}
	if p := m.Price; p != nil && (p.Input < 0 || p.Output < 0) {
		report("price", "must be what a million tokens cost, 0 or more")
	}
}

// A Price is what a million tokens cost, in whatever currency the owner thinks in.
type Price struct {
	Input  float64 `json:"input"`
	Output float64 `json:"output"`
}

// Store says where state is kept.
type Store struct {
	Type   string `json:"type" default:"bolt"`
	Driver any    `json:"-" inline:"yes"`
}

// Agent says how turns are made.
type Agent struct {
	Model              string   `json:"model" plain:"yes" live:"yes" names:"models"`
	Fallback           []string `json:"fallback" live:"yes" names:"models"` // in the order to try
	MaxRounds          int      `json:"maxRounds" live:"yes" default:"40" from:"1" to:"1000"`
	MaxConcurrentTurns int      `json:"maxConcurrentTurns" default:"1024" from:"1" to:"10000"`
	// MessageTTL: a message that waited longer gets a notice instead of an answer.
	MessageTTL time.Duration `json:"messageTTL" live:"yes" default:"24h" from:"1m"`
	// Prompt is what every request begins with; auto is lean for models with a small window.
	Prompt string `json:"prompt" live:"yes" default:"auto" allowed:"auto, full, lean"`
	// Titles has conversations of the web page named by a model: that of dreams.
	Titles bool `json:"titles" live:"yes" default:"true"`
}

// maxLeanWindow is how many tokens a small window has.
const maxLeanWindow = 6000

// IsLean reports whether requests to m begin with as little as can be.
func (a *Agent) IsLean(m *Model) bool {
	return a.Prompt == "lean" || a.Prompt == "auto" && m.ContextWindow <= maxLeanWindow
}

// Check implements [Checker].
func (a *Agent) Check(report func(key, problem string)) {
	seen := map[string]bool{a.Model: true}
	for i, name := range a.Fallback {
		if seen[name] {
			report(fmt.Sprintf("fallback[%d]", i), "is tried already")
		}
		seen[name] = true
	}
}

// Tools are the settings of tools.
type Tools struct {
	// Timeout is that of a tool that has none of its own.
	Timeout time.Duration `json:"timeout" default:"1m" from:"1s" to:"10m"`
	// Rules say who may use the tools of a category.
	Rules map[string]string `json:"rules" allowed:"everyone, owners, ask, off"`
	// ApprovalTimeout is how long a person who is asked for approval may take.
	ApprovalTimeout time.Duration `json:"approvalTimeout" default:"15m" from:"1s" to:"24h"`
	// CacheTTL is how long a result is given again; 0: never.
	CacheTTL time.Duration `json:"cacheTTL" default:"5m" from:"0s" to:"24h"`
	// Rollback has a search that found nothing tried in other words.
	Rollback bool     `json:"rollback" default:"true"`
	Web      WebTools `json:"web"`
	Weather  Weather  `json:"weather"`
	Exec     Exec     `json:"exec"`
	Python   Python   `json:"python"`
	Custom   Custom   `json:"custom"`
	// MCPServers are programs and services with more tools, by name.
	MCPServers map[string]*mcp.Server `json:"mcpServers" also:"mcp_servers" unknown:"ignored"`
	// MCPSignInKey is part of the key that sign-ins to MCP servers are encrypted with.
	MCPSignInKey Secret `json:"mcpSignInKey"`
	// Override changes built-in tools, by name.
	Override map[string]*Override `json:"override"`
}

// Custom says what the tools may do that owners write.
type Custom struct {
	Enable bool `json:"enable" default:"true"`
	// MaxTimeout is how long one may run, whatever its definition says.
	MaxTimeout time.Duration `json:"maxTimeout" default:"10m" from:"1s" to:"10m"`
	// Network has the hosts that tools may reach which ask for the network; "*" is all public ones.
	Network []string `json:"network"`
	// HostNetwork gives those tools the network of the machine instead.
	HostNetwork bool `json:"hostNetwork"`
}

// Check implements [Checker].
func (c *Custom) Check(report func(key, problem string)) { checkHosts(c.Network, report) }

// checkHosts reports the entries of a list "network" that are no hosts.
func checkHosts(list []string, report func(key, problem string)) {
	for i, host := range list {
		if err := proxy.Check(host); err != nil {
			report(fmt.Sprintf("network[%d]", i), err.Error())
		}
	}
}

// An Override is what a built-in tool is for models.
type Override struct {
	Description string `json:"description"` // what they read; "": its own
	Tool        string `json:"tool"`        // the id of the custom tool that takes its place; "": none
}

// Exec says how programs are run that models and tools choose, and what the commands of exec may use.
type Exec struct {
	// Sandbox confines them. auto is the strongest that holds on this machine.
	Sandbox string `json:"sandbox" default:"auto" allowed:"auto, bwrap, landlock, docker, none"`
	// Image is that of containers, if Sandbox is docker.
	Image string `json:"image" default:"python:3-slim" plain:"yes"`

	Enable bool `json:"enable" default:"true"`
	// Timeout is how long a command may take that names no time.
	Timeout time.Duration `json:"timeout" default:"1m" from:"1s" to:"10m"`
	Network []string      `json:"network"` // hosts such as "pypi.org" or "*.debian.org"; "*" is all public ones
	// HostNetwork gives a command that asks for the network that of the machine, and not only the
	// public internet.
	HostNetwork bool `json:"hostNetwork"`

	Env       map[string]string `json:"env" secret:"byName"` // more environment variables that commands get (D-075)
	Memory    int64             `json:"memory" default:"1073741824" from:"16777216" to:"1099511627776"`
	Processes int               `json:"processes" default:"256" from:"8" to:"10000"`
}

// Check implements [Checker].
func (e *Exec) Check(report func(key, problem string)) {
	checkHosts(e.Network, report)
	for name := range e.Env {
		if !isVariable.MatchString(name) {
			report("env."+name, "must be the name of an environment variable")
		}
	}
}

var (
	isModule   = lazyregexp.New(`^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$`)
	isVariable = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Python says what the code of execute_python may do.
type Python struct {
	// Default is the level of a call that names none.
	Default      string       `json:"default" default:"standard" allowed:"lenient, standard, strict"`
	ExtraModules ExtraModules `json:"extraModules"`
}

// ExtraModules are what code of a level may import besides.
type ExtraModules struct {
	Standard []string `json:"standard"`
	Strict   []string `json:"strict"`
}

// Check implements [Checker].
func (m *ExtraModules) Check(report func(key, problem string)) {
	check := func(level string, names []string) {
		for i, name := range names {
			if !isModule.MatchString(name) {
				report(fmt.Sprintf("%s[%d]", level, i), `must be the name of a module, such as "numpy" or "xml.dom"`)
			}
		}
	}
	check("standard", m.Standard)
	check("strict", m.Strict)
}

// WebTools say how the agent reaches the web.
type WebTools struct {
	Search         Search   `json:"search"`
	SearchFallback []Search `json:"searchFallback"` // asked in this order when it fails
	AllowPrivate   []string `json:"allowPrivate"`   // private networks that pages may be on, as 192.168.1.0/24

	Demo bool `json:"-"` // results are cut for a show (E-016)
}

// Search is one search engine.
type Search struct {
	Provider string `json:"provider" default:"duckduckgo" allowed:"duckduckgo, brave, tavily, searxng, jina, kagi"`
	APIKey   Secret `json:"apiKey"`
	BaseURL  string `json:"baseUrl" url:"http https" optional:"yes"` // "": the provider's own
}

// Check implements [Checker].
func (s *Search) Check(report func(key, problem string)) {
	switch s.Provider {
	case "searxng":
		if s.BaseURL == "" {
			report("baseUrl", "is missing; allowed: the address of your SearXNG")
		}
	case "brave", "tavily", "jina", "kagi":
		if s.APIKey == "" {
			report("apiKey", "is missing; "+s.Provider+" searches for nobody without one")
		}
	}
}

// Weather is where the weather is known.
type Weather struct {
	Provider string `json:"provider" allowed:"openmeteo" optional:"yes"` // "": it is made up
	BaseURL  string `json:"baseUrl" url:"http https" optional:"yes"`     // "": the provider's own
}

// Check implements [Checker].
func (w *Weather) Check(report func(key, problem string)) {
	if w.Provider == "" && w.BaseURL != "" {
		report("provider", "is missing; allowed: openmeteo")
	}
}

// Shared is a folder of the workspace that people see who are not owners, and groups.
type Shared struct {
	Folder string   `json:"folder"`
	Read   []string `json:"read"`  // persons and groups as "telegram:123456", or "everyone"
	Write  []string `json:"write"` // they may change it, too
}

// Check implements [Checker].
func (s *Shared) Check(report func(key, problem string)) {
	first, _, _ := strings.Cut(s.Folder, "/")
	switch {
	case s.Folder == "":
		report("folder", "is missing; allowed: the name of a folder of the workspace")
	case !filepath.IsLocal(s.Folder) || filepath.Clean(s.Folder) != s.Folder || s.Folder == ".":
		report("folder", `is no folder of the workspace; allowed: such as "recipes" or "projects/garden"`)
	case strings.HasPrefix(first, ".") || slices.Contains(strings.Fields("people inbox memory skills agents"), first):
		report("folder", "is one of Parley's own folders, which are not shared")
	case s.Folder == "work":
		report("folder", `is where programs work; allowed: a folder in it, such as "work/site"`)
	}
	for _, list := range []struct {
		key  string
		whom []string
	}{{"read", s.Read}, {"write", s.Write}} {
		for _, who := range list.whom {
			if who != "everyone" && !strings.Contains(who, ":") {
				const text = `names %+q; allowed: "everyone", or a channel's name and the numeric id ` +
					`of a person or a group, such as "telegram:123456"`
				report(list.key, fmt.Sprintf(text, who))
			}
		}
	}
}

// A Limit is what may be used per day (R-S15). -1 is no limit; so is 0, which the
// file may not say.
type Limit struct {
	Turns    int     `json:"turns"`    // answers
	Rounds   int     `json:"rounds"`   // requests to models
	Tokens   int     `json:"tokens"`   // of requests and answers
	Money    float64 `json:"money"`    // in the currency of the prices
	Children int     `json:"children"` // subagents that are started
	// Bytes are those sent, or written into files. Owners are not limited.
	Bytes int64 `json:"bytes" of:"person everybody" else:"bytes are counted for persons and for everybody"`
	// Stored is bytes of files in the workspace at any time. Owners are not limited.
	Stored int64 `json:"stored" of:"person" else:"only a person has files"`
	// Jobs are those scheduled at any time (R-S24).
	Jobs int `json:"jobs" of:"person" else:"only a person has jobs"`
}

// defaultLimits are enough for a person who works with the agent all day, and too
// little for a loop to ruin anybody.
func defaultLimits() map[string]*Limit {
	return map[string]*Limit{
		"person":    {Tokens: 20_000_000, Children: 100, Bytes: 200_000_000, Stored: 1_000_000_000, Jobs: 50},
		"session":   {},
		"job":       {Tokens: 5_000_000},
		"everybody": {Tokens: 100_000_000, Bytes: 2_000_000_000},
	}
}

// Cron is the scheduler.
type Cron struct {
	MinInterval time.Duration `json:"minInterval" default:"10s" from:"1s" to:"24h"` // between two runs of a job
}

// Heartbeat has the agent look at HEARTBEAT.md.
type Heartbeat struct {
	Every time.Duration `json:"every" default:"30m" from:"1m" to:"24h" optional:"yes"` // 0: never
	Model string        `json:"model" plain:"yes" live:"yes" names:"models" optional:"yes"`
}

// Dream turns what was said into memory.
type Dream struct {
	Cron  string `json:"cron" plain:"yes" default:"0 4 * * *"` // when; "": never
	Model string `json:"model" plain:"yes" live:"yes" names:"models" optional:"yes"`
}

// HTTP is the HTTP server: pages, health, metrics and the API.
type HTTP struct {
	// Listen is an address of this machine; "": there is no server.
	Listen string `json:"listen" default:"127.0.0.1:18790" listen:"yes" optional:"yes"`
	// PublicURL is where browsers reach it, if not at Listen.
	PublicURL string `json:"publicUrl"`
	// AdminToken signs the owner in; "": only one-time links do.
	AdminToken Secret `json:"adminToken"`
}

// Where the HTTP server listens.
const (
	DefaultListen = "127.0.0.1:18790" // unless the config says otherwise
	FreeListen    = "127.0.0.1:0"     // if the default is in use
)

// Transcription names the model that turns voice messages into text.
type Transcription struct {
	BaseURL  string `json:"baseUrl" url:"https http"`
	APIKey   Secret `json:"apiKey"`
	Model    string `json:"model" plain:"yes"`
	Language string `json:"language" plain:"yes"` // ISO 639-1 code of what is spoken; "": the model finds out
}

// Log says how much is logged.
type Log struct {
	Level string `json:"level" default:"info" allowed:"debug, info, warn, error"`
}

// ModelNames returns the names of the models: the one of conversations that chose none, and all.
func (c *Config) ModelNames() (usual string, all []string) {
	return c.Agent.Model, slices.Sorted(maps.Keys(c.Models))
}

// Least returns the lowest level that is logged.
func (l Log) Least() (v slog.Level) {
	_ = v.UnmarshalText([]byte(l.Level)) // only levels are allowed
	return v
}

// Hidden stands where a secret was.
const Hidden = "[secret]"

// A Secret is text that no print shows.
type Secret string

// String implements [fmt.Stringer].
func (Secret) String() string { return Hidden }

// GoString implements [fmt.GoStringer].
func (Secret) GoString() string { return Hidden }

// MarshalText implements [encoding.TextMarshaler].
func (Secret) MarshalText() ([]byte, error) { return []byte(Hidden), nil }
