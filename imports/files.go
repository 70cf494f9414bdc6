package imports

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// kept returns the folder of the workspace for what has no place of its own in Parley.
func (r *reading) kept() string { return "imported/" + r.System }

// add adds a file for the workspace.
func (r *reading) add(f File) {
	if r.names == nil {
		r.names = map[string]bool{}
	}
	key := strings.ToLower(f.Name)
	if r.names[key] {
		r.left("file "+line(f.Name), f.From, "there are two of that name")
		return
	}
	r.names[key] = true
	r.Files = append(r.Files, f)
}

// readSoul takes over who the agent is: SOUL.md, with the other files that say so behind it.
func (r *reading) readSoul(more ...string) {
	var soul, from, change string
	for _, name := range append([]string{"SOUL.md"}, more...) {
		text, ok := r.files.text("file "+name, name, maxText)
		if !ok || strings.TrimSpace(string(text)) == "" {
			continue
		}
		if soul != "" {
			soul += "\n\n"
			change = "with " + name + " at its end"
		}
		soul += strings.TrimSpace(string(text))
		from = cmp.Or(from, r.inWorkspace(name))
	}
	if soul != "" {
		r.add(File{Name: "SOUL.md", Data: []byte(soul + "\n"), From: from, Change: change})
	}
}

// readFile takes over a file of the workspace as to, if it is there.
func (r *reading) readFile(name, to, change string) {
	text, ok := r.files.text("file "+name, name, maxText)
	if ok && len(bytes.TrimSpace(text)) > 0 {
		r.add(File{Name: to, Data: text, From: r.inWorkspace(name), Change: change})
	}
}

// readGuides keeps the files that explain the other program's ways to its agent.
func (r *reading) readGuides(names ...string) {
	const change = "it explains the other program's tools: Parley's own stays; move over what you wrote yourself"
	for _, name := range names {
		r.readFile(name, r.kept()+"/"+name, change)
	}
}

// readMemory takes over MEMORY.md, which then says where the rest is.
func (r *reading) readMemory(name string) {
	text, _ := r.files.text("file "+name, name, maxText)
	const where = "- Notes and conversations from the time with %s are in `%s/`: search them with grep.\n"
	pointer := fmt.Sprintf(where, r.Title, r.kept())
	memory := strings.TrimSpace(string(text))
	if memory != "" {
		memory += "\n\n"
	}
	change := "with a line that says where the notes and conversations are"
	r.add(File{Name: "MEMORY.md", Data: []byte(memory + pointer), From: r.inWorkspace(name), Change: change})
}

// readNotes keeps the notes below the folder memory, but for those named.
func (r *reading) readNotes(but ...string) {
	for _, name := range r.files.walk("note", "memory") {
		base := path.Base(name)
		if slices.Contains(but, name) || !slices.Contains([]string{".md", ".txt", ".jsonl"}, path.Ext(name)) {
			continue
		}
		if text, ok := r.files.text("note "+line(base), name, maxText); ok {
			to := r.kept() + "/" + clean(name)
			r.add(File{Name: to, Data: text, From: r.inWorkspace(name), Untrusted: true})
		}
	}
}

// readHeartbeat takes over what the agent looks after by itself: its list becomes one of open items.
func (r *reading) readHeartbeat() {
	text, ok := r.files.text("file HEARTBEAT.md", "HEARTBEAT.md", maxText)
	if !ok {
		return
	}
	var b strings.Builder
	items := 0
	comment := false
	for l := range strings.Lines(string(text)) {
		trimmed := strings.TrimSpace(l)
		comment = comment || strings.HasPrefix(trimmed, "<!--")
		item, isItem := strings.CutPrefix(trimmed, "- ")
		switch {
		case comment:
			comment = !strings.Contains(trimmed, "-->")
			continue
		case isItem && !strings.HasPrefix(item, "["):
			l = "- [ ] " + item + "\n"
			items++
		case isItem:
			items++
		}
		b.WriteString(l)
	}
	if items == 0 {
		r.left("file HEARTBEAT.md", r.inWorkspace("HEARTBEAT.md"), "it lists nothing to look after")
		return
	}
	const change = "its list became open items, as Parley ticks them off"
	r.add(File{Name: "HEARTBEAT.md", Data: []byte(b.String()), From: r.inWorkspace("HEARTBEAT.md"), Change: change})
}

// clean returns a name whose parts are of letters, digits, dots, dashes and underscores, and never hidden.
func clean(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		part = strings.Map(func(c rune) rune {
			if c >= utf8.RuneSelf || strings.ContainsRune(` "*:<>?\|'`+"`", c) || c < ' ' {
				return '_'
			}
			return c
		}, part)
		parts[i] = cmp.Or(strings.TrimLeft(part[:min(len(part), 100)], "."), "_")
	}
	return strings.Join(parts, "/")
}

const maxSkillFiles = 200

