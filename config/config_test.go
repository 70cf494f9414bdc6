package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"parley/channels/console"
	"parley/channels/discord"
	"parley/channels/telegram"
	"parley/channels/web"
	"parley/llm/demo"
	"parley/llm/openai"
	"parley/store/bolt"
	"parley/store/mem"
)

// parseText parses src as /etc/parley/config.json with an environment of its own.
func parseText(src string, env ...string) (*Config, error) {
	e := NewEnviron(append([]string{"HOME=/home/ann"}, env...))
	return Parse(Source{File: "/etc/parley/config.json", Data: "/home/ann/.parley", Environ: e, Drivers: drivers()}, []byte(src))
}

// drivers are those of the program, with the categories of a few tools.
func drivers() Drivers {
	return Drivers{
		Channels: []Driver{
			DriverOf[console.Config]("console"), DriverOf[web.Config]("web"),
			DriverOf[telegram.Config]("telegram"), DriverOf[discord.Config]("discord"),
		},
		Models:     []Driver{DriverOf[openai.Config]("openai"), DriverOf[demo.Config]("demo")},
		Stores:     []Driver{DriverOf[bolt.Config]("bolt"), DriverOf[mem.Config]("mem")},
		Categories: func() []string { return []string{"crawler", "files"} },
	}
}

// telegramOf returns the entry of that name.
func telegramOf(c *Config, name string) *telegram.Config {
	return c.Channels[name].Driver.(*telegram.Config)
}

func TestDefaults(t *testing.T) {
	s := Source{File: filepath.Join(t.TempDir(), "config.json"), Data: "/home/ann/.parley", Environ: Environ{}, Drivers: drivers()}
	c, err := Load(s)
	if err != nil {
		t.Fatal(err)
	}
	want := &Config{
		DataDir: "/home/ann/.parley", Workspace: "/home/ann/.parley/workspace", Owners: []string{"console", "web"},
		Models:   map[string]*Model{"demo": {Type: "demo", ContextWindow: 128_000, ToolCalls: "native", Driver: &demo.Config{}}},
		Agent:    Agent{Model: "demo", MaxRounds: 40, MaxConcurrentTurns: 1024, MessageTTL: 24 * time.Hour, Prompt: "auto", Titles: true},
		Channels: map[string]*Channel{"console": {Type: "console", Driver: &console.Config{}}, "web": {Type: "web", Driver: &web.Config{}}},
		Tools: Tools{Timeout: time.Minute, ApprovalTimeout: 15 * time.Minute, CacheTTL: 5 * time.Minute, Rollback: true, Web: WebTools{Search: Search{Provider: "duckduckgo"}},
			Exec: Exec{Sandbox: "auto", Image: "python:3-slim", Enable: true, Timeout: time.Minute, Memory: 1 << 30, Processes: 256}, Python: Python{Default: "standard"}, Custom: Custom{Enable: true, MaxTimeout: 10 * time.Minute}},
		Limits: map[string]*Limit{
			"person": {Tokens: 20_000_000, Children: 100, Jobs: 50, Bytes: 200_000_000, Stored: 1_000_000_000}, "session": {}, "job": {Tokens: 5_000_000},
			"everybody": {Tokens: 100_000_000, Bytes: 2_000_000_000},
		},
		Cron: Cron{MinInterval: 10 * time.Second}, Heartbeat: Heartbeat{Every: 30 * time.Minute}, Dream: Dream{Cron: "0 4 * * *"},
		Retention: Retention{
			Conversations: 730 * 24 * time.Hour, Files: 730 * 24 * time.Hour, Results: 7 * 24 * time.Hour,
			Audit: 730 * 24 * time.Hour, Usage: 1095 * 24 * time.Hour, DeadLetters: 365 * 24 * time.Hour, Keep: "nothing",
		},
		HTTP:  HTTP{Listen: "127.0.0.1:18790"},
		Store: Store{Type: "bolt", Driver: &bolt.Config{}}, Log: Log{Level: "info"},
	}
	hidden := cmp.Options{
		cmpopts.IgnoreUnexported(Config{}, WebTools{}, bolt.Config{}),
		cmpopts.IgnoreFields(Config{}, "File", "Source", "Found", "ByEnv", "Secrets", "Vars", "FellBack"),
	}
	if d := cmp.Diff(want, c, hidden); d != "" {
		t.Error(d)
	}
	s.Must = true
	if _, err := Load(s); err == nil {
		t.Error("a file named by --config need not exist")
	}
}

