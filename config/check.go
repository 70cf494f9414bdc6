package config

import (
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/scheduler"
	webtools "parley/tools/web"
	"parley/web"
)

// A checker finds the values that are well formed and yet make no sense.
type checker struct {
	*Config
	d *decoder
}

// check notes in d what is wrong with c.
func check(c *Config, d *decoder) {
	k := checker{c, d}
	k.folders()
	k.owners()
	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		k.model(join("models", name), c.Models[name])
	}
	k.agent()
	k.channels()
	k.http()
	if t := k.Transcription; t != nil {
		k.url("transcription.baseUrl", t.BaseURL, "https", "http")
	}
	k.oneOf("store.type", c.Store.Type, "bolt", "mem")
	k.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	k.tools(c.Tools)
	k.limits()
	k.clock()
}

// fail notes a problem at key, or where it would stand, unless key has one.
func (k checker) fail(key, format string, args ...any) {
	if k.d.failed(key) {
		return
	}
	for path := key; ; path = path[:max(strings.LastIndexAny(path, ".["), 0)] {
		if at, ok := k.d.at[path]; ok || path == "" {
			k.d.fail(at, key, fmt.Sprintf(format, args...))
			return
		}
	}
}

// show returns value for an error, unless it must not be seen.
func (k checker) show(key, value string) string {
	if k.d.private[key] {
		return "the value"
	}
	return fmt.Sprintf("%+q", value)
}

func (k checker) oneOf(key, value string, allowed ...string) {
	list := strings.Join(allowed, ", ")
	switch {
	case slices.Contains(allowed, value):
	case value == "":
		k.fail(key, "is missing; allowed: %s", list)
	default:
		k.fail(key, "%s is not known; allowed: %s", k.show(key, value), list)
	}
}

func (k checker) inRange(key string, n, least, most int) {
	if n < least || n > most {
		k.fail(key, "is %d, must be from %d to %d", n, least, most)
	}
}

// folders keeps secrets and state out of the agent's reach.
func (k checker) folders() {
	if _, err := time.LoadLocation(k.Timezone); err != nil {
		k.fail("timezone", `%s is no time zone; allowed: names such as "Europe/Berlin", or "UTC"`, k.show("timezone", k.Timezone))
	}
	if inside(k.DataDir, k.Workspace) {
		k.fail("workspace", "must not hold dataDir: the agent could read and change the store")
	}
	if k.Found && inside(filepath.Dir(k.File), k.Workspace) {
		k.fail("workspace", "must not hold the config file: the agent could read and change it")
	}
}

