package conversation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/store"
	"parley/texts"
)

// Talks returns the conversations whose sessions begin with prefix, the one
// that was spoken in last first.
func (ss *Sessions) Talks(ctx context.Context, prefix string) (talks []chat.Talk, err error) {
	for id, err := range ss.IDs(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("list conversations: %w", err)
		}
		s, rev, err := ss.Lookup(ctx, id)
		if err != nil {
			return nil, fmt.Errorf("list conversations: %w", err)
		}
		if rev > 0 { // it was not forgotten just now
			talks = append(talks, chat.Talk{Session: id, Title: s.Title, Began: s.Began, Last: s.Last})
		}
	}
	slices.SortStableFunc(talks, func(a, b chat.Talk) int { return b.Last.Compare(a.Last) })
	return talks, nil
}

// A Passage is a record of a session with what people read of it. It stands for no record if the Record is zero.
type Passage struct {
	Record  Record
	Entries []chat.Entry
}

// Transcript yields what was said in the session id, oldest first, all of its
// conversations. In the place of damaged records that follow each other stands
// one entry that says so (P21).
func (ss *Sessions) Transcript(ctx context.Context, id chat.SessionID) iter.Seq2[chat.Entry, error] {
	return func(yield func(chat.Entry, error) bool) {
		for p, err := range ss.Passages(ctx, id) {
			if err != nil {
				yield(chat.Entry{}, err)
				return
			}
			for _, e := range p.Entries {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// Passages yields the records of the session id with the entries of its Transcript. A session that nobody knows
// has none.
func (ss *Sessions) Passages(ctx context.Context, id chat.SessionID) iter.Seq2[Passage, error] {
	return func(yield func(Passage, error) bool) {
		s, epoch := transcriptWriter{speakers: ss.speakers}, int64(0)
		if e, removed := ss.removedEntry(ctx, id); removed && !yield(Passage{Entries: []chat.Entry{e}}, nil) {
			return
		}
		for r, err := range ss.Journal(ctx, id) {
			switch {
			case errors.Is(err, store.ErrNotFound):
				return
			case err != nil:
				yield(Passage{}, err)
				return
			}
			p := Passage{Record: r.Record}
			if r.Epoch != epoch {
				p.Entries = ss.unreadable(ctx, id, &s)
				s.anew, epoch = !s.at.IsZero(), r.Epoch
			}
			p.Entries = append(p.Entries, ss.entriesOf(ctx, id, &s, r)...)
			if !yield(p, nil) {
				return
			}
		}
		if left := ss.unreadable(ctx, id, &s); len(left) > 0 {
			yield(Passage{Entries: left}, nil)
		}
	}
}

// removedEntry returns what stands for what was removed from the session id because it
// was old, if anything was.
func (ss *Sessions) removedEntry(ctx context.Context, id chat.SessionID) (e chat.Entry, removed bool) {
	st, _, err := ss.Lookup(ctx, id)
	if err != nil || st.Removed.Seq == 0 { // the Journal reports the error
		return e, false
	}
	before := st.Removed.Before.In(ss.zone)
	text := "[what was said before " + before.Format(time.DateOnly) +
		" was removed because it was old, but for what the model is still shown]"
	return chat.Entry{Kind: chat.Removed, Time: before, Text: text}, true
}

// entriesOf returns the entries for the record r of the session id, after those for
// the skipped ones before it. A damaged record is skipped.
func (ss *Sessions) entriesOf(
	ctx context.Context, id chat.SessionID, s *transcriptWriter, r JournalRecord,
) []chat.Entry {
	if r.Damaged != nil {
		s.skip(r.Seq)
		return nil
	}
	return append(ss.unreadable(ctx, id, s), s.entries(r.Record)...)
}

// unreadable returns the entries for the records of the session id that were skipped.
func (ss *Sessions) unreadable(ctx context.Context, id chat.SessionID, s *transcriptWriter) (es []chat.Entry) {
	if len(s.skipped) == 0 {
		return nil
	}
	at := s.at
	if at.IsZero() {
		st, _, _ := ss.Lookup(ctx, id) // of one that cannot be read, the time is unknown
		at = st.Began
	}
	if s.anew {
		es, s.anew = append(es, chat.Entry{Kind: chat.Began, Time: at}), false
	}
	first, last := s.skipped[0], s.skipped[len(s.skipped)-1]
	text := fmt.Sprintf("[entries %d to %d could not be read]", first, last)
	if first == last {
		text = fmt.Sprintf("[entry %d could not be read]", first)
	}
	s.skipped = nil
	return append(es, chat.Entry{Kind: chat.Lost, Time: at, Text: text})
}

// A transcriptWriter turns records into what people read.
type transcriptWriter struct {
	speakers texts.Speakers

	at   time.Time       // of what was heard last
	anew bool            // a conversation is about to begin, and not the first
	told map[string]bool // keys of what was heard in the turn

	skipped []uint64 // the first and the last of the damaged records that were read last
}

// EntryWriter returns a function that tells what people read of a record. It is to be
// called with the records of one conversation in order.
func (ss *Sessions) EntryWriter() func(Record) []chat.Entry {
	w := transcriptWriter{speakers: ss.speakers}
	return w.entries
}

func (s *transcriptWriter) skip(seq uint64) {
	if len(s.skipped) == 0 {
		s.skipped = append(s.skipped, seq)
	}
	s.skipped = append(s.skipped[:1], seq)
}

func (s *transcriptWriter) entries(r Record) (es []chat.Entry) {
	add := func(e chat.Entry) {
		e.Time = s.at
		es = append(es, e)
	}
	switch m := cmp.Or(r.Heard, r.Retried); {
	case m != nil && !s.told[m.Key()]:
		es = s.heard(*m)
	case r.Branched != nil:
		add(chat.Entry{Kind: chat.Branched, Text: "[went back: what follows goes on from an earlier message]"})
	case r.IsAnswer():
		if r.Said.Text != "" {
			add(chat.Entry{Kind: chat.Said, Who: r.Said.Model, Text: r.Said.Text})
		}
		for _, c := range r.Said.Calls {
			add(chat.Entry{Kind: chat.Called, Who: c.Name, Text: c.Args, Call: c.ID})
		}
	case r.Finished != nil:
		add(chat.Entry{Kind: chat.Gave, Who: r.Finished.Name, Text: r.Finished.Text, Call: r.Finished.Call})
		if r.Result != nil && r.Result.End != "" {
			add(chat.Entry{Kind: chat.Said, Who: r.Finished.Name, Text: r.Result.End})
		}
	case r.Ended != nil:
		if s.told = nil; r.Ended.Outcome == Answered {
			return es
		}
		how := string(r.Ended.Outcome)
		if r.Ended.Reply != nil && r.Ended.Reply.Text != "" {
			how += ": " + r.Ended.Reply.Text
		}
		add(chat.Entry{Kind: chat.Ended, Text: how})
	}
	return es
}

// Speaker returns the name of who speaks in m, in the words of say if no person does.
func Speaker(say texts.Speakers, m chat.Message) string {
	switch m.Origin {
	case chat.FromSchedule:
		return say.Schedule
	case chat.FromParent:
		return say.Agent
	case chat.FromSubagent:
		return say.Subagent
	}
	return cmp.Or(m.From.Name, m.From.ID)
}

// heard returns the entries for m and for what the person was told of it.
func (s *transcriptWriter) heard(m chat.Message) (es []chat.Entry) {
	if s.at = m.Time; s.told == nil {
		s.told = map[string]bool{}
	}
	s.told[m.Key()] = true
	if s.anew {
		es, s.anew = append(es, chat.Entry{Kind: chat.Began, Time: s.at}), false
	}
	who, text := Speaker(s.speakers, m), m.Text
	if strings.TrimSpace(text) == "" && m.Media != "" {
		text = "(" + m.Media + ")"
	}
	es = append(es, chat.Entry{Kind: chat.Heard, Time: s.at, Who: who, Text: text, Files: m.Files})
	if m.Notice != "" {
		es = append(es, chat.Entry{Kind: chat.Said, Time: s.at, Text: m.Notice})
	}
	return es
}
