package memory

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"math"
	"os"
	"path"
	"strings"
	"sync"

	"parley/chat"
	"parley/workspace"
)

const (
	maxText   = 64_000  // characters of an entry
	maxLine   = 1 << 20 // bytes of one in the file: more than its text can fill
	maxCursor = 1 << 53 // beyond that, not every reader of JSON counts
)

// A History is what was said, part by part: of each person a file of entries,
// one a line, in <Folder>/history.jsonl, or memory/history.jsonl for the owner.
// A line that is damaged, or somebody else's, stays where it is and counts as
// none (P21, R-S14).
type History struct {
	w     *workspace.Workspace
	log   *slog.Logger
	told  sync.Map     // names of the files whose damage was logged
	files sync.RWMutex // held to write to a file, and to see how long one is

	mu      sync.Mutex
	shelves map[chat.Person]*shelf // of those who searched lately
}

// NewHistory returns the History in w.
func NewHistory(w *workspace.Workspace, log *slog.Logger) *History {
	return &History{w: w, log: log, shelves: map[chat.Person]*shelf{}}
}

func historyOf(who chat.Person) string {
	if who == chat.TheOwner {
		return "memory/history.jsonl"
	}
	return path.Join(who.Folder(), "history.jsonl")
}

// A scroll is an open history, as long as it was when it was opened.
type scroll struct {
	*os.File
	h    *History
	name string
	who  chat.Person // "" for whoever is in it
	info fs.FileInfo
}

// open opens a file. The error is an fs.ErrNotExist if there is none.
func (h *History) open(name string, who chat.Person) (*scroll, error) {
	h.files.RLock()
	defer h.files.RUnlock()
	return h.openLocked(name, who)
}

func (h *History) openLocked(name string, who chat.Person) (*scroll, error) {
	f, err := h.w.OpenLog(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &scroll{f, h, name, who, info}, nil
}

// Append adds e to the history of who, with the next cursor, and returns it.
// Once it returned, e survives a power cut. An entry with the Key of another is
// not added, the other is returned: what a crash repeats is there once. Without
// a Key none is the same. A Text is cut at 64,000 characters.
func (h *History) Append(ctx context.Context, who chat.Person, e Entry) (Entry, error) {
	h.files.Lock()
	defer h.files.Unlock()
	name := historyOf(who)
	s, err := h.openLocked(name, who)
	if errors.Is(err, fs.ErrNotExist) {
		if err = h.w.WriteFile(name, nil); err == nil {
			s, err = h.openLocked(name, who)
		}
	}
	if err == nil {
		defer s.Close()
		e, err = s.add(ctx, e)
	}
	if err != nil {
		return Entry{}, fmt.Errorf("keep what was said: %w", err)
	}
	return e, nil
}

func (s *scroll) add(ctx context.Context, e Entry) (Entry, error) {
	e.Cursor, e.Who, e.Text = 1, s.who, clip(strings.ToValidUTF8(e.Text, "\uFFFD"), maxText)
	for l, err := range s.entries(ctx, 0) {
		if err != nil || l.Key == e.Key && e.Key != "" {
			return l.Entry, err
		}
		e.Cursor = max(e.Cursor, l.Cursor+1)
	}
	text, err := encode(e)
	last := []byte{'\n'}
	if err == nil && s.info.Size() > 0 {
		_, err = s.ReadAt(last, s.info.Size()-1)
	}
	if last[0] != '\n' { // a crash cut the last line
		text = append([]byte{'\n'}, text...)
	}
	if err == nil {
		_, err = s.Write(text)
	}
	if err == nil {
		err = s.Sync()
	}
	if err != nil { // nobody is to find half of it
		err = errors.Join(err, s.Truncate(s.info.Size()))
	}
	return e, err
}

// encode returns e as a line.
func encode(e Entry) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(e)
	return b.Bytes(), err
}

// decode returns the entry of who in a line.
func decode(text []byte, who chat.Person) (e Entry, ok bool) {
	err := json.Unmarshal(text, &e)
	return e, err == nil && (e.Who == who || who == "") && e.Cursor > 0 && e.Cursor < maxCursor
}

