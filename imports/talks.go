package imports

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A talk is a conversation: the log of another program has not what Parley's own histories are
// made of (what a model was shown, and who asked), so it becomes a text that the agent can read.
type talk struct {
	key     string // such as "telegram:42"
	from    string
	begun   string
	parts   []part
	dropped int // lines that could not be read
}

// A part is one message.
type part struct {
	role, text string
	at         time.Time
}

const maxTalkText = 8 << 20 // bytes of the text that is made of one conversation

// addTalk takes over a conversation. Messages of programs and empty ones are left out.
func (r *reading) addTalk(t talk) {
	if len(t.parts) == 0 {
		if t.dropped > 0 {
			r.left("conversation "+line(t.key), t.from, fmt.Sprintf("none of its %d lines can be read", t.dropped))
		}
		return
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Conversation %s, with %s\n", line(t.key), r.Title)
	first := 0
	for size, i := 0, len(t.parts)-1; i >= 0; i-- { // the latest fit
		if size += len(t.parts[i].text) + 100; size > maxTalkText {
			first = i + 1
			break
		}
	}
	for _, p := range t.parts[first:] {
		when := ""
		if !p.at.IsZero() {
			when = p.at.UTC().Format("2006-01-02 15:04") + " UTC · "
		}
		fmt.Fprintf(&b, "\n## %s%s\n\n%s\n", when, line(p.role), strings.TrimSpace(p.text))
	}
	change := fmt.Sprintf("as a text of %d messages that the agent can read and search", len(t.parts)-first)
	if first > 0 {
		change += fmt.Sprintf("; %d older ones did not fit", first)
	}
	if t.dropped > 0 {
		change += fmt.Sprintf("; %d damaged lines are left out", t.dropped)
	}
	sum := sha256.Sum256([]byte(t.key + " " + t.begun))
	name := fmt.Sprintf("%s/conversations/%s-%.4x.md", r.kept(), cmp.Or(plainName(t.key), "other"), sum)
	r.add(File{Name: name, Data: b.Bytes(), From: t.from, Change: change, Untrusted: true})
}

// message returns the part that v, a message as models are sent it, is for people: without the
// instructions, the results of tools, and what only a program says.
func message(v value, at time.Time) (p part, ok bool) {
	p = part{role: v.get("role").text(), at: at}
	if p.role == "user" {
		p.role = "person"
	} else if p.role != "assistant" {
		return p, false
	}
	var texts []string
	content := v.get("content")
	if s := content.text(); s != "" {
		texts = append(texts, s)
	} else {
		for _, block := range content.list() {
			if kind := block.get("type").text(); kind == "text" || kind == "input_text" || kind == "output_text" {
				texts = append(texts, block.get("text").text())
			}
		}
	}
	p.text = strings.TrimSpace(strings.Join(texts, "\n"))
	return p, p.text != ""
}

// parseTime returns the time that a log notes, which has several forms.
func parseTime(v value) time.Time {
	if ms := v.int(); ms > 0 {
		return time.UnixMilli(ms)
	}
	t, err := time.Parse(time.RFC3339, v.text())
	if err != nil { // without a zone; a fraction of a second is read all the same
		t, err = time.Parse("2006-01-02T15:04:05", strings.Replace(v.text(), " ", "T", 1))
	}
	if err != nil {
		return time.Time{}
	}
	return t
}

// readLines reads a log of JSON lines as a talk: take returns the part that a line is, if it is one.
func (r *reading) readLines(s *source, name, key string, take func(*talk, value) (part, bool)) {
	text, ok := s.text("conversation "+line(key), name, maxTalk)
	if !ok {
		return
	}
	t := talk{key: key, from: s.prefix + name}
	for l := range bytes.Lines(text) {
		l = bytes.TrimSpace(l)
		if len(l) == 0 {
			continue
		}
		v, err := parseJSON(l)
		if err != nil {
			t.dropped++
			continue
		}
		if p, ok := take(&t, v); ok {
			t.parts = append(t.parts, p)
		}
	}
	t.key = cmp.Or(t.key, key)
	r.addTalk(t)
}

// config reads the config in one of the files that it may be in.
func (r *reading) config(names ...string) (v value, name string, err error) {
	for _, name := range names {
		text, err := r.home.bytes(name, maxConfig)
		if isMissing(err) {
			continue
		}
		if err != nil {
			return v, "", fmt.Errorf("%s: %w", name, errors.New(reason(err)))
		}
		if v, err = parseJSON(text); err != nil {
			return v, "", fmt.Errorf("%s: %w", name, err)
		}
		return v, name, nil
	}
	return v, "", fmt.Errorf("there is no %s in %s", strings.Join(names, " or "), r.Path)
}
