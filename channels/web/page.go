package web

import (
	"html/template"
	"time"

	"parley/chat"
)

// A page is what page.html shows. Without scripts it is a transcript to read;
// scripts take it from there, from Last on.
type page struct {
	Who     chat.Sender
	Assets  string // the folder of the page's own files, such as "/assets/1a2b3c4d"
	ID      string // of the conversation
	Title   string
	Talks   []talk  // newest first
	Entries []entry // oldest first
	Last    uint64  // number of the latest entry of all; 0: there are none
	First   uint64  // number of the first entry that is shown; 0: there are none
	More    bool    // there are older ones
	MaxFile int64   // bytes of one upload
}

// A talk is a line in the list of conversations.
type talk struct {
	ID      string    `json:"id"`
	Title   string    `json:"title"`
	Last    time.Time `json:"last"`              // when somebody spoke last, to within a minute; zero: nobody did
	Current bool      `json:"-"`                 // it is the one on the page
	Snippet string    `json:"snippet,omitempty"` // of what was searched
	Time    time.Time `json:"time,omitzero"`     // of what was found
}

// An entry is one thing said, as the page shows it. An entry that Edits another
// takes its place, and is itself shown nowhere else.
type entry struct {
	Seq     uint64        `json:"seq"`
	ID      string        `json:"id"`
	Who     string        `json:"who"`  // "you", "parley" or "note"
	HTML    template.HTML `json:"html"` // safe; of "you" it is escaped text whose lines are to be kept
	Text    string        `json:"text"` // as it was written
	Time    time.Time     `json:"time"`
	Files   []file        `json:"files,omitempty"`
	Ask     *ask          `json:"ask,omitempty"`     // what is to be chosen, and was not yet
	Edits   uint64        `json:"edits,omitempty"`   // Seq of the entry whose place it takes
	Replies string        `json:"replies,omitempty"` // ID of what it answers
}

// A file is one that can be downloaded.
type file struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Type string `json:"type"`
	Size int64  `json:"size"`
	URL  string `json:"url"`
}

// An ask is a question with buttons.
type ask struct {
	ID      string   `json:"id"`
	Choices []string `json:"choices"`
}
