package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/search"
	"parley/store"
)

// An Origin says how a line of a memory file came about.
type Origin struct {
	Change  string         `json:"change"` // ID of the change that wrote the line
	By      string         `json:"by"`     // as of that Change
	Time    time.Time      `json:"time"`   // of that Change
	Session chat.SessionID `json:"session,omitempty"`
	Tainted bool           `json:"tainted,omitempty"` // it is based on untrusted content (R-S14)

	// Sources are what a dream made the line of, what is most like it first. Unless Named, the line comes from
	// one or more of the Read parts of conversations that were shown to the dream together.
	Sources []Source `json:"sources,omitempty"`
	Named   bool     `json:"named,omitempty"` // the dream named the Sources
	Read    int      `json:"read,omitempty"`
}

// A Source is a part of a conversation.
type Source struct {
	Entry   int64          `json:"entry"` // cursor of the Entry
	Session chat.SessionID `json:"session,omitempty"`
	Time    time.Time      `json:"time"` // when its last message was sent
	Tainted bool           `json:"tainted,omitempty"`
	From    []string       `json:"from,omitempty"` // where untrusted content in it comes from
}

// maxSources is how many Sources a line keeps.
const maxSources = 8

// A mark identifies a line of a file by what it says.
type mark struct{ file, line string }

// marks returns the marks of the lines of text.
func marks(file, text string) (all []mark) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, mark{file, line})
		}
	}
	return all
}

// newMarks returns the marks of the lines that after has and before has not.
func newMarks(file, before, after string) []mark {
	old := marks(file, before)
	return slices.DeleteFunc(marks(file, after), func(m mark) bool { return slices.Contains(old, m) })
}

// key is the key of the Origin of a line of who.
func (m mark) key(who chat.Person) string {
	sum := sha256.Sum256([]byte(m.line))
	return prefix(who) + m.file + "\x00" + hex.EncodeToString(sum[:16])
}

// sourcesOf returns what an entry is as a Source.
func sourcesOf(entries []Entry) (all []Source) {
	for _, e := range entries {
		s := Source{Entry: e.Cursor, Session: e.Session, Time: e.Time, Tainted: e.Tainted, From: e.Sources}
		all = append(all, s)
	}
	return all
}

// likest returns up to maxSources of the entries, those that have most in common with line first.
func likest(line string, entries []Entry) []Source {
	var texts search.Index
	for _, e := range entries {
		texts.Add(e.Text)
	}
	var first []Entry
	for _, m := range search.Best(search.Terms(line), len(entries), &texts) {
		first = append(first, entries[m.Text])
	}
	for _, e := range entries {
		if !slices.ContainsFunc(first, func(f Entry) bool { return f.Cursor == e.Cursor }) {
			first = append(first, e)
		}
	}
	return sourcesOf(first[:min(len(first), maxSources)])
}

// derive returns the Origin of a line that a dream made of entries. named are the cursors of those that it said
// the line comes from.
func derive(line string, entries []Entry, named []int64) Origin {
	chosen := slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return !slices.Contains(named, e.Cursor) })
	if len(chosen) > 0 {
		return Origin{Sources: likest(line, chosen), Named: true, Read: len(chosen)}
	}
	return Origin{Sources: likest(line, entries), Read: len(entries)}
}

// origin returns where the line m comes from that c writes.
func (c Change) origin(m mark) Origin {
	o := c.origins[m]
	o.Change = c.ID
	o.By = c.By
	o.Time = c.Time
	o.Session = c.Session
	o.Tainted = c.Tainted
	if c.By == byDream { // which keeps what is untrusted to one file
		o.Tainted = m.file == heardFile
	}
	return o
}

