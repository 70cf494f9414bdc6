package web

import (
	"fmt"
	"net/http"
	"strings"

	"parley/chat"
	"parley/store"
)

// A talk is all of a conversation. It says that it may hold secrets (R-S6).
type talk struct {
	Session chat.SessionID `json:"session"`
	Note    string         `json:"note"`
	Entries []chat.Entry   `json:"entries"`
}

// Latest are those that fit on a page.
func (t talk) Latest() []chat.Entry { return t.Entries[max(0, len(t.Entries)-mostEntries):] }

// read returns the conversation that the path names, store.ErrNotFound if there is none.
func (a *admin) read(r *http.Request) (talk, error) {
	t := talk{Session: chat.SessionID(r.PathValue("id")), Note: "Whatever secrets were said in this conversation are in here."}
	for e, err := range a.cfg.House.Transcript(r.Context(), t.Session) {
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

func (a *admin) talk(r *http.Request) (any, error) { return a.read(r) }

// export serves the conversation as Markdown.
func (a *admin) export(w http.ResponseWriter, r *http.Request, _ visitor) error {
	t, err := a.read(r)
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
		fmt.Fprintf(w, "\n**%s** %s · %s\n\n%s\n", e.Kind, plain(e.Who), e.Time.In(a.cfg.Zone).Format("2006-01-02 15:04 MST"), text)
	}
	return nil
}

// fenced makes text a block that nothing in it can end.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + text + "\n" + fence
}

// plain makes a name of one line that is no markup.
func plain(name string) string {
	return strings.NewReplacer("\n", " ", "\r", " ", "*", `\*`, "`", "\\`", "[", `\[`, "<", `\<`, "#", `\#`).Replace(name)
}

// recording sends the lines of a recording of a session. Whatever secrets were
// said in it are in there.
func (a *admin) recording(w http.ResponseWriter, r *http.Request, _ visitor) error {
	begun := false
	for line, err := range a.cfg.House.Recording(r.Context(), chat.SessionID(r.PathValue("id"))) {
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
