package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"regexp"
	"time"

	"parley/chat"
	"parley/store"
)

const (
	ownerName = "owner"
	keyMark   = "parley_" // how an API key begins
	loginLife = 30 * 24 * time.Hour
	linkLife  = 24 * time.Hour
)

// Kinds of passes.
const (
	links  = "link"  // signs somebody in once
	logins = "login" // a browser's cookie
	keys   = "key"   // opens the models' API
)

// A pass is what is known of a secret that lets somebody in. The secret itself is
// shown once and not kept (R-S6).
type pass struct {
	ID      string    `json:"id"` // the SHA-256 of the secret
	Kind    string    `json:"kind"`
	Person  string    `json:"person"`
	Made    time.Time `json:"made"`
	Expires time.Time `json:"expires,omitzero"` // of links and logins
	Prefix  string    `json:"prefix,omitempty"` // of a key: of the sessions it opens
	Last    string    `json:"last,omitempty"`   // of a key: its last four characters
}

// kept is the key under which a pass of that kind is kept.
func kept(kind, id string) string { return kind + "/" + id }

func (p pass) ended() bool { return !p.Expires.IsZero() && !time.Now().Before(p.Expires) }

// An invited is somebody the owner invited. The name is theirs for ever: it is
// not given to anybody else, also when they were removed.
type invited struct {
	Name    string    `json:"name"`
	Invited time.Time `json:"invited"`
	Removed time.Time `json:"removed,omitzero"`
}

// people are who may come in and by what.
type people struct{ invited, passes store.Bucket }

func digest(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// sender is who the person of that name is in a chat.
func sender(name string) chat.Sender {
	who := chat.Sender{ID: name, Name: name, Role: chat.User}
	if name == ownerName {
		who.Role = chat.Owner
	}
	return who
}

// may returns an error that is missing unless name is somebody who may come in.
func (p people) may(ctx context.Context, name string) error {
	if name == ownerName {
		return nil
	}
	who, _, err := store.Load[invited](ctx, p.invited, name)
	if err == nil && !who.Removed.IsZero() {
		err = store.ErrNotFound
	}
	return err
}

var goodName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,31}$`)

const nameRule = " has 1 to 32 small letters, digits, dots and dashes, and begins with a letter or digit"

// add makes name somebody who may come in, if they are not already.
func (p people) add(ctx context.Context, name string) error {
	if !goodName.MatchString(name) || name == ownerName {
		return bad("a name" + nameRule)
	}
	who, _, err := store.Load[invited](ctx, p.invited, name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		_, err = store.Save(ctx, p.invited, name, invited{Name: name, Invited: time.Now()}, 0)
	case err == nil && !who.Removed.IsZero():
		return problem{status: http.StatusConflict, text: "somebody of that name was removed, and their conversations are still theirs: choose another name"}
	}
	return err
}

// remove puts name out: from now on, no pass of theirs opens anything.
func (p people) remove(ctx context.Context, name string) error {
	who, rev, err := store.Load[invited](ctx, p.invited, name)
	if err != nil {
		return err
	}
	who.Removed = time.Now()
	_, err = store.Save(ctx, p.invited, name, who, rev)
	return err
}

// grant makes v a pass for v.Person, if they may come in, and returns its secret.
func (p people) grant(ctx context.Context, v pass) (secret string, _ pass, err error) {
	if err := p.may(ctx, v.Person); err != nil {
		return "", pass{}, err
	}
	if err := p.sweep(ctx, pass.ended); err != nil {
		return "", pass{}, err
	}
	secret = rand.Text() + rand.Text() // 260 bits
	if v.Kind == keys {
		secret = keyMark + secret
		v.Last = secret[len(secret)-4:]
	}
	v.ID, v.Made = digest(secret), time.Now()
	_, err = store.Save(ctx, p.passes, kept(v.Kind, v.ID), v, 0)
	return secret, v, err
}

// find returns the pass of that kind and secret, and its revision. The error is
// one that is missing when there is none that opens anything now.
func (p people) find(ctx context.Context, kind, secret string) (v pass, rev uint64, err error) {
	v, rev, err = store.Load[pass](ctx, p.passes, kept(kind, digest(secret)))
	if err == nil && v.ended() {
		err = store.ErrNotFound
	}
	if err == nil {
		err = p.may(ctx, v.Person)
	}
	return v, rev, err
}

// use returns whom the link of that code signs in, and ends it: of two who use it
// at once, one gets in.
func (p people) use(ctx context.Context, code string) (name string, err error) {
	v, rev, err := p.find(ctx, links, code)
	if err != nil {
		return "", err
	}
	v.Expires = time.Now()
	if _, err = store.Save(ctx, p.passes, kept(links, v.ID), v, rev); errors.Is(err, store.ErrConflict) {
		err = store.ErrNotFound
	}
	return v.Person, err
}

// signed returns the login of that cookie, and whether it was renewed: it holds
// for 30 days after it was used, to within a day.
func (p people) signed(ctx context.Context, cookie string) (v pass, renewed bool, err error) {
	v, rev, err := p.find(ctx, logins, cookie)
	if err == nil && time.Until(v.Expires) < loginLife-24*time.Hour {
		v.Expires = time.Now().Add(loginLife)
		_, conflict := store.Save(ctx, p.passes, kept(logins, v.ID), v, rev)
		renewed = conflict == nil // else the next one is; one that ended stays ended
	}
	return v, renewed, err
}

// sweep ends the passes that go.
func (p people) sweep(ctx context.Context, goes func(pass) bool) error {
	all, err := list[pass](ctx, p.passes, "")
	for _, v := range all {
		if err == nil && goes(v) {
			err = p.passes.Delete(ctx, kept(v.Kind, v.ID))
		}
	}
	return err
}

// missing says whether err means that there is nothing that could be read.
func missing(err error) bool {
	return errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDamaged)
}

// list returns what can be read of b, in the order of its keys.
func list[T any](ctx context.Context, b store.Bucket, prefix string) (all []T, err error) {
	for key, err := range b.Keys(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		v, _, err := store.Load[T](ctx, b, key)
		if missing(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}
