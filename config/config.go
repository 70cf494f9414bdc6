package config

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Config is config.json, with the defaults filled in and every value checked.
// It is read here and nowhere else; each package is handed what it needs.
// What is tagged live follows the file while Parley runs. What is tagged plain
// is no secret even when it comes from the environment.
type Config struct {
	DataDir   string            `json:"dataDir" plain:"yes"`   // absolute
	Workspace string            `json:"workspace" plain:"yes"` // absolute
	Timezone  string            `json:"timezone" plain:"yes"`  // "" is the machine's own
	Owners    []string          `json:"owners" live:"yes"`     // "console", or a channel's name and an id: "telegram:123"
	Models    map[string]*Model `json:"models" live:"yes"`
	Agent     Agent             `json:"agent"`
	Channels  Channels          `json:"channels"`
	Tools     Tools             `json:"tools" live:"yes"`
	Limits    map[string]*Limit `json:"limits" live:"yes"` // of a day, by whose they are: person, session, job, everybody
	Cron      Cron              `json:"cron"`
	Heartbeat Heartbeat         `json:"heartbeat"`
	Dream     Dream             `json:"dream"`
	HTTP      HTTP              `json:"http"`
	Store     Store             `json:"store"`
	Log       Log               `json:"log" live:"yes"`

	Transcription *Transcription `json:"transcription"` // nil: nobody listens to voice messages

	File    string `json:"-"` // where it was read, or would have been
	Source  Source `json:"-"` // how it was found: what command tells people to type
	Found   bool   `json:"-"` // there was such a file
	ByEnv   string `json:"-"` // the variable that Models was made of, when the file has none
	src     []byte // its text
	sum     [sha256.Size]byte
	Secrets []string `json:"-"` // what must never be seen: keys, tokens and what came from the environment
	Vars    []string `json:"-"` // the environment variables that held secrets

	FellBack error `json:"-"` // this is the last config that worked, because of the fault of the file
}

// String shows nothing that must not be seen.
func (c Config) String() string { return "config " + c.File }

// GoString is String.
func (c Config) GoString() string { return c.String() }

// A Model is an entry of models.
type Model struct {
	Type          string   `json:"type"` // openai or demo
	BaseURL       string   `json:"baseUrl"`
	APIKey        Secret   `json:"apiKey"`
	Model         string   `json:"model" plain:"yes"`
	ContextWindow int      `json:"contextWindow"` // tokens
	MaxTokens     int      `json:"maxTokens"`     // of one answer; 0 leaves it to the provider
	Temperature   *float64 `json:"temperature"`   // nil leaves it to the provider
	Vision        *bool    `json:"vision"`        // it can be shown pictures; nil: as its name tells
	ToolCalls     string   `json:"toolCalls"`     // native, or text for models that know no tools
	Price         *Price   `json:"price"`         // nil: not known
}

// A Price is what a million tokens cost, in whatever currency the owner thinks in.
type Price struct {
	Input  float64 `json:"input"`
	Output float64 `json:"output"`
}

// Agent says how turns are made.
type Agent struct {
	Model              string        `json:"model" plain:"yes" live:"yes"` // an entry of models
	Fallback           []string      `json:"fallback" live:"yes"`          // entries of models, in the order to try
	MaxRounds          int           `json:"maxRounds" live:"yes"`
	MaxConcurrentTurns int           `json:"maxConcurrentTurns"`
	MessageTTL         time.Duration `json:"messageTTL" live:"yes"` // a message that waited longer gets a notice, no turn
}

// Channels are the entries of channels, by their whole name: "telegram", "telegram:work".
type Channels struct {
	Console  *struct{} `json:"console"` // nil: no chat in the terminal of "parley run"
	Web      *struct{} `json:"web"`     // nil: no chat in the browser
	Telegram map[string]*Telegram
	Discord  map[string]*Discord
}

// Bots are the bots of all networks, by their whole names.
func (c *Channels) Bots() map[string]*Bot {
	all := map[string]*Bot{}
	for name, t := range c.Telegram {
		all[name] = &t.Bot
	}
	for name, d := range c.Discord {
		all[name] = &d.Bot
	}
	return all
}

