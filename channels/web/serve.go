package web

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"time"

	"parley/channels/network"
	"parley/chat"
	"parley/response"
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

// refuse answers with err, and logs what is not the person's fault.
func (c *Channel) refuse(k call, err error) {
	var p response.Problem
	var refusal *chat.Refusal
	switch {
	case errors.As(err, &p):
	case errors.As(err, &refusal):
		p = response.Problem{Status: http.StatusInsufficientStorage, Text: refusal.Text}
	case errors.Is(err, errGone):
		p = response.Problem{Status: http.StatusNotFound, Text: "This conversation does not exist, or was deleted."}
	case errors.Is(err, store.ErrFull):
		p = response.Problem{
			Status: http.StatusInsufficientStorage,
			Text:   "The disk is full, so nothing was changed. Please tell whoever runs this.",
		}
	case k.r.Context().Err() != nil:
		return // they left
	default:
		c.cfg.Log.Error("browser chat", "path", k.r.URL.Path, "err", err)
		p = response.Problem{Status: http.StatusInternalServerError, Text: "That did not work. Please try again."}
	}
	p.Write(k.w, k.r)
}

// answer answers with v as JSON.
func (k call) answer(status int, v any) error {
	response.JSON(k.w, status, v)
	return nil
}

// read reads the JSON they sent into v.
func (k call) read(v any) error {
	if t, _, _ := mime.ParseMediaType(k.r.Header.Get("Content-Type")); t != "application/json" {
		return response.Problem{Status: http.StatusUnsupportedMediaType, Text: "This takes application/json."}
	}
	body, release := k.budget.Reader(k.who.ID, http.MaxBytesReader(k.w, k.r.Body, maxBody))
	defer release()
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	err := d.Decode(v)
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		return response.Problem{Status: http.StatusRequestEntityTooLarge, Text: "That is too long."}
	case errors.Is(err, network.ErrBusy), errors.Is(err, network.ErrBusyPerson):
		return response.Problem{
			Status:     http.StatusTooManyRequests,
			Text:       "Too much is being sent at once. Please try again in a moment.",
			RetryAfter: 2 * time.Second,
		}
	case err != nil || d.More():
		return response.BadRequest("That is not the JSON expected here.")
	}
	return nil
}