// A line is an entry and where it is in the file.
type line struct {
	Entry
	span
}

type span struct{ start, end int64 }

// entries yields the entries from there on. Nothing comes after an error. That
// lines are skipped is logged once for each file.
func (s *scroll) entries(ctx context.Context, from int64) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		l := line{span: span{from, from}}
		lines := bufio.NewScanner(io.NewSectionReader(s, from, s.info.Size()-from))
		lines.Buffer(nil, maxLine)
		lines.Split(func(data []byte, atEnd bool) (n int, text []byte, _ error) {
			if n = bytes.IndexByte(data, '\n') + 1; n == 0 && (atEnd || len(data) == maxLine) {
				n = len(data) // the rest of the file, or a piece of what is no entry
			}
			if n > 0 {
				l.start, l.end, text = l.end, l.end+int64(n), data[:n]
			}
			return n, text, nil
		})
		for ctx.Err() == nil && lines.Scan() {
			var ok bool
			if l.Entry, ok = decode(lines.Bytes(), s.who); ok && !yield(l, nil) {
				return
			} else if !ok && len(lines.Bytes()) > 1 {
				if _, told := s.h.told.LoadOrStore(s.name, true); !told {
					s.h.log.Warn("damaged lines of a history are skipped", "file", s.name, "first", l.start)
				}
			}
		}
		if err := errors.Join(ctx.Err(), lines.Err()); err != nil {
			yield(line{}, err)
		}
	}
}

// Since yields the entries of who that are after the cursor, which is 0 for
// all, in the order they were added. Nothing comes after an error.
func (h *History) Since(ctx context.Context, who chat.Person, cursor int64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		s, err := h.open(historyOf(who), who)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				yield(Entry{}, fmt.Errorf("read what was said: %w", err))
			}
			return
		}
		defer s.Close()
		for l, err := range s.entries(ctx, 0) {
			if (err != nil || l.Cursor > cursor && l.Text != "") && !yield(l.Entry, err) {
				return
			}
		}
	}
}

// People returns those who have a history, as its entries say.
func (h *History) People(ctx context.Context) (all []chat.Person, err error) {
	names, err := fs.Glob(h.w.Root().FS(), path.Join(path.Dir(chat.Person("").Folder()), "*", "history.jsonl"))
	for _, name := range append(names, historyOf(chat.TheOwner)) {
		s, err := h.open(name, "")
		if err != nil { // it is none, or the owner has none
			continue
		}
		for l, err := range s.entries(ctx, 0) {
			if err == nil && historyOf(l.Who) == name {
				all = append(all, l.Who)
				break
			}
		}
		_ = s.Close()
	}
	return all, errors.Join(err, ctx.Err())
}

// Forget removes the entries of who that are not to be kept, and says how
// many. Of each, the file keeps the cursor and the key, so that neither comes
// again. keep must not call h.
func (h *History) Forget(ctx context.Context, who chat.Person, keep func(Entry) bool) (int, error) {
	h.files.Lock()
	defer h.files.Unlock()
	n := 0
	s, err := h.openLocked(historyOf(who), who)
	if err == nil {
		defer s.Close()
		defer h.drop(who)
		n, err = s.forget(ctx, keep)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("forget what was said: %w", err)
	}
	return n, nil
}

func (s *scroll) forget(ctx context.Context, keep func(Entry) bool) (n int, err error) {
	var parts []io.Reader
	from := int64(0)
	for l, err := range s.entries(ctx, 0) {
		if err != nil {
			return 0, err
		}
		if l.Text != "" && !keep(l.Entry) {
			rest, err := encode(Entry{Cursor: l.Cursor, Who: s.who, Key: l.Key})
			if err != nil {
				return 0, err
			}
			parts = append(parts, io.NewSectionReader(s, from, l.start-from), bytes.NewReader(rest))
			from = l.end
			n++
		}
	}
	if n > 0 {
		parts = append(parts, io.NewSectionReader(s, from, s.info.Size()-from))
		_, err = s.h.w.Save(s.name, io.MultiReader(parts...), math.MaxInt64-1)
	}
	return n, err
}
