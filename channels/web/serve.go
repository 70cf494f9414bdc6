package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"time"

	"parley/channels/network"
	"parley/chat"
	"parley/response"
	"parley/store"
)

const maxBody = 512 << 10 // bytes of a request in JSON

// Serve serves the conversations and files of who, who is signed in. Those of other
// people do not exist for them. The caller has refused cross-origin requests.
func (c *Channel) Serve(w http.ResponseWriter, r *http.Request, who chat.Sender) {
	if !isMeantFor(r, who.ID) {
		c.writeError(request{w: w, r: r, who: who}, response.Problem{
			Status: http.StatusPreconditionFailed,
			Text:   "Somebody else has signed in since this page was loaded.",
		})
		return
	}
	c.mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), personKey{}, who)))
}

// isMeantFor reports whether r comes from a page that was made for person, or does not say for whom. A tab of
// somebody who was signed in before must neither write nor read in the name of who is signed in now.
func isMeantFor(r *http.Request, person string) bool {
	meant := cmp.Or(r.Header.Get("X-Parley-Person"), url.QueryEscape(r.URL.Query().Get("person")))
	if meant == "" {
		return true
	}
	meant, err := url.QueryUnescape(meant)
	return err == nil && meant == person
}

// personKey is the context key of the person who is signed in.
type personKey struct{}

// A request is one HTTP request of a person.
type request struct {
	w            http.ResponseWriter
	r            *http.Request
	who          chat.Sender
	room         *room        // of the conversation; nil: the request concerns none
	conversation conversation // as it was at the beginning of the request

	budget *network.Budget // of bytes of JSON requests in memory
}

func (c *Channel) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, do := range map[string]func(request) error{
		"GET /{$}":                  c.redirectHome,
		"GET /c/{id}":               c.servePage,
		"GET /c/{id}/before":        c.serveOlder,
		"GET /c/{id}/events":        c.serveEvents,
		"POST /c/{id}/messages":     c.postMessage,
		"POST /c/{id}/version":      switchVersion,
		"POST /c/{id}/answer":       c.pressButton,
		"POST /c/{id}/seen":         markSeen,
		"PATCH /c/{id}":             c.renameConversation,
		"DELETE /c/{id}":            c.deleteConversation,
		"POST /c":                   c.createConversation,
		"GET /talks":                c.findConversations,
		"GET /push":                 servePushKey(c.cfg.Notify),
		"PUT /push":                 subscribe(c.cfg.Notify),
		"DELETE /push":              unsubscribe(c.cfg.Notify),
		"PUT /files":                c.uploadFile,
		"GET /files/{file}/{name}":  c.downloadFile,
		"GET /assets/{v}/{file}":    func(req request) error { return c.assets.Serve(req.w, req.r) },
		"GET /c/{id}/export/{form}": exportConversation,
		"GET /c/{id}/menus":         c.menus.serve,
		"POST /c/{id}/pin":          pinConversation,
		"GET /c/{id}/steps":         pastSteps{c}.serve,
		"GET /c/{id}/picture":       pastSteps{c}.servePicture,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			who, _ := r.Context().Value(personKey{}).(chat.Sender)
			req := request{w: w, r: r, who: who, budget: c.bodies}
			if id := r.PathValue("id"); id != "" {
				rm, leave := c.openRoom(c.address(who.ID, id))
				defer leave()
				req.room = rm
				var err error
				req.conversation, err = c.conversations.get(r.Context(), rm.address)
				if err != nil {
					c.writeError(req, err)
					return
				}
			}
			if err := do(req); err != nil {
				c.writeError(req, err)
			}
		})
	}
	return mux
}

// writeError responds with err, and logs what is not the person's fault.
func (c *Channel) writeError(req request, err error) {
	var p response.Problem
	var refusal *chat.Refusal
	switch {
	case errors.As(err, &p):
	case errors.As(err, &refusal):
		p = response.Problem{Status: http.StatusInsufficientStorage, Text: refusal.Text}
	case errors.Is(err, errGone):
		p = response.Problem{Status: http.StatusNotFound, Text: "This conversation does not exist or was deleted."}
	case errors.Is(err, store.ErrFull):
		p = response.Problem{
			Status: http.StatusInsufficientStorage,
			Text:   "The disk is full, so nothing was changed. Please tell the person who runs Parley.",
		}
	case req.r.Context().Err() != nil:
		return // the client is gone
	default:
		c.cfg.Log.Error("browser chat request failed", "path", req.r.URL.Path, "err", err)
		p = response.Problem{Status: http.StatusInternalServerError, Text: "Something went wrong. Please try again."}
	}
	p.Write(req.w, req.r)
}

// writeJSON responds with v as JSON.
func (req request) writeJSON(status int, v any) error {
	response.JSON(req.w, status, v)
	return nil
}

// readJSON decodes the JSON body into v.
func (req request) readJSON(v any) error {
	if t, _, _ := mime.ParseMediaType(req.r.Header.Get("Content-Type")); t != "application/json" {
		return response.Problem{
			Status: http.StatusUnsupportedMediaType,
			Text:   "The content type must be application/json.",
		}
	}
	body, release := req.budget.Reader(req.who.ID, http.MaxBytesReader(req.w, req.r.Body, maxBody))
	defer release()
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	err := d.Decode(v)
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		return response.Problem{Status: http.StatusRequestEntityTooLarge, Text: "The request is too large."}
	case errors.Is(err, network.ErrBusy), errors.Is(err, network.ErrBusyPerson):
		return response.Problem{
			Status:     http.StatusTooManyRequests,
			Text:       "Too much is being sent at once. Please try again in a moment.",
			RetryAfter: 2 * time.Second,
		}
	case err != nil || d.More():
		return response.BadRequest("The request is not valid.")
	}
	return nil
}
