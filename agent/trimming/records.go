package trimming

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"time"

	"parley/agent/conversation"
	"parley/chat"
	"parley/store"
)

// trimBatch is how many records are removed at a time, but for what their last turn
// has more.
const trimBatch = 500

// isOld reports whether nothing was said in the conversation under way in the session
// id since before, and nothing in it waits to go on.
func (t Trimmer) isOld(ctx context.Context, id chat.SessionID, before time.Time) (bool, error) {
	st, _, err := t.Sessions.Lookup(ctx, id)
	if err != nil {
		return false, err
	}
	scan := oldRecords{before: before}
	for r, err := range t.Sessions.Records(ctx, id, st.Epoch, 0) {
		if err != nil {
			return false, err
		}
		if scan.isYoung(r) {
			return false, nil
		}
		scan.add(r)
	}
	return scan.last > 0 && scan.ended == scan.last && scan.suspended == 0 && !scan.unsure, nil
}

// trimSession removes the records of the session id that are older than pass.Before: those of
// former conversations, and of the one under way those without which its history can
// be read (see [conversation.State]). It reports whether nothing of the session is left but a
// state that says nothing.
func (t Trimmer) trimSession(ctx context.Context, id chat.SessionID, pass store.Trimming) (nothing bool, err error) {
	st, rev, err := t.Sessions.Lookup(ctx, id)
	if err != nil || rev == 0 {
		return false, err
	}
	for _, epoch := range st.Epochs() {
		limit := uint64(math.MaxUint64)
		if epoch == st.Epoch {
			limit = max(st.From, 1) - 1
		}
		empty, err := t.trimLog(ctx, id, st.Removed, epoch, limit, pass)
		if err != nil || !empty {
			return false, err
		}
		if epoch < st.Epoch && epoch >= st.First {
			next := func(st *conversation.State) { st.First = max(st.First, epoch+1) }
			if err := t.Sessions.Update(ctx, id, next); err != nil {
				return false, err
			}
		}
	}
	if st, _, err = t.Sessions.Lookup(ctx, id); err != nil {
		return false, err
	}
	unset := st.Model == "" && !st.Quiet && len(st.Grants) == 0
	return unset && st.Removed.Seq > 0 && st.Last.Before(pass.Before), nil
}

// trimLog removes old records up to limit from a conversation, of which earlier says
// what was removed before. It reports whether the conversation is empty then.
func (t Trimmer) trimLog(
	ctx context.Context, id chat.SessionID, earlier conversation.Removal, epoch int64, limit uint64,
	pass store.Trimming,
) (empty bool, err error) {
	for stuck := false; ; {
		scan, lines, err := t.readOld(ctx, id, earlier, epoch, limit, pass.Before)
		if err != nil {
			return false, err
		}
		if scan.last == 0 {
			return scan.all, nil
		}
		upto := scan.ended
		if scan.all {
			upto = scan.last
		}
		if upto == 0 {
			return false, nil
		}
		if earlier.Epoch == epoch && upto <= earlier.Seq { // a crash kept them, or damage keeps them
			if stuck {
				return false, nil
			}
			stuck = true
		} else {
			for _, file := range lines.files {
				if err := pass.Save(string(id)+"@"+file, lines.byFile[file]...); err != nil {
					return false, err
				}
			}
			earlier = conversation.Removal{Before: pass.Before, Epoch: epoch, Seq: upto}
			if err := t.Sessions.Update(ctx, id, func(st *conversation.State) { st.Removed = earlier }); err != nil {
				return false, err
			}
		}
		if err := t.Sessions.TrimRecords(ctx, id, epoch, upto); err != nil {
			return false, err
		}
		if err := pass.Step(scan.count); err != nil {
			return false, err
		}
	}
}

// readOld reads the first old records of a conversation, no more than trimBatch and the
// rest of their last turn, and returns what the archive is told of them. Of those that
// were archived before a crash kept them from being removed that is nothing.
func (t Trimmer) readOld(
	ctx context.Context, id chat.SessionID, earlier conversation.Removal, epoch int64, limit uint64, before time.Time,
) (scan oldRecords, lines archiveLines, err error) {
	scan = oldRecords{before: before, all: true}
	entriesOf := t.Sessions.EntryWriter()
	var open []archivedEntry // of the turn that has not ended
	for r, err := range t.Sessions.Records(ctx, id, epoch, 0) {
		if err != nil {
			return scan, lines, err
		}
		archived := earlier.Epoch == epoch && r.Seq <= earlier.Seq
		if archived {
			scan.last, scan.ended = r.Seq, r.Seq
			continue
		}
		full := scan.count >= trimBatch && scan.ended == scan.last
		if full || r.Seq > limit || scan.isYoung(r) {
			scan.all = false
			break
		}
		scan.add(r)
		for i, e := range entriesOf(r.Record) {
			open = append(open, archivedEntry{Session: id, Epoch: epoch, Seq: r.Seq, Part: i, Entry: e})
		}
		if r.Ended != nil {
			lines.add(open)
			open = nil
		}
	}
	if scan.all {
		lines.add(open)
	}
	return scan, lines, nil
}

// oldRecords is how far the first records of a conversation are old.
type oldRecords struct {
	before    time.Time
	all       bool   // nothing that was read must stay
	last      uint64 // the last record
	ended     uint64 // the last record that ended a turn
	count     int
	suspended int  // turns that wait
	unsure    bool // a record behind the last message is damaged: it may have been a young one
}

// isYoung reports whether r is a message that was sent too late to be old.
func (o *oldRecords) isYoung(r conversation.NumberedRecord) bool {
	m := cmp.Or(r.Heard, r.Retried)
	return m != nil && !m.Time.Before(o.before)
}

// add notes the next record.
func (o *oldRecords) add(r conversation.NumberedRecord) {
	o.last = r.Seq
	o.count++
	switch {
	case r.Unreadable:
		o.unsure = true
	case r.Heard != nil, r.Retried != nil:
		o.unsure = false
	case r.Ended != nil, (r.Summed != nil || r.Branched != nil) && o.ended == r.Seq-1:
		o.ended = r.Seq
	case r.Suspended != nil:
		o.suspended++
	case r.Resumed != "":
		o.suspended--
	}
}

// An archivedEntry is a line of the archive.
type archivedEntry struct {
	Session chat.SessionID `json:"session"`
	Epoch   int64          `json:"epoch,omitempty"`
	Seq     uint64         `json:"seq"`            // of the record
	Part    int            `json:"part,omitempty"` // of the record, if it is told as several
	chat.Entry
}

// archiveLines are lines of the archive by its files.
type archiveLines struct {
	files  []string
	byFile map[string][][]byte
}

func (a *archiveLines) add(entries []archivedEntry) {
	if a.byFile == nil {
		a.byFile = map[string][][]byte{}
	}
	for _, e := range entries {
		file := e.Time.UTC().Format("2006-01")
		if a.byFile[file] == nil {
			a.files = append(a.files, file)
		}
		line, _ := json.Marshal(e) // it was read from JSON
		a.byFile[file] = append(a.byFile[file], line)
	}
}
