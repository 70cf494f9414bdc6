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
		{"DELETE /api/tool-stats", owner, s.does("config", 0, s.resetStats)},
		{"POST /api/parked/{id}/resend", owner, s.change("session", "reply sent again", s.House.Resend)},
		{"POST /api/parked/{id}/drop", owner, s.change("session", "reply dropped", s.House.Drop)},
		{"POST /api/aside/{id}/again", owner, s.change("session", "message answered again", s.House.Again)},
		{"POST /api/aside/{id}/drop", owner, s.change("session", "message dropped", s.House.Dismiss)},
		{"POST /api/pairings/{id}/approve", owner, s.does("access", http.StatusOK, s.approve)},
		{"POST /api/cron", owner, s.does("cron", http.StatusCreated, s.order)},
		{"PATCH /api/cron/{id}", owner, s.does("cron", http.StatusOK, s.order)},
		{"POST /api/cron/{id}/run", owner, s.does("cron", 0, s.fire)},
		{"DELETE /api/cron/{id}", owner, s.change("cron", "removed", s.House.Clock.Remove)},
		{"POST /api/memory/changes/{id}/restore", owner, s.does("memory", http.StatusOK, s.restore)},
		{"POST /api/people", owner, s.does("access", http.StatusCreated, s.invite)},
		{"DELETE /api/people/{id}", owner, s.change("access", "removed", s.remove)},
		{"POST /api/keys", owner, s.does("key", http.StatusCreated, s.makeKey)},
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

// A deed is something that is done for the owner: it returns what to answer, nil
// for nothing, and what to note.
type deed func(w http.ResponseWriter, r *http.Request) (told any, note string, err error)

// does serves d, and notes what was done as of that kind (R-S27).
func (s *Server) does(kind string, status int, d deed) handler {
	return func(w http.ResponseWriter, r *http.Request, v visitor) error {
		told, note, err := d(w, r)
		if err != nil {
			return err
		}
		s.Audit(kind, v.ID, note)
		if told == nil {
			w.WriteHeader(http.StatusNoContent)
		} else {
			writeJSON(w, status, told)
		}
		return nil
	}
}

// change is does for f, which is done to the id of the path.
func (s *Server) change(kind, done string, f func(context.Context, string) error) handler {
	return s.does(kind, 0, func(_ http.ResponseWriter, r *http.Request) (any, string, error) {
		id := r.PathValue("id")
		return nil, done + ": " + id, f(r.Context(), id)
	})
}

// fire has a job run now: one that is off only with ?force=1.
func (s *Server) fire(_ http.ResponseWriter, r *http.Request) (any, string, error) {
	id := r.PathValue("id")
	return nil, "run now: " + id, s.House.Fire(r.Context(), id, r.URL.Query().Get("force") == "1")
}

// approve answers with whom it let in.
func (s *Server) approve(_ http.ResponseWriter, r *http.Request) (any, string, error) {
	who, err := s.House.Approve(r.Context(), r.PathValue("id"))
	if errors.Is(err, channels.ErrNoPairing) {
		err = store.ErrNotFound
	}
	return who, "paired: " + r.PathValue("id"), err
}

// invite answers with a link for somebody, whom it lets in unless they are already.
func (s *Server) invite(w http.ResponseWriter, r *http.Request) (any, string, error) {
	var ask struct{ Name string }
	err := body(w, r, &ask)
	if err == nil && ask.Name != ownerName {
		err = s.people.add(r.Context(), ask.Name)
	}
	if err != nil {
		return nil, "", err
	}
	link, err := s.Link(r.Context(), ask.Name)
	return map[string]any{"person": ask.Name, "link": link, "expires": time.Now().Add(linkLife).UTC()}, "link for " + ask.Name, err
}

// remove puts name out. It holds from its first write on.
func (s *Server) remove(ctx context.Context, name string) error {
	if err := s.people.remove(ctx, name); err != nil {
		return err
	}
	return s.end(ctx, func(p pass) bool { return p.Person == name })
}

// makeKey answers with a new API key.
func (s *Server) makeKey(w http.ResponseWriter, r *http.Request) (any, string, error) {
	var ask struct{ Person, Prefix string }
	if err := body(w, r, &ask); err != nil {
		return nil, "", err
	}
	name := cmp.Or(ask.Person, ownerName)
	prefix := cmp.Or(ask.Prefix, name)
	if !goodName.MatchString(prefix) {
		return nil, "", bad("a prefix" + nameRule)
	}
	secret, k, err := s.people.grant(r.Context(), pass{Kind: keys, Person: name, Prefix: prefix})
	return struct {
		pass
		Secret string `json:"secret"` // this once
	}{k, secret}, fmt.Sprintf("made …%s for %s, sessions %s: %s", k.Last, name, prefix, k.ID), err
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