func TestModelByEnvironment(t *testing.T) {
	for _, tt := range []struct {
		env         []string
		name, by    string
		model, host string
	}{
		{nil, "demo", "", "", ""},
		{[]string{"OPENAI_API_KEY=sk-canary"}, "main", "OPENAI_API_KEY", "gpt-5-mini", "api.openai.com"},
		{[]string{"OPENAI_BASE_URL=http://127.0.0.1:1/v1", "OPENAI_MODEL=qwen3"}, "main", "OPENAI_BASE_URL", "qwen3", "127.0.0.1:1"},
		{[]string{"OPENAI_MODEL=qwen3"}, "demo", "", "", ""},
	} {
		c, err := parseText("{}", tt.env...)
		if err != nil {
			t.Fatal(err)
		}
		m := c.Models[tt.name]
		driver, real := m.Driver.(*openai.Config)
		host := ""
		if real {
			host = driver.Host()
		}
		if c.Agent.Model != tt.name || c.ByEnv != tt.by || m.Model != tt.model || host != tt.host {
			t.Errorf("%v: agent.model %s by %q: %+v", tt.env, c.Agent.Model, c.ByEnv, m)
		}
		if tt.by == "OPENAI_API_KEY" && (driver.APIKey != "sk-canary" || !slices.Contains(c.Secrets, "sk-canary") || !slices.Contains(c.Vars, "OPENAI_API_KEY")) {
			t.Errorf("the key is not hidden: %v %v", c.Secrets, c.Vars)
		}
	}
	if _, err := parseText("{}", "OPENAI_BASE_URL=canary"); err == nil || !strings.Contains(err.Error(), "OPENAI_BASE_URL: must be an address") {
		t.Errorf("bad OPENAI_BASE_URL: %v", err)
	}
}

// E-016: only DEMO_MODE=1 cuts pages for a show.
func TestDemoMode(t *testing.T) {
	for env, want := range map[string]bool{"DEMO_MODE=1": true, "DEMO_MODE=true": false, "DEMO_MODE=": false, "DEMO=1": false} {
		if c, err := parseText("{}", env); err != nil || c.Tools.Web.Demo != want {
			t.Errorf("%s: %+v, %v", env, c.Tools.Web, err)
		}
	}
}

// TestEnvSecrets: of the variables that commands are given no log shows those whose names say that they hold a secret.
func TestEnvSecrets(t *testing.T) {
	for name, want := range map[string]bool{
		"TOKEN": true, "API_KEY": true, "apiKey": true, "OPENAI_API_KEY": true, "DB_PASSWORD": true, "AWS_SECRET_ACCESS_KEY": true,
		"cookie": true, "AUTHORIZATION": true, "X_API_KEY": true, "PGPASSWORD": true, "MYSQL_PWD": true, "DB_PASS": true,
		"GIT_AUTHOR_NAME": false, "GIT_AUTHOR_EMAIL": false, "COMPASS_URL": false, "BYPASS_HOSTS": false, "LANG": false,
	} {
		c, err := parseText(`{"tools": {"exec": {"env": {"` + name + `": "what it holds"}}, "mcpServers": {"a": {"command": "x", "env": {"` + name + `": "and there"}}}}}`)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(c.Secrets, "what it holds") != want || slices.Contains(c.Secrets, "and there") != want {
			t.Errorf("%s: the secrets are %q", name, c.Secrets)
		}
	}
}

// TestAddressSecrets: of an address no log shows a parameter with the name of a secret.
func TestAddressSecrets(t *testing.T) {
	c, err := parseText(`{"tools": {"mcpServers": {"a": {"url": "https://a.example/mcp?page=of-the-address&author=somebody&api_key=key-of-it#access_token=token-of-it"}}}}`)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"key-of-it", "token-of-it"}; !slices.Equal(c.Secrets, want) {
		t.Errorf("the secrets are %q, want %q", c.Secrets, want)
	}
}

