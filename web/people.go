package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"time"

	"parley/chat"
	"parley/lazyregexp"
	"parley/response"
	"parley/store"
)

const (
	ownerName     = "owner"
	keyPrefix     = "parley_" // how an API key begins
	loginLifetime = 30 * 24 * time.Hour
	linkLifetime  = 24 * time.Hour
)

// The kinds of passes.
const (
	links  = "link"  // signs somebody in once
	logins = "login" // a browser's cookie
	keys   = "key"   // lets a program use the OpenAI-compatible endpoint
)

// A pass is the record of a secret that lets somebody in. The secret itself is
// shown once and not stored (R-S6).
type pass struct {
	ID      string    `json:"id"` // the SHA-256 of the secret
	Kind    string    `json:"kind"`
	Person  string    `json:"person"`
	Made    time.Time `json:"made"`
	Expires time.Time `json:"expires,omitzero"` // links and logins only
	Prefix  string    `json:"prefix,omitempty"` // keys only: prefix of the sessions that it opens
	Last    string    `json:"last,omitempty"`   // keys only: the last four characters
}

// passKey returns the key under which a pass is stored.
func passKey(kind, id string) string { return kind + "/" + id }

func (p pass) ended() bool { return !p.Expires.IsZero() && !time.Now().Before(p.Expires) }

// An invited is a person whom the owner invited. The name stays theirs after they
// are removed, because their conversations do.
type invited struct {
	Name    string    `json:"name"`
	Invited time.Time `json:"invited"`
	Removed time.Time `json:"removed,omitzero"`
}

// people stores who may sign in, and their passes.
type people struct {
	invited store.Table[invited] // by name
	passes  store.Table[pass]    // by kind and ID

	// blocked reports whether an owner blocked the person of that name. nil: nobody is.
	blocked func(ctx context.Context, name string) (bool, error)
}

// newPeople returns the people in s. A damaged record admits nobody and stays,
// so that its name is given to nobody else.
func newPeople(s store.Store, blocked func(ctx context.Context, name string) (bool, error)) people {
	return people{
		blocked: blocked,
		invited: store.NewTable(s.Bucket(store.BucketWebPeople), store.Report[invited]),
		passes:  store.NewTable(s.Bucket(store.BucketWebPasses), store.Report[pass]),
	}
}

func hashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// sender returns the sender of messages from the person called name.
func sender(name string) chat.Sender {
	who := chat.Sender{ID: name, Name: name, Role: chat.User}
	if name == ownerName {
		who.Role = chat.Owner
	}
	return who
}

// may returns an error for which isMissing holds unless name may sign in.
func (p people) may(ctx context.Context, name string) error {
	if name == ownerName {
		return nil
	}
	who, _, err := p.invited.Get(ctx, name)
	if err != nil {
		return err
	}
	if !who.Removed.IsZero() {
		return store.ErrNotFound
	}
	if p.blocked == nil {
		return nil
	}
	if blocked, err := p.blocked(ctx, name); err != nil || blocked {
		return cmp.Or(err, store.ErrNotFound)
	}
	return nil
}

var validName = lazyregexp.New(`^[a-z0-9][a-z0-9._-]{0,31}$`)

const nameRule = " has 1 to 32 lower-case letters, digits, dots and dashes, and begins with a letter or digit"

// add lets name sign in. It does nothing if they may already.
func (p people) add(ctx context.Context, name string) error {
	if !validName.MatchString(name) || name == ownerName {
		return response.BadRequest("a name" + nameRule)
	}
	who, _, err := p.invited.Get(ctx, name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		_, err = p.invited.Put(ctx, name, invited{Name: name, Invited: time.Now()}, 0)
	case err == nil && !who.Removed.IsZero():
		return response.Problem{
			Status: http.StatusConflict,
			Text: "a person of that name was removed, and their conversations are still stored under it: " +
				"choose another name",
		}
	}
	return err
}

