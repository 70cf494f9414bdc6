package mcp

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/lazyregexp"
	"parley/tools"
	"parley/tools/sandbox/proxy"
)

// A Server is an entry of tools.mcpServers, in the shape that Claude Desktop writes (D-100, D-101).
// The tags are those of package config.
type Server struct {
	// A program that is talked to by its standard input and output.
	Command string            `json:"command" plain:"yes"`
	Args    []string          `json:"args" secret:"arguments"`
	Env     map[string]string `json:"env" secret:"byName"`
	Cwd     string            `json:"cwd" plain:"yes"` // "" is the server's own folder

	// A service that is talked to by HTTP.
	URL     string            `json:"url" url:"http https" optional:"yes" secret:"address"`
	Headers map[string]string `json:"headers" secret:"yes"`

	// Auth says how people sign in to the service; nil is what the service says itself.
	Auth *Auth `json:"auth"`

	Type string `json:"type" allowed:"stdio, streamableHttp, http, sse" optional:"yes"` // "": inferred (D-102)

	// EnabledTools are names of tools, raw or as models see them; "*" is all (D-104).
	EnabledTools []string      `json:"enabledTools" also:"enabled_tools" default:"[\"*\"]"`
	ToolTimeout  time.Duration `json:"toolTimeout" also:"tool_timeout" seconds:"yes" default:"30s" from:"1s" to:"10m"`
	Enabled      bool          `json:"enabled" not:"disabled" default:"true"`
	Eager        bool          `json:"eager"` // connected when Parley starts
	For          []string      `json:"for" default:"[\"owners\"]"`

	// Sampling is the rule by which the server may ask models, at the expense of the person of the call.
	Sampling string `json:"sampling" allowed:"off, ask, owners, everyone" default:"off"`

	// What the program may use.
	Sandbox string   `json:"sandbox" allowed:"auto, none" default:"auto"`
	Network []string `json:"network"` // hosts; "*" is all public ones
	// HostNetwork gives it the network of the machine instead.
	HostNetwork bool     `json:"hostNetwork"`
	Folders     []string `json:"folders"` // more folders that it may change, or only read if ":ro" follows
}

// Auth says how people sign in to a service.
type Auth struct {
	ClientID     string   `json:"clientId" also:"client_id" plain:"yes"` // of an OAuth client that the owner registered
	ClientSecret string   `json:"clientSecret" also:"client_secret" secret:"yes"`
	Scopes       []string `json:"scopes"` // what to ask for; none: what the service wants

	// Server is the address of the authorization server, which may be in a private network if it is named.
	Server string `json:"server" url:"http https" optional:"yes"`
}

// The ways to talk to a server.
const (
	typeStdio = "stdio"
	typeHTTP  = "streamableHttp"
	typeSSE   = "sse"
)

// transport returns the way to talk to s (D-102).
func (s *Server) transport() string {
	switch {
	case s.Type == "http":
		return typeHTTP
	case s.Type != "":
		return s.Type
	case s.Command != "":
		return typeStdio
	}
	u, err := url.Parse(s.URL)
	if err != nil || !strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/sse") {
		return typeHTTP
	}
	return typeSSE
}

// IsStreamable reports whether s is reached by streamable HTTP.
func (s *Server) IsStreamable() bool { return s.transport() == typeHTTP }

// Check reports what is wrong with s: package config calls it.
func (s *Server) Check(report func(key, problem string)) {
	switch {
	case s.Command == "" && s.URL == "":
		report("command", `is missing; a server has a command to start, or a url to reach`)
	case s.Type == "" && s.Command != "" && s.URL != "":
		report("url", "is there beside command; keep one, or say by type which counts")
	case s.transport() == typeStdio && s.Command == "":
		report("command", "is missing; type stdio needs one")
	case s.transport() != typeStdio && s.URL == "":
		report("url", "is missing; type "+s.Type+" needs one")
	}
	s.checkUnused(report)
	if s.Auth != nil && !s.IsStreamable() {
		report("auth", "is for a server that is reached by streamable HTTP")
	}
	if s.Auth != nil && s.Auth.ClientSecret != "" && s.Auth.ClientID == "" {
		report("auth.clientId", "is missing; auth.clientSecret belongs to one")
	}
	if s.Cwd != "" && !isPath(s.Cwd) {
		report("cwd", `must be an absolute path, or begin with "~/"`)
	}
	for i, host := range s.Network {
		if err := proxy.Check(host); err != nil && host != "*" {
			report(fmt.Sprintf("network[%d]", i), err.Error()+`; "*" is all public hosts`)
		}
	}
	for i, folder := range s.Folders {
		if !isPath(strings.TrimSuffix(folder, readOnlySuffix)) {
			const text = `must be an absolute path, or begin with "~/"; ":ro" at its end has it read only`
			report(fmt.Sprintf("folders[%d]", i), text)
		}
	}
	for i, who := range s.For {
		if who != forOwners && who != forEveryone && !strings.Contains(who, ":") {
			const text = `is nobody; allowed: "owners", "everyone", or a channel's name and the numeric id ` +
				`of a person or a group, such as "telegram:123456"`
			report(fmt.Sprintf("for[%d]", i), text)
		}
	}
	for name := range s.Env {
		if !isVariable.MatchString(name) {
			report("env."+name, "must be the name of an environment variable")
		}
	}
	for name := range s.Headers {
		if !isHeader.MatchString(name) {
			report("headers."+name, "must be the name of an HTTP header")
		}
	}
}

