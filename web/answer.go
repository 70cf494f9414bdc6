package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
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

// A problem is an error that whoever asked can do something about.
type problem struct {
	status int
	text   string
	after  time.Duration // how long to wait before another try; 0 when that does not help
	code   string        // for clients of the models' API; "": none
}

func (p problem) Error() string { return p.text }

// Wrong makes err one that tells whoever asked what they got wrong.
func Wrong(err error) error { return bad(err.Error()) }

func bad(text string) error { return problem{status: http.StatusBadRequest, text: text} }

// fail answers with err in words for whoever asked, and logs what is not their doing.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var p problem
	switch {
	case errors.As(err, &p):
	case errors.Is(err, store.ErrNotFound):
		p = problem{status: http.StatusNotFound, text: "there is no such thing, or not any more"}
	case errors.Is(err, scheduler.ErrProtected):
		p = problem{status: http.StatusConflict, text: err.Error()}
	case errors.Is(err, memory.ErrGone):
		p = problem{status: http.StatusConflict, text: "what that change wrote is not there any more, so it cannot be undone"}
	case errors.Is(err, store.ErrFull):
		p = problem{status: http.StatusInsufficientStorage, text: "the disk is full, so nothing was changed; make room and try again"}
	case errors.Is(err, context.Canceled):
		return // they left, or were put out
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
	s.refuse(w, r, p)
}

// refuse answers with p: a page for people, JSON for programs, in
// the shape that clients of the models' API read. People who are to sign in are
// taken to where they can.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, p problem) {
	switch people := r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html"); {
	case people && p.status == http.StatusUnauthorized:
		http.Redirect(w, r, "/signin", http.StatusSeeOther)
	case people:
		_ = s.pages.show(w, p.status, "refused", frame{Title: http.StatusText(p.status), Data: strings.TrimSuffix(p.text, ".")})
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
	_ = json.NewEncoder(w).Encode(v) // an error is theirs: they left
}

const maxBody = 64 << 10 // bytes, of what is not mounted

// body reads the JSON of r into v.
func body(w http.ResponseWriter, r *http.Request, v any) error {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return problem{status: http.StatusUnsupportedMediaType, text: "this wants application/json"}
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if _, big := errors.AsType[*http.MaxBytesError](err); big {
		return problem{status: http.StatusRequestEntityTooLarge, text: "that is too much"}
	} else if err != nil {
		return bad("that is not the JSON expected here: " + amiss(err, v))
	}
	return nil
}

// amiss says what kept err, of a decoder, from making v, in the words of JSON.
func amiss(err error, v any) string {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		kinds := map[reflect.Kind]string{reflect.String: "text", reflect.Int: "a whole number", reflect.Bool: "true or false"}
		return cmp.Or(e.Field, "it") + " must be " + cmp.Or(kinds[e.Type.Kind()], "an object")
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	if strings.HasPrefix(text, "unknown field") {
		var names []string
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v).Elem()) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			names = append(names, cmp.Or(name, strings.ToLower(f.Name)))
		}
		text += "; there are " + strings.Join(names, ", ")
	}
	return text
}
