package web

import (
	"context"
	"errors"
	"net/http"
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
	if isToolAPI(r) {
		response.JSON(w, p.Status, map[string]any{"success": false, "error": p.Text})
		return
	}
	p.Write(w, r)
}

// isToolAPI reports whether r is for the API of package toolpages, which has errors
// of a form of its own (B-062).
func isToolAPI(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/api/admin/") || r.URL.Path == "/api/effective-policy"
}

const maxBody = 64 << 10 // bytes of a request that is not for a mounted handler

// body decodes the JSON body of r into v.
func body(w http.ResponseWriter, r *http.Request, v any) error {
	return response.ReadJSON(w, r, maxBody, v)
}
