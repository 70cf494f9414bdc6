package attachments

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"time"

	"parley/lazyregexp"
	"parley/store"
	"parley/workspace"
)

// useInterval is how often it is noted that a file was used.
const useInterval = 24 * time.Hour

// A received is what is known of a file that somebody sent, by its path.
type received struct {
	Time time.Time `json:"time"`          // when it came
	Used time.Time `json:"used,omitzero"` // when a call last named it, to within useInterval
	Size int64     `json:"size"`          // bytes
	Sum  string    `json:"sum"`           // SHA-256 of what was sent, in hexadecimal digits
	Own  bool      `json:"own,omitempty"` // it was changed since, and so belongs to whoever did that
}

// last returns when the file came or was last used.
func (r received) last() time.Time {
	if r.Used.After(r.Time) {
		return r.Used
	}
	return r.Time
}

// receivedFiles returns the table of the files that were sent. Of one whose record is
// damaged no more is known than of one from before there were records.
func receivedFiles(c Config) store.Table[received] {
	return store.NewTable(c.Store.Bucket(store.BucketReceived), store.Forget[received](c.Log, "file that was sent"))
}

// noteReceived notes what was saved in the file called name. A failure is no reason to
// refuse the file.
func (in *Inbox) noteReceived(ctx context.Context, name string, size int64, sum []byte) {
	r := received{Time: time.Now().UTC(), Size: size, Sum: hex.EncodeToString(sum)}
	if err := in.received.Set(store.Deferred(ctx), name, r); err != nil {
		in.cfg.Log.Warn("what was sent was not noted", "path", name, "err", err)
	}
}

// fileForm is how the names of files that were sent begin, up to what tells them from
// all others (see inboxPath).
const fileForm = `inbox/(?:people/[\w-]+/)?\d{4}-\d\d-\d\d/[0-9a-f]{10}-`

var fileName = lazyregexp.New(fileForm)

// NoteUse notes that files which people sent are used, if text names any: the
// arguments of a call, in JSON.
func (in *Inbox) NoteUse(ctx context.Context, text string) {
	text = strings.ReplaceAll(text, `\/`, "/") // as some models write it
	for _, prefix := range fileName.FindAllString(text, -1) {
		if err := in.noteUses(store.Deferred(ctx), prefix, time.Now().UTC()); err != nil {
			in.cfg.Log.Warn("the use of a file that was sent was not noted", "path", prefix, "err", err)
		}
	}
}

// noteUses notes that the files whose paths begin with prefix were used at that time.
func (in *Inbox) noteUses(ctx context.Context, prefix string, now time.Time) error {
	for name, err := range in.received.Keys(ctx, prefix) {
		if err != nil {
			return err
		}
		_, _, err := in.received.Update(ctx, name, func(r *received) error {
			if now.Sub(r.last()) < useInterval {
				return store.ErrUnchanged
			}
			r.Used = now
			return nil
		})
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	return nil
}

// isUnchanged reports whether the file at p has what r says that was sent.
func (in *Inbox) isUnchanged(p workspace.Path, r received) (bool, error) {
	f, err := in.cfg.Files.OpenBig(p)
	if err != nil {
		return false, err
	}
	defer f.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, io.LimitReader(f, r.Size+1))
	return size == r.Size && hex.EncodeToString(sum.Sum(nil)) == r.Sum, err
}
