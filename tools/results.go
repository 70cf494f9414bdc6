package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"parley/chat"
	"parley/store"
	"parley/workspace"
)

// preview is how many characters of a long result the model sees at once.
const preview = 1200

// Truncate limits a result to its tool's MaxText. A longer one is saved in a file that the text
// names (D-042), or cut if it cannot be saved (D-043). It also ensures that the text is not
// empty (D-044) and valid UTF-8.
func Truncate() Middleware {
	return around(func(ctx context.Context, t Tool, c Call) (Result, error) {
		r, err := t.Run(ctx, c)
		r = outcome(ctx, r, err)
		r.Text = strings.ReplaceAll(strings.ToValidUTF8(r.Text, "\ufffd"), "\x00", "\ufffd")
		limit := cmp.Or(t.MaxText, DefaultMaxText)
		switch n := utf8.RuneCountInString(r.Text); {
		case n == 0 && r.Failed:
			r.Text = fmt.Sprintf("%s failed and did not say why", t.Name)
		case n == 0:
			r.Text = fmt.Sprintf("(%s completed with no output)", t.Name)
		case n > limit && limit > 0:
			r.Text, r.File = shorten(c, r.Text, n, limit, t.Untrusted || r.Tainted)
			r.Cut = true
		}
		return r, nil
	})
}

// shorten returns what the model sees of a text of n characters, and the file with all of it,
// if there is one.
func shorten(c Call, text string, n, limit int, untrusted bool) (seen, path string) {
	path, err := keep(c, text, untrusted)
	if err != nil {
		return chat.Clip(text, limit, "\n... (truncated)"), ""
	}
	seen = fmt.Sprintf(
		"[tool output persisted]\nFull output saved to: %s\nOriginal size: %d chars\nPreview:\n%s\n...\n"+
			"(Read the saved file if you need the full output.)",
		path,
		n,
		chat.Clip(text, min(preview, limit), ""),
	)
	return seen, path
}

// What Parley stores in the workspace has one folder per session.
const (
	ownDir      = ".parley"
	resultsDir  = ownDir + "/tool-results" // long results (D-042)
	maxSessions = 32
	maxResults  = 200 << 20 // bytes of long results per session
)

// Folder returns the folder of session s in dir.
func Folder(dir string, s chat.SessionID) string { return path.Join(dir, chat.Slug(string(s))) }

// ErrPrivate is returned for a file that belongs to another conversation.
var ErrPrivate = errors.New("not for this conversation")

// Resolve returns the file that the model refers to by text. Every tool with a path uses it.
// The error is that of Workspace.Resolve, or ErrPrivate.
func Resolve(c Call, text string) (workspace.Path, error) {
	p, err := c.Workspace.Resolve(text)
	if err != nil || !Private(c.Scope, p) {
		return p, err
	}
	return p, fmt.Errorf("%s is %w", text, ErrPrivate)
}

// Private reports whether a call in s must not see the file p: Parley's own files, which are
// all in .parley except the session's results, and what is known about other people (R-S14) or
// was sent by them.
func Private(s Scope, p workspace.Path) bool {
	name := p.String()
	return Own(p) && !workspace.Within(name, Folder(resultsDir, s.Session)) || s.Whose().Hides(name)
}

// Own reports whether p is one of Parley's own files. It ignores case, as some file systems do.
func Own(p workspace.Path) bool { return workspace.Within(strings.ToLower(p.String()), ownDir) }

const untrustedTail = "-strange.txt"

// Untrusted reports whether the file p holds untrusted content for a call in s, so that reading
// it taints the turn (R-S12, R-S14). That holds for files that people sent, for long results
// and summaries with untrusted content, and for files written in an untrusted turn or by
// another person who is not an owner, or in a folder all of which was.
func Untrusted(s Scope, p workspace.Path) bool {
	name := strings.ToLower(p.String())
	base := path.Base(name)
	home := s.Whose().Home()
	isOwn := home != "" && workspace.Within(name, strings.ToLower(home))
	if workspace.Within(name, chat.PeopleDir) && name != chat.PeopleDir && !isOwn ||
		workspace.Within(name, chat.Inbox) && name != chat.Inbox ||
		workspace.Within(name, resultsDir) && strings.HasSuffix(base, untrustedTail) ||
		workspace.Within(name, "memory") && (base == "history.jsonl" || base == "heard.md") {
		return true
	}
	author, found := s.Workspace.Origin(p)
	if found && chat.Person(author) != s.Whose() {
		return true
	}
	author, found = workspace.OriginsOf(s.Workspace).Above(p)
	return found && chat.Person(author) != s.Whose()
}

