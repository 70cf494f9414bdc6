package web

import (
	"fmt"
	"net/http"
	"strings"

	"parley/chat"
	"parley/store"
)

// A conversation is all of a conversation. It says that it may hold secrets (R-S6).
type conversation struct {
	Session chat.SessionID `json:"session"`
	Note    string         `json:"note"`
	Entries []chat.Entry   `json:"entries"`
}

// Latest returns the entries that fit on a page.
func (t conversation) Latest() []chat.Entry { return t.Entries[max(0, len(t.Entries)-maxEntries):] }

// readConversation returns the conversation that the path names, store.ErrNotFound if there is none.
func (a *admin) readConversation(r *http.Request) (conversation, error) {
	t := conversation{
		Session: chat.SessionID(r.PathValue("id")),
		Note:    "This transcript holds whatever secrets were said in the conversation.",
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

func (a *admin) conversation(r *http.Request) (any, error) { return a.readConversation(r) }

// export serves the conversation as Markdown.
func (a *admin) export(w http.ResponseWriter, r *http.Request, _ visitor) error {
	t, err := a.readConversation(r)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/markdown; charset=utf-8")
	fmt.Fprintf(w, "# %s\n\n%s\n", plain(string(t.Session)), t.Note) // an error is theirs: they left
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

// recording sends the recording of a session, which holds whatever secrets were
// said in it.
func (a *admin) recording(w http.ResponseWriter, r *http.Request, _ visitor) error {
	begun := false
	for line, err := range a.cfg.Gateway.Conversations.Recording(r.Context(), chat.SessionID(r.PathValue("id"))) {
		if err != nil && !begun {
			return err
		}
		if !begun {
			w.Header().Set("Content-Type", "application/x-ndjson")
		}
		begun = true
		if err == nil {
			_, err = w.Write(line)
		}
		if err != nil {
			panic(http.ErrAbortHandler) // half a recording must not look whole
		}
	}
	return nil
}