// inside says whether path is dir or lies in it.
func inside(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

var (
	senderID = regexp.MustCompile(`^-?[1-9][0-9]{0,18}$`)
	ownerID  = regexp.MustCompile(`^(console|web|(telegram|discord)(:[A-Za-z0-9_-]+)?:-?[1-9][0-9]{0,18})$`)
)

func (k checker) owners() {
	for i, o := range k.Owners {
		if !ownerID.MatchString(o) {
			k.fail(fmt.Sprintf("owners[%d]", i), `is no owner; allowed: "console", "web", or a channel's name and a person's numeric id, such as "telegram:123456"`)
		}
	}
}

func (k checker) model(key string, m *Model) {
	k.oneOf(key+".type", m.Type, "openai", "demo")
	if m.Type == "openai" {
		where := key + ".baseUrl"
		if k.ByEnv != "" {
			where = "OPENAI_BASE_URL"
		}
		k.url(where, m.BaseURL, "http", "https")
		if strings.TrimSpace(m.Model) == "" {
			k.fail(key+".model", `is missing; allowed: the provider's name of a model, such as "gpt-5-mini"`)
		}
	}
	k.oneOf(key+".toolCalls", m.ToolCalls, "native", "text")
	k.inRange(key+".contextWindow", m.ContextWindow, 1000, 100_000_000)
	k.inRange(key+".maxTokens", m.MaxTokens, 0, max(m.ContextWindow-1, 0))
	if p := m.Price; p != nil && !(p.Input >= 0 && p.Output >= 0) {
		k.fail(key+".price", "must be what a million tokens cost, 0 or more")
	}
	if t := m.Temperature; t != nil && !(*t >= 0 && *t <= 2) {
		k.fail(key+".temperature", "must be from 0 to 2")
	}
}

func (k checker) agent() {
	names := slices.Sorted(maps.Keys(k.Models))
	k.oneOf("agent.model", k.Agent.Model, names...)
	seen := map[string]bool{k.Agent.Model: true}
	for i, name := range k.Agent.Fallback {
		key := fmt.Sprintf("agent.fallback[%d]", i)
		k.oneOf(key, name, names...)
		if seen[name] {
			k.fail(key, "is tried already")
		}
		seen[name] = true
	}
	k.inRange("agent.maxRounds", k.Agent.MaxRounds, 1, 1000)
	k.inRange("agent.maxConcurrentTurns", k.Agent.MaxConcurrentTurns, 1, 10_000)
	if k.Agent.MessageTTL < time.Minute {
		k.fail("agent.messageTTL", "must be 1m or more")
	}
}

func (k checker) limits() {
	for _, whose := range slices.Sorted(maps.Keys(k.Limits)) {
		key, l := join("limits", whose), k.Limits[whose]
		if !slices.Contains([]string{"everybody", "job", "person", "session"}, whose) {
			k.fail(key, "there are no limits of this kind; allowed: everybody, job, person, session")
		}
		for name, n := range map[string]float64{
			"turns": float64(l.Turns), "rounds": float64(l.Rounds), "tokens": float64(l.Tokens), "money": l.Money,
			"children": float64(l.Children), "bytes": float64(l.Bytes), "jobs": float64(l.Jobs), "stored": float64(l.Stored),
		} {
			_, given := k.d.at[join(key, name)]
			switch {
			case given && n <= 0 && n != -1:
				k.fail(join(key, name), "must be above 0, or -1 for no limit")
			case given && name == "bytes" && whose != "person" && whose != "everybody":
				k.fail(join(key, name), "bytes are counted for persons and for everybody: write limits.person.bytes or limits.everybody.bytes")
			case given && name == "jobs" && whose != "person":
				k.fail(join(key, name), "only a person has jobs: write limits.person.jobs")
			case given && name == "stored" && whose != "person":
				k.fail(join(key, name), "only a person has files: write limits.person.stored")
			}
		}
	}
}

// clock checks what goes on by itself.
func (k checker) clock() {
	k.lasts("cron.minInterval", k.Cron.MinInterval, time.Second, 24*time.Hour)
	if k.Heartbeat.Every != 0 {
		k.lasts("heartbeat.every", k.Heartbeat.Every, time.Minute, 24*time.Hour)
	}
	if err := scheduler.Valid(k.Dream.Cron); k.Dream.Cron != "" && err != nil {
		k.fail("dream.cron", `%v; allowed: such as "0 4 * * *", or "" for never`, err)
	}
	for key, model := range map[string]string{"heartbeat.model": k.Heartbeat.Model, "dream.model": k.Dream.Model} {
		if model != "" {
			k.oneOf(key, model, slices.Sorted(maps.Keys(k.Models))...)
		}
	}
}

// categories are those of the tools there are.
var categories = []string{"agents", "crawler", "cron", "data", "files", "memory", "message", "weather"}

func (k checker) tools(t Tools) {
	k.lasts("tools.timeout", t.Timeout, time.Second, 10*time.Minute)
	k.lasts("tools.approvalTimeout", t.ApprovalTimeout, time.Second, 24*time.Hour)
	k.lasts("tools.cacheTTL", t.CacheTTL, 0, 24*time.Hour)
	if !t.RestrictToWorkspace {
		k.fail("tools.restrictToWorkspace", "must be true: there is no tool that leaves the workspace")
	}
	for _, category := range slices.Sorted(maps.Keys(t.Rules)) {
		key := join("tools.rules", category)
		k.oneOf(key, t.Rules[category], "everyone", "owners", "ask", "off")
		if !slices.Contains(categories, category) {
			k.fail(key, "no tools are of this category; allowed: %s", strings.Join(categories, ", "))
		}
	}
	if w := t.Weather; w != (Weather{}) {
		k.oneOf("tools.weather.provider", w.Provider, "openmeteo")
		if w.BaseURL != "" {
			k.url("tools.weather.baseUrl", w.BaseURL, "http", "https")
		}
	}
	k.search("tools.web.search", t.Web.Search)
	for i, s := range t.Web.SearchFallback {
		k.search(fmt.Sprintf("tools.web.searchFallback[%d]", i), s)
	}
	for i, net := range t.Web.AllowPrivate {
		if _, err := webtools.ParseNetwork(net); err != nil {
			k.fail(fmt.Sprintf("tools.web.allowPrivate[%d]", i), "%v", err)
		}
	}
}

func (k checker) search(key string, s Search) {
	k.oneOf(key+".provider", s.Provider, "duckduckgo", "brave", "tavily", "searxng", "jina", "kagi")
	if s.BaseURL != "" {
		k.url(key+".baseUrl", s.BaseURL, "http", "https")
	}
	switch {
	case s.Provider == "searxng" && s.BaseURL == "":
		k.fail(key+".baseUrl", "is missing; allowed: the address of your SearXNG")
	case slices.Contains([]string{"brave", "tavily", "jina", "kagi"}, s.Provider) && s.APIKey == "":
		k.fail(key+".apiKey", "is missing; %s searches for nobody without one", s.Provider)
	}
}

// lasts checks a length of time.
func (k checker) lasts(key string, d, least, most time.Duration) {
	if d < least || d > most {
		k.fail(key, "must be from %s to %s", brief(least), brief(most))
	}
}

// brief returns d as people write it.
func brief(d time.Duration) string {
	return strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(d.String())
}

// What a bot's token looks like, and who gives it, by the type of its channel.
var Tokens = map[string]struct {
	form *regexp.Regexp
	From string
}{
	"telegram": {regexp.MustCompile(`^[0-9]+:[A-Za-z0-9_-]+$`), "@BotFather gives one such as 123456:ABC-def"},
	"discord":  {regexp.MustCompile(`^\S+$`), "https://discord.com/developers/applications gives one, under Bot"},
}

func (k checker) channels() {
	used, bots := map[Secret]string{}, k.Channels.Bots()
	for _, name := range slices.Sorted(maps.Keys(bots)) {
		b, key := bots[name], join("channels", name)
		kind, _, _ := strings.Cut(name, ":")
		switch other, twice := used[b.Token]; {
		case !Tokens[kind].form.MatchString(string(b.Token)):
			k.fail(key+".token", "is no bot token; %s", Tokens[kind].From)
		case twice:
			k.fail(key+".token", "is the token of %s too; one bot can have one reader", other)
		}
		used[b.Token] = name
		k.allow(key+".allow", b.Allow)
		k.oneOf(key+".groups", b.Groups, GroupsMention, GroupsAll, GroupsNone)
		k.url(key+".apiUrl", b.APIURL, "https", "http")
	}
	for name, t := range k.Channels.Telegram {
		key := join("channels", name)
		if t.Rate <= 0 && t.Rate != -1 {
			k.fail(key+".rate", "must be messages per second above 0, or -1 for no limit")
		}
		if t.Webhook != nil {
			k.webhook(key+".webhook", *t.Webhook)
		}
	}
	for name, d := range k.Channels.Discord {
		if d.GatewayURL != "" {
			k.url(join("channels", name)+".gatewayUrl", d.GatewayURL, "wss", "ws")
		}
	}
}

// http refuses a door to the world without a lock of 128 bits (R-S4).
func (k checker) http() {
	h := k.HTTP
	if h.Listen != "" {
		k.listen("http.listen", h.Listen)
	} else if k.Channels.Web != nil && k.d.at["channels.web"] != 0 {
		k.fail("channels.web", "needs http.listen")
	}
	if _, err := web.Origin(h.PublicURL); h.PublicURL != "" && err != nil {
		k.fail("http.publicUrl", "%v", err)
	}
	switch host, _, _ := net.SplitHostPort(h.Listen); {
	case h.AdminToken != "" && len(h.AdminToken) < 22:
		k.fail("http.adminToken", "must have 22 characters or more; make one with: openssl rand -hex 16")
	case h.Listen == "" || host == "localhost" || net.ParseIP(host).IsLoopback() || web.StrongSecret(string(h.AdminToken)):
	case h.AdminToken == "":
		k.fail("http.adminToken", "is missing, and http.listen lets other machines in; make one with: openssl rand -hex 16")
	default:
		k.fail("http.adminToken", "can be guessed, and http.listen lets other machines in; make one with: openssl rand -hex 16")
	}
}

// listen takes an address of this machine.
func (k checker) listen(key, addr string) {
	_, port, err := net.SplitHostPort(addr)
	if n, e := strconv.Atoi(port); err != nil || e != nil || n < 0 || n > 65535 {
		k.fail(key, `must be an address and a port such as "127.0.0.1:8081"`)
	}
}

// allow takes ids that never change hands, and nothing else (R-S7).
func (k checker) allow(key string, ids []string) {
	for i, id := range ids {
		if key := fmt.Sprintf("%s[%d]", key, i); id != "*" && !senderID.MatchString(id) {
			k.fail(key, `must be a numeric id such as "123456", because names change hands; or "*" for everybody`)
		}
	}
}

var webhookSecret = regexp.MustCompile(`^[A-Za-z0-9_-]{22,256}$`)

// webhook refuses a door without a lock of 128 bits (R-S4, R-S9).
func (k checker) webhook(key string, w Webhook) {
	k.url(key+".url", w.URL, "https", "http")
	if w.Secret == "" {
		k.fail(key+".secret", "is missing: without it anybody could speak as Telegram; make one with: openssl rand -hex 16")
	} else if !webhookSecret.MatchString(string(w.Secret)) {
		k.fail(key+".secret", "must be 22 to 256 letters, digits, - and _; make one with: openssl rand -hex 16")
	}
	k.listen(key+".listen", w.Listen)
}

// url checks an address. It is not shown, because it may hold a password.
func (k checker) url(key, value string, schemes ...string) {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme) {
		k.fail(key, "must be an address such as %s://host/path", schemes[0])
	}
}

// Least returns the least level that is logged.
func (l Log) Least() (v slog.Level) {
	_ = v.UnmarshalText([]byte(l.Level)) // checked: oneOf
	return v
}
