package summary

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/agent/budget"
	"parley/agent/conversation"
	"parley/chat"
	"parley/llm"
	"parley/memory"
)

// What one night takes at most, also the first one after an upgrade.
const (
	maxDuration       = time.Hour
	maxParts          = 200 // parts of conversations
	maxSessionParts   = 40  // parts of one session
	maxFailedSessions = 5   // sessions that the model fails to sum up: then it is not their fault
)

// maxTries is how many nights the model is asked to sum up a part, before that is
// archived as it is.
const maxTries = 3

// commandDuration is how long a command takes at most that is under way in a session.
const commandDuration = 2 * time.Second

// A Digest archives what is new in sessions, at the expense of a run of a job.
// The conversations stay as they are.
type Digest struct {
	Archive  Archive
	Sessions *conversation.Sessions
	Book     *budget.Book
	Zone     *time.Location
	Log      *slog.Logger
	Model    func() Model // the one that sums up by now

	// Enter waits until nothing is under way in the session id, and keeps others
	// out until leave is called. Whoever wants to get in meanwhile calls stop. It
	// returns an error if ctx ends before.
	Enter func(ctx context.Context, id chat.SessionID, stop context.CancelCauseFunc) (leave func(), err error)

	// Skip reports whether the session id is left out.
	Skip func(id chat.SessionID) bool

	Job, Run string
	Silence  time.Duration // for so long nobody has spoken in the sessions
}

// A Model sums up.
type Model struct {
	llm.Model
	Name   string
	Window int // tokens of a request
}

// ArchiveAll archives what is new, and returns how many parts that were. What is too
// much for one night is for the next.
func (d *Digest) ArchiveAll(outer context.Context) (parts int, err error) {
	ctx, over := context.WithTimeout(outer, maxDuration)
	defer over()
	soon, over := context.WithTimeout(ctx, commandDuration) // that of a person who wants it done
	defer over()
	var failed []error
	failedSessions := 0
	for id, err := range d.Sessions.IDs(ctx, "") {
		if err != nil && ctx.Err() == nil {
			failed = append(failed, err)
		}
		if err != nil || ctx.Err() != nil || parts >= maxParts || failedSessions >= maxFailedSessions {
			break
		}
		if d.Skip(id) {
			continue
		}
		s := sessionDigest{digest: d, id: id, maxParts: min(maxSessionParts, maxParts-parts)}
		err := s.archive(ctx, soon)
		parts += s.parts
		if err != nil {
			failed = append(failed, fmt.Errorf("digest session %s: %w", id, err))
			if s.modelFailed {
				failedSessions++
			}
		}
	}
	return parts, errors.Join(append(failed, outer.Err())...)
}

// A sessionDigest is that of one session.
type sessionDigest struct {
	digest      *Digest
	id          chat.SessionID
	progress    conversation.ArchiveProgress
	parts       int // archived so far
	maxParts    int
	modelFailed bool // the model could not sum up
}

// archive archives what is new, unless something is under way in the session and
// not over soon. A turn that comes meanwhile ends it.
func (s *sessionDigest) archive(outer, soon context.Context) error {
	ctx, stop := context.WithCancelCause(outer)
	defer stop(nil)
	leave, err := s.digest.Enter(soon, s.id, stop)
	if err != nil {
		return nil
	}
	defer leave()
	err = s.archiveConversations(ctx)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (s *sessionDigest) archiveConversations(ctx context.Context) error {
	st, _, err := s.digest.Sessions.Lookup(ctx, s.id)
	if err != nil {
		return err
	}
	s.progress = st.Digested
	for _, epoch := range st.Epochs() {
		if epoch < s.progress.Epoch {
			continue
		}
		if epoch > s.progress.Epoch {
			s.progress = conversation.ArchiveProgress{Epoch: epoch}
		}
		entries, err := s.unarchived(ctx)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			continue
		}
		if time.Since(entries.ForArchive(s.id, epoch, s.digest.Zone).Time) < s.digest.Silence {
			return nil
		}
		if err := s.archiveEntries(ctx, entries); err != nil {
			return err
		}
	}
	return nil
}

