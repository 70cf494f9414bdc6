package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"parley/channels"
	"parley/chat"
	"parley/llm"
	"parley/store"
)

const (
	mostFound = 50  // places that a search shows
	mostAudit = 200 // entries of the audit log that are shown
)

// api lists what pages of ours and `parley` at a terminal ask for. None of it
// ever tells a secret that is kept (R-S6).
func (s *Server) api() []route {
	return []route{
		{"GET /api/me", person, false, func(w http.ResponseWriter, _ *http.Request, v visitor) error {
			writeJSON(w, http.StatusOK, me{v.ID, string(v.Role)})
			return nil
		}},
		{"GET /api/status", owner, false, tell(s.overview)},
		{"GET /api/sessions", owner, false, s.sessions},
		{"GET /api/sessions/{id}", owner, true, s.transcript},
		{"GET /api/sessions/{id}/export", owner, true, s.export},
		{"DELETE /api/sessions/{id}", owner, false, s.change("session", "deleted", "id", func(ctx context.Context, id string) error {
			return do(s.House.Forget)(ctx, chat.SessionID(id))
		})},
		{"GET /api/parked", owner, false, tell(func(ctx context.Context) ([]Held, error) { return ask(ctx, s.House.Parked) })},
		{"POST /api/parked/{key}/resend", owner, false, s.change("session", "reply sent again", "key", do(s.House.Resend))},
		{"POST /api/parked/{key}/drop", owner, false, s.change("session", "reply dropped", "key", do(s.House.Drop))},
		{"GET /api/aside", owner, false, tell(func(ctx context.Context) ([]Held, error) { return ask(ctx, s.House.Aside) })},
		{"POST /api/aside/{key}/again", owner, false, s.change("session", "message answered again", "key", do(s.House.Again))},
		{"POST /api/aside/{key}/drop", owner, false, s.change("session", "message dropped", "key", do(s.House.Dismiss))},
		{"POST /api/pairings/{code}/approve", owner, false, s.change("access", "paired", "code", func(ctx context.Context, code string) error {
			if s.House.Approve == nil {
				return store.ErrNotFound
			}
			_, err := s.House.Approve(ctx, code)
			if err == channels.ErrNoPairing {
				err = store.ErrNotFound
			}
			return err
		})},
		{"GET /api/usage", owner, false, tell(func(ctx context.Context) ([]llm.Spent, error) { return ask(ctx, s.House.Usage) })},
		{"GET /api/errors", owner, false, tell(func(context.Context) ([]Line, error) { return s.lines(), nil })},
		{"GET /api/audit", owner, false, tell(s.auditTail)},
		{"GET /api/audit/verify", owner, true, func(w http.ResponseWriter, r *http.Request, _ visitor) error {
			writeJSON(w, http.StatusOK, s.verified(r.Context()))
			return nil
		}},
		{"GET /api/people", owner, false, tell(s.people.everybody)},
		{"POST /api/people", owner, false, s.invite},
		{"DELETE /api/people/{name}", owner, false, s.remove},
		{"POST /api/links", owner, false, s.makeLink},
		{"GET /api/keys", owner, false, tell(s.people.everyKey)},
		{"POST /api/keys", owner, false, s.makeKey},
		{"DELETE /api/keys/{id}", owner, false, s.revoke},
		{"GET /api/backup", owner, true, s.backup},
	}
}

// tell serves what f returns.
func tell[T any](f func(context.Context) (T, error)) func(http.ResponseWriter, *http.Request, visitor) error {
	return func(w http.ResponseWriter, r *http.Request, _ visitor) error {
		v, err := f(r.Context())
		if err == nil {
			writeJSON(w, http.StatusOK, v)
		}
		return err
	}
}

// do is f, or what a house says that has no f.
func do[T ~string](f func(context.Context, T) error) func(context.Context, T) error {
	if f == nil {
		return func(context.Context, T) error { return store.ErrNotFound }
	}
	return f
}

