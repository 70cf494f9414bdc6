package conversation

import (
	"slices"
	"time"

	"parley/chat"
)

// A State is what is kept of a session beside its log.
type State struct {
	Epoch  int64  `json:"epoch,omitempty"`  // number of the conversation: /new begins the next
	Model  string `json:"model,omitempty"`  // chosen with /model
	Quiet  bool   `json:"quiet,omitempty"`  // chosen with /verbose off
	Undone string `json:"undone,omitempty"` // key of the last /undo
	Short  string `json:"short,omitempty"`  // the model for which the list of tools is short, and its window
	Forked bool   `json:"forked,omitempty"` // the conversation may have several branches
	From   uint64 `json:"from,omitempty"`   // first record that is read: what is older never fits the model
	Base   int64  `json:"base,omitempty"`   // first Epoch since this record was damaged
	First  int64  `json:"first,omitempty"`  // earlier conversations are forgotten

	Digested ArchiveProgress `json:"digested,omitzero"`
	Removed  Removal         `json:"removed,omitzero"`
	Grants   []Grant         `json:"grants,omitempty"` // what owners approved for a while

	Began time.Time `json:"began,omitzero"`
	Last  time.Time `json:"last,omitzero"` // when somebody spoke, to within lastEvery
	Title string    `json:"title,omitempty"`
}

// ArchiveProgress is how far the conversation is archived. A part is settled before it
// is archived, so that it is the same part after a crash.
type ArchiveProgress struct {
	Epoch int64  `json:"epoch,omitempty"`
	Done  uint64 `json:"done,omitempty"`  // last record of what is archived
	Seq   uint64 `json:"seq,omitempty"`   // last record of the part that comes next, or Done: no turn archives it
	Tries int    `json:"tries,omitempty"` // of the model to sum it up
}

// A Removal is what was removed from the logs of a session because it was old. It is
// kept before the records are removed and after they were archived: so a crash has
// none archived twice.
type Removal struct {
	Before time.Time `json:"before"`          // what was said before is removed
	Epoch  int64     `json:"epoch,omitempty"` // the conversation in which that ended …
	Seq    uint64    `json:"seq"`             // … and the last record of it that is removed
}

// A Grant is an owner's yes to all calls with the same effect in one session,
// although untrusted content is there (R-S12). It is kept in the state of the
// session of the chat in which it was given, and shown there.
type Grant struct {
	Session chat.SessionID `json:"session"`
	Effect  string         `json:"effect"`
	By      string         `json:"by"`             // ID of who gave it
	Until   time.Time      `json:"until,omitzero"` // zero: until the conversation ends
}

// Over reports whether g has ended.
func (g Grant) Over() bool { return !g.Until.IsZero() && !time.Now().Before(g.Until) }

// Covers reports whether g allows calls with that effect in the session id.
func (g Grant) Covers(id chat.SessionID, effect string) bool {
	return !g.Over() && g.Session == id && g.Effect == effect
}

// BeginConversation makes s the state of a new conversation: what was approved
// for the old one counts no more.
func (s *State) BeginConversation() {
	s.Epoch++
	s.From = 0
	s.Forked = false
	s.Short = ""
	s.Grants = slices.DeleteFunc(s.Grants, func(g Grant) bool { return g.Until.IsZero() || g.Over() })
}

// Epochs returns the numbers of all conversations of the session. How many there
// were before a record was damaged is not known: many numbers are worth a look.
func (s State) Epochs() (all []int64) {
	first := s.Base
	if first == 0 && s.Epoch > 1e9 { // damaged before Base was noted
		first = s.Epoch
	}
	if first > 0 {
		for e := range int64(1000) {
			all = append(all, e)
		}
	}
	for e := max(first, s.First); e <= s.Epoch; e++ {
		all = append(all, e)
	}
	return all
}
