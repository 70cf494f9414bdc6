package imports

import (
	"cmp"
	"encoding/base64"
	"path"
	"strings"
)

// nanobot keeps in one folder
//
//	config.json                       the config, with names in camelCase or in snake_case
//	workspace/                        the agent's files, with memory/MEMORY.md
//	cron/jobs.json                    jobs; in some versions in the workspace
//	sessions/WORKSPACE/BASE64.jsonl   conversations
//	workspace/sessions/KEY.jsonl      before: conversations; before that in sessions/
//
// The shapes are those of the sources of 0.1.3 to 0.2, and of the development version of mid-2026.

// readNanobot reads an installation of nanobot.
func readNanobot(r *reading) error {
	c, name, err := r.config("config.json")
	if err != nil {
		return err
	}
	defaults := c.get("agents", "defaults")
	for _, kind := range c.get("channels").keys() {
		ch := c.get("channels", kind)
		from := name + ": channels." + kind
		switch {
		case kind == "telegram" || kind == "discord":
			groups := "mention"
			if ch.get("groupPolicy|group_policy").text() == "open" {
				groups = "all"
			}
			r.Settings.addChannel(foundChannel{
				kind: kind, allow: ch.get("allowFrom|allow_from").texts(), groups: groups, from: from,
				token: ch.get("token"), tokenFrom: from + ".token", off: !ch.get("enabled").is(false),
			})
		case ch.get("enabled").is(false):
			r.left("channel "+line(kind), from, "Parley has no such network")
		}
	}
	readNanobotModels(r, c, name)
	r.Settings.setTimezone(defaults.get("timezone").text(), name+": agents.defaults.timezone")
	servers := c.get("tools", "mcpServers|mcp_servers")
	for _, server := range servers.keys() {
		r.Settings.addServer(server, servers.get(server), name+": tools.mcpServers")
	}
	r.openWorkspace(defaults.get("workspace").text(), ".nanobot")
	if r.files != nil {
		r.readSoul()
		r.readFile("USER.md", "USER.md", "")
		r.readMemory("memory/MEMORY.md")
		r.readGuides("AGENTS.md", "TOOLS.md")
		r.readHeartbeat()
		r.readSkills()
		r.readNotes("memory/MEMORY.md")
		r.leaveRest("SOUL.md USER.md AGENTS.md TOOLS.md HEARTBEAT.md skills memory sessions cron prompts")
		readJobsFile(r, r.files, "cron/jobs.json")
		readNanobotTalks(r, r.files, "sessions")
	}
	readJobsFile(r, r.home, "cron/jobs.json")
	readNanobotTalks(r, r.home, "sessions")
	return nil
}

// readNanobotModels takes over the model that answers, presets, and those that are asked when it fails.
func readNanobotModels(r *reading, c value, name string) {
	defaults := c.get("agents", "defaults")
	presets := c.get("modelPresets|model_presets")
	add := func(as string, m value, from string) string {
		id, provider := m.get("model").text(), m.get("provider").text()
		if provider == "" || provider == "auto" {
			provider = nanobotProvider(c, id)
		}
		id = strings.TrimPrefix(id, provider+"/")
		key := strings.ReplaceAll(provider, "-", "_")
		p := c.get("providers", provider+"|"+key+"|"+camel(key))
		return r.Settings.addModel(as, foundModel{
			provider: provider, id: id, base: p.get("apiBase|api_base"), key: p.get("apiKey|api_key"),
			keyFrom: name + ": providers." + provider + ".apiKey", from: from,
			window: m.get("contextWindowTokens|context_window_tokens").int(),
			limit:  m.get("maxTokens|max_tokens").int(),
		})
	}
	main := defaults
	if preset := presets.get(defaults.get("modelPreset|model_preset").text()); preset.exists() {
		main = preset
	}
	added := []string{add("main", main, name+": agents.defaults.model")}
	for _, preset := range presets.keys() {
		if presets.get(preset).any != nil && preset != defaults.get("modelPreset|model_preset").text() {
			add(plainName(preset), presets.get(preset), name+": modelPresets."+preset)
		}
	}
	for _, fallback := range defaults.get("fallbackModels|fallback_models").list() {
		if as := plainName(fallback.text()); as != "" && presets.get(fallback.text()).exists() {
			added = append(added, as)
			continue
		}
		if fallback.text() != "" {
			fallback = value{map[string]any{"model": fallback.text()}}
		}
		added = append(added, add("", fallback, name+": agents.defaults.fallbackModels"))
	}
	r.Settings.setModels(added)
}

