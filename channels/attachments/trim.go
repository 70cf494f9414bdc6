package attachments

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"parley/chat"
	"parley/lazyregexp"
	"parley/store"
	"parley/workspace"
)

// stepFiles is after how many files others may write, if none of them is removed.
const stepFiles = 50

// fetchDelay is how long after a message its files may still come. Files that were
// written later, and of which nothing else is known, were changed by somebody.
const fetchDelay = 72 * time.Hour

var (
	receivedName = lazyregexp.New("^" + fileForm + "[^/]+$")
	dayFolder    = lazyregexp.New(`^inbox/(?:people/[\w-]+/)?\d{4}-\d\d-\d\d$`)
)

// Trim removes the files that people sent before t.Before and that no call has named
// since. What was changed, renamed or moved belongs to whoever did that, and stays.
func (in *Inbox) Trim(ctx context.Context, t store.Trimming) error {
	if in.cfg.Files == nil {
		return nil
	}
	top, err := in.cfg.Files.Named(chat.Inbox)
	if err != nil {
		return err
	}
	if _, err := in.cfg.Files.Stat(top); errors.Is(err, fs.ErrNotExist) {
		return nil // nothing was sent yet, or its disk is missing
	}
	p := pass{Inbox: in, Trimming: t}
	if err := in.cfg.Files.Walk(top, func(at workspace.Path, d fs.DirEntry, err error) error {
		return p.visit(ctx, at, d, err)
	}); err != nil {
		return errors.Join(append(p.failed, err)...)
	}
	for _, day := range p.days {
		_ = in.cfg.Files.Remove(day) // fails while there is something in it
	}
	return errors.Join(append(p.failed, p.forgetMissing(ctx))...)
}

// A pass is one over all files.
type pass struct {
	*Inbox
	store.Trimming
	seen   int              // files
	days   []workspace.Path // folders of days that are over for long
	failed []error
}

// visit trims what is at the path at. A failure stops no other file.
func (p *pass) visit(ctx context.Context, at workspace.Path, d fs.DirEntry, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		p.failed = append(p.failed, err)
		return nil
	case d.IsDir():
		if dayFolder.MatchString(at.String()) && p.isOver(at) {
			p.days = append(p.days, at)
		}
		return nil
	case p.isDraft(at, d):
		if err := p.cfg.Files.Remove(at); err != nil {
			p.failed = append(p.failed, err)
		}
		return nil
	case !d.Type().IsRegular() || !receivedName.MatchString(at.String()):
		return nil
	}
	removed, err := p.trim(ctx, at)
	if err != nil {
		p.failed = append(p.failed, fmt.Errorf("remove %s: %w", at, err))
	}
	if p.seen++; removed == 0 && p.seen%stepFiles != 0 {
		return nil
	}
	return p.Step(removed)
}

// isDraft reports whether the file at the path at was being written when a crash came.
// One that is being written now is none: its message may be an old one that is tried again.
func (p *pass) isDraft(at workspace.Path, d fs.DirEntry) bool {
	if !strings.HasPrefix(at.Base(), ".new-") || !dayFolder.MatchString(at.Dir().String()) || !p.isOver(at.Dir()) {
		return false
	}
	info, err := d.Info()
	return err == nil && info.ModTime().Before(p.Before)
}

// isOld reports whether the messages of a day's folder are older than p.Before. The time of
// a file's record is that of our clock, which may have been wrong.
func (p *pass) isOld(folder workspace.Path) bool {
	day, err := time.Parse(time.DateOnly, folder.Base())
	return err == nil && day.Before(p.Before)
}

// isOver reports whether files come no more into the folder of a day.
func (p *pass) isOver(folder workspace.Path) bool {
	day, err := time.Parse(time.DateOnly, folder.Base())
	return err == nil && day.Add(fetchDelay).Before(p.Before)
}

