package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.yaml.in/yaml/v3"

	"parley/config"
	"parley/store"
	"parley/store/nats/natstest"
	"parley/tools/network/networktest"
)

// pages are the documents that people read, by their paths from the root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"../../*.md", "../../docs/*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all[strings.TrimPrefix(name, "../../")] = string(b)
		}
	}
	return all
}

// parseText parses src as /etc/parley/config.json with an environment of its own.
func parseText(src string, env ...string) (*config.Config, error) {
	e := config.NewEnviron(append([]string{"HOME=/home/ann"}, env...))
	return config.Parse(config.Source{File: "/etc/parley/config.json", Data: "/home/ann/.parley", Environ: e, Drivers: drivers()}, []byte(src))
}

var snippet = regexp.MustCompile("(?s)```jsonc\n(.*?)```")

// TestDocumentedConfigs: what people copy from the documents is taken as it is.
func TestDocumentedConfigs(t *testing.T) {
	n := 0
	for name, text := range pages(t) {
		for _, m := range snippet.FindAllStringSubmatch(text, -1) {
			n++
			_, err := parseText(m[1], "OPENAI_API_KEY=sk-1", "OPENROUTER_API_KEY=sk-2",
				"TELEGRAM_BOT_TOKEN=1:a", "FAMILY_BOT_TOKEN=2:a", "TELEGRAM_SECRET=0123456789abcdef0123456789abcdef",
				"DISCORD_BOT_TOKEN=a.b.c", "NATS_CREDENTIALS=parley:secret", "PARLEY_ADMIN_TOKEN=0123456789abcdef0123456789abcdef")
			if err != nil {
				t.Errorf("%s:\n%s%v", name, m[1], err)
			}
		}
	}
	if n < 5 {
		t.Errorf("only %d configs found", n)
	}
}

// TestComposeFile: the config in compose.yaml is taken as it is, and Parley is reached where its port is published.
func TestComposeFile(t *testing.T) {
	text, err := os.ReadFile("../../compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Ports       []string
			Environment map[string]string
			Command     []string
			Configs     []struct{ Source, Target string }
			Volumes     []string
			Restart     string
		}
		Configs map[string]struct{ Content string }
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	parley := file.Services["parley"]
	c, err := parseText(strings.ReplaceAll(file.Configs["parley"].Content, "$$", "$"), "PARLEY_ADMIN_TOKEN=0123456789abcdef0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	if len(parley.Ports) != 1 || !strings.HasSuffix(parley.Ports[0], c.HTTP.Listen) {
		t.Errorf("the ports are %q, and Parley listens on %s", parley.Ports, c.HTTP.Listen)
	}
	if len(parley.Configs) != 1 || !slices.Equal(parley.Command[:2], []string{"--config", parley.Configs[0].Target}) {
		t.Errorf("the command is %q, and the config is %v", parley.Command, parley.Configs)
	}
	if parley.Restart != "unless-stopped" {
		t.Errorf("after the machine was started again, %q decides if Parley is", parley.Restart)
	}
	if parley.Environment["PARLEY_ADMIN_TOKEN"] == "" {
		t.Error("the administrator's token is not passed on")
	}
	if got, want := file.Services["ollama"].Environment["OLLAMA_CONTEXT_LENGTH"], fmt.Sprint(c.Models["main"].ContextWindow); got != want {
		t.Errorf("Ollama takes %s tokens, and contextWindow is %s", got, want)
	}
}