func TestWholeConfig(t *testing.T) {
	c, err := parseText(`{
		"dataDir": "~/p", "workspace": "${PLACE}", "timezone": "UTC", "owners": ["telegram:work:7", "console"],
		"models": { "a": { "type": "openai", "baseUrl": "https://${USER}@h/v1", "apiKey": "k-${KEY}$${X}", "model": "m", "temperature": 0 },
		            "b": { "type": "demo" } },
		"agent": { "model": "a", "fallback": ["b"], "maxRounds": 3, "maxConcurrentTurns": 9, "messageTTL": "90m" },
		"channels": {
			"telegram": { "token": "1:literal-token", "allow": ["12", "-100"], "webhook": null },
			"telegram:work": { "token": "${TOKEN}", "groups": "all", "rate": -1, "apiUrl": "http://127.0.0.1:9",
				"webhook": { "url": "https://e.org/x", "secret": "0123456789abcdef0123456789abcdef", "listen": ":80" } },
		},
		"tools": { "timeout": "5s" }, "retention": { "audit": "90d", "usage": "0s" }, "store": { "type": "mem" }, "log": { "level": "warn" },
	}`, "PLACE=work", "USER=user-canary", "KEY=key-canary", "TOKEN=2:token-canary")
	if err != nil {
		t.Fatal(err)
	}
	a := c.Models["a"].Driver.(*openai.Config)
	work := telegramOf(c, "telegram:work")
	for name, ok := range map[string]bool{
		"home folder":     c.DataDir == "/home/ann/p",
		"relative folder": c.Workspace == "/etc/parley/work",
		"expansion":       a.APIKey == "k-key-canary${X}" && a.BaseURL == "https://user-canary@h/v1",
		"zero":            a.Temperature != nil && *a.Temperature == 0,
		"no console":      c.Channels["console"] == nil,
		"duration":        c.Agent.MessageTTL == 90*time.Minute,
		"days":            c.Retention.Audit == 90*24*time.Hour && c.Retention.Usage == 0,
		"channel":         work.Token == "2:token-canary" && work.Webhook.Listen == ":80" && work.Rate == -1,
		"null":            telegramOf(c, "telegram").Webhook == nil,
	} {
		if !ok {
			t.Errorf("%s: %+v", name, c)
		}
	}
	// R-S26: what came from the environment is secret, but for what is plain by nature.
	want := []string{"0123456789abcdef0123456789abcdef", "1:literal-token", "2:token-canary", "k-key-canary${X}", "key-canary", "user-canary"}
	if d := cmp.Diff(want, c.Secrets); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"KEY", "TOKEN", "USER"}, c.Vars); d != "" {
		t.Error(d)
	}
	js, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if all := fmt.Sprintf("%v %+v %#v %s %+v", c, c, c.Channels["telegram:work"], js, *c.Channels["telegram:work"]); strings.Contains(all, "token-canary") {
		t.Errorf("printed: %s", all)
	}
}

