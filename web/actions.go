package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"parley/channels/admission"
	"parley/chat"
	"parley/response"
	"parley/store"
)

// actions returns the routes of changes and downloads.
func (a *admin) actions() []route {
	replies := a.cfg.Gateway.DeadLetters.Replies
	messages := a.cfg.Gateway.DeadLetters.Messages
	return []route{
		{"DELETE /api/sessions/{id}", owner, a.auditedChange("session", "deleted", a.forget)},
		{"GET /api/sessions/{id}/export", owner, a.export},
		{"GET /api/sessions/{id}/calls", owner, serveJSON(a.calls)},
		{"GET /api/sessions/{id}/recording", owner, a.recording},
		{"GET /api/tool-stats", owner, serveJSON(a.toolStats)},
		{"DELETE /api/tool-stats", owner, a.audited("config", 0, a.resetStats)},
		{"POST /api/parked/{id}/resend", owner, a.auditedChange("session", "reply sent again", replies.Retry)},
		{"POST /api/parked/{id}/drop", owner, a.auditedChange("session", "reply dropped", replies.Dismiss)},
		{"POST /api/aside/{id}/again", owner, a.auditedChange("session", "message answered again", messages.Retry)},
		{"POST /api/aside/{id}/drop", owner, a.auditedChange("session", "message dropped", messages.Dismiss)},
		{"POST /api/pairings/{id}/approve", owner, a.audited("access", http.StatusOK, a.approve)},
		{"GET /api/cron", owner, serveJSON(a.jobs)},
		{"POST /api/cron", owner, a.audited("cron", http.StatusCreated, a.order)},
		{"PATCH /api/cron/{id}", owner, a.audited("cron", http.StatusOK, a.order)},
		{"POST /api/cron/{id}/run", owner, a.audited("cron", 0, a.fire)},
		{"DELETE /api/cron/{id}", owner, a.auditedChange("cron", "removed", a.cfg.Gateway.Scheduler.Remove)},
		{"GET /api/memory", owner, serveJSON(a.memory)},
		{"POST /api/memory/changes/{id}/restore", owner, a.audited("memory", http.StatusOK, a.restore)},
		{"POST /api/people", owner, a.audited("access", http.StatusCreated, a.invite)},
		{"DELETE /api/people/{id}", owner, a.auditedChange("access", "removed", a.remove)},
		{"POST /api/keys", owner, a.audited("key", http.StatusCreated, a.createKey)},
		{"DELETE /api/keys/{id}", owner, a.auditedChange("key", "revoked", a.revoke)},
		{"GET /api/backup", owner, a.backup},
	}
}

// forget deletes a session. The error is store.ErrNotFound if there was none.
func (a *admin) forget(ctx context.Context, id string) error {
	exists := false
	for _, err := range a.cfg.Gateway.Conversations.Transcript(ctx, chat.SessionID(id)) {
		exists = !errors.Is(err, store.ErrNotFound) // a damaged one exists, too
		break
	}
	if err := a.cfg.Gateway.Conversations.Forget(ctx, chat.SessionID(id)); err != nil {
		return err
	}
	if !exists {
		return store.ErrNotFound
	}
	return nil
}

// An action changes something for the owner. It returns the answer, nil for none,
// and a note for the audit log.
type action func(w http.ResponseWriter, r *http.Request) (answer any, note string, err error)

// audited performs do and writes its note to the audit log, as an event of that
// kind (R-S27).
func (a *admin) audited(kind string, status int, do action) handler {
	return func(w http.ResponseWriter, r *http.Request, v visitor) error {
		answer, note, err := do(w, r)
		if err != nil {
			return err
		}
		a.cfg.Audit(kind, v.ID, note)
		if answer == nil {
			w.WriteHeader(http.StatusNoContent)
			return nil
		}
		response.JSON(w, status, answer)
		return nil
	}
}