// change serves f with what the path names, and notes that it was done.
func (s *Server) change(kind, done, name string, f func(context.Context, string) error) func(http.ResponseWriter, *http.Request, visitor) error {
	return func(w http.ResponseWriter, r *http.Request, v visitor) error {
		of := r.PathValue(name)
		if err := f(r.Context(), of); err != nil {
			return err
		}
		s.audit(kind, v.ID, done+": "+of)
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
}

func (s *Server) sessions(w http.ResponseWriter, r *http.Request, _ visitor) error {
	if q := r.FormValue("q"); q != "" {
		found, err := s.search(r.Context(), q)
		if err == nil {
			writeJSON(w, http.StatusOK, found)
		}
		return err
	}
	talks, err := s.talks(r.Context(), r.FormValue("prefix"))
	if err == nil {
		writeJSON(w, http.StatusOK, talks)
	}
	return err
}

func (s *Server) talks(ctx context.Context, prefix string) ([]chat.Talk, error) {
	if s.House.List == nil {
		return nil, nil
	}
	return s.House.List(ctx, prefix)
}

func (s *Server) search(ctx context.Context, words string) ([]chat.Find, error) {
	if s.House.Search == nil {
		return nil, nil
	}
	return s.House.Search(ctx, func(chat.SessionID) bool { return true }, words, mostFound)
}

func (s *Server) lines() []Line {
	if s.House.Errors == nil {
		return nil
	}
	return s.House.Errors()
}

func (s *Server) auditTail(ctx context.Context) ([]Entry, error) {
	if s.House.AuditTail == nil {
		return nil, nil
	}
	return s.House.AuditTail(ctx, mostAudit)
}

// A verdict says whether the audit log is as it was written.
type verdict struct {
	Whole bool   `json:"whole"`
	Why   string `json:"why,omitempty"`
}

func (s *Server) verified(ctx context.Context) verdict {
	if s.House.AuditVerify == nil {
		return verdict{Why: "there is no audit log"}
	}
	if err := s.House.AuditVerify(ctx); err != nil {
		return verdict{Why: err.Error()}
	}
	return verdict{Whole: true}
}

func (s *Server) invite(w http.ResponseWriter, r *http.Request, v visitor) error {
	var ask struct{ Name string }
	if err := body(r, &ask); err != nil {
		return err
	}
	if err := s.people.add(r.Context(), ask.Name); err != nil {
		return err
	}
	s.audit("access", v.ID, "invited "+ask.Name)
	return s.giveLink(w, r, v, ask.Name, inviteLife)
}

func (s *Server) remove(w http.ResponseWriter, r *http.Request, v visitor) error {
	name := r.PathValue("name")
	if err := s.people.remove(r.Context(), name); err != nil {
		return err
	}
	s.open.end(func(o visitor) bool { return o.ID == name })
	s.audit("access", v.ID, "removed "+name)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) makeLink(w http.ResponseWriter, r *http.Request, v visitor) error {
	var ask struct{ Person string }
	if err := body(r, &ask); err != nil {
		return err
	}
	name, life := cmp.Or(ask.Person, ownerName), inviteLife
	if name == ownerName {
		life = ownerLife
	}
	return s.giveLink(w, r, v, name, life)
}

func (s *Server) giveLink(w http.ResponseWriter, r *http.Request, v visitor, name string, life time.Duration) error {
	link, err := s.link(r.Context(), name, life)
	if err == nil {
		s.audit("access", v.ID, "link for "+name)
		writeJSON(w, http.StatusCreated, map[string]any{"person": name, "link": link, "expires": time.Now().Add(life).UTC()})
	}
	return err
}

func (s *Server) makeKey(w http.ResponseWriter, r *http.Request, v visitor) error {
	var ask struct{ Person, Prefix string }
	if err := body(r, &ask); err != nil {
		return err
	}
	name := cmp.Or(ask.Person, ownerName)
	plain, k, err := s.people.key(r.Context(), name, cmp.Or(ask.Prefix, name))
	if err != nil {
		return err
	}
	s.audit("key", v.ID, fmt.Sprintf("made …%s for %s, sessions %s", k.Last, k.Person, k.Prefix))
	writeJSON(w, http.StatusCreated, struct {
		Key
		Secret string `json:"secret"` // this once
	}{k, plain})
	return nil
}

func (s *Server) revoke(w http.ResponseWriter, r *http.Request, v visitor) error {
	id := r.PathValue("id")
	if err := s.people.revoke(r.Context(), id); err != nil {
		return err
	}
	s.open.end(func(o visitor) bool { return o.key && len(o.pass) > len(id) && o.pass[:len(id)] == id })
	s.audit("key", v.ID, "revoked "+id)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// backup streams a copy of all there is. Its name says that it holds secrets (R-S6).
func (s *Server) backup(w http.ResponseWriter, r *http.Request, v visitor) error {
	if s.House.Backup == nil {
		return store.ErrNotFound
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="parley-`+time.Now().UTC().Format("20060102-150405")+`-holds-secrets.backup"`)
	sent := &watched{ResponseWriter: w}
	err := s.House.Backup(r.Context(), sent)
	switch {
	case err == nil:
		s.audit("backup", v.ID, "downloaded")
	case sent.begun:
		s.Log.Error("backup broke off", "err", err)
		panic(http.ErrAbortHandler) // half a backup must not look whole
	default:
		w.Header().Del("Content-Disposition")
	}
	return err
}
