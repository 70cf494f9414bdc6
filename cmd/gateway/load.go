package main

import (
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

// A source is where a Config comes from.
type source struct {
	File    string // config.json
	Data    string // default of dataDir, and what --data sets it to
	Fixed   bool   // Data was given by --data: it wins over the file
	Must    bool   // File was given by --config: it must exist
	Environ environ
}

// load reads the Config of s. The error names every fault in the file, each
// with its line and column; it shows no secret (P22).
func load(s source) (*Config, error) {
	src, err := os.ReadFile(s.File)
	if errors.Is(err, fs.ErrNotExist) && !s.Must {
		src = nil
	} else if err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	} else if len(src) > maxConfig {
		return nil, fmt.Errorf("read config: %s: is over %d KiB", s.File, maxConfig>>10)
	}
	return parse(s, src)
}

// parse makes a Config of src, the text of s.File; nil means that there is none.
func parse(s source, src []byte) (*Config, error) {
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
		HTTP:      HTTP{Listen: defaultListen},
		Store:     Store{Type: "bolt"},
		Log:       Log{Level: "info"},
		file:      s.File,
		source:    s,
		found:     src != nil,
		src:       src,
		sum:       sha256.Sum256(src),
	}
	d := newDecoder(src, s.Environ.lookup)
	if src != nil && !d.decode(c) {
		c.DataDir = s.path("", s.Data) // as far as can be known: a gateway may be there
		return c, d.err(s.File)
	}
	c.fill(s, d)
	check(c, d)
	c.secrets = slices.Sorted(maps.Keys(d.secrets))
	c.vars = slices.Sorted(maps.Keys(d.vars))
	return c, d.err(s.File)
}

// fill sets what the file left out.
func (c *Config) fill(s source, d *decoder) {
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
	demo, _ := s.Environ.lookup("DEMO_MODE")
	c.Tools.Web.demo = demo == "1"
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
	c.byEnv = "OPENAI_BASE_URL"
	if key != "" {
		c.byEnv = "OPENAI_API_KEY"
		d.hide("OPENAI_API_KEY", key)
	}
	set(&name, "gpt-5-mini")
	c.Models = map[string]*Model{
		"main": {Type: "openai", APIKey: secret(key), BaseURL: base, Model: name},
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
func (s source) path(name, otherwise string) string {
	set(&name, otherwise)
	if rest, ok := strings.CutPrefix(name, "~"); ok && (rest == "" || rest[0] == '/') {
		home, _ := s.Environ.lookup("HOME")
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