// A Bot is what those of all networks have.
type Bot struct {
	Token     Secret   `json:"token"`
	Allow     []string `json:"allow" live:"yes"` // numeric user ids, or "*"; empty is nobody (R-S7)
	Groups    string   `json:"groups"`
	APIURL    string   `json:"apiUrl"`
	Reactions bool     `json:"reactions"` // marks on messages say how far the agent is with them
}

// Telegram is one bot.
type Telegram struct {
	Bot
	Rate    float64  `json:"rate"`    // messages per second in all; -1 is no limit
	Webhook *Webhook `json:"webhook"` // nil: Parley asks Telegram for updates
}

// Discord is one bot.
type Discord struct {
	Bot
	GatewayURL string `json:"gatewayUrl"` // "": as the API says
}

// The ways a bot takes part in groups.
const (
	GroupsMention = "mention" // answers when mentioned, replied to or given a command
	GroupsAll     = "all"     // answers everything
	GroupsNone    = "none"    // answers nothing
)

// A Webhook is where Telegram calls instead.
type Webhook struct {
	URL    string `json:"url"`    // as Telegram sees it
	Secret Secret `json:"secret"` // mandatory (R-S9)
	Listen string `json:"listen"` // as this machine sees it
}

// Tools are the limits of every tool.
type Tools struct {
	Timeout             time.Duration     `json:"timeout"` // of a tool that has none of its own
	RestrictToWorkspace bool              `json:"restrictToWorkspace"`
	Rules               map[string]string `json:"rules"`           // who may use the tools of a category: everyone, owners, ask or off
	ApprovalTimeout     time.Duration     `json:"approvalTimeout"` // of a person who is asked whether a call may be made
	CacheTTL            time.Duration     `json:"cacheTTL"`        // how long an answer is given again; 0: never
	Rollback            bool              `json:"rollback"`        // a lookup that found nothing is tried in other words
	Web                 WebTools          `json:"web"`
	Weather             Weather           `json:"weather"`
}

// A Limit is what may be used in a day (R-S15). -1 is no limit; so is 0, which the file may not say.
type Limit struct {
	Turns    int     `json:"turns"`    // answers
	Rounds   int     `json:"rounds"`   // requests to models
	Tokens   int     `json:"tokens"`   // of requests and answers
	Money    float64 `json:"money"`    // in the currency of the prices
	Children int     `json:"children"` // helpers that are sent off
	Bytes    int64   `json:"bytes"`    // sent, or written into files; of persons and everybody, but for owners
	Stored   int64   `json:"stored"`   // bytes of files in the workspace at any time; of a person only, but for owners
	Jobs     int     `json:"jobs"`     // on the clock at any time; of a person only (R-S24)
}

// Cron is the clock.
type Cron struct {
	MinInterval time.Duration `json:"minInterval"` // between two runs of a job
}

// Heartbeat has the agent look at HEARTBEAT.md.
type Heartbeat struct {
	Every time.Duration `json:"every"` // 0: never
	Model string        `json:"model" plain:"yes" live:"yes"`
}

// Dream turns what was said into memory.
type Dream struct {
	Cron  string `json:"cron" plain:"yes"` // when; "": never
	Model string `json:"model" plain:"yes" live:"yes"`
}

// Weather is where the weather is known.
type Weather struct {
	Provider string `json:"provider"` // "": it is made up
	BaseURL  string `json:"baseUrl"`  // "": as the provider has it
}

// WebTools say how the agent reaches the web.
type WebTools struct {
	Search         Search   `json:"search"`
	SearchFallback []Search `json:"searchFallback"` // asked in this order when it fails
	AllowPrivate   []string `json:"allowPrivate"`   // networks of this house that pages may be on, as 192.168.1.0/24

	Demo bool // results are cut for a show (E-016)
}

// Search is one search engine.
type Search struct {
	Provider string `json:"provider"`
	APIKey   Secret `json:"apiKey"`
	BaseURL  string `json:"baseUrl"` // "": as the provider has it
}

