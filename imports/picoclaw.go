package imports

import (
	"cmp"
	"strings"
)

// picoclaw keeps in one folder
//
//	config.json                   the config
//	.security.yml                 since version 3 of the config: tokens and keys
//	workspace/                    the agent's files, with AGENT.md, memory/MEMORY.md and daily notes
//	workspace/cron/jobs.json      jobs
//	workspace/sessions/….jsonl    conversations, with a ….meta.json each; before: ….json
//
// The shapes are those of version 0.3.0 and of versions 0 to 3 of its config.

// readPicoclaw reads an installation of picoclaw.
func readPicoclaw(r *reading) error {
	c, name, err := r.config("config.json")
	if err != nil {
		return err
	}
	const secretsName = ".security.yml"
	var secrets value
	if text, ok := r.home.text("tokens and keys", secretsName, maxConfig); ok {
		if secrets, err = parseYAML(text); err != nil {
			r.left("tokens and keys", secretsName, reason(err))
		}
	}
	pc := picoclaw{reading: r, config: c, name: name, secrets: secrets}
	pc.readChannels()
	pc.readModels()
	servers := c.get("tools", "mcp", "servers")
	for _, server := range servers.keys() {
		r.Settings.addServer(server, servers.get(server), name+": tools.mcp.servers")
	}
	r.openWorkspace(c.get("agents", "defaults", "workspace").text(), ".picoclaw")
	if r.files == nil {
		return nil
	}
	r.readSoul("IDENTITY.md")
	r.readFile("USER.md", "USER.md", "")
	r.readMemory("memory/MEMORY.md")
	r.readGuides("AGENT.md", "AGENTS.md", "TOOLS.md")
	r.readHeartbeat()
	r.readSkills()
	r.readNotes("memory/MEMORY.md")
	r.leaveRest("SOUL.md IDENTITY.md USER.md AGENT.md AGENTS.md TOOLS.md HEARTBEAT.md " +
		"skills memory sessions cron state")
	readJobsFile(r, r.files, "cron/jobs.json")
	pc.readTalks()
	return nil
}

type picoclaw struct {
	*reading
	config  value
	name    string // of the config
	secrets value
}

// readChannels takes over Telegram and Discord. Their settings were beside the rest before version 3.
func (pc *picoclaw) readChannels() {
	const names = "channel_list|channels"
	channels := pc.config.get(names)
	for _, name := range channels.keys() {
		c := channels.get(name)
		from := pc.name + ": " + "channel_list." + name
		kind := cmp.Or(c.get("type").text(), name)
		if kind != "telegram" && kind != "discord" {
			if c.get("enabled").is(false) && kind != "pico" && kind != "pico_client" {
				pc.left("channel "+line(name), from, "Parley has no such network")
			}
			continue
		}
		label := name
		if name == kind {
			label = ""
		}
		groups := "mention"
		if m := c.get("group_trigger", "mention_only"); m.exists() && !m.is(true) {
			groups = "all"
		}
		settings := c.under(c.get("settings"))
		token, tokenFrom := settings.get("token"), from+".settings.token"
		kept := pc.secrets.get(names, name)
		if kept = kept.under(kept.get("settings")); kept.get("token").exists() {
			token, tokenFrom = kept.get("token"), ".security.yml: channel_list."+name
		}
		pc.Settings.addChannel(foundChannel{
			kind: kind, label: label, allow: c.get("allow_from").texts(), groups: groups, from: from,
			token: hidden(token, tokenFrom), tokenFrom: tokenFrom, off: !c.get("enabled").is(false),
		})
	}
}

// hidden returns a secret that is encrypted or in a file as one that is known by where it is.
func hidden(v value, from string) value {
	if t := v.text(); strings.HasPrefix(t, "enc://") || strings.HasPrefix(t, "file://") {
		return value{map[string]any{"source": "file", "id": from}}
	}
	return v
}

