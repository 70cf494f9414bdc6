package imports

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"parley/imports/sqlite"
)

// OpenClaw, which was Clawdbot and Moltbot, keeps in one folder
//
//	openclaw.json                       the config, in JSON5
//	workspace/                          the agent's files
//	state/openclaw.sqlite               since 2026.9: jobs and people who were let in
//	agents/NAME/agent/….sqlite          since 2026.9: conversations
//	cron/jobs.json                      before: jobs, at first with their destination in the payload
//	credentials/CHANNEL-allowFrom.json  before: people who were let in
//	agents/NAME/sessions/….jsonl        before: conversations
//
// The shapes are those of version 2026.9.2 and of those before.

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// readOpenClaw reads an installation of OpenClaw.
func readOpenClaw(r *reading) error {
	c, name, err := r.config("openclaw.json", "clawdbot.json", "moltbot.json")
	if err != nil {
		return err
	}
	state, done, found := r.home.database("state", "state/openclaw.sqlite")
	if found {
		defer done()
	}
	oc := openClaw{reading: r, config: c, name: name, state: state}
	oc.readOwners()
	oc.readChannels()
	oc.readModels()
	oc.Settings.setTimezone(c.get("agents", "defaults", "userTimezone").text(), name+": agents.defaults.userTimezone")
	for _, server := range c.get("mcp", "servers").keys() {
		oc.Settings.addServer(server, c.get("mcp", "servers", server), name+": mcp.servers")
	}
	agents := c.get("agents")
	configured := cmp.Or(agents.get("entries", "main", "workspace").text(), agents.get("defaults", "workspace").text(),
		c.get("agent", "workspace").text())
	dot, _, _ := strings.Cut(name, ".")
	r.openWorkspace(configured, "."+dot)
	if r.files != nil {
		r.readSoul("IDENTITY.md")
		r.readFile("USER.md", "USER.md", "")
		r.readMemory("MEMORY.md")
		r.readGuides("AGENTS.md", "TOOLS.md")
		r.readHeartbeat()
		r.readSkills()
		r.readNotes()
		r.leaveRest("SOUL.md IDENTITY.md USER.md MEMORY.md AGENTS.md TOOLS.md HEARTBEAT.md BOOTSTRAP.md skills memory")
	}
	oc.readJobs()
	oc.readTalks()
	return nil
}

type openClaw struct {
	*reading
	config value
	name   string       // of the config
	state  *sqlite.File // nil in older versions
	owners []string     // those that it has itself, who may talk for that reason alone
}

// readOwners takes over who may give commands.
func (oc *openClaw) readOwners() {
	from := oc.name + ": commands.ownerAllowFrom"
	for _, owner := range oc.config.get("commands", "ownerAllowFrom").texts() {
		channel, id, ok := cutLast(owner)
		if !ok || !isPersonID.MatchString(id) || channel != "telegram" && channel != "discord" {
			oc.left("owner "+line(owner), from, "it is no telegram:NUMBER or discord:NUMBER")
			continue
		}
		if slices.Contains(oc.owners, owner) {
			continue
		}
		if enabled := oc.config.get("channels", channel); enabled.exists() && enabled.get("enabled").is(true) {
			oc.owners = append(oc.owners, owner)
			if slices.Contains(oc.Settings.Owners, owner) {
				continue // named by --owner, too
			}
			oc.Settings.Owners = append(oc.Settings.Owners, owner)
			oc.note(Item{Action: Taken, What: "owner " + owner, From: from, To: "owners"})
		}
	}
}

// readChannels takes over Telegram and Discord, with all their accounts.
func (oc *openClaw) readChannels() {
	channels := oc.config.get("channels")
	for _, kind := range channels.keys() {
		from := oc.name + ": channels." + kind
		c := channels.get(kind)
		if kind == "defaults" || kind == "modelByChannel" {
			continue
		}
		if kind != "telegram" && kind != "discord" {
			oc.left("channel "+line(kind), from, "Parley has no such network")
			continue
		}
		accounts := c.get("accounts").keys()
		if c.get("botToken|token|tokenFile").exists() || len(accounts) == 0 {
			oc.readChannel(kind, "", c, from)
		}
		for _, account := range accounts {
			label := account
			if account == "default" {
				label = ""
			}
			oc.readChannel(kind, label, c.under(c.get("accounts", account)), from+".accounts."+account)
		}
	}
}