// HTTP is the web face: pages, health, metrics and the API.
type HTTP struct {
	Listen     string `json:"listen"`     // address and port; "": no web face
	PublicURL  string `json:"publicUrl"`  // where browsers reach it, if not at Listen
	AdminToken Secret `json:"adminToken"` // signs the owner in; "": one-time links only
}

// Transcription names the model that turns voice messages into text.
type Transcription struct {
	BaseURL  string `json:"baseUrl"`
	APIKey   Secret `json:"apiKey"`
	Model    string `json:"model" plain:"yes"`
	Language string `json:"language" plain:"yes"` // ISO 639-1 code of what is spoken; "": it finds out
}

// Store says where state is kept.
type Store struct {
	Type string `json:"type"` // bolt or mem
}

// Log says how much is logged.
type Log struct {
	Level string `json:"level"` // debug, info, warn or error
}

// A Secret is text that no print shows.
type Secret string

func (Secret) String() string               { return Hidden }
func (Secret) GoString() string             { return Hidden }
func (Secret) MarshalText() ([]byte, error) { return []byte(Hidden), nil }

// A Source is where a Config comes from.
type Source struct {
	File    string // config.json
	Data    string // default of dataDir, and what --data sets it to
	Fixed   bool   // Data was given by --data: it wins over the file
	Must    bool   // File was given by --config: it must exist
	Environ Environ
}

// Where the HTTP server listens.
const (
	DefaultListen = "127.0.0.1:18790" // unless the config says otherwise
	FreeListen    = "127.0.0.1:0"     // if the default is in use
)

// Hidden stands where a secret was.
const Hidden = "[secret]"

const maxConfig = 128 << 10 // bytes

// Load reads the Config of s. The error names every fault in the file, each
// with its line and column; it shows no secret (P22).
func Load(s Source) (*Config, error) {
	src, err := os.ReadFile(s.File)
	if errors.Is(err, fs.ErrNotExist) && !s.Must {
		src = nil
	} else if err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	} else if len(src) > maxConfig {
		return nil, fmt.Errorf("read config: %s: is over %d KiB", s.File, maxConfig>>10)
	}
	return Parse(s, src)
}

// Parse makes a Config of src, the text of s.File; nil means that there is none.
func Parse(s Source, src []byte) (*Config, error) {
	c := &Config{
		Owners:   []string{"console", "web"},
		Agent:    Agent{MaxRounds: 40, MaxConcurrentTurns: 1024, MessageTTL: 24 * time.Hour},
		Channels: Channels{Console: &struct{}{}, Web: &struct{}{}, Telegram: map[string]*Telegram{}, Discord: map[string]*Discord{}},
		Tools: Tools{
			Timeout: time.Minute, RestrictToWorkspace: true, ApprovalTimeout: 15 * time.Minute, CacheTTL: 5 * time.Minute, Rollback: true,
			Web: WebTools{Search: Search{Provider: "duckduckgo"}},
		},
		Limits: map[string]*Limit{ // enough for a person who works with the agent all day, too little for a loop to ruin anybody
			"person": {Tokens: 20_000_000, Children: 100, Bytes: 200_000_000, Stored: 1_000_000_000, Jobs: 50}, "session": {}, "job": {Tokens: 5_000_000}, "everybody": {Tokens: 100_000_000, Bytes: 2_000_000_000},
		},
		Cron:      Cron{MinInterval: 10 * time.Second},
		Heartbeat: Heartbeat{Every: 30 * time.Minute},
		Dream:     Dream{Cron: "0 4 * * *"},
		HTTP:      HTTP{Listen: DefaultListen},
		Store:     Store{Type: "bolt"},
		Log:       Log{Level: "info"},
		File:      s.File,
		Source:    s,
		Found:     src != nil,
		src:       src,
		sum:       sha256.Sum256(src),
	}
	d := newDecoder(src, s.Environ.Lookup)
	if src != nil && !d.decode(c) {
		c.DataDir = s.path("", s.Data) // as far as can be known: a gateway may be there
		return c, d.err(s.File)
	}
	c.fill(s, d)
	check(c, d)
	c.Secrets = slices.Sorted(maps.Keys(d.secrets))
	c.Vars = slices.Sorted(maps.Keys(d.vars))
	return c, d.err(s.File)
}

