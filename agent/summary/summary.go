// Package summary makes long conversations short. A Summarizer replaces the oldest
// turns of a session by a summary when they do not fit the model any more; a
// Digest archives at night what was said during the day. What leaves a
// conversation is kept in the Archive of the person who said it.
package summary

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"time"

	"parley/agent/conversation"
	"parley/chat"
	"parley/llm"
	"parley/memory"
	"parley/tools"
)

// An Archive keeps what was said when it leaves the conversation.
type Archive interface {
	// Summarise tells what of said is worth keeping besides earlier, "" if nothing is.
	Summarise(ctx context.Context, model llm.Model, earlier, said string) (string, llm.Usage, error)
	// Append adds e to what is kept of who, unless there ever was an entry with its Key.
	Append(ctx context.Context, who chat.Person, e memory.Entry) (memory.Entry, error)
}

// minTokens is how many tokens there must be for what was said if it is to be
// summed up: where instructions and tools leave less, each turn would be summed
// up in vain.
const minTokens = 500

// MaxSummaries is how often a turn asks the model for a summary: what a job has
// said for weeks is not to cost more than that before a person is answered.
const MaxSummaries = 8

// maxVerbatim is how many bytes of what was said are archived as they are.
const maxVerbatim = 64_000

// A Summarizer makes room in one session, for the turn under way there.
type Summarizer struct {
	Archive   Archive // nil: nothing is summed up
	Session   *conversation.Session
	Kit       *tools.Kit
	Model     llm.Model
	ModelName string
	Vision    bool // the model is shown pictures
	Zone      *time.Location
	Log       *slog.Logger

	// Save saves the session, and Charge counts what a summary took. Announce
	// shows the person that a summary is being made, until done is called.
	Save     func(context.Context) error
	Charge   func(context.Context, llm.Usage)
	Announce func() (done func())

	// Verbatim is set when no model is to be asked any more: what leaves the
	// conversation is then archived as it is.
	Verbatim bool
}

// MakeRoom replaces the oldest turns by summaries until the rest fits into limit
// tokens. What it has begun to save it saves also after ctx ended, until saving ends.
func (s *Summarizer) MakeRoom(ctx, saving context.Context, limit int) error {
	if s.Archive == nil || limit < minTokens {
		return nil
	}
	for n := 0; ; n++ {
		s.Session.History.ShowPictures(s.Vision)
		oldest := s.Session.History.Oldest(limit, conversation.ShortenedFirst(s.Kit))
		if len(oldest) == 0 {
			return nil
		}
		s.Verbatim = s.Verbatim || n >= MaxSummaries
		made, err := s.replace(ctx, oldest, limit)
		if err != nil {
			return err
		}
		s.Session.Keep(conversation.Record{Summed: &made})
		if err := s.Save(saving); err != nil {
			return err
		}
		for _, part := range made.Parts() {
			if _, err := s.Archive.Append(saving, part.Who, part); err != nil {
				s.Log.Error("a summary is archived later", "session", s.Session.ID, "err", err)
			}
		}
	}
}

// replace returns the summary of the first part of oldest. If the model fails to
// make one, that of a part that can be archived as it is.
func (s *Summarizer) replace(
	ctx context.Context, oldest conversation.Entries, limit int,
) (made conversation.Summary, err error) {
	border := s.Session.DigestedUpTo()
	var used llm.Usage
	if !s.Verbatim {
		made = s.summarize(ctx, oldest.FirstPart(border, 3*limit), limit)
		used = made.Usage
	}
	if ctx.Err() != nil {
		return made, ctx.Err()
	}
	if s.Verbatim { // by now
		made = s.summarize(ctx, oldest.FirstPart(border, min(3*limit, maxVerbatim)), limit)
		made.Usage = used
	}
	return made, nil
}

