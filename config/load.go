package config

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A Source is where a Config comes from.
type Source struct {
	File    string // config.json
	Data    string // default of dataDir, and what --data sets it to
	Fixed   bool   // Data was given by --data: it wins over the file
	Must    bool   // File was given by --config: it must exist
	Listen  string // given by --listen: it wins over http.listen of the file
	Environ Environ
	Drivers Drivers
}

const maxConfig = 128 << 10 // bytes

// Load reads the Config of s. The error names every fault in the file, each
// with its line and column; it shows no secret (P22).
func Load(s Source) (*Config, error) {
	src, err := os.ReadFile(s.File)
	if errors.Is(err, fs.ErrNotExist) && !s.Must {
		return Parse(s, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	if len(src) > maxConfig {
		return nil, fmt.Errorf("read config: %s: is over %d KiB", s.File, maxConfig>>10)
	}
	return Parse(s, src)
}

// Parse makes a Config of src, the text of s.File; nil means that there is none.
func Parse(s Source, src []byte) (*Config, error) {
	d := newDecoder(src, s)
	c, err := d.parse(s, src)
	c.unset = d.unset
	other := func(p problem) bool { return !strings.HasPrefix(p.text, notSet) }
	c.faulty = d.broken != "" || slices.ContainsFunc(d.problems, other)
	return c, err
}

// parse is Parse with the decoder d of src.
func (d *decoder) parse(s Source, src []byte) (*Config, error) {
	c := &Config{Limits: defaultLimits(), File: s.File, Source: s, Found: src != nil, src: src, sum: sha256.Sum256(src)}
	d.setDefaults(c)
	if src != nil && !d.decode(c) {
		c.DataDir = s.path("", s.Data) // as far as can be known: a gateway may be there
		return c, d.err(s.File)
	}
	c.fill(s, d)
	check(c, d)
	c.Secrets = slices.Sorted(maps.Keys(d.secrets))
	c.Removed = d.removed
	c.Vars = slices.Sorted(maps.Keys(d.vars))
	return c, d.err(s.File)
}

// Advice says what to do about the faults of the file; c may be nil. If it only names variables
// that are not set, nothing is wrong with the file: this shell lacks what the service reads from its
// file of secrets.
func (c *Config) Advice() string {
	const mend = "mend the lines named, or move the file away and run parley onboard"
	if c == nil || len(c.unset) == 0 {
		return mend
	}
	set := fmt.Sprintf("set %s in this shell: with export or, if %[2]s has it: set -a; . %[2]s; set +a",
		strings.Join(c.unset, ", "), filepath.Join(c.DataDir, "environment"))
	if c.faulty {
		return set + "; mend the other lines named"
	}
	return set
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

// fill sets what the file left out and no tag says.
func (c *Config) fill(s Source, d *decoder) {
	c.DataDir = s.path(c.DataDir, s.Data)
	if s.Fixed {
		c.DataDir = s.path(s.Data, s.Data)
	}
	c.Workspace = s.path(c.Workspace, filepath.Join(c.DataDir, "workspace"))
	if len(c.Models) == 0 {
		c.modelsByEnv(d)
	}
	if s.Listen != "" {
		c.HTTP.Listen = s.Listen
		d.origins["http.listen"] = "--listen"
	}
	for _, m := range c.Models {
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
}

// modelsByEnv makes the model that OPENAI_API_KEY, OPENAI_BASE_URL and
// OPENAI_MODEL name, or the demo model.
func (c *Config) modelsByEnv(d *decoder) {
	key, _ := d.lookup("OPENAI_API_KEY")
	base, _ := d.lookup("OPENAI_BASE_URL")
	name, _ := d.lookup("OPENAI_MODEL")
	if key == "" && base == "" {
		d.decodeText(`{"demo": {"type": "demo"}}`, "models", &c.Models)
		return
	}
	c.ByEnv = "OPENAI_BASE_URL"
	set(&name, "gpt-5-mini")
	plain := strings.NewReplacer("${", "$${") // which is not expanded
	m := map[string]string{"type": "openai", "model": plain.Replace(name), "baseUrl": plain.Replace(base)}
	if key != "" {
		c.ByEnv = "OPENAI_API_KEY"
		m["apiKey"] = "${OPENAI_API_KEY}"
	}
	text, _ := json.Marshal(map[string]any{"main": m}) // it is text only
	d.decodeText(string(text), "models", &c.Models)
	d.origins["models.main.baseUrl"] = "OPENAI_BASE_URL"
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
	absolute, err := filepath.Abs(name)
	if err != nil { // there is no working directory
		return filepath.Clean(name)
	}
	return absolute
}

// set gives *p the value v if it has none.
func set[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// An Environ is the environment as the process found it. It is kept, so that a
// reload can read variables that were taken out of the process.
type Environ map[string]string

// NewEnviron returns the environment of vars, each of them NAME=value.
func NewEnviron(vars []string) Environ {
	e := Environ{}
	for _, v := range vars {
		if name, val, ok := strings.Cut(v, "="); ok {
			e[name] = val
		}
	}
	return e
}

// Lookup returns a variable. An empty one counts as unset.
func (e Environ) Lookup(name string) (string, bool) {
	v := e[name]
	return v, v != ""
}