// Command is a command line for a person to type, about this installation: with
// the folder and the file that were named when this one was started.
func (c *Config) Command(name string, args ...string) string {
	words := []string{"parley", name}
	if c.Source.Fixed {
		words = append(words, "--data", c.Source.Data)
	}
	if c.Source.Must {
		words = append(words, "--config", c.Source.File)
	}
	return strings.Join(append(words, args...), " ")
}

// fill sets what the file left out.
func (c *Config) fill(s Source, d *decoder) {
	c.DataDir = s.path(c.DataDir, s.Data)
	if s.Fixed {
		c.DataDir = s.path(s.Data, s.Data)
	}
	c.Workspace = s.path(c.Workspace, filepath.Join(c.DataDir, "workspace"))
	if len(c.Models) == 0 {
		c.modelsByEnv(d)
	}
	for _, m := range c.Models {
		if m.Type == "openai" {
			set(&m.BaseURL, "https://api.openai.com/v1")
		}
		set(&m.ContextWindow, 128_000)
		set(&m.ToolCalls, "native")
	}
	set(&c.Agent.Model, soleModel(c.Models))
	demo, _ := s.Environ.Lookup("DEMO_MODE")
	c.Tools.Web.Demo = demo == "1"
	if t := c.Transcription; t != nil {
		set(&t.BaseURL, "https://api.openai.com/v1")
		set(&t.Model, "whisper-1")
	}
	for _, t := range c.Channels.Telegram {
		if t.Webhook != nil {
			set(&t.Webhook.Listen, "127.0.0.1:8081")
		}
	}
}

// modelsByEnv makes the model that OPENAI_API_KEY, OPENAI_BASE_URL and
// OPENAI_MODEL name, or the demo model.
func (c *Config) modelsByEnv(d *decoder) {
	key, _ := d.lookup("OPENAI_API_KEY")
	base, _ := d.lookup("OPENAI_BASE_URL")
	name, _ := d.lookup("OPENAI_MODEL")
	if key == "" && base == "" {
		c.Models = map[string]*Model{"demo": {Type: "demo"}}
		return
	}
	c.ByEnv = "OPENAI_BASE_URL"
	if key != "" {
		c.ByEnv = "OPENAI_API_KEY"
		d.hide("OPENAI_API_KEY", key)
	}
	set(&name, "gpt-5-mini")
	c.Models = map[string]*Model{
		"main": {Type: "openai", APIKey: Secret(key), BaseURL: base, Model: name},
	}
}

// soleModel returns the model to use where agent.model names none: main, or the only one.
func soleModel(ms map[string]*Model) string {
	if _, ok := ms["main"]; ok {
		return "main"
	}
	if len(ms) == 1 {
		for name := range ms {
			return name
		}
	}
	return ""
}

// path makes name absolute: "~/" is the home folder, and what is relative is
// beside the config file.
func (s Source) path(name, otherwise string) string {
	set(&name, otherwise)
	if rest, ok := strings.CutPrefix(name, "~"); ok && (rest == "" || rest[0] == '/') {
		home, _ := s.Environ.Lookup("HOME")
		name = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(s.File), name)
	}
	if abs, err := filepath.Abs(name); err == nil {
		name = abs
	}
	return filepath.Clean(name)
}

// set gives *p the value v if it has none.
func set[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// DreamModel names the model that goes over memory.
func (c *Config) DreamModel() string { return cmp.Or(c.Dream.Model, c.Agent.Model) }

// Zone returns the time zone in which the agent is told the time.
func (c *Config) Zone() *time.Location {
	zone, err := time.LoadLocation(c.Timezone)
	if c.Timezone == "" || err != nil { // check lets no wrong one pass
		return time.Local
	}
	return zone
}
