package imports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/lazyregexp"
	"parley/secrets"
)

// Settings are what becomes of a config, without any secret: where one was stands the name of an
// environment variable.
type Settings struct {
	Channels map[string]*Channel
	Models   map[string]*Model
	Model    string   // the first to ask
	Fallback []string // asked in this order when it fails
	Owners   []string // as in owners of config.json
	Timezone string
	Servers  map[string]*Server // of MCP
	Env      []Variable         // to be set

	note    func(Item)
	secrets map[string]string // variable -> its value, to know the same secret again
}

// A Channel is an entry of channels.
type Channel struct {
	Token  string   `json:"token"`
	Allow  []string `json:"allow"`
	Groups string   `json:"groups,omitempty"`
}

// A Model is an entry of models.
type Model struct {
	Type          string  `json:"type"`
	BaseURL       string  `json:"baseUrl,omitempty"`
	APIKey        string  `json:"apiKey,omitempty"`
	Model         string  `json:"model"`
	ContextWindow int64   `json:"contextWindow,omitempty"`
	MaxTokens     int64   `json:"maxTokens,omitempty"`
	Price         *prices `json:"price,omitempty"`
}

type prices struct {
	Input  float64 `json:"input"`
	Output float64 `json:"output"`
}

// A Server is an entry of tools.mcpServers.
type Server struct {
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Type    string            `json:"type,omitempty"`
	Enabled bool              `json:"enabled"`
}

// A Variable is an environment variable that the owner has to set.
type Variable struct {
	Name string `json:"name"`
	From string `json:"from"` // where its value is
}

func newSettings() Settings {
	return Settings{
		Channels: map[string]*Channel{},
		Models:   map[string]*Model{},
		Servers:  map[string]*Server{},
		secrets:  map[string]string{},
	}
}

// Empty reports whether there is nothing in s.
func (s *Settings) Empty() bool {
	return len(s.Channels)+len(s.Models)+len(s.Servers)+len(s.Owners) == 0 && s.Timezone == ""
}

var (
	isVariable  = lazyregexp.New(`^[A-Z_][A-Z0-9_]{0,100}$`)
	isReference = lazyregexp.New(`^\$\{?([A-Z_][A-Z0-9_]{0,100})\}?$`)
	isPersonID  = lazyregexp.New(`^[1-9][0-9]{0,19}$`)
	isNoName    = lazyregexp.New(`[^a-z0-9]+`)
)

// secret returns what stands in the config for the secret v, which is at from: "${NAME}", or "" if
// there is none. A variable that v itself names keeps its name.
func (s *Settings) secret(v value, name, from string) string {
	text := v.text()
	if v.get("source").text() == "env" { // a reference of OpenClaw
		text = "${" + v.get("id").text() + "}"
	} else if v.get("source").exists() {
		text = "\x00" + from // of a file or a program: known by where it is
	}
	if text == "" {
		return ""
	}
	if m := isReference.FindStringSubmatch(text); m != nil {
		s.need(m[1], from, text)
		return "${" + m[1] + "}"
	}
	name = strings.ToUpper(strings.Trim(isNoName.ReplaceAllString(strings.ToLower(name), "_"), "_"))
	if !isVariable.MatchString(name) {
		name = "IMPORTED_" + name
	}
	free := name
	for n := 2; s.secrets[free] != "" && s.secrets[free] != text; n++ {
		free = fmt.Sprintf("%s_%d", name, n)
	}
	s.need(free, from, text)
	return "${" + free + "}"
}

func (s *Settings) need(name, from, text string) {
	if s.secrets[name] == "" {
		s.Env = append(s.Env, Variable{name, from})
	}
	s.secrets[name] = text
}

// plain returns a text in which config.json expands nothing.
func plain(text string) string { return strings.ReplaceAll(text, "${", "$${") }

// address returns what stands in the config for an address: the variable name, if there may be a
// secret in it.
func (s *Settings) address(v value, name, from string) string {
	if secrets.InAddress(v.text()) {
		return s.secret(v, name, from)
	}
	return plain(v.text())
}

// plainName returns text as a name of lower case letters, digits and dashes.
func plainName(text string) string {
	text = strings.Trim(isNoName.ReplaceAllString(strings.ToLower(text), "-"), "-")
	return strings.Trim(text[:min(len(text), 40)], "-")
}

// A found channel is one as it was in the other config.
type foundChannel struct {
	kind, label string // such as "telegram", ""
	token       value
	tokenFrom   string
	allow       []string
	groups      string // of Parley: mention, all, none
	off         bool
	from        string
}

// addChannel takes over a channel of a network that Parley has.
func (s *Settings) addChannel(c foundChannel) {
	name := c.kind
	if label := plainName(c.label); label != "" {
		name += ":" + label
	}
	item := Item{Action: Taken, What: "channel " + name, From: c.from, To: "channels." + name}
	leave := func(why string) { s.note(Item{Action: Left, What: item.What, From: c.from, Why: why}) }
	if c.off {
		if !c.token.exists() {
			return // a template
		}
		leave("it is switched off there")
		return
	}
	variable := c.kind + "_" + c.label + "_bot_token"
	token := s.secret(c.token, variable, c.tokenFrom)
	if token == "" {
		leave("it has no token")
		return
	}
	for other, there := range s.Channels {
		if there.Token == token {
			leave("it has the token of " + other)
			return
		}
	}
	allow := s.allowed(c, item.What)
	for _, owner := range s.Owners { // where everybody may talk, whoever is named may
		id, ok := strings.CutPrefix(owner, name+":")
		if ok && slices.Contains(c.allow, "*") && isPersonID.MatchString(id) && !slices.Contains(allow, id) {
			allow = append(allow, id)
		}
	}
	s.Channels[name] = &Channel{Token: token, Allow: allow, Groups: c.groups}
	people := fmt.Sprintf("%d people", len(allow))
	switch len(allow) {
	case 0:
		people = "nobody"
	case 1:
		people = "1 person"
	}
	item.Why = fmt.Sprintf("the token as %s; %s may talk", token, people)
	if len(allow) == 0 {
		item.Why += ": whoever writes gets a code, which parley pair approves"
	}
	s.note(item)
}

