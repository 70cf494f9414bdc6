package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/search"
)

const (
	maxHeld = 150_000 // entries of all people whose index is kept in memory, some 65 MB
	maxHit  = 500     // characters of a Hit
)

// A Hit is a passage from memory that a search found.
type Hit struct {
	Source  string         // "history", or the name of a file, such as "MEMORY.md"
	Session chat.SessionID // in which it was said, if known
	Time    time.Time      // when it was said, or the file was written
	Text    string         // the text around the words
	Tainted bool           // it is based on untrusted content (R-S14)
}

// A historyIndex has what is needed to search a person's history, and to append to
// it, without reading the whole file each time.
type historyIndex struct {
	info  fs.FileInfo    // of the file when it was read; nil: read it again
	last  int64          // the highest cursor
	keys  map[string]int // index in at of the entry with a key
	words search.Index
	at    []span // place of each entry
}

// put adds the next entry.
func (x *historyIndex) put(l line) {
	x.last = max(x.last, l.entry.Cursor)
	if l.entry.Key != "" {
		x.keys[l.entry.Key] = len(x.at)
	}
	x.at = append(x.at, l.at)
	x.words.Add(l.entry.Text)
}

// openIndexed opens the history of who, and returns its index. It reads a file
// that is new, or was changed by somebody else. The caller holds h.mu, which is
// released while the file is read.
func (h *History) openIndexed(ctx context.Context, who chat.Person) (*historyIndex, *historyFile, error) {
	for {
		f, err := h.open(fileOf(who, historyName), who)
		if err != nil {
			return nil, nil, err
		}
		if x := h.indexes[who]; x != nil && x.info != nil && same(x.info, f.info) && ctx.Err() == nil {
			return x, f, nil
		}
		h.mu.Unlock() // let others continue
		x, err := f.readIndex(ctx)
		h.mu.Lock()
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return nil, nil, err
		}
		h.indexes[who] = x
		held := 0
		for other, o := range h.indexes {
			held += len(o.at)
			if held > maxHeld && other != who {
				delete(h.indexes, other)
			}
		}
	}
}

// readIndex reads f to its end, and closes it.
func (f *historyFile) readIndex(ctx context.Context) (*historyIndex, error) {
	defer f.file.Close()
	x := &historyIndex{info: f.info, keys: map[string]int{}}
	for l, err := range f.entries(ctx) {
		if err != nil {
			return nil, err
		}
		x.put(l)
	}
	return x, nil
}

// same reports whether a and b describe the same, unchanged file.
func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// Search returns what is known about who that contains the words, at most so many,
// the best first and of equally good ones the newest: entries of the history, and
// paragraphs of the memory files.
func (h *History) Search(ctx context.Context, who chat.Person, words string, most int) (hits []Hit, err error) {
	want := search.Terms(words)
	if len(want) == 0 || most <= 0 {
		return nil, nil
	}
	var known search.Index
	notes := h.notes(who, &known)
	h.mu.Lock()
	defer h.mu.Unlock()
	x, f, err := h.openIndexed(ctx, who)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		x = &historyIndex{}
	case err != nil:
		return nil, fmt.Errorf("search memory: %w", err)
	default:
		defer f.file.Close()
	}
	for _, m := range search.Best(want, most, &x.words, &known) {
		var hit Hit
		if m.In == &known {
			hit = notes[m.Text]
		} else {
			e, err := f.entry(x.at[m.Text])
			if err != nil { // the file is read again
				x.info = nil
				continue
			}
			hit = Hit{Source: "history", Session: e.Session, Time: e.Time, Text: e.Text, Tainted: e.Tainted}
		}
		hit.Text = strings.Join(rows(excerpt(hit.Text, want, maxHit)), "\n")
		hits = append(hits, hit)
	}
	return hits, nil
}

// notes adds the paragraphs of the person's files to x, and returns them.
func (h *History) notes(who chat.Person, x *search.Index) (all []Hit) {
	for _, name := range names(who) {
		file, err := h.w.Resolve(fileOf(who, name))
		if err != nil || who.Hides(file.String()) { // such as a link to another person's file
			continue
		}
		info, err := h.w.Stat(file)
		if err != nil {
			continue
		}
		text, _ := h.w.ReadFile(file)
		for _, p := range paragraphs(strings.ToValidUTF8(string(text), "\uFFFD")) {
			x.Add(p)
			all = append(all, Hit{Source: name, Time: info.ModTime(), Text: p, Tainted: name == heardFile})
		}
	}
	return all
}

// paragraphs splits text at empty lines and list items.
func paragraphs(text string) []string {
	all := []string{""}
	for line := range strings.Lines(text) {
		last := &all[len(all)-1]
		if t := strings.TrimSpace(line); t == "" || strings.HasPrefix(t, "- ") || len(*last) > 4*maxHit {
			all = append(all, line)
		} else {
			*last += line
		}
	}
	return slices.DeleteFunc(all, func(p string) bool { return strings.TrimSpace(p) == "" })
}
