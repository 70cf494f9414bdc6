package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"parley/chat"
)

const preview = 1200 // characters of a long result that the model sees at once

// Truncate keeps a result within its tool's MaxText. A longer one goes to a
// file that the text names (D-042), or is cut when there is nowhere to keep it
// (D-043). It also makes sure that there is something to read (D-044), and
// that it is text.
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

// shorten returns what the model sees of a text of n characters, and the file
// that holds all of it, if any. It is strange if strangers wrote it.
func shorten(c Call, text string, n, limit int, strange bool) (seen, path string) {
	path, err := keep(c, text, strange)
	if err != nil {
		return chat.Clip(text, limit, "\n... (truncated)"), ""
	}
	seen = fmt.Sprintf("[tool output persisted]\nFull output saved to: %s\nOriginal size: %d chars\nPreview:\n%s\n...\n"+
		"(Read the saved file if you need the full output.)", path, n, chat.Clip(text, min(preview, limit), ""))
	return seen, path
}

// What the house keeps in the workspace has one folder per session.
const (
	ownDir      = ".parley"
	resultsDir  = ownDir + "/tool-results" // long results (D-042)
	daysKept    = 7
	maxSessions = 32
)

// Folder returns the folder in dir that is session s's own.
func Folder(dir string, s chat.SessionID) string { return path.Join(dir, chat.Slug(string(s))) }

// Private says whether the file called name, as Workspace.Path returned it, is
// not for a call in s: the house's own, which is all of .parley but the results
// that the session was given, and what is known of others (R-S14).
func Private(s Scope, name string) bool {
	return within(ownDir, name) && !within(Folder(resultsDir, s.Session), name) || s.Whose().Hides(name)
}

func within(dir, name string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

const strangeTail = "-strange.txt"

// Strange says whether strangers had a word in the file called name, as
// Workspace.Path returned it: in a long result of what they wrote, in what is
// kept of past conversations and of hearsay. Whoever reads it lets them into the
// turn (R-S12, R-S14).
func Strange(name string) bool {
	name = strings.ToLower(name)
	base := path.Base(name)
	return within(resultsDir, name) && strings.HasSuffix(base, strangeTail) ||
		within("memory", name) && (base == "history.jsonl" || base == "heard.md")
}

// keep saves the text of a result and returns the file's path in the
// workspace. A call kept twice has one file.
func keep(c Call, text string, strange bool) (string, error) {
	if c.Workspace == nil {
		return "", errors.New("no workspace")
	}
	tail := ".txt"
	if strange {
		tail = strangeTail
	}
	name := path.Join(Folder(resultsDir, c.Session), chat.Slug(c.Key())+tail)
	if err := c.Workspace.WriteFile(name, []byte(text)); err != nil {
		return "", err
	}
	Prune(c.Workspace.Root(), resultsDir)
	return name, nil
}

// Prune removes the folders in dir of sessions that nothing was kept for
// within a week, and of those beyond the latest 32. What it cannot remove the
// next one may.
func Prune(root *os.Root, dir string) {
	entries, _ := fs.ReadDir(root.FS(), dir)
	used := map[string]time.Time{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			used[e.Name()] = info.ModTime()
		}
	}
	latest := slices.SortedFunc(maps.Keys(used), func(a, b string) int { return used[b].Compare(used[a]) })
	for i, name := range latest {
		if i >= maxSessions || time.Since(used[name]) > daysKept*24*time.Hour {
			_ = root.RemoveAll(path.Join(dir, name))
		}
	}
}
