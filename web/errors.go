package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"strings"

	"parley/memory"
	"parley/response"
	"parley/scheduler"
	"parley/scheduler/jobs"
	"parley/store"
)

// markUserError makes an error about scheduled jobs a fault of the request if whoever
// asked got something wrong; the client is then told its text.
func markUserError(err error) error {
	if jobs.IsUserError(err) {
		return response.BadRequest(err.Error())
	}
	return err
}

// writeError answers with err in words for the client, and logs it unless it is the
// client's fault.
func (s *Server) writeError(w http.ResponseWriter, r *http.Request, err error) {
	var p response.Problem
	switch {
	case errors.As(err, &p):
	case errors.Is(err, store.ErrNotFound):
		p = response.Problem{Status: http.StatusNotFound, Text: "not found; it may have been deleted"}
	case errors.Is(err, scheduler.ErrProtected):
		p = response.Problem{Status: http.StatusConflict, Text: err.Error()}
	case errors.Is(err, memory.ErrGone):
		p = response.Problem{
			Status: http.StatusConflict,
			Text:   "this change cannot be undone: what it wrote has been changed since",
		}
	case errors.Is(err, store.ErrFull):
		p = response.Problem{
			Status: http.StatusInsufficientStorage,
			Text:   "the disk is full, so nothing was changed; make room and try again",
		}
	case errors.Is(err, context.Canceled):
		return // the client left, or its pass ended
	default:
		s.cfg.Log.Error("request failed", "path", r.URL.Path, "err", err)
		p = response.Problem{Status: http.StatusInternalServerError, Text: "internal error; the log has the details"}
		if errors.Is(err, store.ErrDamaged) {
			p.Text = "this is damaged on disk; the log says where"
		}
	}
	writeProblem(w, r, p)
}

// writeProblem answers with p. Browsers of people who are not signed in are sent to
// sign in.
func writeProblem(w http.ResponseWriter, r *http.Request, p response.Problem) {
	if p.Status == http.StatusUnauthorized && response.WantsPage(r) {
		http.Redirect(w, r, "/signin", http.StatusSeeOther)
		return
	}
	p.Write(w, r)
}

const maxBody = 64 << 10 // bytes of a request that is not for a mounted handler

// body decodes the JSON body of r into v.
func body(w http.ResponseWriter, r *http.Request, v any) error {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return response.Problem{
			Status: http.StatusUnsupportedMediaType,
			Text:   "the Content-Type must be application/json",
		}
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if _, big := errors.AsType[*http.MaxBytesError](err); big {
		return response.Problem{
			Status: http.StatusRequestEntityTooLarge,
			Text:   fmt.Sprintf("the request is larger than %d KB", maxBody>>10),
		}
	} else if err != nil {
		return response.BadRequest("unexpected JSON: " + describeJSONError(err, v))
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
