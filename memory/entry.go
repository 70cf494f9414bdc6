package memory

import (
	"time"

	"parley/chat"
)

// An Entry is what is kept of a part of a conversation once it is over: the
// middle memory, between what is being said and what is known for good.
type Entry struct {
	Cursor  int64          `json:"cursor"` // counts the entries of a person, from 1; never given twice
	Time    time.Time      `json:"time"`   // when the last of it was said
	Who     chat.Person    `json:"who"`
	Session chat.SessionID `json:"session"`
	Key     string         `json:"key"` // names the part: an entry with the key of another is the same
	Text    string         `json:"text"`
	Raw     bool           `json:"raw,omitempty"`     // Text is what was said, because nobody could sum it up
	Tainted bool           `json:"tainted,omitempty"` // strangers had a word in it (R-S14)
}