// summarize returns the summary of es, in at most limit bytes. If the model cannot
// make one, all of es is archived.
func (s *Summarizer) summarize(ctx context.Context, es conversation.Entries, limit int) conversation.Summary {
	part := es.ForArchive(s.Session.ID, s.Session.State.Epoch, s.Zone)
	before := s.Session.History.Summary()
	if part.Who != "" && before.Who != "" && part.Who != before.Who {
		before = conversation.Summary{} // R-S14
	}
	made := conversation.Summary{
		From: es.First(), Upto: es.Last(), Who: cmp.Or(part.Who, before.Who), Model: s.ModelName,
		Tainted: before.Tainted || part.Tainted,
		Sources: chat.JoinSources(before.Sources, part.Sources...),
		Guests:  chat.JoinSources(before.Guests, es.Guests()...),
	}
	said := es.Transcript()
	part.Text, made.Text = s.extend(ctx, &made, before, part.Tainted, said, limit)
	part.Raw = s.Verbatim
	made.Text = chat.ClipMiddle(made.Text, limit)
	if !conversation.IsOnePerson(part.Who) || made.Upto <= s.Session.DigestedUpTo() {
		return made
	}
	if part.Text != "" {
		made.Part = &part
	}
	if own := es.OwnWords(); part.Tainted && own != "" {
		made.Own = s.summarizeOwn(ctx, &made, part, own, limit)
	}
	return made
}

// extend returns what is archived of said, and the summary of the conversation
// with it, which was before. It adds to made what the model used.
func (s *Summarizer) extend(
	ctx context.Context, made *conversation.Summary, before conversation.Summary, tainted bool, said string, limit int,
) (part, whole string) {
	if s.Verbatim {
		return s.verbatim(before, said)
	}
	news := said
	kept := before.Text
	earlier := ""
	if !before.Tainted || tainted { // untrusted content goes into no trusted part of the archive
		earlier = before.Text
	}
	if len(earlier) > limit/2 { // it is summed up once more, too
		news = earlier + "\n\n" + said
		kept = ""
		earlier = ""
	}
	part, made.Usage = s.ask(ctx, earlier, chat.ClipMiddle(news, 3*limit))
	switch {
	case s.Verbatim: // by now
		return s.verbatim(before, said)
	case part == "":
		return "", before.Text
	}
	return part, conversation.Join(kept, part)
}

// verbatim returns said as it is archived, and before with a note that something
// is left out.
func (s *Summarizer) verbatim(before conversation.Summary, said string) (part, whole string) {
	whole = strings.ReplaceAll(before.Text, conversation.MsgEarlierOmitted, "")
	return chat.ClipMiddle(said, maxVerbatim), conversation.Join(whole, conversation.MsgEarlierOmitted)
}

// summarizeOwn returns what is archived of own, what the person of the untrusted
// part typed themselves; nil if that is nothing. It adds to made what the model used.
func (s *Summarizer) summarizeOwn(
	ctx context.Context, made *conversation.Summary, part memory.Entry, own string, limit int,
) *memory.Entry {
	e := conversation.OwnPart(part)
	e.Raw = s.Verbatim
	if e.Raw {
		e.Text = chat.ClipMiddle(own, maxVerbatim)
	} else {
		var used llm.Usage
		e.Text, used = s.ask(ctx, "", chat.ClipMiddle(own, 3*limit))
		made.Usage = made.Usage.Add(used)
	}
	if e.Text == "" {
		return nil
	}
	return &e
}

// ask has the model tell what of said is worth keeping besides earlier. If it
// cannot, no model is asked any more.
func (s *Summarizer) ask(ctx context.Context, earlier, said string) (string, llm.Usage) {
	defer s.Announce()()
	text, used, err := s.Archive.Summarise(ctx, s.Model, earlier, said)
	s.Charge(ctx, used)
	s.Verbatim = err != nil
	if err != nil && ctx.Err() == nil {
		s.Log.Warn("what was said is archived as it is, because the model cannot sum it up",
			"session", s.Session.ID, "model", s.ModelName, "err", err)
	}
	return text, used
}