func (oc *openClaw) readChannel(kind, label string, c value, from string) {
	token := c.get("botToken|token")
	if !token.exists() && c.get("tokenFile").exists() {
		token = value{map[string]any{"source": "file"}}
	}
	allow := append(c.get("allowFrom").texts(), c.get("dm", "allowFrom").texts()...)
	allow = append(allow, oc.paired(kind, cmp.Or(label, "default"))...)
	for _, owner := range oc.owners {
		if id, ok := strings.CutPrefix(owner, kind+":"); ok && label == "" {
			allow = append(allow, id)
		}
	}
	groups := "mention"
	if policy := c.get("groupPolicy").text(); policy == "disabled" {
		groups = "none"
	} else if !c.get("groups", "*", "requireMention").is(true) {
		groups = "all"
	}
	oc.Settings.addChannel(foundChannel{
		kind: kind, label: label, allow: allow, groups: groups, from: from,
		token: token, tokenFrom: from + ".botToken", off: !c.get("enabled").is(true),
	})
}

// paired returns the people who were let in by a code.
func (oc *openClaw) paired(kind, account string) (ids []string) {
	name := "credentials/" + kind + "-allowFrom.json"
	if account != "default" {
		name = "credentials/" + kind + "-" + account + "-allowFrom.json"
	}
	const what, table = "people who were let in", "channel_pairing_allow_entries"
	if text, ok := oc.home.text(what, name, maxConfig); ok {
		v, err := parseJSON(text)
		if err != nil {
			oc.left(what, name, reason(err))
		}
		ids = v.get("allowFrom").texts()
	}
	if oc.state == nil || !oc.state.Has(table) {
		return ids
	}
	err := oc.state.Each(table, func(row sqlite.Row) error {
		if row.Text("channel_key") == kind && row.Text("account_id") == account {
			ids = append(ids, row.Text("entry"))
		}
		return nil
	})
	if err != nil {
		oc.left(what, "state/openclaw.sqlite", reason(err))
	}
	return ids
}

// readModels takes over the model that answers, and those that are asked when it fails.
func (oc *openClaw) readModels() {
	model := oc.config.get("agents", "defaults", "model")
	names := []string{cmp.Or(model.text(), model.get("primary").text())}
	names = append(names, model.get("fallbacks").texts()...)
	var added []string
	for _, full := range names {
		provider, id, ok := strings.Cut(full, "/")
		if !ok {
			continue
		}
		p := oc.config.get("models", "providers", provider)
		from := oc.name + ": agents.defaults.model"
		m := foundModel{
			provider: provider, id: id, base: p.get("baseUrl"), key: p.get("apiKey"), api: p.get("api").text(),
			keyFrom: oc.name + ": models.providers." + provider + ".apiKey", from: from,
		}
		for _, known := range p.get("models").list() {
			if known.get("id").text() == id {
				m.window, m.limit = known.get("contextWindow").int(), known.get("maxTokens").int()
				m.in, m.out = known.get("cost", "input").float(), known.get("cost", "output").float()
			}
		}
		name := ""
		if len(added) == 0 {
			name = "main"
		}
		if name = oc.Settings.addModel(name, m); name != "" {
			added = append(added, name)
		}
	}
	oc.Settings.setModels(added)
}

// readJobs takes over the scheduled jobs, from where this version has them.
func (oc *openClaw) readJobs() {
	if text, ok := oc.home.text("jobs", "cron/jobs.json", maxConfig); ok {
		v, err := parseJSON(text)
		if err != nil {
			oc.left("jobs", "cron/jobs.json", reason(err))
		}
		for _, j := range v.get("jobs").list() {
			oc.readJob(j, "cron/jobs.json")
		}
	}
	if oc.state == nil || !oc.state.Has("cron_jobs") {
		return
	}
	const from = "state/openclaw.sqlite"
	var rows []sqlite.Row
	err := oc.state.Each("cron_jobs", func(row sqlite.Row) error {
		rows = append(rows, row)
		return nil
	})
	if err != nil {
		oc.left("jobs", from, reason(err))
	}
	slices.SortStableFunc(rows, func(a, b sqlite.Row) int {
		return cmp.Compare(a.Int("sort_order"), b.Int("sort_order"))
	})
	for _, row := range rows {
		j, err := parseJSON([]byte(row.Text("job_json")))
		if err != nil {
			oc.left("job "+line(row.Text("name")), from, reason(err))
			continue
		}
		oc.readJob(j, from)
	}
}