// TestFaults has one line for each thing that check refuses: what is written, what is said.
func TestFaults(t *testing.T) {
	for _, tt := range []struct{ src, want string }{
		{`[]`, `1:1: is a list, must be an object { … }`},
		{`{"retention": {"audit": "5m"}}`, `1:25: retention.audit: must be 1d or more, or "0s"`},
		{`{"retention": {"audit": "for ever"}}`, `retention.audit: must be a length of time such as "90s", "15m", "24h" or "30d", or "0s"`},
		{`{"retention": {"audit": "-1d"}}`, `1:25: retention.audit: must be a length of time such as "90s", "15m", "24h" or "30d"`},
		{`{"retention": {"keep": "all"}}`, `1:24: retention.keep: "all" is not known; allowed: nothing, archive`},
		{`{"owners": "console"}`, `1:12: owners: is text, must be a list [ … ]`},
		{`{"owners": [" "]}`, `1:13: owners[0]: is no owner`},
		{`{"owners": ["*"]}`, `owners[0]: is no owner`},
		{`{"owners": ["telegram"]}`, `owners[0]: is no owner`},
		{`{"owners": ["telegram:@ann"]}`, `owners[0]: is no owner`},
		{"{\n\t\"ünïcode\": 1,\n}", `2:2: ["\u00fcn\u00efcode"]: unknown key; allowed: agent, channels, cron, dataDir, dream,`},
		{"{ /* ü */ \"timezone\": 5 }", `1:23: timezone: is a number, must be text in "quotes"`},
		{"\xff\xfe{\x00}\x00", "1:1: the file is UTF-16: save it as UTF-8"},
		{"\xfe\xff\x00{\x00}", "1:1: the file is UTF-16: save it as UTF-8"},
		{"{\x00\n\x00}\x00", "1:1: the file is UTF-16: save it as UTF-8"},
		{"{\n  // caf\xe9\n}", "2:9: here the file is not UTF-8, but maybe Latin-1 or Windows-1252: save it as UTF-8"},
		{"{\n  “timezone”: \"UTC\"\n}", "2:3: “ is a curly quote, as word processors make them; JSON wants the straight one: \""},
		{"{\"timezone\": ‘UTC’}", "1:14: ‘ is a curly quote"},
		{"{\"timezone\":\u00a0\"UTC\"}", "1:13: here is an invisible character, U+00A0"},
		{"{\u200b\"timezone\": \"UTC\"}", "1:2: here is an invisible character, U+200B"},
		{"{\"timezone\": \"UTC\"，\"owners\": []}", "1:19: ， is the full-width form of a character; JSON wants ,"},
		{"{\"timezone\": \"UTC”}", "1:22: the file ends too early: something is missing, such as a } or ]; the curly quote at 1:18 may be why"},
		{"\ufeff{\"timezone\": 5}", `1:14: timezone: is a number`},
		{`{"agent": null}`, `1:11: agent: is null, must be an object { … }`},
		{`{"agent": {"maxRounds": 1.5}}`, `agent.maxRounds: is a number, must be a whole number`},
		{`{"agent": {"maxRounds": 0}}`, `agent.maxRounds: is 0, must be from 1 to 1000`},
		{`{"agent": {"maxConcurrentTurns": -1}}`, `agent.maxConcurrentTurns: is -1, must be from`},
		{`{"agent": {"messageTTL": "5s"}}`, `agent.messageTTL: must be 1m or more`},
		{`{"agent": {"messageTTL": 5}}`, `agent.messageTTL: is a number, must be a length of time such as`},
		{`{"agent": {"model": "dmo"}}`, `agent.model: "dmo" is not known; allowed: demo`},
		{`{"agent": {"fallback": ["demo"]}}`, `agent.fallback[0]: is tried already`},
		{`{"agent": {"Model": "demo"}}`, `agent.Model: unknown key`},
		{`{"models": {"a": {"type":"demo"}, "b": {"type":"demo"}}}`, `agent.model: is missing; allowed: a, b`},
		{`{"models": {"a": null}}`, `models.a: is null, must be an object`},
		{`{"models": {"a": {}}}`, `models.a.type: is missing; allowed: openai, demo`},
		{`{"models": {"a": {"type": "openai"}}}`, `models.a.model: is missing`},
		{`{"models": {"a": {"type": "openai", "model": "m", "baseUrl": "localhost:1"}}}`, `models.a.baseUrl: must be an address such as http://`},
		{`{"models": {"a": {"type": "openai", "model": "m", "contextWindow": 999}}}`, `models.a.contextWindow: is 999, must be from 1000`},
		{`{"models": {"a": {"type": "openai", "model": "m", "maxTokens": 128000}}}`, `models.a.maxTokens: is 128000, must be from 0 to 127999`},
		{`{"models": {"a": {"type": "openai", "model": "m", "temperature": 2.1}}}`, `models.a.temperature: must be from 0 to 2`},
		{`{"models": {"a": {"type": "openai", "model": "m", "prize": {}}}}`, `models.a.prize: unknown key; allowed: apiKey, baseUrl,`},
		{`{"models": {"a": {"type": "openai", "model": "m", "price": { "input": -1 }}}}`, `models.a.price: must be what a million tokens cost`},
		{`{"models": {"a": {"type": "demo", "temperature": null, "vision": null, "apiKey": "k", "odd": 1}}}`, `models.a.odd: unknown key`},
		{`{"models": {"a b": {"type": "demo", "temperature": 3}}}`, `models["a b"].temperature: must be from 0 to 2`},
		{`{"channels": {"matrix": {}}}`, `channels.matrix: no channel of this type; allowed: console, web, telegram, discord, and telegram:LABEL or discord:LABEL`},
		{`{"channels": {"discord": {}}}`, `channels.discord.token: is no bot token`},
		{`{"channels": {"discord": {"token": "a.b", "gatewayUrl": "http://x"}}}`, `channels.discord.gatewayUrl: must be an address such as wss://`},
		{`{"channels": {"discord": {"token": "a.b"}, "discord:2": {"token": "a.b"}}}`, `channels.discord:2.token: is the token of discord too`},
		{`{"channels": {"web": {}}, "http": {"listen": ""}}`, `channels.web: needs http.listen`},
		{`{"http": {"publicUrl": "https://x.org/chat"}}`, `http.publicUrl: must be an address without a path`},
		{`{"transcription": {"baseUrl": "ftp://x"}}`, `transcription.baseUrl: must be an address`},
		{`{"channels": {"telegram:": {}}}`, `the label after ":" is made of`},
		{`{"channels": {"console:b": {}}}`, `channels.console:b: no channel of this type`},
		{`{"channels": {"console": {"x": 1}}}`, `channels.console.x: unknown key; allowed: none`},
		{`{"channels": {"telegram": null}}`, `channels.telegram: is null`},
		{`{"channels": {"telegram": {}}}`, `channels.telegram.token: is no bot token`},
		{`{"channels": {"telegram": {"token": "1:a", "allow": [""]}}}`, `channels.telegram.allow[0]: must be a numeric id`},                                    // R-S7
		{`{"channels": {"telegram": {"token": "1:a", "allow": ["ann"]}}}`, `channels.telegram.allow[0]: must be a numeric id such as "123456", because names`}, // R-S7
		{`{"channels": {"telegram": {"token": "1:a", "groups": "some"}}}`, `channels.telegram.groups: "some" is not known; allowed: mention, all, none`},
		{`{"channels": {"telegram": {"token": "1:a", "rate": -2}}}`, `channels.telegram.rate: must be`},
		{`{"channels": {"telegram": {"token": "1:a", "webhook": {"url": "https://e.org"}}}}`, `channels.telegram.webhook.secret: is missing: without it anybody`}, // R-S9
		{`{"channels": {"telegram": {"token": "1:a", "webhook": {"url": "https://e.org", "secret": "short"}}}}`, `webhook.secret: must be 22 to 256`},             // R-S4
		{`{"channels": {"telegram": {"token": "1:a", "webhook": {"url": "e.org", "secret": "0123456789012345678901"}}}}`, `webhook.url: must be an address`},
		{`{"channels": {"telegram": {"token": "1:a", "webhook": {"url": "https://e.org", "secret": "0123456789012345678901", "listen": "8081"}}}}`, `webhook.listen: must be an address and a port`},
		{`{"channels": {"telegram": {"token": "1:a"}, "telegram:b": {"token": "1:a"}}}`, `channels.telegram:b.token: is the token of telegram too`},
		{`{"tools": {"timeout": "1h"}}`, `tools.timeout: must be from 1s to 10m`},
		{`{"tools": {"approvalTimeout": "0s"}}`, `tools.approvalTimeout: must be from 1s to 24h`},
		{`{"tools": {"cacheTTL": "-1s"}}`, `tools.cacheTTL: must be from 0s to 24h`},
		{`{"tools": {"rules": {"crawler": "all"}}}`, `tools.rules.crawler: "all" is not known; allowed: everyone, owners, ask, off`},
		{`{"tools": {"rules": {"wbe": "off"}}}`, `tools.rules.wbe: no tools are of this category; allowed: crawler, files`},
		{`{"limits": {"persn": {"turns": 1}}}`, `1:22: limits.persn: there are no limits of this kind; allowed: everybody, job, person, session`},
		{`{"limits": {"person": {"turns": -2}}}`, `limits.person.turns: must be above 0, or -1 for no limit`},
		{`{"limits": {"everybody": {"tokens": 0}}}`, `1:37: limits.everybody.tokens: must be above 0, or -1 for no limit`}, // 0 looks like nothing, and would be no limit
		{`{"limits": {"job": {"money": -0.5}}}`, `limits.job.money: must be above 0, or -1 for no limit`},
		{`{"limits": {"everybody": {"jobs": 5}}}`, `limits.everybody.jobs: only a person has jobs: write limits.person.jobs`},
		{`{"cron": {"minInterval": "1ms"}}`, `cron.minInterval: must be from 1s to 24h`},
		{`{"heartbeat": {"every": "1s"}}`, `heartbeat.every: must be from 1m to 24h, or "0s"`},
		{`{"heartbeat": {"model": "x"}}`, `heartbeat.model: "x" is not known; allowed: demo`},
		{`{"dream": {"cron": "every night"}}`, `dream.cron: `},
		{`{"tools": {"web": {"search": {"provider": "bing"}}}}`, `tools.web.search.provider: "bing" is not known; allowed: duckduckgo, brave, tavily, searxng, jina, kagi`},
		{`{"shared": [{"folder": "work", "read": ["everyone"]}]}`, `shared[0].folder: is where programs work; allowed: a folder in it, such as "work/site"`},
		{`{"tools": {"weather": {"provider": "dice"}}}`, `tools.weather.provider: "dice" is not known; allowed: openmeteo`},
		{`{"tools": {"web": {"searchFallback": [{"provider": "kagi"}]}}}`, `tools.web.searchFallback[0].apiKey: is missing; kagi searches for nobody without one`},
		{`{"tools": {"web": {"search": {"provider": "searxng"}}}}`, `tools.web.search.baseUrl: is missing; allowed: the address of your SearXNG`},
		{`{"tools": {"web": {"allowPrivate": ["home"]}}}`, `tools.web.allowPrivate[0]: is no network; allowed: such as "192.168.1.0/24" or "10.0.0.5/32"`},
		{`{"tools": {"web": {"allowPrivate": ["10.0.0.1"]}}}`, `tools.web.allowPrivate[0]: a network needs a prefix length: write 10.0.0.1/32 for this one machine`},
		{`{"tools": {"web": {"allowPrivate": ["10.0.0.0/8", "192.168.1.77/8"]}}}`,
			`tools.web.allowPrivate[1]: 192.168.1.77/8 would be all of 192.0.0.0/8: write that, or 192.168.1.77/32 for this one machine`},
		{`{"tools": {"web": {"allowPrivate": ["::ffff:10.0.0.0/104"]}}}`,
			`tools.web.allowPrivate[0]: ::ffff:10.0.0.0/104 is an IPv4 network in the form of IPv6: write 10.0.0.0/8`},
		{`{"models": {"m": {"type": "demo", "toolCalls": "xml"}}}`, `models.m.toolCalls: "xml" is not known; allowed: native, text`},
		{`{"tools": {"shell": {}}}`, `tools.shell: unknown key`},
		{`{"tools": {"exec": {"network": ["pypi.org", "*.debian.org", "a b"]}}}`, `tools.exec.network[2]: is no host; allowed: such as "pypi.org", "*.debian.org", "example.com:8443" or "*", which is all public hosts`},
		{`{"tools": {"custom": {"network": ["*", "*.org"]}}}`, `tools.custom.network[1]: would be all names that end with .org: name a domain, such as "*.example.org"`},
		{`{"tools": {"exec": {"network": ["10.0.0.1"]}}}`, `tools.exec.network[0]: is an address; allowed are names of hosts, whose addresses are looked up and judged`},
		{`{"tools": {"exec": {"env": {"A=B": "c"}}}}`, `tools.exec.env.A=B: must be the name of an environment variable`},
		{`{"tools": {"python": {"default": "loose"}}}`, `tools.python.default: "loose" is not known; allowed: lenient, standard, strict`},
		{`{"tools": {"python": {"extraModules": {"standard": ["numpy", "xml.dom", "a b"]}}}}`, `tools.python.extraModules.standard[2]: must be the name of a module, such as "numpy" or "xml.dom"`},
		{`{"tools": {"python": {"extraModules": {"strict": ["os;"]}}}}`, `tools.python.extraModules.strict[0]: must be the name of a module`},
		{`{"tools": {"python": {"extraModules": {"lenient": ["os"]}}}}`, `tools.python.extraModules.lenient: unknown key`},
		{`{"tools": {"exec": {"memory": 1}}}`, `tools.exec.memory`},
		{`{"store": {"type": "nats"}}`, `store.type: "nats" is not known; allowed: bolt, mem`},
		{`{"log": {"level": "loud"}}`, `log.level: "loud" is not known; allowed: debug, info, warn, error`},
		{`{"timezone": "Mars/Base"}`, `timezone: "Mars/Base" is no time zone`},
		{`{"timezone": "${ZONE}"}`, `1:14: timezone: the value is no time zone`},
		{`{"timezone": "${NONE}"}`, `1:14: timezone: the environment variable NONE is not set`},
		{`{"timezone": "${EMPTY}"}`, `timezone: the environment variable EMPTY is not set`},
		{`{"timezone": "${}${ A }"}`, `timezone: has a ${ that is not ${NAME}`},
		{`{"workspace": "/home/ann"}`, `workspace: must not hold dataDir`},
		{`{"workspace": "/etc"}`, `workspace: must not hold the config file`},
		{`{"log": {}, "log": {}}`, `1:13: log: is there twice`},
		{`{"log": {`, `1:10: the file ends too early: something is missing, such as a } or ]`},
		{`{"a": tru}`, `1:7: not a value`},
	} {
		_, err := parseText(tt.src, "ZONE=canary", "EMPTY=")
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s\n got %v\nwant %s", tt.src, err, tt.want)
		} else if n := strings.Count(err.Error(), "config.json:"); n != 1 {
			t.Errorf("%s: %d faults, want 1:\n%v", tt.src, n, err)
		}
	}
}