// noteOrigins records where the lines come from that c writes or proposes. A line that is put back keeps the
// origin that it had. c takes effect afterwards: the record of a line that never comes to be says nothing.
func (v *Versions) noteOrigins(ctx context.Context, c Change) error {
	putBack := strings.HasPrefix(c.By, "restore ") || strings.HasPrefix(c.By, "accept ")
	for _, edits := range []map[string]Edit{c.Files, c.Asks} {
		for name, e := range edits {
			before, after, err := v.pair(ctx, c.Who, e)
			if errors.Is(err, store.ErrDamaged) { // nobody can tell which lines are new
				continue
			}
			if err != nil {
				return err
			}
			for _, m := range newMarks(name, before, after) {
				if putBack {
					_, _, err := v.origins.Get(ctx, m.key(c.Who))
					if !errors.Is(err, store.ErrNotFound) {
						continue
					}
				}
				if err := v.origins.Set(ctx, m.key(c.Who), c.origin(m)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// trimOrigins deletes the origins of lines that no text has. texts are the digests of the texts, by file.
func (v *Versions) trimOrigins(ctx context.Context, who chat.Person, texts map[string]map[string]bool) error {
	needed := map[string]bool{}
	for name, sums := range texts {
		for sum := range sums {
			text, err := v.text(ctx, who, sum)
			if err != nil && !errors.Is(err, store.ErrDamaged) {
				return err
			}
			for _, m := range marks(name, text) {
				needed[m.key(who)] = true
			}
		}
	}
	return forget(ctx, v.origins, who, func(k string) bool { return needed[k] })
}

// A Line is a line of a memory file.
type Line struct {
	File   string  `json:"file"`             // such as "MEMORY.md"
	Number int     `json:"number"`           // in the file, from 1
	Text   string  `json:"text"`             // without the line break
	Origin *Origin `json:"origin,omitempty"` // nil: unknown
	// Untrusted is set if the line is based on untrusted content, or may be (R-S14).
	Untrusted bool `json:"untrusted,omitempty"`
}

// Lines are what the memory files of a person say.
type Lines struct {
	Who   chat.Person `json:"who"`
	Files []string    `json:"files"` // those that there can be
	Lines []Line      `json:"lines"` // blank ones, too
	// Since is when the first change was made that is still kept: what has no Origin is older. It is zero if
	// there is none.
	Since time.Time `json:"since,omitzero"`
}

// Text returns what the file of that name says.
func (l Lines) Text(name string) string {
	var b strings.Builder
	for _, line := range l.Lines {
		if line.File == name {
			b.WriteString(line.Text + "\n")
		}
	}
	return b.String()
}

// shown returns a line of a file as owners see it.
func shown(line string) string { return strings.TrimRight(strings.ToValidUTF8(line, "\uFFFD"), "\r\n") }

// Lines returns the lines of the memory files of who, each with where it came from.
func (n *Notes) Lines(ctx context.Context, who chat.Person) (Lines, error) {
	all := Lines{Who: who, Files: names(who), Lines: []Line{}}
	err := n.Versions.with(ctx, who, func(ctx context.Context, h *head, texts map[string]string) error {
		for _, name := range all.Files {
			number := 0
			for text := range strings.Lines(texts[name]) {
				number++
				line := Line{File: name, Number: number, Text: shown(text), Untrusted: name == heardFile}
				m := mark{name, strings.TrimSpace(text)}
				o, _, err := n.Versions.origins.Get(ctx, m.key(who))
				switch {
				case errors.Is(err, store.ErrNotFound):
				case err != nil:
					return err
				default:
					line.Origin = &o
					line.Untrusted = line.Untrusted || o.Tainted
				}
				all.Lines = append(all.Lines, line)
			}
		}
		return n.older(ctx, h, &all)
	})
	return all, err
}

// older sets, from the kept changes, the origins of lines that were written before origins were recorded.
func (n *Notes) older(ctx context.Context, h *head, all *Lines) error {
	missing := map[mark][]*Line{}
	for i := range all.Lines {
		if l := &all.Lines[i]; l.Origin == nil && strings.TrimSpace(l.Text) != "" {
			m := mark{l.File, strings.TrimSpace(l.Text)}
			missing[m] = append(missing[m], l)
		}
	}
	for c, err := range n.Versions.back(ctx, h) {
		if err != nil {
			return err
		}
		if c.By == "" { // damaged, or never there
			continue
		}
		all.Since = c.Time
		if len(missing) == 0 {
			continue
		}
		for name, e := range c.Files {
			before, after, err := n.Versions.pair(ctx, c.Who, e)
			if errors.Is(err, store.ErrDamaged) {
				continue
			}
			if err != nil {
				return err
			}
			for _, m := range newMarks(name, before, after) {
				if err := n.settle(ctx, c, m, missing); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// settle gives the lines m, if they are missing one, the Origin that c is.
func (n *Notes) settle(ctx context.Context, c Change, m mark, missing map[mark][]*Line) error {
	lines := missing[m]
	delete(missing, m)
	if len(lines) == 0 {
		return nil
	}
	o := c.origin(m)
	if c.By == byDream && c.To > c.From {
		var read []Entry
		for e, err := range n.Past.Since(ctx, c.Who, c.From) {
			if err != nil {
				return err
			}
			if e.Cursor > c.To {
				break
			}
			if e.Tainted == (m.file == heardFile) {
				read = append(read, e)
			}
		}
		made := derive(m.line, read, nil)
		o.Sources = made.Sources
		o.Read = made.Read
	}
	for _, l := range lines {
		l.Origin = &o
		l.Untrusted = l.Untrusted || o.Tainted
	}
	return nil
}

// Why returns the lines of the memory files of who that have the words, the best first, at most so many, each
// with where it came from: why the agent thinks what it says about them.
func (n *Notes) Why(ctx context.Context, who chat.Person, words string, most int) ([]Line, error) {
	all, err := n.Lines(ctx, who)
	if err != nil {
		return nil, err
	}
	return all.Matching(words, most), nil
}

// Matching returns the lines that have the words, the best first, at most so many.
func (l Lines) Matching(words string, most int) (found []Line) {
	var texts search.Index
	for _, line := range l.Lines {
		texts.Add(line.Text)
	}
	for _, m := range search.Best(search.Terms(words), most, &texts) {
		found = append(found, l.Lines[m.Text])
	}
	return found
}
