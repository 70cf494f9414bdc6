package web

import (
	"fmt"
	"net/http"
	"strings"

	"parley/chat"
	"parley/store"
)

// maxFound is how many results a search has.
const maxFound = 50

// conversations are all conversations, or the messages that contain Words.
type conversations struct {
	Words string      `json:"words,omitempty"`
	Found []chat.Find `json:"found"`
	Talks []chat.Talk `json:"talks"`
}

func (a *admin) conversations(r *http.Request) (c conversations, err error) {
	c.Words = r.FormValue("q")
	if c.Words != "" {
		c.Found, err = a.cfg.Gateway.Conversations.Search(r.Context(), nil, c.Words, maxFound)
	} else {
		c.Talks, err = a.cfg.Gateway.Conversations.List(r.Context(), "")
	}
	return c, err
}

// A conversation is a whole conversation, with the note that it may contain secrets
// (R-S6).
type conversation struct {
	Session chat.SessionID `json:"session"`
	Note    string         `json:"note"`
	Entries []chat.Entry   `json:"entries"`
}

// conversation returns the conversation that the path names. The error is
// store.ErrNotFound if there is none.
func (a *admin) conversation(r *http.Request) (conversation, error) {
	t := conversation{
		Session: chat.SessionID(r.PathValue("id")),
		Note:    "This transcript contains whatever secrets were said in the conversation.",
	}
	for e, err := range a.cfg.Gateway.Conversations.Transcript(r.Context(), t.Session) {
		if err != nil {
			return t, err
		}
		t.Entries = append(t.Entries, e)
	}
	if t.Entries == nil {
		return t, store.ErrNotFound
	}
	return t, nil
}

// export serves the conversation as Markdown.
func (a *admin) export(w http.ResponseWriter, r *http.Request, _ visitor) error {
	t, err := a.conversation(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/markdown; charset=utf-8")
	fmt.Fprintf(w, "# %s\n\n%s\n", plain(string(t.Session)), t.Note) // an error means that the client left
	for _, e := range t.Entries {
		text := e.Text
		if e.Kind == chat.Called || e.Kind == chat.Gave {
			text = fenced(text)
		}
		for _, f := range e.Files {
			text += "\n\n[file: " + plain(f.Name) + "]"
		}
		at := e.Time.In(a.cfg.Zone).Format("2006-01-02 15:04 MST")
		fmt.Fprintf(w, "\n**%s** %s · %s\n\n%s\n", e.Kind, plain(e.Who), at, text)
	}
	return nil
}

// fenced returns text as a code block with a fence that does not occur in it.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + text + "\n" + fence
}

// plain returns name as one line without Markdown.
func plain(name string) string {
	return strings.NewReplacer(
		"\n", " ", "\r", " ",
		"*", `\*`, "`", "\\`", "[", `\[`, "<", `\<`, "#", `\#`,
	).Replace(name)
}

// recording sends the recording of a session, which contains whatever secrets were
// said in it.
func (a *admin) recording(w http.ResponseWriter, r *http.Request, _ visitor) error {
	begun := false
	for line, err := range a.cfg.Gateway.Conversations.Recording(r.Context(), chat.SessionID(r.PathValue("id"))) {
		if err != nil && !begun {
			return err
		}
		if err != nil {
			panic(http.ErrAbortHandler) // an incomplete recording must not look complete
		}
		if !begun {
			w.Header().Set("Content-Type", "application/x-ndjson")
		}
		begun = true
		if _, err := w.Write(line); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	return nil
}