// readModels takes over the models that have a key or an address.
func (pc *picoclaw) readModels() {
	defaults := pc.config.get("agents", "defaults")
	first := defaults.get("model_name|model").text()
	wanted := append([]string{first}, defaults.get("model_fallbacks").texts()...)
	var added []string
	for i, name := range wanted {
		for _, m := range pc.config.get("model_list").list() {
			if m.get("model_name").text() != name || name == "" {
				continue
			}
			as := ""
			if i == 0 {
				as = "main"
			}
			added = append(added, pc.readModel(as, m))
			break
		}
	}
	if len(added) == 0 && first != "" { // before version 2 of the config
		provider := cmp.Or(defaults.get("provider").text(), nanobotProvider(pc.config, first))
		p := pc.config.get("providers", provider)
		from := pc.name + ": providers." + provider
		added = append(added, pc.Settings.addModel("main", foundModel{
			provider: provider, id: strings.TrimPrefix(first, provider+"/"), base: p.get("api_base"),
			key: hidden(p.get("api_key"), from), keyFrom: from, from: pc.name + ": agents.defaults.model",
			limit: defaults.get("max_tokens").int(),
		}))
	}
	pc.Settings.setModels(added)
}

func (pc *picoclaw) readModel(as string, m value) string {
	name := m.get("model_name").text()
	provider, id, ok := strings.Cut(m.get("model").text(), "/")
	if !ok {
		provider, id = "openai", provider
	}
	if p := m.get("provider").text(); p != "" {
		provider, id = p, strings.TrimPrefix(m.get("model").text(), p+"/")
	}
	from := pc.name + ": model_list." + name
	key, keyFrom := m.get("api_key"), from+".api_keys"
	keys := m.get("api_keys").list()
	if kept := pc.secrets.get("model_list", name+"|"+name+":0", "api_keys").list(); len(kept) > 0 {
		keys, keyFrom = kept, ".security.yml: model_list."+name
	}
	if len(keys) > 0 {
		key = keys[0]
	}
	defaults := pc.config.get("agents", "defaults")
	api := provider
	provider = strings.TrimSuffix(provider, "-messages")
	return pc.Settings.addModel(as, foundModel{
		provider: provider, id: id, base: m.get("api_base"), from: from, api: api,
		key: hidden(key, keyFrom), keyFrom: keyFrom,
		window: defaults.get("context_window").int(), limit: defaults.get("max_tokens").int(),
	})
}

// readTalks takes over the conversations.
func (pc *picoclaw) readTalks() {
	for _, name := range pc.files.entries("conversation", "sessions") {
		at := "sessions/" + name
		stem, isLog := strings.CutSuffix(name, ".jsonl")
		key := strings.Replace(strings.TrimSuffix(stem, ".json"), "_", ":", -1)
		take := func(_ *talk, v value) (part, bool) { return message(v, parseTime(v.get("created_at"))) }
		switch {
		case isLog:
			if meta, ok := pc.metaOf("sessions/" + stem + ".meta.json"); ok {
				key = cmp.Or(meta.get("key").text(), key)
				if _, id, _ := cutLast(meta.get("scope", "values", "chat").text()); id != "" { // "direct:42"
					key = meta.get("scope", "channel").text() + ":" + id
				}
			}
			pc.readLines(pc.files, at, key, take)
		case strings.HasSuffix(name, ".meta.json") || !strings.HasSuffix(name, ".json"):
		default:
			v, ok := pc.metaOf(at)
			if !ok {
				continue
			}
			t := talk{key: cmp.Or(v.get("key").text(), key), from: pc.inWorkspace(at)}
			for _, m := range v.get("messages").list() {
				if p, ok := take(&t, m); ok {
					t.parts = append(t.parts, p)
				}
			}
			pc.addTalk(t)
		}
	}
}

// metaOf returns a JSON file about a conversation.
func (pc *picoclaw) metaOf(name string) (v value, ok bool) {
	text, ok := pc.files.text("conversation", name, maxTalk)
	if !ok {
		return v, false
	}
	v, err := parseJSON(text)
	if err != nil {
		pc.left("conversation", pc.inWorkspace(name), reason(err))
		return v, false
	}
	return v, true
}