// nanobotProvider returns the provider of a model for which the config names none: the one that
// its name begins with, or else the one that has a key.
func nanobotProvider(c value, id string) string {
	prefix, _, ok := strings.Cut(id, "/")
	if ok && c.get("providers", prefix, "apiKey|api_key").text() != "" {
		return prefix
	}
	for _, provider := range c.get("providers").keys() {
		p := c.get("providers", provider)
		if p.get("apiKey|api_key").text()+p.get("apiBase|api_base").text() != "" {
			return provider
		}
	}
	if ok {
		return prefix
	}
	return "openai"
}

// camel returns a name_like_this as a nameLikeThis.
func camel(name string) string {
	parts := strings.Split(name, "_")
	for i, p := range parts[1:] {
		if p != "" {
			parts[i+1] = strings.ToUpper(p[:1]) + p[1:]
		}
	}
	return strings.Join(parts, "")
}

// readJobsFile takes over the jobs of nanobot and picoclaw, whose files are alike.
func readJobsFile(r *reading, s *source, name string) {
	text, ok := s.text("jobs", name, maxConfig)
	if !ok {
		return
	}
	from := s.prefix + name
	v, err := parseJSON(text)
	if err != nil {
		r.left("jobs", from, reason(err))
		return
	}
	for _, j := range v.get("jobs").list() {
		const own = "it is one of the program's own: Parley has a heartbeat and dreams instead"
		p := j.get("payload")
		title := cmp.Or(j.get("name").text(), j.get("id").text())
		switch kind := p.get("kind").text(); {
		case p.get("command").text() != "":
			r.left("job "+line(title), from, "it runs a command: make a job of it whose message says what to run")
			continue
		case kind == "system_event" && (title == "dream" || title == "heartbeat"):
			r.left("job "+line(title), from, own)
			continue
		}
		f := foundJob{
			id: j.get("id").text(), name: j.get("name").text(), text: p.get("message").text(),
			channel: p.get("originChannel|origin_channel|channel").text(), schedule: j.get("schedule"),
			to:  p.get("originChatId|origin_chat_id|to").text(),
			off: !j.get("enabled").is(true), from: from,
		}
		if key := p.get("sessionKey|session_key").text(); f.to == "" && key != "" {
			f.channel, f.to, _ = strings.Cut(key, ":")
		}
		r.addJob(f)
	}
}

// readNanobotTalks takes over the conversations in a folder and the folders in it.
func readNanobotTalks(r *reading, s *source, folder string) {
	if s.check(folder) != nil {
		return
	}
	for _, name := range s.walk("conversation", folder) {
		base, ok := strings.CutSuffix(path.Base(name), ".jsonl")
		if !ok {
			continue
		}
		r.readLines(s, name, keyOf(base), func(t *talk, v value) (part, bool) {
			if v.get("_type").text() == "metadata" {
				t.key = cmp.Or(v.get("key").text(), t.key)
				return part{}, false
			}
			return message(v, parseTime(v.get("timestamp")))
		})
	}
}

// keyOf returns the name of a session of the name of its file, which is the former in base64, or with
// underscores.
func keyOf(base string) string {
	decoded, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(base, "="))
	if err != nil || !isKey(string(decoded)) {
		return strings.Replace(base, "_", ":", 1)
	}
	return string(decoded)
}

// isKey reports whether text may be the name of a session.
func isKey(text string) bool {
	return strings.Contains(text, ":") && !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' })
}