// TaintBy marks r as untrusted if any of files, whose text or names it contains, holds
// untrusted content for a call in s.
func (r *Result) TaintBy(s Scope, files ...workspace.Path) {
	for _, p := range files {
		if Untrusted(s, p) {
			r.Tainted = true
			r.Sources = chat.JoinSources(r.Sources, "the file "+p.String())
		}
	}
}

// keep saves the text of a result, and returns the path of the file in the workspace. The same
// call always has the same file.
func keep(c Call, text string, untrusted bool) (string, error) {
	if c.Workspace == nil {
		return "", errors.New("no workspace")
	}
	tail := ".txt"
	if untrusted {
		tail = untrustedTail
	}
	return writeResult(c, chat.Slug(c.Key())+tail, layOut(text))
}

// SaveResult keeps the whole of a long result of c, and returns the path of the file in the
// workspace. It is for tools that shorten their results themselves.
func SaveResult(c Call, text string, untrusted bool) (string, error) { return keep(c, text, untrusted) }

// NewResult makes an empty file for a result of c that is still to come, and returns its path.
func NewResult(c Call, name string, untrusted bool) (string, error) {
	if c.Workspace == nil {
		return "", errors.New("no workspace")
	}
	tail := ".txt"
	if untrusted {
		tail = untrustedTail
	}
	return writeResult(c, name+tail, "")
}

func writeResult(c Call, base, text string) (string, error) {
	name := path.Join(Folder(resultsDir, c.Session), base)
	if err := c.Workspace.Names().WriteFile(name, []byte(text)); err != nil {
		return "", err
	}
	Prune(c.Workspace, resultsDir)
	trim(c.Workspace, path.Dir(name), maxResults)
	return name, nil
}

// trim removes the oldest files in dir until the others have at most so many bytes. If it fails
// to remove one, the next call may succeed.
func trim(w *workspace.Workspace, dir string, most int64) {
	entries, _ := w.Names().ReadDir(dir)
	var infos []fs.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // it was removed in the meantime
		}
		infos = append(infos, info)
	}
	slices.SortFunc(infos, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	total := int64(0)
	for i, info := range infos {
		if total += info.Size(); total <= most || i == 0 {
			continue
		}
		old, err := w.Named(path.Join(dir, info.Name()))
		if err != nil {
			continue
		}
		_ = w.Remove(old)
	}
}

// Prune removes the folders of all but the latest 32 sessions in dir. If it fails to remove
// one, the next call may succeed.
func Prune(w *workspace.Workspace, dir string) {
	entries, _ := w.Names().ReadDir(dir)
	used := map[string]time.Time{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // it was removed in the meantime
		}
		used[e.Name()] = info.ModTime()
	}
	latest := slices.SortedFunc(maps.Keys(used), func(a, b string) int { return used[b].Compare(used[a]) })
	for i, name := range latest {
		if i < maxSessions {
			continue
		}
		old, err := w.Named(path.Join(dir, name))
		if err != nil {
			continue
		}
		_ = w.RemoveAll(old)
	}
}

// TrimResults removes the long results of sessions that had none since t.Before (P28).
func TrimResults(w *workspace.Workspace, t store.Trimming) error {
	return TrimFolders(w, resultsDir, t)
}

// TrimFolders removes the folders of sessions in dir in which nothing was written since
// t.Before. A failure at one stops no other.
func TrimFolders(w *workspace.Workspace, dir string, t store.Trimming) error {
	entries, err := w.Names().ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	failed := []error{err}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if !lastWritten(w, name).Before(t.Before) {
			continue
		}
		old, err := w.Named(name)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		if err := w.RemoveAll(old); err != nil {
			failed = append(failed, err)
			continue
		}
		if err := t.Step(1); err != nil {
			return errors.Join(append(failed, err)...)
		}
	}
	return errors.Join(failed...)
}

// lastWritten returns when the folder called name, or a file in it, was written last. What
// cannot be looked at was written in this moment.
func lastWritten(w *workspace.Workspace, name string) time.Time {
	folder, err := w.Names().Stat(name)
	if err != nil {
		return time.Now()
	}
	last := folder.ModTime()
	entries, _ := w.Names().ReadDir(name)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // it was removed in the meantime
		}
		if info.ModTime().After(last) { // a command in the background may be writing it
			last = info.ModTime()
		}
	}
	return last
}
