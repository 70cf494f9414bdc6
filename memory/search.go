package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/chat"
)

const (
	maxShelves = 4                // people whose index is held
	shelfIdle  = 10 * time.Minute // for how long after a search
	maxHit     = 500              // characters of a Hit
)

// A Hit is a piece of memory that a search found.
type Hit struct {
	Source  string         // "history", or the file it is in, such as "MEMORY.md"
	Session chat.SessionID // in which it was said, if that is known
	Time    time.Time      // when it was said, or the file written
	Text    string         // around the words
	Tainted bool           // strangers had a word in it (R-S14)
	Score   float64
}

// Search returns what is known of who that has the words, at most so many, the
// best first and of those as good the newest: entries of the history, and
// paragraphs of the memory files. The first search reads all of the history,
// later ones what is new.
func (h *History) Search(ctx context.Context, who chat.Person, words string, most int) ([]Hit, error) {
	want := wanted(words)
	if len(want) == 0 || most <= 0 {
		return nil, nil
	}
	s := h.shelf(who)
	s.mu.Lock()
	defer s.mu.Unlock()
	hits, err := s.search(ctx, want, most)
	if err != nil {
		return nil, fmt.Errorf("search memory: %w", err)
	}
	slices.SortStableFunc(hits, func(a, b Hit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), b.Time.Compare(a.Time))
	})
	return hits, nil
}

// A shelf is the index of a person's history, as far as it was read.
type shelf struct {
	h     *History
	who   chat.Person
	timer *time.Timer // drops it

	mu   sync.Mutex
	said index
	at   []span // in the file, of each text of said
	end  int64
	info fs.FileInfo // of the file; nil: all is to be read
}

// shelf returns that of who.
func (h *History) shelf(who chat.Person) *shelf {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.shelves[who]
	if s == nil {
		for other, s := range h.shelves {
			if len(h.shelves) >= maxShelves {
				s.timer.Stop()
				delete(h.shelves, other)
			}
		}
		s = &shelf{h: h, who: who, timer: time.AfterFunc(shelfIdle, func() { h.drop(who) })}
		h.shelves[who] = s
	}
	s.timer.Reset(shelfIdle)
	return s
}

// drop lets go of what is held of who.
func (h *History) drop(who chat.Person) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.shelves[who]; s != nil {
		s.timer.Stop()
		delete(h.shelves, who)
	}
}

func (s *shelf) search(ctx context.Context, want []uint64, most int) (hits []Hit, err error) {
	f, err := s.h.open(historyOf(s.who), s.who)
	if err == nil {
		defer f.Close()
		err = s.read(ctx, f)
	} else if errors.Is(err, fs.ErrNotExist) {
		s.said, s.info, err = index{}, nil, nil // there is no history
	}
	if err != nil {
		return nil, err
	}
	var known index
	notes := s.notes(&known)
	for _, m := range best(want, most, &s.said, &known) {
		var hit Hit
		if m.in == &known {
			hit = notes[m.text]
		} else if hit = s.entry(f, m.text); hit.Text == "" { // somebody else writes to the file
			s.info = nil
			continue
		}
		hit.Score, hit.Text = m.score, excerpt(hit.Text, want, maxHit)
		hits = append(hits, hit)
	}
	return hits, nil
}

// read adds what is new in the history, or all of one that is not the same file.
func (s *shelf) read(ctx context.Context, f *scroll) error {
	if s.info == nil || !os.SameFile(s.info, f.info) || f.info.Size() < s.end {
		s.said, s.at, s.end = index{}, nil, 0
	}
	for l, err := range f.entries(ctx, s.end) {
		if err != nil {
			s.info = nil
			return err
		}
		if l.Text != "" {
			s.said.add(l.Text)
			s.at = append(s.at, l.span)
		}
	}
	s.info, s.end = f.info, f.info.Size()
	return nil
}

// entry returns an entry; one without a text if it is not there any more.
func (s *shelf) entry(f *scroll, i int) Hit {
	text := make([]byte, s.at[i].end-s.at[i].start)
	n, _ := f.ReadAt(text, s.at[i].start)
	e, ok := decode(text[:n], s.who)
	if !ok {
		return Hit{}
	}
	return Hit{Source: "history", Session: e.Session, Time: e.Time, Text: e.Text, Tainted: e.Tainted}
}

// notes adds the paragraphs of the person's files to x, and returns them.
func (s *shelf) notes(x *index) (all []Hit) {
	for _, name := range names(s.who) {
		file, err := s.h.w.Path(path.Join(s.who.Folder(), name))
		if err != nil || s.who.Hides(file) { // such as a link to somebody else's
			continue
		}
		info, err := s.h.w.Stat(file)
		if err != nil {
			continue
		}
		text, _ := s.h.w.ReadFile(file)
		own, heard := apart(strings.ToValidUTF8(string(text), "\uFFFD"))
		mine := paragraphs(own)
		for i, p := range append(mine, paragraphs(heard)...) {
			x.add(p)
			all = append(all, Hit{Source: name, Time: info.ModTime(), Text: p, Tainted: i >= len(mine)})
		}
	}
	return all
}

// paragraphs returns what is between empty lines, and each item of a list.
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