// TestClusterFile: the servers of compose.cluster.yaml form a cluster, and the gateways are let in and keep three copies.
func TestClusterFile(t *testing.T) {
	text, err := os.ReadFile("../../compose.cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Command     []string
			Environment map[string]string
			Ports       []string
		}
		Configs map[string]struct{ Content string }
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	env := func(of, name string) string {
		return regexp.MustCompile(`\$\{NATS_PASSWORD:[^}]*\}`).ReplaceAllString(file.Services[of].Environment[name], "00000000")
	}
	t.Setenv("NATS_PASSWORD", env("nats-1", "NATS_PASSWORD"))
	hosts := map[string]string{}
	for i := range 3 {
		for _, port := range []string{"4222", "6222"} {
			hosts[fmt.Sprintf("nats-%d:%s", i+1, port)] = networktest.FreeAddress(t)
		}
	}
	here := func(text string) string {
		for name, address := range hosts {
			text = strings.ReplaceAll(text, name, address)
		}
		return strings.ReplaceAll(text, "$$", "$")
	}
	for i := range 3 {
		name := fmt.Sprint("nats-", i+1)
		content := here(file.Configs["nats"].Content)
		for _, port := range []string{"4222", "6222"} {
			content = strings.Replace(content, "0.0.0.0:"+port, hosts[name+":"+port], 1)
		}
		content = strings.Replace(content, "/data", t.TempDir(), 1)
		path := filepath.Join(t.TempDir(), "nats.conf")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		options, err := server.ProcessConfigFile(path)
		if err != nil {
			t.Fatal(err)
		}
		command := file.Services[name].Command
		options.ServerName = command[slices.Index(command, "--name")+1]
		if !options.SyncAlways {
			t.Error("what is confirmed is not on the disk")
		}
		natstest.Start(t, options)
	}
	var c *config.Config
	for i := range 3 {
		name := fmt.Sprint("parley-", i+1)
		c, err = parseText(here(file.Configs["parley"].Content), "PARLEY_ADMIN_TOKEN=0123456789abcdef0123456789abcdef",
			"NATS_CREDENTIALS="+env(name, "NATS_CREDENTIALS"), "PAGE="+env(name, "PAGE"))
		if err != nil {
			t.Fatal(err)
		}
		// A browser is let in at the address to which the port of the machine leads.
		if port := strings.TrimPrefix(c.HTTP.PublicURL, "http://localhost:"); !slices.Contains(file.Services[name].Ports, "127.0.0.1:"+port+":18790") {
			t.Errorf("%s is at %q, and its ports are %q", name, c.HTTP.PublicURL, file.Services[name].Ports)
		}
	}
	driver := c.Store.Driver.(store.Driver)
	var s store.Store
	for began := time.Now(); s == nil; { // a cluster of that many has no leader at first
		s, err = driver.Open(t.Context(), store.Host{Brief: true})
		if err != nil && time.Since(began) > waitTime {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if found, err := driver.(store.Examiner).Examine(t.Context()); err != nil || !strings.Contains(found, "copies of everything: 3") {
		t.Errorf("doctor finds %s, %v", found, err)
	}
}

// TestDocumentedKeys: docs/config.md tells of every key whether it follows the
// file, and of no other.
func TestDocumentedKeys(t *testing.T) {
	var told []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|.*\\| (\\w+) \\|$").FindAllStringSubmatch(pages(t)["docs/config.md"], -1) {
		told = append(told, m[1]+": "+m[2])
	}
	keys := keysOf(reflect.TypeFor[config.Config](), "", "restart")
	for _, key := range keys {
		if !slices.Contains(told, key) {
			t.Errorf("docs/config.md lacks %s", key)
		}
	}
	for _, key := range told {
		if !slices.Contains(keys, key) {
			t.Errorf("docs/config.md has %s, which the config does not know", key)
		}
	}
}

// TestDocumentedOrders: what docs/operations.md has programs ask of the clock is
// done, and answered as it says (D-094).
func TestDocumentedOrders(t *testing.T) {
	t.Parallel()
	text := strings.ReplaceAll(pages(t)["docs/operations.md"], "telegram:42", fmt.Sprint("telegram:", person))
	w := newTestGateway(t, echo)
	w.start()
	owner, id := w.visit(), ""
	examples := regexp.MustCompile(`curl .*-X (\w+) \$URL(\S+) --json '(.*)'`).FindAllStringSubmatch(text, -1)
	if len(examples) != 2 {
		t.Fatalf("%q", examples)
	}
	for _, x := range examples {
		var ask, told map[string]any
		if err := json.Unmarshal([]byte(x[3]), &ask); err != nil {
			t.Fatal(err)
		}
		status, body := owner.do(x[1], strings.Replace(x[2], "ID", id, 1), ask)
		if err := json.Unmarshal([]byte(body), &told); err != nil || status > 201 {
			t.Fatalf("%s: %d %s", x[0], status, body)
		}
		for field, want := range ask {
			if told[field] != want {
				t.Errorf("%s: %s is %v", x[0], field, told[field])
			}
		}
		id = told["id"].(string)
	}
	_, body := owner.do("GET", "/api/cron", nil)
	for _, m := range regexp.MustCompile(`"(\w+)":`).FindAllStringSubmatch(body, -1) {
		if field := m[1]; field != "jobs" && !strings.Contains(text, "`"+field+"`") && !strings.Contains(pages(t)["docs/tools.md"], "`"+field+"`") {
			t.Errorf("docs/operations.md lacks %s", field)
		}
	}
}

// keysOf lists the keys that a value of type typ at path is made of, and when
// they change.
func keysOf(typ reflect.Type, path, when string) (keys []string) {
	switch {
	case typ == reflect.TypeFor[map[string]*config.Channel]():
		for _, d := range drivers().Channels {
			path := path + "." + d.Name
			keys = append(keys, keysOf(reflect.TypeOf(d.New()), path, when)...)
			if _, ok := d.New().(config.Network); ok {
				keys = append(keys, keysOf(reflect.TypeFor[config.Senders](), path, when)...)
			}
		}
	case typ.Kind() == reflect.Pointer:
		return keysOf(typ.Elem(), path, when)
	case typ.Kind() == reflect.Map:
		return keysOf(typ.Elem(), path+".NAME", when)
	case typ.Kind() == reflect.Struct:
		for i := range typ.NumField() {
			f := typ.Field(i)
			if name := f.Tag.Get("json"); name != "" && name != "-" {
				when := when
				if f.Tag.Get("live") != "" {
					when = "live"
				}
				keys = append(keys, keysOf(f.Type, strings.TrimPrefix(path+"."+name, "."), when)...)
			}
		}
		for _, d := range map[reflect.Type][]config.Driver{
			reflect.TypeFor[config.Model](): drivers().Models, reflect.TypeFor[config.Store](): drivers().Stores,
		}[typ] {
			own := keysOf(reflect.TypeOf(d.New()), path, when)
			keys = append(keys, slices.DeleteFunc(own, func(key string) bool { return key == path+": "+when })...) // it has none
		}
	}
	if keys == nil {
		return []string{path + ": " + when}
	}
	return keys
}