// checkUnused reports keys that have no effect on the one way in which s is talked to.
func (s *Server) checkUnused(report func(key, problem string)) {
	if s.URL == "" && s.Command != "" && len(s.Headers) > 0 {
		report("headers", "is for a server with a url; a program has none")
	}
	if s.Command != "" || s.URL == "" {
		return
	}
	for _, key := range []struct {
		name string
		set  bool
	}{
		{"args", len(s.Args) > 0},
		{"env", len(s.Env) > 0},
		{"cwd", s.Cwd != ""},
		{"sandbox", s.Sandbox == sandboxNone},
		{"network", len(s.Network) > 0},
		{"hostNetwork", s.HostNetwork},
		{"folders", len(s.Folders) > 0},
	} {
		if key.set {
			report(key.name, "is for a program; a server with a url has none")
		}
	}
}

var (
	isVariable = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	isHeader   = lazyregexp.New(`^[A-Za-z0-9!#$%&'*+.^_|~-]+$`)
)

// readOnlySuffix ends the name of a folder that a program may only read.
const readOnlySuffix = ":ro"

func isPath(path string) bool {
	return filepath.IsAbs(path) || path == "~" || strings.HasPrefix(path, "~/")
}

// expandHome returns path with the home folder of Parley's user in place of "~".
func expandHome(path string) string {
	rest, ok := strings.CutPrefix(path, "~")
	if !ok {
		return filepath.Clean(path)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return path
	}
	return filepath.Join(home, rest)
}

// Who may use a server, besides persons.
const (
	forOwners   = "owners"
	forEveryone = "everyone"
)

// isFor reports whether the tools of s exist for from, who takes part in the conversation of scope.
func (s *Server) isFor(scope tools.Scope, from chat.Sender) bool {
	scope.From = from
	return slices.ContainsFunc(s.For, func(who string) bool {
		switch who {
		case forEveryone:
			return true
		case forOwners:
			return from.Role == chat.Owner
		}
		person := chat.Person(who)
		return person == scope.Whose() || !scope.Group && person == chat.Person(scope.At.Channel+":"+from.ID)
	})
}

// MaySample reports whether s may ask models at all.
func (s *Server) MaySample() bool { return s.Sampling != "" && s.Sampling != string(tools.Off) }

// rule returns who may use the tools of s if no rule of the config names their category.
func (s *Server) rule() tools.Rule {
	if slices.Equal(s.For, []string{forOwners}) {
		return tools.Owners
	}
	return tools.Everyone
}

// isOpen reports whether s can pass on what it is given to others: it is reached by HTTP, or its
// program has a network.
func (s *Server) isOpen() bool {
	return s.transport() != typeStdio || s.Sandbox == sandboxNone || s.HostNetwork || len(s.hosts()) > 0
}

// sandboxNone is the value of Sandbox for a program that is not confined.
const sandboxNone = "none"

// registries returns the hosts that package runners fetch their packages from. Whoever has a server
// started by one of them wants it fetched.
func (s *Server) registries() []string {
	switch filepath.Base(cmp.Or(s.Command, "-")) {
	case "npx", "npm", "pnpm", "bunx", "bun", "yarn":
		return []string{"registry.npmjs.org"}
	case "uvx", "uv", "pipx":
		return []string{"pypi.org", "files.pythonhosted.org"}
	}
	return nil
}