// unarchived returns what the Archive does not have of the conversation, but for
// the turn under way. It appends the parts that a crash kept from the Archive.
func (s *sessionDigest) unarchived(ctx context.Context) (conversation.Entries, error) {
	all := newBranchEntries(s.digest.Zone)
	for r, err := range s.digest.Sessions.Records(ctx, s.id, s.progress.Epoch, s.progress.Done) {
		if err != nil {
			return nil, err
		}
		if r.Summed == nil {
			all.apply(r)
			continue
		}
		all.drop(max(r.Summed.From, s.progress.Seq+1), r.Summed.Upto)
		for _, part := range r.Summed.Parts() {
			if _, err := s.digest.Archive.Append(ctx, part.Who, part); err != nil {
				return nil, err
			}
		}
	}
	return all.ended(), nil
}

// archiveEntries archives entries, part by part.
func (s *sessionDigest) archiveEntries(ctx context.Context, entries conversation.Entries) error {
	model := s.digest.Model()
	maxBytes := min(max(2*model.Window, 512), maxVerbatim) // half of what the model takes
	for len(entries) > 0 && s.parts < s.maxParts {
		part := entries.FirstPart(s.progress.Seq, maxBytes)
		who := part.ForArchive(s.id, s.progress.Epoch, s.digest.Zone).Who
		if err := s.digest.Book.Allow(ctx, s.spender(who)); err != nil { // R-S15: for another night
			s.digest.Log.Info("not summed up", "session", s.id, "err", err)
			return nil
		}
		entries = entries[len(part):]
		s.progress.Seq = part.Last()
		s.progress.Tries++
		if err := s.saveProgress(ctx); err != nil {
			return err
		}
		if err := s.archivePart(ctx, part, model, maxBytes); err != nil {
			return err
		}
		s.progress.Done = s.progress.Seq
		s.progress.Tries = 0
		if err := s.saveProgress(ctx); err != nil {
			return err
		}
	}
	return nil
}

// archivePart archives a summary of part, or part as it is if the model has failed
// to make one in several nights. Of an untrusted part it also archives what the
// person typed themselves.
func (s *sessionDigest) archivePart(
	ctx context.Context, part conversation.Entries, model Model, maxBytes int,
) (err error) {
	e := part.ForArchive(s.id, s.progress.Epoch, s.digest.Zone)
	if !conversation.IsOnePerson(e.Who) {
		return nil
	}
	said := part.Transcript()
	if s.progress.Tries > maxTries {
		e.Raw = true
		e.Text = chat.ClipMiddle(said, maxVerbatim)
	} else {
		e.Text, err = s.summarize(ctx, model, e.Who, chat.ClipMiddle(said, maxBytes))
		if err != nil {
			return err
		}
	}
	if e.Text != "" {
		s.parts++
		if _, err := s.digest.Archive.Append(ctx, e.Who, e); err != nil {
			return err
		}
	}
	if own := part.OwnWords(); e.Tainted && own != "" {
		return s.archiveOwn(ctx, conversation.OwnPart(e), chat.ClipMiddle(own, maxBytes), model)
	}
	return nil
}

// archiveOwn archives own, what the person typed themselves in an untrusted part.
func (s *sessionDigest) archiveOwn(ctx context.Context, e memory.Entry, own string, model Model) (err error) {
	e.Text = own
	if !e.Raw {
		e.Text, err = s.summarize(ctx, model, e.Who, own)
	}
	if err != nil || e.Text == "" {
		return err
	}
	_, err = s.digest.Archive.Append(ctx, e.Who, e)
	return err
}

// summarize has the model sum up said, at who's expense.
func (s *sessionDigest) summarize(ctx context.Context, model Model, who chat.Person, said string) (string, error) {
	text, used, err := s.digest.Archive.Summarise(ctx, model.Model, "", said)
	s.modelFailed = err != nil
	s.digest.Book.Charge(ctx, s.spender(who), 1, model.Name, used)
	return text, err
}

// spender returns for whom what who said is summed up.
func (s *sessionDigest) spender(who chat.Person) budget.Spender {
	return budget.Spender{Person: who, Session: s.id, Job: s.digest.Job, Run: s.digest.Run}
}

// saveProgress notes what has been archived.
func (s *sessionDigest) saveProgress(ctx context.Context) error {
	return s.digest.Sessions.Update(ctx, s.id, func(st *conversation.State) { st.Digested = s.progress })
}