// auditedChange is audited for a change of what the id in the path names.
func (a *admin) auditedChange(kind, done string, f func(context.Context, string) error) handler {
	return a.audited(kind, 0, func(_ http.ResponseWriter, r *http.Request) (any, string, error) {
		id := r.PathValue("id")
		return nil, done + ": " + id, f(r.Context(), id)
	})
}

// fire runs a job now. A disabled one is run only with ?force=1.
func (a *admin) fire(_ http.ResponseWriter, r *http.Request) (any, string, error) {
	id := r.PathValue("id")
	key := "press/" + time.Now().UTC().Format(time.RFC3339Nano) // each request is another one
	err := a.cfg.Gateway.Scheduler.Fire(r.Context(), id, key, r.URL.Query().Get("force") == "1")
	return nil, "run now: " + id, markUserError(err)
}

// approve approves a pairing, and answers with who that is.
func (a *admin) approve(_ http.ResponseWriter, r *http.Request) (any, string, error) {
	who, err := a.cfg.Gateway.Approve(r.Context(), r.PathValue("id"))
	if errors.Is(err, admission.ErrNoPairing) {
		err = store.ErrNotFound
	}
	return who, "paired: " + r.PathValue("id"), err
}

// invite answers with a sign-in link for a person, who is added if they are new.
func (a *admin) invite(w http.ResponseWriter, r *http.Request) (any, string, error) {
	var ask struct{ Name string }
	if err := body(w, r, &ask); err != nil {
		return nil, "", err
	}
	if ask.Name != ownerName {
		if err := a.access.people.add(r.Context(), ask.Name); err != nil {
			return nil, "", err
		}
	}
	link, err := a.access.link(r.Context(), ask.Name)
	answer := map[string]any{
		"person":  ask.Name,
		"link":    link,
		"expires": time.Now().Add(linkLifetime).UTC(),
	}
	return answer, "link for " + ask.Name, err
}

// remove removes a person. They are out once the first write is done.
func (a *admin) remove(ctx context.Context, name string) error {
	if err := a.access.people.remove(ctx, name); err != nil {
		return err
	}
	return a.access.endPasses(ctx, func(p pass) bool { return p.Person == name })
}

// createKey answers with a new API key, whose secret is shown this once.
func (a *admin) createKey(w http.ResponseWriter, r *http.Request) (any, string, error) {
	var ask struct{ Person, Prefix string }
	if err := body(w, r, &ask); err != nil {
		return nil, "", err
	}
	name := cmp.Or(ask.Person, ownerName)
	prefix := cmp.Or(ask.Prefix, name)
	if !validName.MatchString(prefix) {
		return nil, "", response.BadRequest("a prefix" + nameRule)
	}
	secret, k, err := a.access.people.issue(r.Context(), pass{Kind: keys, Person: name, Prefix: prefix})
	answer := struct {
		pass
		Secret string `json:"secret"`
	}{k, secret}
	return answer, fmt.Sprintf("made …%s for %s, sessions %s: %s", k.Last, name, prefix, k.ID), err
}

func (a *admin) revoke(ctx context.Context, id string) error {
	if _, _, err := a.access.people.passes.Get(ctx, passKey(keys, id)); err != nil {
		return err
	}
	return a.access.endPasses(ctx, func(p pass) bool { return p.Kind == keys && p.ID == id })
}

// backup sends a backup of everything. Its name says that it contains secrets
// (R-S6).
func (a *admin) backup(w http.ResponseWriter, r *http.Request, v visitor) error {
	return a.cfg.Gateway.Backup(r.Context(), func(whole io.Reader) {
		a.cfg.Audit("backup", v.ID, "downloaded")
		w.Header().Set("Content-Type", "application/octet-stream")
		name := "parley-" + time.Now().UTC().Format("20060102-150405") + "-holds-secrets.backup"
		w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
		if _, err := io.Copy(w, whole); err != nil {
			panic(http.ErrAbortHandler) // an incomplete backup must not look complete
		}
	})
}
