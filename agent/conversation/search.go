package conversation

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"parley/chat"
)

const (
	maxSearch   = 128 << 20 // bytes of text that a search reads, the latest conversations first
	shownBefore = 80        // bytes shown before the word found …
	shownAfter  = 160       // … and after
)

// SearchIn is Search of the sessions whose names begin with prefix.
func (ss *Sessions) SearchIn(ctx context.Context, prefix, words string, most int) ([]chat.Find, error) {
	in := func(id chat.SessionID) bool { return strings.HasPrefix(string(id), prefix) }
	return ss.Search(ctx, in, words, most)
}

// Search returns the latest places, most at most, where somebody said all of
// words, in upper or lower case, in one of the sessions for which in returns
// true; nil means any. It reads a bounded amount of text, the latest
// conversations first. Behind the places come entries that stand for what is
// damaged (P21): the words may have been said in it.
func (ss *Sessions) Search(
	ctx context.Context, in func(chat.SessionID) bool, words string, most int,
) (finds []chat.Find, err error) {
	match := matcher(words)
	if match == nil || most <= 0 {
		return nil, nil
	}
	talks, err := ss.Talks(ctx, "")
	left := maxSearch
	var lost []chat.Find
	for _, t := range talks {
		if in != nil && !in(t.Session) {
			continue
		}
		for e, err := range ss.Transcript(ctx, t.Session) {
			if err = cmp.Or(err, ctx.Err()); err != nil {
				return nil, fmt.Errorf("search: %w", err)
			}
			if left -= len(e.Text); left < 0 {
				return withLost(finds, lost, most), nil
			}
			if e.Kind == chat.Lost {
				lost = append(lost, chat.Find{Session: t.Session, Entry: e})
			}
			if e.Kind != chat.Heard && e.Kind != chat.Said {
				continue
			}
			if at := match(e.Text); at != nil {
				e.Text = around(e.Text, at)
				finds = append(finds, chat.Find{Session: t.Session, Entry: e})
			}
			if len(finds) > 1000+2*most {
				finds = latest(finds, most)
			}
		}
	}
	return withLost(finds, lost, most), err
}

// withLost returns the latest finds, and behind them some of lost; most at most.
func withLost(finds, lost []chat.Find, most int) []chat.Find {
	lost = latest(lost, 1+most/10)
	return append(latest(finds, most-min(len(lost), most)), lost...)
}

// latest returns the latest finds, those of a session last said first.
func latest(finds []chat.Find, most int) []chat.Find {
	slices.Reverse(finds)
	slices.SortStableFunc(finds, func(a, b chat.Find) int { return b.Entry.Time.Compare(a.Entry.Time) })
	return slices.Clone(finds[:min(len(finds), most)])
}

// matcher returns a function that finds the first of words in a text that has all
// of them; nil if there is nothing to look for.
func matcher(words string) func(text string) (at []int) {
	var all []*regexp.Regexp
	for w := range strings.FieldsSeq(strings.ToValidUTF8(words, "\uFFFD")) {
		all = append(all, regexp.MustCompile("(?i)"+regexp.QuoteMeta(w)))
	}
	if len(all) == 0 {
		return nil
	}
	return func(text string) []int {
		for _, w := range all[1:] {
			if !w.MatchString(text) {
				return nil
			}
		}
		return all[0].FindStringIndex(text)
	}
}

// around returns the text around the place at.
func around(text string, at []int) string {
	from, to := max(at[0]-shownBefore, 0), min(at[1]+shownAfter, len(text))
	s := strings.ToValidUTF8(text[from:to], "")
	if from > 0 {
		s = "…" + s
	}
	if to < len(text) {
		s += "…"
	}
	return s
}