// allowed returns the ids of the people of c who may talk. Rights are never widened: everybody, and
// people without a number, are left.
func (s *Settings) allowed(c foundChannel, what string) []string {
	ids := []string{}
	for _, entry := range c.allow {
		id := entry
		for _, prefix := range []string{"telegram:", "tg:", "discord:", "user:", "pk:"} {
			id = strings.TrimPrefix(id, prefix)
		}
		id, _, _ = strings.Cut(id, "|") // "123|name"
		switch {
		case isPersonID.MatchString(id):
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		case entry == "*":
			why := `everybody may talk there: Parley begins with nobody; write "*" into allow if you mean it`
			s.note(Item{Action: Left, What: what + ": *", From: c.from, Why: why})
		default:
			why := "Parley knows people by their numbers; this one gets a code when they write"
			s.note(Item{Action: Left, What: what + ": " + line(entry), From: c.from, Why: why})
		}
	}
	return ids
}

// addServer takes over an MCP server, switched off until the owner has looked at it.
func (s *Settings) addServer(name string, v value, from string) {
	from += "." + name
	clean := plainName(name)
	if clean == "" || s.Servers[clean] != nil {
		s.note(Item{Action: Left, What: "MCP server " + line(name), From: from, Why: "its name cannot be used"})
		return
	}
	server := &Server{Command: plain(v.get("command").text()), Env: map[string]string{}, Headers: map[string]string{}}
	prefix := "mcp_" + clean + "_"
	words := strings.Fields(v.get("command").text())
	if len(words) > 1 && slices.Contains(secrets.InArguments(words), true) {
		server.Command = s.secret(v.get("command"), prefix+"command", from+".command")
	}
	var args []string
	for _, arg := range v.get("args").list() {
		args = append(args, arg.text())
	}
	for i, isSecret := range secrets.InArguments(args) {
		text := plain(args[i])
		if isSecret {
			text = s.secret(value{args[i]}, fmt.Sprint(prefix, "arg_", i+1), fmt.Sprintf("%s.args[%d]", from, i))
		}
		server.Args = append(server.Args, text)
	}
	for _, key := range v.get("env").keys() {
		server.Env[key] = s.secret(v.get("env", key), key, from+".env."+key)
	}
	for _, key := range v.get("headers").keys() {
		server.Headers[key] = s.secret(v.get("headers", key), prefix+key, from+".headers."+key)
	}
	server.URL = s.address(v.get("url"), prefix+"url", from+".url")
	switch kind := v.get("type|transport").text(); kind {
	case "sse":
		server.Type = kind
	case "http", "streamable-http", "streamableHttp":
		server.Type = "streamableHttp"
	}
	if (server.Command == "") == (server.URL == "") {
		why := "it must have either a command or a url"
		s.note(Item{Action: Left, What: "MCP server " + clean, From: from, Why: why})
		return
	}
	s.Servers[clean] = server
	const why = "switched off: programs run in a sandbox here, so say what it may use (docs/mcp.md), and switch it on"
	s.note(Item{Action: Changed, What: "MCP server " + clean, From: from, To: "tools.mcpServers." + clean, Why: why})
}

// setTimezone takes over a time zone, unless it is the machine's own.
func (s *Settings) setTimezone(name, from string) {
	if name == "" || strings.EqualFold(name, "local") {
		return
	}
	if _, err := time.LoadLocation(name); err != nil {
		s.note(Item{Action: Left, What: "time zone " + line(name), From: from, Why: "it is not known"})
		return
	}
	s.Timezone = name
	s.note(Item{Action: Taken, What: "time zone " + name, From: from, To: "timezone"})
}

// JSON returns the text of a config.json with s, whose first lines say where it is from.
func (s *Settings) JSON(title string) ([]byte, error) {
	channels := map[string]any{"console": struct{}{}, "web": struct{}{}}
	for name, c := range s.Channels {
		channels[name] = c
	}
	all := map[string]any{"channels": channels, "owners": append([]string{"console", "web"}, s.Owners...)}
	if len(s.Models) > 0 {
		all["models"] = s.Models
	}
	agent := map[string]any{}
	if s.Model != "" {
		agent["model"] = s.Model
	}
	if len(s.Fallback) > 0 {
		agent["fallback"] = s.Fallback
	}
	if len(agent) > 0 {
		all["agent"] = agent
	}
	if s.Timezone != "" {
		all["timezone"] = s.Timezone
	}
	if len(s.Servers) > 0 {
		all["tools"] = map[string]any{"mcpServers": s.Servers}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "// The settings of Parley, made from those of %s. docs/config.md has all keys;\n", title)
	b.WriteString("// \"parley doctor\" checks this file. Where a value holds ${NAME}, the environment variable\n")
	b.WriteString("// NAME is put in its place.\n")
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(all)
	return b.Bytes(), err
}