// trim removes the file at the path at if nobody has used it since p.Before, and returns
// how many files were removed.
func (p *pass) trim(ctx context.Context, at workspace.Path) (removed int, err error) {
	info, err := p.cfg.Files.Stat(at)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	r, _, err := p.received.Get(ctx, at.String())
	if errors.Is(err, store.ErrNotFound) {
		r, err = p.adopt(ctx, at, info)
	}
	switch {
	case err != nil:
		return 0, err
	case r.Own, !r.last().Before(p.Before), !p.isOld(at.Dir()):
		return 0, nil
	}
	unchanged, err := p.isUnchanged(at, r)
	if err != nil {
		return 0, err
	}
	if !unchanged {
		_, _, err := p.received.Update(ctx, at.String(), func(r *received) error {
			r.Own = true
			return nil
		})
		return 0, err
	}
	return p.remove(ctx, at, info)
}

// adopt notes a file of which nothing is known: it came before there were records, or
// a crash has lost its record. Nobody knows when it was used, so it counts as used now.
func (p *pass) adopt(ctx context.Context, at workspace.Path, info fs.FileInfo) (r received, err error) {
	f, err := p.cfg.Files.OpenBig(at)
	if err != nil {
		return r, err
	}
	defer f.Close()
	sum := sha256.New()
	if r.Size, err = io.Copy(sum, f); err != nil {
		return r, err
	}
	r.Sum = hex.EncodeToString(sum.Sum(nil))
	r.Time = info.ModTime().UTC()
	r.Used = time.Now().UTC()
	day, err := time.Parse(time.DateOnly, path.Base(path.Dir(at.String())))
	r.Own = err != nil || r.Time.Sub(day) > fetchDelay
	return r, p.received.Set(store.Deferred(ctx), at.String(), r)
}

// remove archives and removes the file at the path at, which info describes, unless
// somebody uses or changes it meanwhile.
func (p *pass) remove(ctx context.Context, at workspace.Path, info fs.FileInfo) (removed int, err error) {
	if err := p.archive(at); err != nil {
		return 0, err
	}
	r, _, err := p.received.Get(ctx, at.String())
	if err != nil || !r.last().Before(p.Before) {
		return 0, err
	}
	now, err := p.cfg.Files.Stat(at)
	if err != nil {
		return 0, err
	}
	if !os.SameFile(now, info) || now.Size() != info.Size() || !now.ModTime().Equal(info.ModTime()) {
		return 0, nil // it is looked at again in the next pass
	}
	if err := p.cfg.Files.Remove(at); err != nil {
		return 0, err
	}
	return 1, p.received.Delete(store.Deferred(ctx), at.String())
}

// archive writes the file at the path at into the archive, if there is to be one.
func (p *pass) archive(at workspace.Path) error {
	if p.ArchiveFile == nil {
		return nil
	}
	f, err := p.cfg.Files.OpenBig(at)
	if err != nil {
		return err
	}
	defer f.Close()
	return p.ArchiveFile(at.String(), f)
}

// forgetMissing removes the records of old files that are gone: a crash came before
// that, or somebody has moved or deleted them.
func (p *pass) forgetMissing(ctx context.Context) error {
	for name, err := range p.received.Keys(ctx, "") {
		if err != nil {
			return err
		}
		day, err := time.Parse(time.DateOnly, path.Base(path.Dir(name)))
		if err == nil && !day.Add(fetchDelay).Before(p.Before) {
			continue
		}
		if p.isThere(name) {
			continue
		}
		if err := p.received.Delete(store.Deferred(ctx), name); err != nil {
			return err
		}
		if err := p.Step(0); err != nil {
			return err
		}
	}
	return nil
}

// isThere reports whether there may be a file called name.
func (p *pass) isThere(name string) bool {
	at, err := p.cfg.Files.Named(name)
	if err != nil {
		return !errors.Is(err, workspace.ErrNotCanonical) // a link has taken its place
	}
	_, err = p.cfg.Files.Stat(at)
	return !errors.Is(err, fs.ErrNotExist)
}
