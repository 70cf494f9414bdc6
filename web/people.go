package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/store"
)

const (
	ownerName  = "owner"
	keyMark    = "parley_" // how an API key begins
	loginLife  = 30 * 24 * time.Hour
	ownerLife  = 10 * time.Minute // of a link for the owner that was asked for
	inviteLife = 24 * time.Hour
)

// A Person is somebody the owner invited. The name is theirs for ever: it is not
// given to anybody else, also when they were removed.
type Person struct {
	Name    string    `json:"name"`
	Invited time.Time `json:"invited"`
	Removed time.Time `json:"removed,omitzero"`
}

// A Key is what there is to know of an API key. The key itself is shown once and
// not kept (R-S6).
type Key struct {
	ID     string    `json:"id"`
	Person string    `json:"person"`
	Prefix string    `json:"prefix"` // of the sessions it opens
	Last   string    `json:"last"`   // its last four characters
	Made   time.Time `json:"made"`
}

// A login is one browser that somebody signed in with.
type login struct {
	Person  string    `json:"person"`
	Agent   string    `json:"agent"`
	Made    time.Time `json:"made"`
	Expires time.Time `json:"expires"`
}

// An invitation is a one-time code that nobody used yet.
type invitation struct {
	Person  string    `json:"person"`
	Expires time.Time `json:"expires,omitzero"`
	Boot    string    `json:"boot,omitempty"` // the start it was made in, when it ends with that
}

// people are who may come in and by what. Secrets are kept as their SHA-256.
type people struct {
	boot                          string
	invited, logins, links, keyed store.Bucket
}

func newPeople(s store.Store, boot string) people {
	return people{boot, s.Bucket("web/people"), s.Bucket("web/sessions"), s.Bucket("web/links"), s.Bucket("web/keys")}
}

// secret returns 256 random bits and the name they are kept under.
func secret() (plain, kept string) {
	b := make([]byte, 32)
	rand.Read(b) // never fails
	plain = base64.RawURLEncoding.EncodeToString(b)
	return plain, hash(plain)
}