// TestAllowStar: "*" is taken when it is written (R-S7), and nobody is the default.
// TestAdvice: nothing is wrong with a file that names variables which this shell does not have, and
// nobody is told to move it away.
func TestAdvice(t *testing.T) {
	const set = `set NONE in this shell: with export or, if /home/ann/.parley/environment has it: ` +
		`set -a; . /home/ann/.parley/environment; set +a`
	for src, want := range map[string]string{
		`{"timezone": "${NONE}", "workspace": "${NONE}"}`: set,
		`{"timezone": "${NONE}", "agnet": {}}`:            set + "; mend the other lines named",
		`{"agnet": {}}`:                                   "mend the lines named, or move the file away and run parley onboard",
		`{"agnet`:                                         "mend the lines named, or move the file away and run parley onboard",
	} {
		if c, err := parseText(src); err == nil || c.Advice() != want {
			t.Errorf("%s: %q, want %q (%v)", src, c.Advice(), want, err)
		}
	}
	if none := (*Config)(nil); none.Advice() == "" {
		t.Error("without a file there is no advice")
	}
}

func TestAllowStar(t *testing.T) {
	c, err := parseText(`{"channels": {"telegram": {"token": "1:a", "allow": ["*"]}, "telegram:b": {"token": "2:a"}}}`)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Channels["telegram:b"].Senders.Allow) != 0 {
		t.Error("an empty allow list lets somebody in")
	}
}

