package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"parley/chat"
	"parley/memory"
	"parley/store"
)

// personMemory is what there is of somebody's memory.
type personMemory struct {
	Who     chat.Person     `json:"who"`
	Changes []memory.Change `json:"changes"` // newest first; among other people's only the last
}

// changed is a change and what it did, as a unified diff.
type changed struct {
	memory.Change
	Diff string `json:"diff"`
}

// Lines are those of the diff, each with its kind: add, cut, at or same.
func (c changed) Lines() (all [][2]string) {
	kinds := map[string]string{"+": "add", "-": "cut", "@": "at"}
	for name := range c.Files {
		kinds["--- "+name+"\n"], kinds["+++ "+name+"\n"] = "at", "at"
	}
	for line := range strings.Lines(c.Diff) {
		all = append(all, [2]string{cmp.Or(kinds[line], kinds[line[:1]], "same"), line})
	}
	return all
}

func (a *admin) memory(r *http.Request) (any, error) {
	people, err := a.cfg.Gateway.Notes.People(r.Context())
	all := make([]personMemory, len(people))
	for i, who := range people {
		if err == nil {
			all[i], err = a.personMemory(r.Context(), who, 1)
		}
	}
	return map[string][]personMemory{"people": all}, err
}

func (a *admin) personMemory(ctx context.Context, who chat.Person, most int) (personMemory, error) {
	all, err := a.cfg.Gateway.Notes.Versions.Log(ctx, who, most)
	return personMemory{who, append([]memory.Change{}, all...)}, err
}

// whose is the person that r is about: the owner, if it does not say. Of whom
// nothing is known there is store.ErrNotFound.
func (a *admin) whose(r *http.Request) (chat.Person, error) {
	who := cmp.Or(chat.Person(r.URL.Query().Get("who")), chat.TheOwner)
	people, err := a.cfg.Gateway.Notes.People(r.Context())
	if err == nil && !slices.Contains(people, who) {
		err = store.ErrNotFound
	}
	return who, err
}

const maxChanges = 200 // of a person's memory; no more are kept

func (a *admin) changes(r *http.Request) (any, error) {
	who, err := a.whose(r)
	if err != nil {
		return nil, err
	}
	return a.personMemory(r.Context(), who, maxChanges)
}

func (a *admin) changed(r *http.Request) (any, error) {
	who, err := a.whose(r)
	if err != nil {
		return nil, err
	}
	diff, c, err := a.cfg.Gateway.Notes.Versions.Show(r.Context(), who, r.PathValue("id"))
	return changed{c, diff}, err
}

func (a *admin) restore(_ http.ResponseWriter, r *http.Request) (any, string, error) {
	who, err := a.whose(r)
	if err != nil {
		return nil, "", err
	}
	c, err := a.cfg.Gateway.Notes.Versions.Restore(r.Context(), who, r.PathValue("id"), "")
	return c, c.By + ": " + string(who), err
}
