package agent

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"parley/chat"
)

const (
	maxSearch = 128 << 20 // bytes of text that a search reads, the latest conversations first
	before    = 80        // bytes shown before the word found …
	after     = 160       // … and after
	shownHere = 8         // places that /search shows
)

var errEnough = errors.New("read enough")

// Search returns the latest places, most at most, where somebody said all of
// words, in upper or lower case, in one of the sessions for which in returns
// true; nil means any. It reads so much and no more: in a very large house the oldest
// conversations are not found.
func (p *Pool) Search(ctx context.Context, in func(chat.SessionID) bool, words string, most int) ([]chat.Find, error) {
	s := search{most: most, left: maxSearch}
	for _, w := range strings.Fields(words) {
		s.words = append(s.words, regexp.MustCompile("(?i)"+regexp.QuoteMeta(strings.ToValidUTF8(w, "\uFFFD"))))
	}
	if len(s.words) == 0 || most <= 0 {
		return nil, nil
	}
	talks, err := p.Talks(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, t := range talks {
		if in != nil && !in(t.Session) {
			continue
		}
		if err = s.read(ctx, p, t.Session); err != nil {
			break
		}
	}
	if err != nil && !errors.Is(err, errEnough) {
		return nil, fmt.Errorf("search: %w", err)
	}
	return s.found(), nil
}

// A search is what is looked for and what was found.
type search struct {
	words []*regexp.Regexp
	most  int
	left  int // bytes to read
	finds []chat.Find
}

// read looks through the session id.
func (s *search) read(ctx context.Context, p *Pool, id chat.SessionID) error {
	for e, err := range p.Transcript(ctx, id) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if s.left -= len(e.Text); s.left < 0 {
			return errEnough
		}
		if e.Kind != chat.Heard && e.Kind != chat.Said {
			continue
		}
		if text, ok := s.match(e.Text); ok {
			e.Text = text
			s.finds = append(s.finds, chat.Find{Session: id, Entry: e})
		}
		if len(s.finds) > 1000+2*s.most {
			s.finds = s.found()
		}
	}
	return nil
}

// found returns the latest finds.
func (s *search) found() []chat.Find {
	slices.Reverse(s.finds)
	slices.SortStableFunc(s.finds, func(a, b chat.Find) int { return b.Entry.Time.Compare(a.Entry.Time) })
	s.finds = s.finds[:min(len(s.finds), s.most)]
	return slices.Clone(s.finds)
}

// match says whether all the words are in text, and returns what is around the first one.
func (s *search) match(text string) (around string, ok bool) {
	for _, w := range s.words[1:] {
		if !w.MatchString(text) {
			return "", false
		}
	}
	at := s.words[0].FindStringIndex(text)
	if at == nil {
		return "", false
	}
	from, to := max(at[0]-before, 0), min(at[1]+after, len(text))
	around = strings.ToValidUTF8(text[from:to], "")
	if from > 0 {
		around = "…" + around
	}
	if to < len(text) {
		around += "…"
	}
	return around, true
}

// found answers /search: it shows what was said in this chat.
func (l *lane) found(ctx context.Context, m chat.Message) string {
	_, words, _ := strings.Cut(strings.TrimSpace(m.Text), " ")
	if strings.TrimSpace(words) == "" {
		return wordsNoSearch
	}
	finds, err := l.Search(ctx, func(id chat.SessionID) bool { return id == l.id }, words, shownHere)
	if err != nil {
		l.Log.Error("search", "session", l.id, "err", err)
		return "I could not search; the log says why."
	}
	if len(finds) == 0 {
		return "I find that nowhere in what was said here."
	}
	var b strings.Builder
	b.WriteString("Said here, the latest first:\n")
	for _, f := range finds {
		who := tame(f.Entry.Who, 64)
		if f.Entry.Kind == chat.Said {
			who = "I"
		}
		fmt.Fprintf(&b, "\n- %s, %s: %s", f.Entry.Time.In(l.Zone).Format("2006-01-02 15:04"), who, strings.NewReplacer("`", "'", "*", "", "_", " ", "<", "‹").Replace(tame(f.Entry.Text, 400)))
	}
	return b.String()
}
