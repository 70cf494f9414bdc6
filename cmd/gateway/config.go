package main

import (
	"crypto/sha256"
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

	file    string // where it was read, or would have been
	source  source // how it was found: what command tells people to type
	found   bool   // there was such a file
	byEnv   string // the variable that Models was made of, when the file has none
	src     []byte // its text
	sum     [sha256.Size]byte
	secrets []string // what must never be seen: keys, tokens and what came from the environment
	vars    []string // the environment variables that held secrets

	fellBack error // this is the last config that worked, because of the fault of the file
}

// String shows nothing that must not be seen.
func (c Config) String() string { return "config " + c.file }

// GoString is String.
func (c Config) GoString() string { return c.String() }

// A Model is an entry of models.
type Model struct {
	Type          string   `json:"type"` // openai or demo
	BaseURL       string   `json:"baseUrl"`
	APIKey        secret   `json:"apiKey"`
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

// bots are the bots of all networks, by their whole names.
func (c *Channels) bots() map[string]*Bot {
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
	Token     secret   `json:"token"`
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
	Secret secret `json:"secret"` // mandatory (R-S9)
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

	demo bool // results are cut for a show (E-016)
}

// Search is one search engine.
type Search struct {
	Provider string `json:"provider"`
	APIKey   secret `json:"apiKey"`
	BaseURL  string `json:"baseUrl"` // "": as the provider has it
}

// HTTP is the web face: pages, health, metrics and the API.
type HTTP struct {
	Listen     string `json:"listen"`     // address and port; "": no web face
	PublicURL  string `json:"publicUrl"`  // where browsers reach it, if not at Listen
	AdminToken secret `json:"adminToken"` // signs the owner in; "": one-time links only
}

// Transcription names the model that turns voice messages into text.
type Transcription struct {
	BaseURL  string `json:"baseUrl"`
	APIKey   secret `json:"apiKey"`
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

// A secret is text that no print shows.
type secret string

func (secret) String() string               { return hiddenText }
func (secret) GoString() string             { return hiddenText }
func (secret) MarshalText() ([]byte, error) { return []byte(hiddenText), nil }

// Where the HTTP server listens.
const (
	defaultListen = "127.0.0.1:18790" // unless the config says otherwise
	freeListen    = "127.0.0.1:0"     // if the default is in use
)

const maxConfig = 128 << 10 // bytes

// command is a command line for a person to type, about this installation: with
// the folder and the file that were named when this one was started.
func (c *Config) command(name string, args ...string) string {
	words := []string{"parley", name}
	if c.source.Fixed {
		words = append(words, "--data", c.source.Data)
	}
	if c.source.Must {
		words = append(words, "--config", c.source.File)
	}
	return strings.Join(append(words, args...), " ")
}