func hash(plain string) string {
	sum := sha256.Sum256([]byte(plain))
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

func (p people) role(ctx context.Context, name string) (chat.Role, error) {
	if name == ownerName {
		return chat.Owner, nil
	}
	who, _, err := load[Person](ctx, p.invited, name)
	switch {
	case missing(err), err == nil && !who.Removed.IsZero():
		return chat.Stranger, nil
	case err != nil:
		return chat.Stranger, err
	}
	return chat.User, nil
}

// may returns store.ErrNotFound unless name is somebody who may come in.
func (p people) may(ctx context.Context, name string) error {
	role, err := p.role(ctx, name)
	if err == nil && role == chat.Stranger {
		err = store.ErrNotFound
	}
	return err
}

var goodName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,31}$`)

// add makes name a person, who may be one already.
func (p people) add(ctx context.Context, name string) error {
	if !goodName.MatchString(name) || name == ownerName {
		return bad("a name has 1 to 32 small letters, digits, dots and dashes, and begins with a letter or digit")
	}
	who, rev, err := load[Person](ctx, p.invited, name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return save(ctx, p.invited, name, Person{Name: name, Invited: time.Now()}, rev)
	case err == nil && !who.Removed.IsZero():
		return problem{status: http.StatusConflict, text: "somebody of that name was removed, and their conversations are still theirs: choose another name"}
	}
	return err
}

// remove puts name out. It holds from its first write on: what else is theirs
// opens nothing any more.
func (p people) remove(ctx context.Context, name string) error {
	who, rev, err := load[Person](ctx, p.invited, name)
	if err != nil {
		return err
	}
	who.Removed = time.Now()
	if err := save(ctx, p.invited, name, who, rev); err != nil {
		return err
	}
	return errors.Join(
		sweep(ctx, p.logins, func(l login) bool { return l.Person == name }),
		sweep(ctx, p.links, func(i invitation) bool { return i.Person == name }),
		sweep(ctx, p.keyed, func(k Key) bool { return k.Person == name }))
}

// invite makes a one-time code for name that holds for life, or until the next
// start if that is 0.
func (p people) invite(ctx context.Context, name string, life time.Duration) (string, error) {
	if err := p.may(ctx, name); err != nil {
		return "", err
	}
	if err := sweep(ctx, p.links, func(i invitation) bool { return !p.holds(i) }); err != nil {
		return "", err
	}
	i := invitation{Person: name, Boot: p.boot}
	if life > 0 {
		i.Boot, i.Expires = "", time.Now().Add(life)
	}
	code, kept := secret()
	return code, save(ctx, p.links, kept, i, 0)
}

func (p people) holds(i invitation) bool {
	return i.Boot == p.boot || i.Boot == "" && time.Now().Before(i.Expires)
}

// use returns whom code signs in, and makes it worthless: of two who use it at
// once, one gets in.
func (p people) use(ctx context.Context, code string) (name string, err error) {
	kept := hash(code)
	i, rev, err := load[invitation](ctx, p.links, kept)
	if err != nil {
		return "", err
	}
	if err := save(ctx, p.links, kept, invitation{}, rev); err != nil {
		return "", err
	}
	if err := p.links.Delete(ctx, kept); err != nil {
		return "", err
	}
	if !p.holds(i) {
		return "", store.ErrNotFound
	}
	return i.Person, p.may(ctx, i.Person)
}

// signIn makes a login for name and returns its cookie.
func (p people) signIn(ctx context.Context, name, agent string) (string, error) {
	if err := sweep(ctx, p.logins, func(l login) bool { return time.Now().After(l.Expires) }); err != nil {
		return "", err
	}
	cookie, kept := secret()
	now := time.Now()
	l := login{Person: name, Agent: clip(agent, 200), Made: now, Expires: now.Add(loginLife)}
	return cookie, save(ctx, p.logins, kept, l, 0)
}

// signed returns whose cookie it is, and whether it was renewed: it holds for 30
// days after it was used, to within a day.
func (p people) signed(ctx context.Context, cookie string) (name string, renewed bool, err error) {
	kept := hash(cookie)
	l, rev, err := load[login](ctx, p.logins, kept)
	switch {
	case err != nil:
		return "", false, err
	case time.Now().After(l.Expires):
		return "", false, store.ErrNotFound
	}
	if time.Until(l.Expires) < loginLife-24*time.Hour {
		l.Expires = time.Now().Add(loginLife)
		renewed = save(ctx, p.logins, kept, l, rev) == nil // else the next one is; a login that ended stays ended
	}
	return l.Person, renewed, p.may(ctx, l.Person)
}

// key makes a key for name.
func (p people) key(ctx context.Context, name, prefix string) (string, Key, error) {
	if err := p.may(ctx, name); err != nil {
		return "", Key{}, err
	}
	plain, _ := secret()
	plain = keyMark + plain
	k := Key{ID: hash(plain)[:16], Person: name, Prefix: prefix, Last: plain[len(plain)-4:], Made: time.Now()}
	if !goodName.MatchString(prefix) {
		return "", Key{}, bad("a prefix has 1 to 32 small letters, digits, dots and dashes, and begins with a letter or digit")
	}
	return plain, k, save(ctx, p.keyed, hash(plain), k, 0)
}

// opens returns what the key of that text is.
func (p people) opens(ctx context.Context, plain string) (Key, error) {
	k, _, err := load[Key](ctx, p.keyed, hash(plain))
	if err != nil {
		return Key{}, err
	}
	return k, p.may(ctx, k.Person)
}

// revoke ends the key of that ID.
func (p people) revoke(ctx context.Context, id string) error {
	found := false
	err := sweep(ctx, p.keyed, func(k Key) bool { found = found || k.ID == id; return k.ID == id })
	if err == nil && !found {
		err = store.ErrNotFound
	}
	return err
}

// everybody returns those who were invited and not removed, by name.
func (p people) everybody(ctx context.Context) ([]Person, error) {
	all, err := list[Person](ctx, p.invited)
	return slices.DeleteFunc(all, func(w Person) bool { return !w.Removed.IsZero() }), err
}

// everyKey returns what is known of the keys, by person.
func (p people) everyKey(ctx context.Context) ([]Key, error) {
	all, err := list[Key](ctx, p.keyed)
	slices.SortFunc(all, func(a, b Key) int { return strings.Compare(a.Person+"\x00"+a.Prefix, b.Person+"\x00"+b.Prefix) })
	return all, err
}

// missing says whether err means that there is nothing that could be read.
func missing(err error) bool {
	return errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDamaged)
}

func load[T any](ctx context.Context, b store.Bucket, key string) (v T, rev uint64, err error) {
	body, rev, err := b.Get(ctx, key)
	if err == nil && json.Unmarshal(body, &v) != nil {
		err = store.ErrDamaged
	}
	return v, rev, err
}

func save[T any](ctx context.Context, b store.Bucket, key string, v T, rev uint64) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %T: %w", v, err)
	}
	_, err = b.Put(ctx, key, body, rev)
	return err
}

// list returns what can be read of b, in the order of its keys.
func list[T any](ctx context.Context, b store.Bucket) (all []T, err error) {
	err = each(ctx, b, func(_ string, v T) error {
		all = append(all, v)
		return nil
	})
	return all, err
}

// sweep deletes from b what is to go.
func sweep[T any](ctx context.Context, b store.Bucket, goes func(T) bool) error {
	return each(ctx, b, func(key string, v T) error {
		if !goes(v) {
			return nil
		}
		return b.Delete(ctx, key)
	})
}

// each calls do with what can be read of b.
func each[T any](ctx context.Context, b store.Bucket, do func(string, T) error) error {
	for key, err := range b.Keys(ctx, "") {
		if err != nil {
			return err
		}
		v, _, err := load[T](ctx, b, key)
		if err == nil {
			err = do(key, v)
		}
		if err != nil && !missing(err) {
			return err
		}
	}
	return nil
}

func clip(s string, most int) string {
	rs := []rune(s)
	if len(rs) <= most {
		return s
	}
	return string(rs[:most]) + "…"
}
