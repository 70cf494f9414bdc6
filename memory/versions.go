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
	"strconv"
	"strings"
	"time"

	"parley/chat"
	"parley/store"
)

// The memory files. Only the owner has a SOUL.md. What was heard from others, and not
// checked by anybody, is in a file of its own: the agent may know it, but must never
// act on it (R-S14).
const (
	memoryFile = "MEMORY.md"
	userFile   = "USER.md"
	soulFile   = "SOUL.md"
	heardFile  = "HEARD.md"
)

func names(who chat.Person) []string {
	if who == chat.TheOwner {
		return []string{memoryFile, userFile, heardFile, soulFile}
	}
	return []string{memoryFile, userFile, heardFile}
}

// fileOf returns the path of a file with what is known about who.
func fileOf(who chat.Person, name string) string {
	if who == chat.TheOwner && (name == heardFile || name == historyName) {
		return path.Join("memory", name) // files that people do not write themselves
	}
	return path.Join(who.Folder(), name)
}

// A Change is one change of a person's memory files.
type Change struct {
	ID   string      `json:"id"` // number of the change, per person, from 1
	Who  chat.Person `json:"who"`
	Time time.Time   `json:"time"`
	// By is "dream", "edited" (by hand or with a tool), "page" (the owner's), "/remember",
	// "/forget", "accept 7" or "restore 7".
	By    string          `json:"by"`
	Key   string          `json:"key,omitempty"` // of the request, which makes only one change if repeated
	Why   string          `json:"why,omitempty"`
	Files map[string]Edit `json:"files,omitempty"` // by name, such as "MEMORY.md"
	// Asks are edits that a dream proposes: see Accept.
	Asks    map[string]Edit `json:"asks,omitempty"`
	From    int64           `json:"from"`              // cursor before the entries that a dream read
	To      int64           `json:"to"`                // cursor of the last of them; From in any other change
	Tainted bool            `json:"tainted,omitempty"` // it contains untrusted content (R-S14)
	Session chat.SessionID  `json:"session,omitempty"` // the conversation in which it was made, if known

	origins map[mark]Origin // of lines that a dream writes or proposes
}

// Who or what made a Change, but for the commands that take something back.
const (
	byDream   = "dream"
	byHand    = "edited" // by hand or with a tool
	byPage    = "page"   // on the owner's page
	byCommand = "/remember"
)

