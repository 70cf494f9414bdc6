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
func (a *admin) actions() []route {
	return []route{
		{"DELETE /api/sessions/{id}", owner, a.change("session", "deleted", a.forget)},
		{"GET /api/sessions/{id}/export", owner, a.export},
		{"GET /api/sessions/{id}/calls", owner, tell(a.calls)},
		{"GET /api/sessions/{id}/recording", owner, a.recording},
		{"GET /api/tool-stats", owner, tell(a.toolStats)},
		{"DELETE /api/tool-stats", owner, a.does("config", 0, a.resetStats)},
		{"POST /api/parked/{id}/resend", owner, a.change("session", "reply sent again", a.cfg.House.Resend)},
		{"POST /api/parked/{id}/drop", owner, a.change("session", "reply dropped", a.cfg.House.Drop)},
		{"POST /api/aside/{id}/again", owner, a.change("session", "message answered again", a.cfg.House.Again)},
		{"POST /api/aside/{id}/drop", owner, a.change("session", "message dropped", a.cfg.House.Dismiss)},
		{"POST /api/pairings/{id}/approve", owner, a.does("access", http.StatusOK, a.approve)},
		{"POST /api/cron", owner, a.does("cron", http.StatusCreated, a.order)},
		{"PATCH /api/cron/{id}", owner, a.does("cron", http.StatusOK, a.order)},
		{"POST /api/cron/{id}/run", owner, a.does("cron", 0, a.fire)},
		{"DELETE /api/cron/{id}", owner, a.change("cron", "removed", a.cfg.House.Clock.Remove)},
		{"POST /api/memory/changes/{id}/restore", owner, a.does("memory", http.StatusOK, a.restore)},
		{"POST /api/people", owner, a.does("access", http.StatusCreated, a.invite)},
		{"DELETE /api/people/{id}", owner, a.change("access", "removed", a.remove)},
		{"POST /api/keys", owner, a.does("key", http.StatusCreated, a.makeKey)},
		{"DELETE /api/keys/{id}", owner, a.change("key", "revoked", a.revoke)},
		{"GET /api/backup", owner, a.backup},
	}
}

// forget makes the house forget a session, and says so if there was none.
func (a *admin) forget(ctx context.Context, id string) error {
	there := false
	for _, err := range a.cfg.House.Transcript(ctx, chat.SessionID(id)) {
		there = err == nil || !errors.Is(err, store.ErrNotFound) // what is damaged is there, too
		break
	}
	if err := a.cfg.House.Forget(ctx, chat.SessionID(id)); err != nil || there {
		return err
	}
	return store.ErrNotFound
}

// A deed is something that is done for the owner: it returns what to answer, nil
// for nothing, and what to note.
type deed func(w http.ResponseWriter, r *http.Request) (told any, note string, err error)

// does serves d, and notes what was done as of that kind (R-S27).
func (a *admin) does(kind string, status int, d deed) handler {
	return func(w http.ResponseWriter, r *http.Request, v visitor) error {
		told, note, err := d(w, r)
		if err != nil {
			return err
		}
		a.cfg.Audit(kind, v.ID, note)
		if told == nil {
			w.WriteHeader(http.StatusNoContent)
		} else {
			writeJSON(w, status, told)
		}
		return nil
	}
}

// change is does for f, which is done to the id of the path.
func (a *admin) change(kind, done string, f func(context.Context, string) error) handler {
	return a.does(kind, 0, func(_ http.ResponseWriter, r *http.Request) (any, string, error) {
		id := r.PathValue("id")
		return nil, done + ": " + id, f(r.Context(), id)
	})
}

// fire has a job run now: one that is off only with ?force=1.
func (a *admin) fire(_ http.ResponseWriter, r *http.Request) (any, string, error) {
	id := r.PathValue("id")
	return nil, "run now: " + id, a.cfg.House.Fire(r.Context(), id, r.URL.Query().Get("force") == "1")
}

// approve answers with whom it let in.
func (a *admin) approve(_ http.ResponseWriter, r *http.Request) (any, string, error) {
	who, err := a.cfg.House.Approve(r.Context(), r.PathValue("id"))
	if errors.Is(err, channels.ErrNoPairing) {
		err = store.ErrNotFound
	}
	return who, "paired: " + r.PathValue("id"), err
}

// invite answers with a link for somebody, whom it lets in unless they are already.
func (a *admin) invite(w http.ResponseWriter, r *http.Request) (any, string, error) {
	var ask struct{ Name string }
	err := body(w, r, &ask)
	if err == nil && ask.Name != ownerName {
		err = a.access.people.add(r.Context(), ask.Name)
	}
	if err != nil {
		return nil, "", err
	}
	link, err := a.access.link(r.Context(), ask.Name)
	return map[string]any{"person": ask.Name, "link": link, "expires": time.Now().Add(linkLife).UTC()}, "link for " + ask.Name, err
}

// remove puts name out. It holds from its first write on.
func (a *admin) remove(ctx context.Context, name string) error {
	if err := a.access.people.remove(ctx, name); err != nil {
		return err
	}
	return a.access.end(ctx, func(p pass) bool { return p.Person == name })
}

// makeKey answers with a new API key.
func (a *admin) makeKey(w http.ResponseWriter, r *http.Request) (any, string, error) {
	var ask struct{ Person, Prefix string }
	if err := body(w, r, &ask); err != nil {
		return nil, "", err
	}
	name := cmp.Or(ask.Person, ownerName)
	prefix := cmp.Or(ask.Prefix, name)
	if !goodName.MatchString(prefix) {
		return nil, "", bad("a prefix" + nameRule)
	}
	secret, k, err := a.access.people.grant(r.Context(), pass{Kind: keys, Person: name, Prefix: prefix})
	return struct {
		pass
		Secret string `json:"secret"` // this once
	}{k, secret}, fmt.Sprintf("made …%s for %s, sessions %s: %s", k.Last, name, prefix, k.ID), err
}

func (a *admin) revoke(ctx context.Context, id string) error {
	if _, _, err := a.access.people.passes.Get(ctx, kept(keys, id)); err != nil {
		return err
	}
	return a.access.end(ctx, func(p pass) bool { return p.Kind == keys && p.ID == id })
}

// backup sends a copy of all there is. Its name says that it holds secrets (R-S6).
func (a *admin) backup(w http.ResponseWriter, r *http.Request, v visitor) error {
	return a.cfg.House.Backup(r.Context(), func(whole io.Reader) {
		a.cfg.Audit("backup", v.ID, "downloaded")
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", `attachment; filename="parley-`+time.Now().UTC().Format("20060102-150405")+`-holds-secrets.backup"`)
		if _, err := io.Copy(w, whole); err != nil {
			panic(http.ErrAbortHandler) // half a backup must not look whole
		}
	})
}