// since returns when each person was invited who is so by now, by name.
func (p people) since(ctx context.Context) (map[string]time.Time, error) {
	all, err := list(ctx, p.invited, "")
	since := map[string]time.Time{}
	for _, who := range all {
		if who.Removed.IsZero() {
			since[who.Name] = who.Invited
		}
	}
	return since, err
}

// remove removes name: none of their passes is valid from now on.
func (p people) remove(ctx context.Context, name string) error {
	_, _, err := p.invited.Update(ctx, name, func(who *invited) error {
		who.Removed = time.Now()
		return nil
	})
	return err
}

// issue stores v as a pass for v.Person, if they may sign in, and returns its secret.
func (p people) issue(ctx context.Context, v pass) (secret string, _ pass, err error) {
	if err := p.may(ctx, v.Person); err != nil {
		return "", pass{}, err
	}
	if err := p.deletePasses(ctx, pass.ended); err != nil {
		return "", pass{}, err
	}
	secret = rand.Text() + rand.Text() // 260 bits
	if v.Kind == keys {
		secret = keyPrefix + secret
		v.Last = secret[len(secret)-4:]
	}
	v.ID, v.Made = hashSecret(secret), time.Now()
	_, err = p.passes.Put(ctx, passKey(v.Kind, v.ID), v, 0)
	return secret, v, err
}

// find returns the pass of that kind and secret, and its revision. isMissing holds
// for the error if there is no valid one.
func (p people) find(ctx context.Context, kind, secret string) (v pass, rev uint64, err error) {
	return p.valid(ctx, kind, hashSecret(secret))
}

// valid returns the pass of that kind and ID, as find does.
func (p people) valid(ctx context.Context, kind, id string) (v pass, rev uint64, err error) {
	v, rev, err = p.passes.Get(ctx, passKey(kind, id))
	if err != nil {
		return v, rev, err
	}
	if v.ended() {
		return v, rev, store.ErrNotFound
	}
	return v, rev, p.may(ctx, v.Person)
}

// redeem returns whom the link with that code signs in, and ends the link. Of two
// simultaneous calls one succeeds.
func (p people) redeem(ctx context.Context, code string) (name string, err error) {
	v, rev, err := p.find(ctx, links, code)
	if err != nil {
		return "", err
	}
	v.Expires = time.Now()
	if _, err = p.passes.Put(ctx, passKey(links, v.ID), v, rev); errors.Is(err, store.ErrConflict) {
		err = store.ErrNotFound
	}
	return v.Person, err
}

// renewLogin returns the login of that cookie, and whether it was renewed. A login
// is valid for 30 days after its last use, to within a day.
func (p people) renewLogin(ctx context.Context, cookie string) (v pass, renewed bool, err error) {
	v, rev, err := p.find(ctx, logins, cookie)
	if err != nil || time.Until(v.Expires) >= loginLifetime-24*time.Hour {
		return v, false, err
	}
	v.Expires = time.Now().Add(loginLifetime)
	_, conflict := p.passes.Put(ctx, passKey(logins, v.ID), v, rev)
	return v, conflict == nil, nil // after a conflict the next request renews it
}

// deletePasses deletes the passes that match selects.
func (p people) deletePasses(ctx context.Context, match func(pass) bool) error {
	all, err := list(ctx, p.passes, "")
	if err != nil {
		return err
	}
	for _, v := range all {
		if !match(v) {
			continue
		}
		if err := p.passes.Delete(ctx, passKey(v.Kind, v.ID)); err != nil {
			return err
		}
	}
	return nil
}

// isMissing reports whether err means that there is no readable value.
func isMissing(err error) bool {
	return errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDamaged)
}

// list returns the readable values of t, in the order of their keys.
func list[T any](ctx context.Context, t store.Table[T], prefix string) ([]T, error) {
	all := []T{} // which is [] in JSON
	for e, err := range t.Each(ctx, prefix) {
		if errors.Is(err, store.ErrDamaged) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, e.Value)
	}
	return all, nil
}
