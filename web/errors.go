package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"mime"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"parley/memory"
	"parley/scheduler"
	"parley/store"
)

// A problem is an error that the client can do something about.
type problem struct {
	status int
	text   string
	after  time.Duration // when to try again; 0 if that does not help
	code   string        // for clients of the OpenAI-compatible endpoint; "" for none
}

func (p problem) Error() string { return p.text }

// Wrong marks err as the fault of the request; the client is told its text.
func Wrong(err error) error { return badRequest(err.Error()) }

func badRequest(text string) error { return problem{status: http.StatusBadRequest, text: text} }

// writeError answers with err in words for the client, and logs what is not the
// client's fault.
func (s *Server) writeError(w http.ResponseWriter, r *http.Request, err error) {
	var p problem
	switch {
	case errors.As(err, &p):
	case errors.Is(err, store.ErrNotFound):
		p = problem{status: http.StatusNotFound, text: "not found; it may have been deleted"}
	case errors.Is(err, scheduler.ErrProtected):
		p = problem{status: http.StatusConflict, text: err.Error()}
	case errors.Is(err, memory.ErrGone):
		p = problem{
			status: http.StatusConflict,
			text:   "this change cannot be undone: what it wrote has been changed since",
		}
	case errors.Is(err, store.ErrFull):
		p = problem{
			status: http.StatusInsufficientStorage,
			text:   "the disk is full, so nothing was changed; make room and try again",
		}
	case errors.Is(err, context.Canceled):
		return // the client left, or its pass ended
	default:
		s.cfg.Log.Error("request failed", "path", r.URL.Path, "err", err)
		p = problem{status: http.StatusInternalServerError, text: "that did not work; the log says why"}
		if errors.Is(err, store.ErrDamaged) {
			p.text = "that is damaged on disk; the log says where"
		}
	}
	if p.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(p.after.Seconds()))))
	}
	s.writeProblem(w, r, p)
}

// writeProblem answers with p: browsers get a page, or are sent to sign in;
// programs get JSON in the shape that OpenAI's clients read.
func (s *Server) writeProblem(w http.ResponseWriter, r *http.Request, p problem) {
	browser := r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html")
	switch {
	case browser && p.status == http.StatusUnauthorized:
		http.Redirect(w, r, "/signin", http.StatusSeeOther)
	case browser:
		page := frame{Title: http.StatusText(p.status), Data: strings.TrimSuffix(p.text, ".")}
		_ = s.pages.show(w, p.status, "refused", page) // an error means that the client left
	default:
		failure := map[string]any{"message": p.text, "type": "invalid_request_error", "code": nil}
		if p.code != "" {
			failure["code"] = p.code
		}
		writeJSON(w, p.status, map[string]any{"error": failure})
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // an error means that the client left
}

const maxBody = 64 << 10 // bytes of a request that is not for a mounted handler

// body decodes the JSON body of r into v.
func body(w http.ResponseWriter, r *http.Request, v any) error {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return problem{status: http.StatusUnsupportedMediaType, text: "the Content-Type must be application/json"}
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if _, big := errors.AsType[*http.MaxBytesError](err); big {
		return problem{
			status: http.StatusRequestEntityTooLarge,
			text:   fmt.Sprintf("the request is larger than %d KB", maxBody>>10),
		}
	} else if err != nil {
		return badRequest("unexpected JSON: " + describeJSONError(err, v))
	}
	return nil
}

// describeJSONError says in terms of JSON why a decoder could not fill v.
func describeJSONError(err error, v any) string {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		kinds := map[reflect.Kind]string{
			reflect.String: "text",
			reflect.Int:    "a whole number",
			reflect.Bool:   "true or false",
		}
		return cmp.Or(jsonName(e.Field, v), "it") + " must be " + cmp.Or(kinds[e.Type.Kind()], "an object")
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	if strings.HasPrefix(text, "unknown field") {
		var names []string
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v).Elem()) {
			if f.Anonymous { // its fields follow
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			names = append(names, cmp.Or(name, strings.ToLower(f.Name)))
		}
		text += "; there are " + strings.Join(names, ", ")
	}
	return text
}

// jsonName returns field, as a decoder of v names it, without the names of
// embedded structs, which JSON does not have.
func jsonName(field string, v any) string {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v).Elem()) {
		if f.Anonymous {
			field = strings.TrimPrefix(field, f.Name+".")
		}
	}
	return field
}
