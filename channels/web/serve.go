package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"parley/channels/network"
	"parley/chat"
	"parley/store"
)

const maxBody = 512 << 10 // bytes of a request in JSON

// Serve serves who, who is signed in: their conversations and files, and nobody
// else's. What belongs to others is as if it were not there. The caller has
// refused what comes from other pages.
func (c *Channel) Serve(w http.ResponseWriter, r *http.Request, who chat.Sender) {
	c.mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitor{}, who)))
}

type visitor struct{}

// A call is one request of a person.
type call struct {
	w    http.ResponseWriter
	r    *http.Request
	who  chat.Sender
	room *room // of the conversation, which is there; nil for what concerns none
	held held  // what the list knew of it when the request came

	budget *network.Budget // of what is read
}

func (c *Channel) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, do := range map[string]func(call) error{
		"GET /{$}":                 c.home,
		"GET /c/{id}":              c.show,
		"GET /c/{id}/before":       c.older,
		"GET /c/{id}/events":       c.events,
		"POST /c/{id}/messages":    c.say,
		"POST /c/{id}/answer":      c.press,
		"PATCH /c/{id}":            c.rename,
		"DELETE /c/{id}":           c.remove,
		"POST /c":                  c.make,
		"GET /talks":               c.find,
		"PUT /files":               c.upload,
		"GET /files/{file}/{name}": c.download,
		"GET /assets/{v}/{file}":   c.asset,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			who, _ := r.Context().Value(visitor{}).(chat.Sender)
			k := call{w: w, r: r, who: who, budget: c.bodies}
			var err error
			if id := r.PathValue("id"); id != "" {
				rm, leave := c.use(c.address(who.ID, id))
				defer leave()
				k.room = rm
				k.held, err = c.held(r.Context(), rm.at)
			}
			if err == nil {
				err = do(k)
			}
			if err != nil {
				c.refuse(k, err)
			}
		})
	}
	return mux
}

// A problem is an error that whoever asked can do something about.
type problem struct {
	status int
	text   string
}

func (p problem) Error() string { return p.text }

// refuse says why not: a page to people, JSON to the page.
func (c *Channel) refuse(k call, err error) {
	var p problem
	var refusal *chat.Refusal
	switch {
	case errors.As(err, &p):
	case errors.As(err, &refusal):
		p = problem{http.StatusInsufficientStorage, refusal.Text}
	case errors.Is(err, errGone):
		p = problem{http.StatusNotFound, "This conversation does not exist, or was deleted."}
	case errors.Is(err, store.ErrFull):
		p = problem{
			http.StatusInsufficientStorage,
			"The disk is full, so nothing was changed. Please tell whoever runs this.",
		}
	case k.r.Context().Err() != nil:
		return // they left
	default:
		c.cfg.Log.Error("browser chat", "path", k.r.URL.Path, "err", err)
		p = problem{http.StatusInternalServerError, "That did not work. Please try again."}
	}
	if k.r.Method == http.MethodGet && strings.Contains(k.r.Header.Get("Accept"), "text/html") {
		k.w.Header().Set("Content-Type", "text/html; charset=utf-8")
		k.w.WriteHeader(p.status)
		_, _ = fmt.Fprintf(k.w, `<!doctype html><html lang=en><meta name=viewport content="width=device-width">`+
			`<title>Parley</title><h1>%s</h1><p><a href="/">Back</a></p>`, p.text)
		return
	}
	_ = k.answer(p.status, map[string]any{"error": map[string]string{"message": p.text}})
}

// answer answers with v as JSON.
func (k call) answer(status int, v any) error {
	k.w.Header().Set("Content-Type", "application/json; charset=utf-8")
	k.w.WriteHeader(status)
	_ = json.NewEncoder(k.w).Encode(v) // an error is theirs: they left
	return nil
}

// read reads the JSON they sent into v.
func (k call) read(v any) error {
	if t, _, _ := mime.ParseMediaType(k.r.Header.Get("Content-Type")); t != "application/json" {
		return problem{http.StatusUnsupportedMediaType, "This takes application/json."}
	}
	body, release := k.budget.Reader(k.who.ID, http.MaxBytesReader(k.w, k.r.Body, maxBody))
	defer release()
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	err := d.Decode(v)
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		return problem{http.StatusRequestEntityTooLarge, "That is too long."}
	case errors.Is(err, network.ErrBusy), errors.Is(err, network.ErrBusyPerson):
		k.w.Header().Set("Retry-After", "2")
		return problem{http.StatusTooManyRequests, "Too much is being sent at once. Please try again in a moment."}
	case err != nil || d.More():
		return problem{http.StatusBadRequest, "That is not the JSON expected here."}
	}
	return nil
}
