package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"parley/chat"
	"parley/store"
)

// A line is an entry of a conversation, with what a tool gave beside its call.
type line struct {
	chat.Entry
	Gave *chat.Entry
}

// together puts what tools gave to their calls.
func together(ls []line) []line {
	calls := map[string]int{}
	kept := ls[:0]
	for _, l := range ls {
		at, called := calls[l.Call]
		switch {
		case l.Kind == chat.Gave && called:
			kept[at].Gave = &l.Entry
			delete(calls, l.Call)
			continue
		case l.Kind == chat.Called:
			calls[l.Call] = len(kept)
		}
		kept = append(kept, l)
	}
	return kept
}

// transcribe yields the conversation, or store.ErrNotFound when there is none.
func (s *Server) transcribe(ctx context.Context, id chat.SessionID) iter.Seq2[chat.Entry, error] {
	return func(yield func(chat.Entry, error) bool) {
		none := true
		if s.House.Transcript != nil {
			for e, err := range s.House.Transcript(ctx, id) {
				none = false
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
		if none {
			yield(chat.Entry{}, store.ErrNotFound)
		}
	}
}

// transcript serves the conversation as one JSON list.
func (s *Server) transcript(w http.ResponseWriter, r *http.Request, _ visitor) error {
	return s.write(w, r, "application/json; charset=utf-8", "[", "]\n", asJSON)
}

// export serves the conversation as a file, which says that it may hold secrets (R-S6).
func (s *Server) export(w http.ResponseWriter, r *http.Request, v visitor) error {
	const care = "Whatever secrets were said in this conversation are in here."
	id := r.PathValue("id")
	var err error
	switch format := r.FormValue("format"); format {
	case "json":
		attach(w, id, "json")
		head, _ := json.Marshal(map[string]string{"session": id, "note": care}) // strings never fail
		err = s.write(w, r, "application/json; charset=utf-8", strings.TrimSuffix(string(head), "}")+`,"entries":[`, "]}\n", asJSON)
	case "", "md":
		attach(w, id, "md")
		err = s.write(w, r, "text/markdown; charset=utf-8", "# "+plain(id)+"\n\n"+care+"\n", "", asMarkdown)
	default:
		return bad("format is json or md")
	}
	if err == nil {
		s.audit("session", v.ID, "exported: "+id)
	}
	return err
}

// attach names the file that the answer is. The name is not shown for more than it is.
func attach(w http.ResponseWriter, id, ext string) {
	safe := strings.Map(func(r rune) rune {
		if r < 128 && (r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
			return r
		}
		return '-'
	}, clip(id, 100))
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", safe+"."+ext))
}

// write streams the conversation that the path names, each entry by say. What
// breaks off does not look whole.
func (s *Server) write(w http.ResponseWriter, r *http.Request, kind, head, tail string, say func(out io.Writer, e chat.Entry, first bool) error) error {
	var out *bufio.Writer
	for e, err := range s.transcribe(r.Context(), chat.SessionID(r.PathValue("id"))) {
		if err != nil && out == nil {
			w.Header().Del("Content-Disposition")
			return err
		} else if err != nil {
			s.Log.Error("transcript broke off", "err", err)
			panic(http.ErrAbortHandler)
		}
		first := out == nil
		if first {
			w.Header().Set("Content-Type", kind)
			out = bufio.NewWriter(w)
			_, _ = out.WriteString(head) // Flush returns the error of any write
		}
		if err := say(out, e, first); err != nil {
			return err
		}
	}
	_, _ = out.WriteString(tail)
	return out.Flush()
}

func asJSON(out io.Writer, e chat.Entry, first bool) error {
	body, err := json.Marshal(e)
	if err == nil && !first {
		_, err = io.WriteString(out, ",\n")
	}
	if err == nil {
		_, err = out.Write(body)
	}
	return err
}

func asMarkdown(out io.Writer, e chat.Entry, _ bool) error {
	at := e.Time.UTC().Format("2006-01-02 15:04")
	text := e.Text
	switch e.Kind {
	case chat.Called, chat.Gave:
		text = fenced(text)
	case chat.Heard:
		for _, f := range e.Files {
			text += "\n\n[file: " + plain(f.Name) + "]"
		}
	}
	_, err := fmt.Fprintf(out, "\n**%s** %s · %s\n\n%s\n", e.Kind, plain(e.Who), at, text)
	return err
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

// ago says how long it is since t, in the largest unit.
func ago(t time.Time) string { return long(time.Since(t)) }

// long says how long d is, in the largest unit.
func long(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "moments"
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}