// readSkills takes over the skills below the folder skills of the workspace.
func (r *reading) readSkills() {
	for _, folder := range r.files.entries("skill", "skills") {
		at := "skills/" + folder
		if _, err := r.files.root.Stat(at + "/SKILL.md"); err != nil {
			continue
		}
		r.readSkill(folder, at)
	}
}

func (r *reading) readSkill(folder, at string) {
	what := "skill " + line(folder)
	page, ok := r.files.text(what, at+"/SKILL.md", maxText)
	if !ok {
		return
	}
	name := plainName(folder)
	page, change, err := skillPage(page, name)
	names := r.files.walk(what, at)
	switch {
	case name == "":
		err = errName
	case len(names) > maxSkillFiles:
		err = errBig
	}
	if err != nil {
		r.left(what, r.inWorkspace(at), line(err.Error()))
		return
	}
	to := "skills/" + name + "/"
	r.add(File{Name: to + "SKILL.md", Data: page, From: r.inWorkspace(at + "/SKILL.md"), Change: change})
	for _, file := range names {
		inside := strings.TrimPrefix(file, at+"/")
		if inside == "SKILL.md" || strings.HasPrefix(path.Base(file), ".") {
			continue
		}
		data, err := r.files.bytes(file, maxText)
		if err != nil {
			r.left(what+": "+line(inside), r.inWorkspace(file), reason(err))
			continue
		}
		r.add(File{Name: to + clean(inside), Data: data, From: r.inWorkspace(file)})
	}
}

// A skillHead is the head of a page as Parley reads it.
type skillHead struct {
	Name        string      `yaml:"name"`
	Description string      `yaml:"description"`
	Always      bool        `yaml:"always,omitempty"`
	Requires    *skillNeeds `yaml:"requires,omitempty"`
}

type skillNeeds struct {
	Bins []string `yaml:"bins,omitempty,flow"`
	Env  []string `yaml:"env,omitempty,flow"`
}

const maxSkillPage = 60 << 10 // bytes, a little less than Parley reads

// skillPage returns a page with a head that Parley understands. What it requires was under
// metadata, and the name of the other program, as YAML or as JSON.
func skillPage(page []byte, name string) (converted []byte, change string, err error) {
	text := strings.ReplaceAll(strings.TrimPrefix(string(page), "\ufeff"), "\r\n", "\n")
	head, begun := strings.CutPrefix(text, "---\n")
	head, body, ended := strings.Cut(head, "\n---\n")
	if !begun || !ended {
		return nil, "", fmt.Errorf("its page has no head between two lines ---")
	}
	v, err := parseYAML([]byte(head))
	if err != nil {
		return nil, "", err
	}
	new := skillHead{Name: name, Description: strings.Join(strings.Fields(v.get("description").text()), " ")}
	meta := v.get("metadata")
	if meta.text() != "" {
		if meta, err = parseJSON([]byte(meta.text())); err != nil {
			return nil, "", fmt.Errorf("its metadata: %w", err)
		}
	}
	needs := v
	for _, program := range []string{"openclaw", "clawdbot", "moltbot", "nanobot", "picoclaw"} {
		if of := meta.get(program); of.exists() {
			needs = of
			new.Always = of.get("always").is(false)
		}
	}
	new.Always = new.Always || v.get("always").is(false)
	bins, env := needs.get("requires", "bins").texts(), needs.get("requires", "env").texts()
	if len(bins)+len(env) > 0 {
		new.Requires = &skillNeeds{bins, env}
	}
	switch {
	case new.Description == "":
		return nil, "", fmt.Errorf("its page has no description")
	case strings.TrimSpace(body) == "":
		return nil, "", fmt.Errorf("its page has no text")
	case !utf8.ValidString(text) || len(text) > maxSkillPage:
		return nil, "", errBig
	}
	newHead, err := yaml.Marshal(new)
	if err != nil {
		return nil, "", err
	}
	for _, key := range v.keys() {
		ours := slices.Contains([]string{"name", "description", "always", "requires"}, key)
		if !ours || v.get("name").text() != name {
			change = "its head has Parley's keys"
		}
	}
	return []byte("---\n" + string(newHead) + "---\n" + body), change, nil
}

// leaveRest names the files of the workspace that are not known, and stay.
func (r *reading) leaveRest(known string) {
	var rest []string
	for _, name := range r.files.entries("file", ".") {
		if !slices.Contains(strings.Fields(known), name) && !strings.HasPrefix(name, ".") {
			rest = append(rest, line(name))
		}
	}
	if len(rest) > 0 {
		const why = "your own files: copy what you want into Parley's workspace"
		shown := strings.Join(rest[:min(len(rest), 5)], ", ")
		if len(rest) > 5 {
			shown += fmt.Sprintf(" and %d more", len(rest)-5)
		}
		r.left(shown, r.inWorkspace(""), why)
	}
}
