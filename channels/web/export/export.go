// Package export writes a conversation of the web page as its person takes it along.
package export

import (
	"fmt"
	"strings"
	"time"
)

// A Conversation is a conversation as its person takes it along.
type Conversation struct {
	Title    string    `json:"title"`
	Exported time.Time `json:"exported"`
	Messages []Entry   `json:"messages"` // in the order in which they were said, of all branches
}

// An Entry is a message or an answer.
type Entry struct {
	Number  uint64    `json:"number"`
	Who     string    `json:"who"` // "you" or "parley"
	Time    time.Time `json:"time"`
	Text    string    `json:"text"` // Markdown if it is Parley's
	Files   []string  `json:"files,omitempty"`
	Version int       `json:"version,omitempty"` // from 1, of those in Of
	Of      []uint64  `json:"of,omitempty"`      // numbers that identify the versions of it
	Shown   bool      `json:"shown"`             // it is in the branch that the page shows
}

// Markdown returns the conversation as a text: what the page shows, and then what is in
// other branches.
func (c Conversation) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", oneLine(c.Title))
	others := false
	for _, e := range c.Messages {
		if e.Shown {
			e.write(&b)
		}
		others = others || !e.Shown
	}
	if !others {
		return b.String()
	}
	b.WriteString("\n---\n\n## Other versions\n")
	for _, e := range c.Messages {
		if !e.Shown {
			e.write(&b)
		}
	}
	return b.String()
}

// write writes the entry as Markdown.
func (e Entry) write(b *strings.Builder) {
	who := names[e.Who]
	fmt.Fprintf(b, "\n**%s** · %s", who, e.Time.Format("2006-01-02 15:04 MST"))
	if e.Version > 0 {
		fmt.Fprintf(b, " · version %d of %d", e.Version, len(e.Of))
	}
	fmt.Fprintf(b, "\n\n%s\n", e.Text)
	for _, name := range e.Files {
		fmt.Fprintf(b, "\n[file: %s]\n", oneLine(name))
	}
}

// oneLine returns name as one line without Markdown.
func oneLine(name string) string {
	return strings.NewReplacer(
		"\n", " ", "\r", " ",
		"*", `\*`, "`", "\\`", "[", `\[`, "<", `\<`, "#", `\#`,
	).Replace(name)
}

// names are what people read of who says something.
var names = map[string]string{"you": "You", "parley": "Parley", "note": "Note"}