// An Edit has the digests of the texts before and after a Change: "" if the file
// was empty or did not exist.
type Edit struct {
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

func digest(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// A Disk is a Reader that can also write.
type Disk interface {
	Reader
	// WriteFile makes data the contents of a file, whole or not at all.
	WriteFile(name string, data []byte) error
}

// Versions changes people's memory files, for one person at a time, and keeps the
// earlier texts. A Change takes effect once the head of its person has it, with
// the cursor of the dream it comes from; the files are written afterwards, if
// necessary after a restart. Each person's texts are stored separately (R-S14).
// All methods may be called concurrently.
type Versions struct {
	files Disk
	store store.Store
	log   *slog.Logger

	heads   store.Table[head]   // by person
	changes store.Table[Change] // by person and number
	texts   store.Bucket        // contents of files, by person and digest
	origins store.Table[Origin] // by person, file and digest of the line
}

// NewVersions returns the Versions of the memory in files, stored in s.
func NewVersions(files Disk, s store.Store, log *slog.Logger) *Versions {
	return &Versions{
		files: files, store: s, log: log,
		heads:   store.NewTable(s.Bucket(store.BucketMemoryHeads), store.Report[head]),
		changes: store.NewTable(s.Bucket(store.BucketMemoryChanges), store.Report[Change]),
		texts:   s.Bucket(store.BucketMemoryTexts),
		origins: store.NewTable(s.Bucket(store.BucketMemoryOrigins), store.Forget[Origin](log, "origin of memory")),
	}
}

// prefix is the prefix of the keys of all changes and texts of who.
func prefix(who chat.Person) string { return string(who) + "\x00" }

func key(who chat.Person, n int64) string { return fmt.Sprintf("%s%012d", prefix(who), n) }

// A head is the current state of a person's memory.
type head struct {
	Who     chat.Person       `json:"who"`
	Last    int64             `json:"last"`              // ID of the last change
	Cursor  int64             `json:"cursor"`            // of the last entry that a dream has read
	Files   map[string]string `json:"files"`             // digests after the last change
	Pending *Change           `json:"pending,omitempty"` // the last change, until all of its files are written
	Fails   int               `json:"fails,omitempty"`   // dreams that failed with the entries after Cursor

	rev uint64
}

// head loads the head of who. A damaged one is rebuilt from the remaining changes
// (P21).
func (v *Versions) head(ctx context.Context, who chat.Person) (*head, error) {
	h, rev, err := v.heads.Get(ctx, string(who))
	switch {
	case err == nil && h.Who == who && h.Files != nil:
		h.rev = rev
		return &h, nil
	case err == nil, errors.Is(err, store.ErrDamaged):
		v.log.Warn("head of memory is damaged and was rebuilt", "who", who)
		rev = store.Any
	case !errors.Is(err, store.ErrNotFound):
		return nil, err
	}
	h = head{Who: who, Files: map[string]string{}, rev: rev}
	for k, err := range v.changes.Keys(ctx, prefix(who)) {
		if err != nil {
			return nil, err
		}
		h.Last, _ = strconv.ParseInt(strings.TrimPrefix(k, prefix(who)), 10, 64)
	}
	for name, text := range v.read(who) {
		h.Files[name] = digest(text)
		if err := v.keep(ctx, who, text); err != nil {
			return nil, err
		}
	}
	known := map[string]bool{}
	for c, err := range v.back(ctx, &h) {
		if err != nil {
			return nil, err
		}
		h.Cursor = max(h.Cursor, c.To)
		for name, e := range c.Files {
			if !known[name] {
				known[name] = true
				h.Files[name] = e.After
			}
		}
	}
	return &h, v.save(ctx, &h)
}

func (v *Versions) save(ctx context.Context, h *head) (err error) {
	h.rev, err = v.heads.Put(ctx, string(h.Who), *h, h.rev)
	return err
}

// with calls do with the head and the files of who, while nobody else can change
// them. It first completes a change that was interrupted by a crash, and records
// edits made to the files by others as a Change.
func (v *Versions) with(
	ctx context.Context, who chat.Person, do func(ctx context.Context, h *head, texts map[string]string) error,
) error {
	return v.locked(ctx, who, func(ctx context.Context) error {
		h, texts, err := v.current(ctx, Change{Who: who, By: byHand})
		if err != nil {
			return fmt.Errorf("memory of %s: %w", who, err)
		}
		if err := do(ctx, h, texts); err != nil {
			return fmt.Errorf("memory of %s: %w", who, err)
		}
		return nil
	})
}

// locked calls do while nobody else can change the memory of who.
func (v *Versions) locked(ctx context.Context, who chat.Person, do func(context.Context) error) error {
	return store.Locked(ctx, v.store, "memory "+string(who), do)
}

// current finishes what a crash broke off, makes the Change c of what somebody else did
// to the files, and returns the state of that person's memory. The caller holds the lock.
func (v *Versions) current(ctx context.Context, c Change) (*head, map[string]string, error) {
	h, err := v.head(ctx, c.Who)
	if err != nil {
		return nil, nil, err
	}
	if h.Pending != nil {
		if err := v.finish(ctx, h); err != nil {
			return nil, nil, err
		}
	}
	texts := v.read(c.Who)
	_, err = v.commit(ctx, h, c, texts)
	return h, texts, err
}

// edit records, as the Change c, what alter does to the texts, unless a change
// with the same Key exists: then that one is returned. A change without any effect
// has no ID.
func (v *Versions) edit(
	ctx context.Context,
	c Change,
	alter func(ctx context.Context, h *head, texts map[string]string) error,
) (Change, error) {
	err := v.with(ctx, c.Who, func(ctx context.Context, h *head, texts map[string]string) error {
		if c.Key != "" {
			for old, err := range v.back(ctx, h) {
				if err != nil || old.Key == c.Key {
					c = old
					return err
				}
			}
		}
		err := alter(ctx, h, texts)
		if err != nil {
			return err
		}
		c, err = v.commit(ctx, h, c, texts)
		return err
	})
	return c, err
}

// commit records the differences between texts and h as a Change. A change without
// files is kept if it has a reason; otherwise it only moves the cursor.
func (v *Versions) commit(ctx context.Context, h *head, c Change, texts map[string]string) (Change, error) {
	if c.To == 0 {
		c.From = h.Cursor
		c.To = h.Cursor
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
		c.Files[name] = e
		h.Files[name] = e.After
	}
	moved := h.Cursor != c.To
	h.Cursor = c.To
	switch {
	case len(c.Files) > 0 || c.Why != "":
	case moved:
		return c, v.save(ctx, h)
	default:
		return c, nil
	}
	h.Last++
	c.ID = strconv.FormatInt(h.Last, 10)
	c.Who = h.Who
	c.Time = time.Now()
	if err := v.noteOrigins(ctx, c); err != nil {
		return Change{}, err
	}
	h.Pending = &c
	if err := v.save(ctx, h); err != nil {
		return Change{}, err
	}
	return c, v.finish(ctx, h)
}

// finish writes the files of the pending change. It may be repeated after a crash.
func (v *Versions) finish(ctx context.Context, h *head) error {
	for name, e := range h.Pending.Files {
		if err := v.write(ctx, h.Who, name, e); err != nil {
			return err
		}
	}
	if err := v.changes.Set(ctx, key(h.Who, h.Last), *h.Pending); err != nil {
		return err
	}
	if err := v.trim(ctx, h); err != nil {
		return err
	}
	h.Pending = nil
	return v.save(ctx, h)
}

// write writes a file, unless its content differs from that before the change:
// then somebody has edited it, and with records that as a Change.
func (v *Versions) write(ctx context.Context, who chat.Person, name string, e Edit) error {
	now, there := v.read(who)[name]
	if !there || digest(now) != e.Before {
		return nil
	}
	err := v.writeText(ctx, who, name, e.After)
	if errors.Is(err, store.ErrDamaged) || errors.Is(err, fs.ErrPermission) {
		v.log.Warn("memory file not written", "who", who, "file", name, "err", err)
		return nil
	}
	return err
}

// writeText gives a file the text of that digest.
func (v *Versions) writeText(ctx context.Context, who chat.Person, name, digest string) error {
	text, err := v.text(ctx, who, digest)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil { // the lock may be somebody else's
		return err
	}
	return v.files.WriteFile(fileOf(who, name), []byte(text))
}

// read returns the contents of the files of who. Unreadable files are left out.
func (v *Versions) read(who chat.Person) map[string]string {
	texts := map[string]string{}
	for _, name := range names(who) {
		text, err := v.files.ReadFile(fileOf(who, name))
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			texts[name] = string(text)
		}
	}
	return texts
}

// keep stores a text so that it can be read again.
func (v *Versions) keep(ctx context.Context, who chat.Person, text string) error {
	if text == "" {
		return nil
	}
	_, err := v.texts.Put(ctx, prefix(who)+digest(text), []byte(text), store.Any)
	return err
}

// text returns the text with the digest sum. If it is missing, the error is
// store.ErrDamaged too.
func (v *Versions) text(ctx context.Context, who chat.Person, sum string) (string, error) {
	if sum == "" {
		return "", nil
	}
	text, _, err := v.texts.Get(ctx, prefix(who)+sum)
	if errors.Is(err, store.ErrNotFound) || err == nil && digest(string(text)) != sum {
		err = store.ErrDamaged
	}
	return string(text), err
}

// pair returns the texts of e.
func (v *Versions) pair(ctx context.Context, who chat.Person, e Edit) (before, after string, err error) {
	before, err = v.text(ctx, who, e.Before)
	after, more := v.text(ctx, who, e.After)
	return before, after, cmp.Or(err, more)
}
