// Package pastturns tells the turns of a conversation apart in its log: what each answered and what was done in it,
// also if it was suspended in between, or lies in a branch that was left.
package pastturns

import (
	"cmp"
	"slices"

	"parley/agent/conversation"
	"parley/chat"
)

// A Turn is what the log says of a turn. The zero Turn has not begun.
type Turn struct {
	First   uint64                // number of its first record
	Asked   []chat.Message        // what it answers
	Again   bool                  // the first of Asked asks for another answer to what was asked before
	Records []conversation.Record // what the model said, and what became of calls
}

// Answers reports whether t answers the message of that key.
func (t Turn) Answers(key string) bool {
	return slices.ContainsFunc(t.Asked, func(m chat.Message) bool { return m.Key() == key })
}

// A Reader reads the records of one conversation, in the order of its log.
type Reader struct {
	Open Turn // the turn that has not ended

	suspended []suspended
}

// A suspended turn is to be resumed for the message of that key, or for another of its messages.
type suspended struct {
	key string
	Turn
}

// Add reads the next record. If that ends a turn, over is true.
func (rd *Reader) Add(r conversation.NumberedRecord) (ended Turn, over bool) {
	switch {
	case r.Heard != nil || r.Retried != nil:
		rd.hear(r)
	case r.Suspended != nil:
		rd.suspend(*r.Suspended)
	case r.Resumed != "":
		rd.resume(r.Resumed)
	case r.Branched != nil: // it was left
		rd.Open = Turn{}
	case r.Ended != nil:
		ended = rd.Open
		rd.Open = Turn{}
		return ended, true
	case r.Said != nil || r.Started != nil || r.Finished != nil || r.RolledBack != "":
		rd.Open.Records = append(rd.Open.Records, r.Record)
	}
	return Turn{}, false
}

// hear adds a message to what the turn answers, unless it was appended once more after a panic.
func (rd *Reader) hear(r conversation.NumberedRecord) {
	m := *cmp.Or(r.Heard, r.Retried)
	switch t := &rd.Open; {
	case t.Answers(m.Key()):
	case len(t.Asked) == 0:
		t.First = r.Seq
		t.Again = r.Retried != nil
		fallthrough
	default:
		t.Asked = append(t.Asked, m)
	}
}

// suspend puts the open turn aside. Unless all of it is suspended, what joined it goes on without the message.
func (rd *Reader) suspend(a conversation.Suspension) {
	open := rd.Open
	switch {
	case rd.find(a.Key) >= 0:
		return
	case !open.Answers(a.Key): // nothing had been heard of it
		rd.suspended = append(rd.suspended, suspended{a.Key, Turn{}})
		return
	case a.Whole || len(open.Asked) == 1:
		rd.Open = Turn{}
	default:
		isIt := func(m chat.Message) bool { return m.Key() == a.Key }
		rd.Open.Asked = slices.DeleteFunc(slices.Clone(open.Asked), isIt)
		rd.Open.Records = slices.Clone(open.Records)
		open.Asked = slices.DeleteFunc(slices.Clone(open.Asked), func(m chat.Message) bool { return !isIt(m) })
	}
	rd.suspended = append(rd.suspended, suspended{a.Key, open})
}

// resume goes on with the turn that was suspended with the message of that key.
func (rd *Reader) resume(key string) {
	i := rd.find(key)
	if i < 0 {
		return
	}
	if was := rd.suspended[i].Turn; len(was.Asked) > 0 {
		rd.Open = was
	}
	rd.suspended = slices.Delete(rd.suspended, i, i+1)
}

// find returns the place of the suspended turn that answers the message of that key, or a negative number.
func (rd *Reader) find(key string) int {
	return slices.IndexFunc(rd.suspended, func(s suspended) bool { return s.key == key || s.Answers(key) })
}