func (oc *openClaw) readJob(j value, from string) {
	name := cmp.Or(j.get("name").text(), j.get("id").text())
	payload := j.get("payload")
	leave := func(why string) { oc.left("job "+line(name), from, why) }
	switch kind := payload.get("kind").text(); {
	case j.get("declarationKey").text() != "":
		leave("it is one of OpenClaw's own: Parley has a heartbeat and dreams instead")
		return
	case kind == "command" || kind == "script":
		leave("it runs a command: make a job of it whose message says what to run")
		return
	case kind != "agentTurn" && kind != "systemEvent":
		leave("Parley has no jobs of the kind " + line(kind))
		return
	}
	told := j.get("delivery")
	if told.get("to").text() == "" && payload.get("to").text() != "" {
		told = payload // where older versions have it
	}
	f := foundJob{
		id: j.get("id").text(), name: name, text: payload.get("message|text").text(), schedule: j.get("schedule"),
		channel: told.get("channel").text(), to: told.get("to").text(),
		off: !j.get("enabled").is(true), isolated: j.get("sessionTarget").text() == "isolated", from: from,
	}
	if account := told.get("accountId").text(); account != "" && account != "default" {
		f.channel += ":" + plainName(account)
	}
	oc.addJob(f)
}

// readTalks takes over the conversations of all agents.
func (oc *openClaw) readTalks() {
	for _, agent := range oc.home.entries("agent", "agents") {
		at := "agents/" + agent
		for _, name := range oc.home.entries("database", at+"/agent") {
			if strings.HasSuffix(name, "agent.sqlite") {
				oc.readDatabase(at + "/agent/" + name)
			}
		}
		keys := oc.sessionKeys(at + "/sessions/sessions.json")
		for _, name := range oc.home.entries("conversation", at+"/sessions") {
			id, ok := strings.CutSuffix(name, ".jsonl")
			if !ok {
				continue
			}
			key := cmp.Or(keys[id], "agent:"+agent+":"+id)
			oc.readLines(oc.home, at+"/sessions/"+name, key, oc.event)
		}
	}
}

// sessionKeys returns the keys of conversations by the ids of their files.
func (oc *openClaw) sessionKeys(name string) map[string]string {
	keys := map[string]string{}
	if text, ok := oc.home.text("list of conversations", name, maxTalk); ok {
		v, err := parseJSON(text)
		if err != nil {
			oc.left("list of conversations", name, reason(err))
		}
		for _, key := range v.keys() {
			keys[v.get(key, "sessionId").text()] = key
		}
	}
	return keys
}

// event returns the part that an event of a conversation is.
func (oc *openClaw) event(t *talk, v value) (part, bool) {
	at := parseTime(v.get("timestamp"))
	if t.begun == "" {
		t.begun = v.get("id").text()
	}
	if v.get("type").text() != "message" {
		return part{}, false
	}
	return message(v.get("message"), at)
}

// An event is one of a conversation in a database.
type event struct {
	seq int64
	v   value
}

// A history is the conversations in a database, by their ids.
type history struct {
	keys    map[string]string
	events  map[string][]event
	dropped map[string]int // events that cannot be read
	size    int            // bytes of all events
}

// readDatabase takes over the conversations in a database of an agent.
func (oc *openClaw) readDatabase(name string) {
	db, done, found := oc.home.database("conversations", name)
	if !found {
		return
	}
	defer done()
	h := history{keys: map[string]string{}, events: map[string][]event{}, dropped: map[string]int{}}
	if err := h.read(db); err != nil { // what was read until then counts
		oc.left("conversations", name, reason(err))
	}
	for id, all := range h.events {
		slices.SortFunc(all, func(a, b event) int { return cmp.Compare(a.seq, b.seq) })
		t := talk{key: cmp.Or(h.keys[id], id), begun: id, from: name, dropped: h.dropped[id]}
		for _, e := range all {
			if p, ok := oc.event(&t, e.v); ok {
				t.parts = append(t.parts, p)
			}
		}
		oc.addTalk(t)
	}
}

// read reads the conversations of db.
func (h *history) read(db *sqlite.File) error {
	err := db.Each("session_windows", func(row sqlite.Row) error {
		h.keys[row.Text("session_id")] = row.Text("session_key")
		return nil
	})
	if err != nil {
		return err
	}
	return db.Each("transcript_events", func(row sqlite.Row) error {
		id, text := row.Text("session_id"), row.Text("event_json")
		if h.size += len(text); h.size > maxAll {
			return errAll
		}
		v, err := parseJSON([]byte(text))
		if err != nil {
			h.dropped[id]++
			return nil
		}
		h.events[id] = append(h.events[id], event{row.Int("seq"), v})
		return nil
	})
}
