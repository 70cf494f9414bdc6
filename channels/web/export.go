package web

import (
	"fmt"
	"mime"
	"net/http"
	"strings"
	"time"

	"parley/channels/safetext"
	"parley/response"
)

// An exportedConversation is a conversation as its person takes it along.
type exportedConversation struct {
	Title    string          `json:"title"`
	Exported time.Time       `json:"exported"`
	Messages []exportedEntry `json:"messages"` // in the order in which they were said, of all branches
}

// An exportedEntry is a message or an answer.
type exportedEntry struct {
	Number  uint64    `json:"number"`
	Who     string    `json:"who"` // "you" or "parley"
	Time    time.Time `json:"time"`
	Text    string    `json:"text"` // Markdown if it is Parley's
	Files   []string  `json:"files,omitempty"`
	Version int       `json:"version,omitempty"` // from 1, of those in Of
	Of      []uint64  `json:"of,omitempty"`      // numbers that identify the versions of it
	Shown   bool      `json:"shown"`             // it is in the branch that the page shows
}

// exportConversation sends a conversation of the person, as Markdown or as JSON.
func exportConversation(req request) error {
	form := req.r.PathValue("form")
	if form != "md" && form != "json" {
		return response.Problem{Status: http.StatusNotFound, Text: "A conversation is exported as md or as json."}
	}
	b, err := req.room.read(req.r.Context())
	if err != nil {
		return err
	}
	all := exportedConversation{
		Title:    displayTitle(req.room.address.Thread, req.conversation),
		Exported: time.Now(),
		Messages: b.export(),
	}
	name := safetext.FileName(all.Title + "." + form)
	req.w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	req.w.Header().Set("Cache-Control", "no-store")
	if form == "json" {
		return req.writeJSON(http.StatusOK, all)
	}
	req.writeBody("text/markdown; charset=utf-8", []byte(all.markdown()))
	return nil
}

// export returns the messages and answers of all branches.
func (b *branchReader) export() []exportedEntry {
	shown := map[uint64]bool{}
	for _, e := range b.shown() {
		shown[e.Seq] = true
	}
	all := []exportedEntry{}
	for _, e := range b.all {
		if e.Again || e.Who == whoSwitch {
			continue
		}
		x := exportedEntry{Number: e.Seq, Who: e.Who, Time: e.Time, Text: e.Text, Shown: shown[e.Seq]}
		for _, f := range e.Files {
			x.Files = append(x.Files, f.Name)
		}
		if versions, which := b.versionsOf(e); len(versions) > 0 {
			x.Of = versions
			x.Version = which + 1
		}
		all = append(all, x)
	}
	return all
}

// markdown returns the conversation as a text: what the page shows, and then what is in
// other branches.
func (c exportedConversation) markdown() string {
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
func (e exportedEntry) write(b *strings.Builder) {
	who := map[string]string{whoPerson: "You", whoAgent: "Parley", whoPage: "Note"}[e.Who]
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
