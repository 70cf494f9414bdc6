package memory

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"strconv"
	"time"

	"parley/chat"
	"parley/store"
	"parley/workspace"
)

// A Change is a step from what the memory files of a person said to what they
// say next.
type Change struct {
	ID      string          `json:"id"` // counts the changes of the person, from 1
	Who     chat.Person     `json:"who"`
	Time    time.Time       `json:"time"`
	By      string          `json:"by"`            // "dream", "edited", "/remember", "/forget" or "restore 7"
	Key     string          `json:"key,omitempty"` // of the message that asked for it: asked twice, it is made once
	Why     string          `json:"why,omitempty"`
	Files   map[string]Edit `json:"files,omitempty"`   // by name, such as "MEMORY.md"
	From    int64           `json:"from"`              // a dream read the entries behind this cursor …
	To      int64           `json:"to"`                // … up to this one; they are the same in every other change
	Tainted bool            `json:"tainted,omitempty"` // strangers had a word in it (R-S14)
}

// An Edit names, by their digests, the texts that a file had before and after
// a Change. The digest of no text is "": the file is empty, or not there.
type Edit struct {
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// Who makes changes.
const (
	byDream   = "dream"
	byEditor  = "edited" // by hand, or with a tool
	byRestore = "restore "
)

// A Disk is a Reader that can be written to.
type Disk interface {
	Reader
	// WriteFile makes data the contents of a file, whole or not at all.
	WriteFile(name string, data []byte) error
}

// Versions changes the memory files of people, one person's at a time, and
// keeps what they said before. A Change counts once the head of its person
// holds it, with the cursor of the dream it comes from; the files follow, after
// a crash too. Texts are kept apart for each person (R-S14). All methods may be
// called by many goroutines.
type Versions struct {
	files Disk
	store store.Store
	log   *slog.Logger
}

// NewVersions returns the Versions of the memory in files, which keeps them in s.
func NewVersions(files Disk, s store.Store, log *slog.Logger) *Versions {
	return &Versions{files: files, store: s, log: log}
}

func (v *Versions) heads() store.Bucket   { return v.store.Bucket("memory heads") }
func (v *Versions) changes() store.Bucket { return v.store.Bucket("memory changes") }
func (v *Versions) texts() store.Bucket   { return v.store.Bucket("memory texts") }

// A head is where the memory of a person stands.
type head struct {
	Who     chat.Person       `json:"who"`
	Last    int64             `json:"last"`              // ID of the last change
	Cursor  int64             `json:"cursor"`            // of the last entry that was dreamt
	Files   map[string]string `json:"files"`             // digests, as the last change has them
	Pending *Change           `json:"pending,omitempty"` // the last change, while not all of it is written
	Dreamt  time.Time         `json:"dreamt,omitzero"`   // when a dream last ended
	Fails   int               `json:"fails,omitempty"`   // nights on which the entries behind Cursor failed …
	Failed  time.Time         `json:"failed,omitzero"`   // … and the last of them

	rev uint64
}

// names are the memory files of who, in the order in which they are shown.
func names(who chat.Person) []string {
	if who == chat.TheOwner {
		return []string{memoryFile, userFile, soulFile}
	}
	return []string{memoryFile, userFile}
}

const (
	memoryFile = "MEMORY.md"
	userFile   = "USER.md"
	soulFile   = "SOUL.md"
)

// digest names a text.
func digest(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// prefix begins the keys of all that is kept of who.
func prefix(who chat.Person) string { return string(who) + "\x00" }

func key(who chat.Person, n int64) string { return fmt.Sprintf("%s%012d", prefix(who), n) }

// with calls do with where the memory of who stands and what their files say,
// while nobody else changes it.
func (v *Versions) with(ctx context.Context, who chat.Person, do func(h *head, texts map[string]string) error) error {
	unlock, err := v.store.Lock(ctx, "memory "+string(who))
	if err != nil {
		return err
	}
	defer unlock()
	h, texts, err := v.open(ctx, who)
	if err == nil {
		err = do(h, texts)
	}
	if err != nil {
		return fmt.Errorf("memory of %s: %w", who, err)
	}
	return nil
}

// open finishes what a crash broke off, and makes a Change of what somebody
// else did to the files meanwhile.
func (v *Versions) open(ctx context.Context, who chat.Person) (*head, map[string]string, error) {
	h, err := v.head(ctx, who)
	if err == nil && h.Pending != nil {
		err = v.finish(ctx, h)
	}
	if err != nil {
		return nil, nil, err
	}
	texts, err := v.read(who)
	if err == nil {
		_, err = v.commit(ctx, h, Change{By: byEditor}, texts)
	}
	return h, texts, err
}

// edit makes the Change c of what alter does to the texts, unless one with its
// Key was made before: then that is returned. One of nothing has no ID.
func (v *Versions) edit(ctx context.Context, c Change, alter func(h *head, texts map[string]string) error) (Change, error) {
	err := v.with(ctx, c.Who, func(h *head, texts map[string]string) error {
		if c.Key != "" {
			for old := range v.back(ctx, h) {
				if old.Key == c.Key {
					c = old
					return nil
				}
			}
		}
		err := alter(h, texts)
		if err == nil {
			c, err = v.commit(ctx, h, c, texts)
		}
		return err
	})
	return c, err
}

// commit makes a Change of what differs between texts and h. A change of no
// file is kept if it says why; without, it only moves the cursor.
func (v *Versions) commit(ctx context.Context, h *head, c Change, texts map[string]string) (Change, error) {
	if c.To == 0 {
		c.From, c.To = h.Cursor, h.Cursor
	}
	c.Files = map[string]Edit{}
	for name, text := range texts {
		e := Edit{Before: h.Files[name], After: digest(text)}
		if e.Before == e.After {
			continue
		}
		if err := v.keep(ctx, h.Who, text); err != nil {
			return Change{}, err
		}
		c.Files[name], h.Files[name] = e, e.After
	}
	if len(c.Files) == 0 && c.Why == "" {
		if h.Cursor == c.To {
			return c, nil
		}
		h.Cursor = c.To
		return c, v.save(ctx, h)
	}
	h.Last++
	c.ID, c.Who, c.Time = strconv.FormatInt(h.Last, 10), h.Who, time.Now()
	h.Pending, h.Cursor = &c, c.To
	if err := v.save(ctx, h); err != nil {
		return Change{}, err
	}
	return c, v.finish(ctx, h)
}

// finish writes what is pending. It may be called again after a crash.
func (v *Versions) finish(ctx context.Context, h *head) error {
	for _, name := range names(h.Who) {
		if e, ok := h.Pending.Files[name]; ok {
			if err := v.write(ctx, h.Who, name, e); err != nil {
				return err
			}
		}
	}
	if _, err := store.Save(ctx, v.changes(), key(h.Who, h.Last), h.Pending, store.Any); err != nil {
		return err
	}
	h.Pending = nil
	err := v.save(ctx, h)
	if err == nil {
		err = v.trim(ctx, h)
	}
	return err
}

// write gives a file its text. One that does not say what it said before the
// change was edited since: it is left alone, and open makes a change of that.
func (v *Versions) write(ctx context.Context, who chat.Person, name string, e Edit) error {
	now, err := v.file(who, name)
	if err == nil && digest(now) == e.After {
		return nil
	}
	if err == nil && digest(now) == e.Before {
		var text string
		if text, err = v.text(ctx, who, e.After); err == nil {
			err = v.files.WriteFile(path.Join(who.Folder(), name), []byte(text))
		}
	} else if err == nil {
		err = errEdited
	}
	if lasting(err) {
		v.log.Warn("memory file is left as it is", "who", who, "file", name, "err", err)
		err = nil
	}
	return err
}

// errEdited says that what is to be changed was edited meanwhile.
var errEdited = errors.New("it was edited meanwhile")

// lasting says whether err of a file or its text will still be there next time.
func lasting(err error) bool {
	var outside *workspace.OutsideError
	return errors.As(err, &outside) || slices.ContainsFunc([]error{
		errEdited, fs.ErrPermission, workspace.ErrNotFile, workspace.ErrProtected, workspace.ErrTooBig, store.ErrDamaged, store.ErrNotFound,
	}, func(e error) bool { return errors.Is(err, e) })
}

// read returns what the files of who say. Those that cannot be read are left out.
func (v *Versions) read(who chat.Person) (map[string]string, error) {
	texts := map[string]string{}
	for _, name := range names(who) {
		text, err := v.file(who, name)
		switch {
		case err == nil:
			texts[name] = text
		case !lasting(err):
			return nil, err
		}
	}
	return texts, nil
}

func (v *Versions) file(who chat.Person, name string) (string, error) {
	text, err := v.files.ReadFile(path.Join(who.Folder(), name))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return string(text), err
}

// keep makes sure that the text can be read again.
func (v *Versions) keep(ctx context.Context, who chat.Person, text string) error {
	if text == "" {
		return nil
	}
	_, err := v.texts().Put(ctx, prefix(who)+digest(text), []byte(text), store.Any)
	return err
}

// text returns the text that sum is the digest of, or what is wrong with it.
func (v *Versions) text(ctx context.Context, who chat.Person, sum string) (string, error) {
	if sum == "" {
		return "", nil
	}
	text, _, err := v.texts().Get(ctx, prefix(who)+sum)
	if err == nil && digest(string(text)) != sum {
		err = store.ErrDamaged
	}
	return string(text), err
}

func (v *Versions) save(ctx context.Context, h *head) (err error) {
	h.rev, err = store.Save(ctx, v.heads(), string(h.Who), h, h.rev)
	return err
}

// head returns where the memory of who stands. One that is damaged is made
// from the changes that are left (P21).
func (v *Versions) head(ctx context.Context, who chat.Person) (*head, error) {
	h, rev, err := store.Load[head](ctx, v.heads(), string(who))
	h.rev = rev
	switch {
	case err == nil && h.Who == who:
		return &h, nil
	case errors.Is(err, store.ErrNotFound):
		h.rev = 0
	case err == nil, errors.Is(err, store.ErrDamaged):
		v.log.Warn("head of memory is damaged; it is made anew", "who", who)
		h.rev = store.Any
	default:
		return nil, err
	}
	h = head{Who: who, Files: map[string]string{}, rev: h.rev}
	texts, err := v.read(who)
	for name, text := range texts {
		err = cmp.Or(err, v.keep(ctx, who, text))
		h.Files[name] = digest(text)
	}
	if err == nil {
		err = v.retrace(ctx, &h)
	}
	if err == nil {
		err = v.save(ctx, &h)
	}
	return &h, err
}