func TestConfigSize(t *testing.T) {
	s := Source{File: filepath.Join(t.TempDir(), "config.json"), Data: "/d", Environ: Environ{}, Drivers: drivers()}
	if err := os.WriteFile(s.File, bytes.Repeat([]byte("["), maxConfig+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(s); err == nil {
		t.Error("took a huge file")
	}
	if _, err := Parse(s, bytes.Repeat([]byte("["), 20_000)); err == nil {
		t.Error("took a deep file")
	}
}

// firstConfig returns what onboard writes.
func firstConfig(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("../cmd/gateway/config.json")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var example = regexp.MustCompile(`(?m)^( *)//([ ]*["}{\]])`)

// TestFirstConfig: what onboard writes is taken as it is on a fresh machine, and
// also with all its examples in force.
func TestFirstConfig(t *testing.T) {
	c, err := parseText(string(firstConfig(t)))
	if err != nil {
		t.Fatal(err)
	}
	if none, _ := parseText("{}"); !cmp.Equal(none.Agent, c.Agent) || !cmp.Equal(none.Owners, c.Owners) || c.Agent.Model != "demo" {
		t.Errorf("the first config is not the defaults: %+v", c)
	}
	whole := example.ReplaceAllString(string(firstConfig(t)), "$1$2")
	whole = strings.Replace(whole, `null,      // or {`, `{`, 1)
	whole = strings.Replace(whole, `null,          // or {`, `{`, 1)
	c, err = parseText(whole, "OPENAI_API_KEY=sk-1", "TELEGRAM_BOT_TOKEN=1:a", "TELEGRAM_SECRET=0123456789abcdef0123456789abcdef",
		"DISCORD_BOT_TOKEN=a.b.c", "PARLEY_ADMIN_TOKEN=0123456789abcdef0123456789abcdef", "SEARCH_TOKEN=abcdefgh")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Models) != 3 || c.Timezone == "" || c.Channels["telegram"] == nil || c.Agent.Fallback[0] != "spare" {
		t.Errorf("the examples were not put in force: %+v\n%s", c, whole)
	}
	if c.Agent.MaxRounds != 40 || c.Tools.Timeout != time.Minute || c.Store.Type != "bolt" {
		t.Errorf("an example is not at its default: %+v", c)
	}
	root, err := os.ReadFile("../config.json")
	if err != nil || !bytes.Equal(root, firstConfig(t)) {
		t.Errorf("the config.json at the root differs: cp cmd/gateway/config.json . (%v)", err)
	}
}

func FuzzConfig(f *testing.F) {
	const canary = "canary/7f3a+9c"
	f.Add(string(firstConfig(f)))
	f.Add(example.ReplaceAllString(string(firstConfig(f)), "$1$2"))
	f.Add(`{"timezone": "${K}", "agent": {"model": "${K}", "messageTTL": "${K}", "fallback": ["${K}"]}, "models": {"${K}": 1}}`)
	f.Add(`{"channels": {"telegram": {"token": "${K}", "allow": ["${K}"], "groups": "${K}", "apiUrl": "${K}"}}, "log": {"level": "x${K}"}}`)
	f.Add("{\"a\": \"\\u12\", \x00")
	f.Fuzz(func(t *testing.T, src string) {
		_, err := parseText(src, "K="+canary, "OPENAI_API_KEY="+canary)
		if err == nil {
			return
		}
		if strings.Contains(err.Error(), canary) {
			t.Errorf("shown: %v", err)
		}
		for line := range strings.Lines(err.Error()) {
			if !strings.HasPrefix(line, "/etc/parley/config.json:") {
				t.Errorf("no place: %s", line)
			}
		}
	})
}

// TestOpenDoor: R-S4. Other machines are let in only with a credential of 128 bits.
func TestOpenDoor(t *testing.T) {
	const strong = "0123456789abcdef0123456789abcdef"
	for _, c := range []struct{ listen, token, key string }{
		{"127.0.0.1:18790", "", ""},
		{"[::1]:18790", "", ""},
		{"localhost:0", "", ""},
		{"", "", ""},
		{"0.0.0.0:18790", strong, ""},
		{":18790", strong, ""},
		{"0.0.0.0:18790", "", "http.adminToken"},
		{":18790", "", "http.adminToken"},
		{"192.168.1.7:18790", "", "http.adminToken"},
		{"[::]:18790", "", "http.adminToken"},
		{"parley.example.com:80", "", "http.adminToken"},
		{"127.0.0.1:18790", "short", "http.adminToken"},
		{"127.0.0.1:18790", "of-22-or-more-characters", ""},
		{"0.0.0.0:18790", "of-22-or-more-characters", "http.adminToken"},
		{"0.0.0.0:18790", strings.Repeat("a", 64), "http.adminToken"},
		{"0.0.0.0:18790", strings.Repeat("0123456789", 3) + "42", "http.adminToken"},
		{"0.0.0.0:18790", "kJ8x-Zq2_Lm5Rt9WvB3nYc", ""},
		{"127.0.0.1", "", "http.listen"},
		{"127.0.0.1:99999", "", "http.listen"},
	} {
		_, err := parseText(fmt.Sprintf(`{ "http": { "listen": %q, "adminToken": %q } }`, c.listen, c.token))
		if (err != nil) != (c.key != "") || err != nil && !strings.Contains(err.Error(), c.key+": ") {
			t.Errorf("listen %q, token %q: %v; want a fault of %q", c.listen, c.token, err, c.key)
		}
	}
}

// TestNoSandboxWarns: whoever runs programs without a sandbox is reminded of it, at the start and in the doctor (R-S16).
func TestNoSandboxWarns(t *testing.T) {
	for sandbox, want := range map[string]int{"auto": 0, "bwrap": 0, "landlock": 0, "docker": 0, "none": 1} {
		c, err := parseText(`{"tools": {"exec": {"sandbox": "` + sandbox + `"}}}`)
		if err != nil {
			t.Fatal(err)
		}
		ws := c.Warnings()
		if len(ws) != want || want > 0 && !strings.Contains(ws[0], "may do all that Parley may") {
			t.Errorf("%s: %q", sandbox, ws)
		}
		if banner := strings.Join(c.Banner("1", false), "\n"); strings.Contains(banner, "may do all that Parley may") != (want > 0) {
			t.Errorf("%s: %s", sandbox, banner)
		}
	}
}

// TestHostNetworkWarns: whoever gives programs the network of the machine is reminded of it, as of a missing sandbox (R-S16).
func TestHostNetworkWarns(t *testing.T) {
	for text, want := range map[string]string{
		`"exec": {"network": ["*"]}, "custom": {"network": ["*"]}`:   "",
		`"exec": {"hostNetwork": true}`:                              "tools.exec.hostNetwork is true: commands",
		`"exec": {"hostNetwork": true, "enable": false}`:             "",
		`"custom": {"hostNetwork": true}`:                            "tools.custom.hostNetwork is true: custom tools",
		`"custom": {"hostNetwork": true, "enable": false}`:           "",
		`"exec": {"sandbox": "landlock"}, "custom": {"network": []}`: "",
	} {
		c, err := parseText(`{"tools": {` + text + `}}`)
		if err != nil {
			t.Fatal(err)
		}
		if ws := strings.Join(c.Warnings(), "\n"); (ws != "") != (want != "") || !strings.HasPrefix(ws, want) {
			t.Errorf("%s: %q", text, ws)
		}
	}
}

// TestRemovedKeys: a config with a key of an earlier release is accepted, whatever
// its value, with a warning that names the key.
func TestRemovedKeys(t *testing.T) {
	for _, value := range []string{"true", "false"} {
		c, err := parseText(`{"tools": {"restrictToWorkspace": ` + value + `}}`)
		if err != nil {
			t.Fatal(err)
		}
		if ws := c.Warnings(); len(ws) != 1 || !strings.HasPrefix(ws[0], "tools.restrictToWorkspace has no effect any more") {
			t.Errorf("%s: warnings %q", value, ws)
		}
	}
	if c, err := parseText(`{"tools": {}}`); err != nil || len(c.Warnings()) > 0 {
		t.Errorf("warnings %q, %v", c.Warnings(), err)
	}
}

// agent.prompt: what is said counts, and else small windows have a lean prompt.
func TestIsLean(t *testing.T) {
	for prompt, want := range map[string][2]bool{"auto": {true, false}, "full": {false, false}, "lean": {true, true}} {
		a := Agent{Prompt: prompt}
		if got := [2]bool{a.IsLean(&Model{ContextWindow: 6000}), a.IsLean(&Model{ContextWindow: 6001})}; got != want {
			t.Errorf("%s: %v, want %v", prompt, got, want)
		}
	}
}

// TestListenGiven: the address of --listen takes the place of that of the file before anything is checked (R-S4), also
// when the file is read again.
func TestListenGiven(t *testing.T) {
	parse := func(listen, src string) (*Config, error) {
		return Parse(Source{File: "/etc/p.json", Data: "/d", Environ: Environ{}, Drivers: drivers(), Listen: listen}, []byte(src))
	}
	for _, c := range []struct{ listen, src, want string }{
		{"127.0.0.1:1", `{}`, ""},
		{"127.0.0.1:1", `{"http": {"listen": "0.0.0.0:1"}}`, ""}, // which alone would be a fault
		{"0.0.0.0:1", `{}`, "http.adminToken: is missing, and http.listen lets other machines in"},
		{"[::]:1", `{"http": {"listen": "127.0.0.1:1"}}`, "http.adminToken: is missing"},
		{"0.0.0.0:1", `{"http": {"adminToken": "correct-horse-battery-staple-4711"}}`, ""},
		{"0.0.0.0:1", `{"http": {"adminToken": "aaaaaaaaaaaaaaaaaaaaaaaaaaaa"}}`, "http.adminToken: can be guessed"},
		{"8080", `{"http": {"listen": "127.0.0.1:1"}}`, "--listen: must be an address and a port"},
	} {
		got, err := parse(c.listen, c.src)
		switch {
		case c.want == "" && (err != nil || got.HTTP.Listen != c.listen):
			t.Errorf("--listen %s with %s: %v, %v", c.listen, c.src, got.HTTP.Listen, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("--listen %s with %s: %v, want %s", c.listen, c.src, err, c.want)
		}
	}
}

// The channels that somebody at the terminal would stop are called what people call them.
func TestOthersServed(t *testing.T) {
	work, home := &Channel{Type: "discord", Senders: &Senders{}}, &Channel{Type: "telegram", Senders: &Senders{}}
	for want, all := range map[string]map[string]*Channel{
		"":                          {"console": {}},
		"the web page":              {"web": {}},
		"Telegram":                  {"telegram": home},
		"Telegram and the web page": {"telegram": home, "web": {}},
		"Discord (work), Telegram and the web page": {"telegram": home, "discord:work": work, "web": {}},
	} {
		if got := (&Config{Channels: all}).OthersServed(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
