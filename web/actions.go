package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"parley/channels"
	"parley/chat"
	"parley/store"
)

// actions lists what the owner does, and what is too large for a view.
func (s *Server) actions() []route {
	return []route{
		{"DELETE /api/sessions/{id}", owner, s.change("session", "deleted", s.forget)},
		{"GET /api/sessions/{id}/export", owner, s.export},
		{"GET /api/sessions/{id}/calls", owner, tell(s.calls)},
		{"GET /api/sessions/{id}/recording", owner, s.recording},
		{"GET /api/tool-stats", owner, tell(s.toolStats)},
		{"DELETE /api/tool-stats", owner, s.resetStats},
		{"POST /api/parked/{id}/resend", owner, s.change("session", "reply sent again", s.House.Resend)},
		{"POST /api/parked/{id}/drop", owner, s.change("session", "reply dropped", s.House.Drop)},
		{"POST /api/aside/{id}/again", owner, s.change("session", "message answered again", s.House.Again)},
		{"POST /api/aside/{id}/drop", owner, s.change("session", "message dropped", s.House.Dismiss)},
		{"POST /api/pairings/{id}/approve", owner, s.change("access", "paired", s.approve)},
		{"POST /api/cron", owner, s.order},
		{"PATCH /api/cron/{id}", owner, s.order},
		{"POST /api/cron/{id}/run", owner, s.change("cron", "run now", s.House.Fire)},
		{"DELETE /api/cron/{id}", owner, s.change("cron", "removed", s.House.Clock.Remove)},
		{"POST /api/memory/changes/{id}/restore", owner, s.restore},
		{"POST /api/people", owner, s.invite},
		{"DELETE /api/people/{id}", owner, s.change("access", "removed", s.remove)},
		{"POST /api/keys", owner, s.makeKey},
		{"DELETE /api/keys/{id}", owner, s.change("key", "revoked", s.revoke)},
		{"GET /api/backup", owner, s.backup},
	}
}

// forget makes the house forget a session, and says so if there was none.
func (s *Server) forget(ctx context.Context, id string) error {
	there := false
	for _, err := range s.House.Transcript(ctx, chat.SessionID(id)) {
		there = err == nil || !errors.Is(err, store.ErrNotFound) // what is damaged is there, too
		break
	}
	if err := s.House.Forget(ctx, chat.SessionID(id)); err != nil || there {
		return err
	}
	return store.ErrNotFound
}

// change serves f with the id of the path, and notes that it was done.
func (s *Server) change(kind, done string, f func(context.Context, string) error) handler {
	return func(w http.ResponseWriter, r *http.Request, v visitor) error {
		id := r.PathValue("id")
		if err := f(r.Context(), id); err != nil {
			return err
		}
		s.Audit(kind, v.ID, done+": "+id)
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
}

func (s *Server) approve(ctx context.Context, code string) error {
	_, err := s.House.Approve(ctx, code)
	if errors.Is(err, channels.ErrNoPairing) {
		err = store.ErrNotFound
	}
	return err
}

// invite answers with a link for somebody, whom it lets in unless they are already.
func (s *Server) invite(w http.ResponseWriter, r *http.Request, v visitor) (err error) {
	var ask struct{ Name string }
	if err = body(w, r, &ask); err == nil && ask.Name != ownerName {
		err = s.people.add(r.Context(), ask.Name)
	}
	if err != nil {
		return err
	}
	link, err := s.Link(r.Context(), ask.Name)
	if err == nil {
		s.Audit("access", v.ID, "link for "+ask.Name)
		writeJSON(w, http.StatusCreated, map[string]any{"person": ask.Name, "link": link, "expires": time.Now().Add(linkLife).UTC()})
	}
	return err
}

// remove puts name out. It holds from its first write on.
func (s *Server) remove(ctx context.Context, name string) error {
	if err := s.people.remove(ctx, name); err != nil {
		return err
	}
	return s.end(ctx, func(p pass) bool { return p.Person == name })
}

func (s *Server) makeKey(w http.ResponseWriter, r *http.Request, v visitor) error {
	var ask struct{ Person, Prefix string }
	if err := body(w, r, &ask); err != nil {
		return err
	}
	name := cmp.Or(ask.Person, ownerName)
	prefix := cmp.Or(ask.Prefix, name)
	if !goodName.MatchString(prefix) {
		return bad("a prefix" + nameRule)
	}
	secret, k, err := s.people.grant(r.Context(), pass{Kind: keys, Person: name, Prefix: prefix})
	if err != nil {
		return err
	}
	s.Audit("key", v.ID, fmt.Sprintf("made …%s for %s, sessions %s: %s", k.Last, name, prefix, k.ID))
	writeJSON(w, http.StatusCreated, struct {
		pass
		Secret string `json:"secret"` // this once
	}{k, secret})
	return nil
}

func (s *Server) revoke(ctx context.Context, id string) error {
	if _, _, err := s.people.passes.Get(ctx, kept(keys, id)); err != nil {
		return err
	}
	return s.end(ctx, func(p pass) bool { return p.Kind == keys && p.ID == id })
}

// backup sends a copy of all there is. Its name says that it holds secrets (R-S6).
func (s *Server) backup(w http.ResponseWriter, r *http.Request, v visitor) error {
	return s.House.Backup(r.Context(), func(whole io.Reader) {
		s.Audit("backup", v.ID, "downloaded")
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", `attachment; filename="parley-`+time.Now().UTC().Format("20060102-150405")+`-holds-secrets.backup"`)
		if _, err := io.Copy(w, whole); err != nil {
			panic(http.ErrAbortHandler) // half a backup must not look whole
		}
	})
}
