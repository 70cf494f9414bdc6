package memory

import (
	"bufio"
	"bytes"
	"cmp"
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
	"time"

	"parley/chat"
	"parley/workspace"
)

const (
	historyName = "history.jsonl"

	maxText = 64_000  // characters of an entry's text
	maxLine = 1 << 20 // bytes of an entry in the file, more than its text can take

	// maxGap is how many entries somebody may have removed before another. A
	// higher cursor is forged, and would leave no cursors for later entries.
	maxGap = 1 << 20
)

// An Entry is a summary of a part of a conversation that is over. Entries are the
// middle memory, between the current conversation and lasting knowledge.
type Entry struct {
	Cursor  int64          `json:"cursor"` // number of the entry, per person, from 1; never reused
	Time    time.Time      `json:"time"`   // when the last message of the part was sent
	Who     chat.Person    `json:"who"`
	Session chat.SessionID `json:"session"`
	Key     string         `json:"key"` // identifies the part: entries with the same key are the same
	Text    string         `json:"text"`
	Raw     bool           `json:"raw,omitempty"`     // Text is the conversation: it could not be summed up
	Tainted bool           `json:"tainted,omitempty"` // it is based on untrusted content (R-S14)
	Sources []string       `json:"sources,omitempty"` // where that content comes from
}

// A History has the summaries of past conversations: per person, a file with one
// entry a line, in <Folder>/history.jsonl, or memory/history.jsonl for the owner.
// A line that is damaged, forged or about another person is left in the file and
// ignored (P21, R-S14).
type History struct {
	w   *workspace.Workspace
	log *slog.Logger
	// reported has the people whose damaged lines were logged.
	reported sync.Map

	mu      sync.Mutex // held while a file is written or its length is read
	indexes map[chat.Person]*historyIndex
}

// NewHistory returns the History in w.
func NewHistory(w *workspace.Workspace, log *slog.Logger) *History {
	return &History{w: w, log: log, indexes: map[chat.Person]*historyIndex{}}
}

// A historyFile is an open history, with the length it had when it was opened.
type historyFile struct {
	file *os.File
	h    *History
	who  chat.Person // "" for a file whose person is unknown
	info fs.FileInfo
}

// open opens a file. The caller holds h.mu. The error is fs.ErrNotExist if there
// is no file.
func (h *History) open(name string, who chat.Person) (*historyFile, error) {
	f, err := h.w.Names().OpenLog(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &historyFile{f, h, who, info}, nil
}

// Append adds e to the history of who, with the next cursor, and returns it. After
// Append has returned, e survives a power cut. If an entry with the same Key
// exists, that one is returned instead, so that an entry repeated after a crash is
// added once. An entry without a Key is always added. A Text is cut at 64,000
// characters.
func (h *History) Append(ctx context.Context, who chat.Person, e Entry) (Entry, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e, err := h.append(ctx, who, e)
	if err != nil {
		return Entry{}, fmt.Errorf("append to the history: %w", err)
	}
	return e, nil
}

// append is Append for a caller who holds mu.
func (h *History) append(ctx context.Context, who chat.Person, e Entry) (Entry, error) {
	x, f, err := h.openIndexed(ctx, who)
	if errors.Is(err, fs.ErrNotExist) {
		if err := h.w.Names().WriteFile(fileOf(who, historyName), nil); err != nil {
			return Entry{}, err
		}
		x, f, err = h.openIndexed(ctx, who)
	}
	if err != nil {
		return Entry{}, err
	}
	defer f.file.Close()
	return x.add(f, e)
}

// add writes e to f, whose entries are all in x.
func (x *historyIndex) add(f *historyFile, e Entry) (Entry, error) {
	if i, ok := x.keys[e.Key]; ok {
		return f.entry(x.at[i])
	}
	e.Cursor = x.last + 1
	e.Who = f.who
	e.Text = chat.Shorten(strings.ToValidUTF8(e.Text, "\uFFFD"), maxText)
	text, err := encode(e)
	if err != nil {
		return e, err
	}
	whole, err := f.endsLine()
	if err != nil {
		return e, err
	}
	start := f.info.Size()
	at := span{start, start + int64(len(text))}
	if !whole { // a crash has cut the last line
		text = append([]byte{'\n'}, text...)
		at = span{at.start + 1, at.end + 1}
	}
	if err := f.appendSynced(text); err != nil { // leave no half of a line behind
		return e, errors.Join(err, f.file.Truncate(start))
	}
	x.put(line{e, at})
	x.info, _ = f.file.Stat() // nil after an error, so that the file is read again
	return e, nil
}

// appendSynced appends text, so that it survives a power cut.
func (f *historyFile) appendSynced(text []byte) error {
	if _, err := f.file.Write(text); err != nil {
		return err
	}
	return f.file.Sync()
}

// endsLine reports whether the file is empty or ends with a line break.
func (f *historyFile) endsLine() (bool, error) {
	if f.info.Size() == 0 {
		return true, nil
	}
	last := make([]byte, 1)
	_, err := f.file.ReadAt(last, f.info.Size()-1)
	return last[0] == '\n', err
}

// encode returns e as a line.
func encode(e Entry) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(e)
	return b.Bytes(), err
}

// decode returns the entry in a line, if it is one of who.
func decode(text []byte, who chat.Person) (e Entry, ok bool) {
	err := json.Unmarshal(text, &e)
	return e, err == nil && (e.Who == who || who == "") && e.Cursor > 0
}

// A line is an entry and its place in the file.
type line struct {
	entry Entry
	at    span
}

type span struct{ start, end int64 }

// entries yields the entries, until an error. Skipped lines are logged once per
// person.
func (f *historyFile) entries(ctx context.Context) iter.Seq2[line, error] {
	return func(yield func(line, error) bool) {
		size := f.info.Size()
		highest := int64(0) // cursor so far
		r := bufio.NewReaderSize(io.NewSectionReader(f.file, 0, size), int(min(size, maxLine)))
		for start := int64(0); start < size; {
			text, err := r.ReadSlice('\n') // or a part of a line that is too long, or the rest of the file
			if errors.Is(err, bufio.ErrBufferFull) || errors.Is(err, io.EOF) && len(text) > 0 {
				err = nil
			}
			if err = cmp.Or(ctx.Err(), err); err != nil {
				yield(line{}, err)
				return
			}
			at := span{start, start + int64(len(text))}
			start = at.end
			e, ok := decode(text, f.who)
			if !ok || e.Cursor > highest+maxGap {
				f.reportDamage(at, text)
				continue
			}
			highest = max(highest, e.Cursor)
			if !yield(line{e, at}, nil) {
				return
			}
		}
	}
}

// reportDamage logs that a line is skipped, once per person. An empty line is no
// damage.
func (f *historyFile) reportDamage(at span, text []byte) {
	if len(text) <= 1 {
		return
	}
	if _, reported := f.h.reported.LoadOrStore(f.who, true); !reported {
		f.h.log.Warn("damaged lines of a history skipped", "who", f.who, "first", at.start)
	}
}

// entry returns the entry at a place in the file.
func (f *historyFile) entry(at span) (Entry, error) {
	text := make([]byte, at.end-at.start)
	n, err := f.file.ReadAt(text, at.start)
	e, ok := decode(text[:n], f.who)
	if !ok {
		return e, cmp.Or(err, errors.New("another process writes to the history"))
	}
	return e, nil
}

// Since yields the entries of who after the cursor, or all if it is 0, in the
// order in which they were added, until an error.
func (h *History) Since(ctx context.Context, who chat.Person, cursor int64) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for e, err := range h.entries(ctx, who) {
			if (err != nil || e.Cursor > cursor && e.Text != "") && !yield(e, err) {
				return
			}
		}
	}
}

// last returns the highest cursor of who, even if its entry was forgotten.
func (h *History) last(ctx context.Context, who chat.Person) (last int64, err error) {
	for e, err := range h.entries(ctx, who) {
		if err != nil {
			return 0, err
		}
		last = max(last, e.Cursor)
	}
	return last, nil
}

// entries yields all entries of who, including forgotten ones.
func (h *History) entries(ctx context.Context, who chat.Person) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		h.mu.Lock()
		f, err := h.open(fileOf(who, historyName), who)
		h.mu.Unlock()
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				yield(Entry{}, fmt.Errorf("read history: %w", err))
			}
			return
		}
		defer f.file.Close()
		for l, err := range f.entries(ctx) {
			if !yield(l.entry, err) {
				return
			}
		}
	}
}

// People returns the people who have a history, according to its entries.
func (h *History) People(ctx context.Context) (all []chat.Person, err error) {
	people := path.Dir(chat.Person("").Folder())
	entries, err := h.w.Names().ReadDir(people)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	names := []string{fileOf(chat.TheOwner, historyName)}
	for _, e := range entries {
		names = append(names, path.Join(people, e.Name(), historyName))
	}
	for _, name := range names {
		h.mu.Lock()
		f, err := h.open(name, "")
		h.mu.Unlock()
		if err != nil { // there is no history there
			continue
		}
		for l, err := range f.entries(ctx) {
			if err == nil && fileOf(l.entry.Who, historyName) == name {
				all = append(all, l.entry.Who)
				break
			}
		}
		_ = f.file.Close()
	}
	return all, errors.Join(err, ctx.Err())
}

// Forget removes the entries of who for which keep is false, and returns how many.
// Their cursors and keys stay in the file, so that neither is used again. keep
// must not call h.
func (h *History) Forget(ctx context.Context, who chat.Person, keep func(Entry) bool) (n int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f, err := h.open(fileOf(who, historyName), who)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("forget entries of the history: %w", err)
	}
	defer f.file.Close()
	delete(h.indexes, who)
	n, err = f.forget(ctx, keep)
	if err != nil {
		return 0, fmt.Errorf("forget entries of the history: %w", err)
	}
	return n, nil
}

// forget rewrites the file without the texts of entries for which keep is false,
// and returns how many those are.
func (f *historyFile) forget(ctx context.Context, keep func(Entry) bool) (n int, err error) {
	var parts []io.Reader
	from := int64(0)
	for l, err := range f.entries(ctx) {
		if err != nil {
			return 0, err
		}
		if l.entry.Text == "" || keep(l.entry) {
			continue
		}
		rest, err := encode(Entry{Cursor: l.entry.Cursor, Who: f.who, Key: l.entry.Key})
		if err != nil {
			return 0, err
		}
		parts = append(parts, io.NewSectionReader(f.file, from, l.at.start-from), bytes.NewReader(rest))
		from = l.at.end
		n++
	}
	if n == 0 {
		return 0, nil
	}
	parts = append(parts, io.NewSectionReader(f.file, from, f.info.Size()-from))
	path, err := f.h.w.Resolve(fileOf(f.who, historyName))
	if err != nil {
		return n, err
	}
	_, err = f.h.w.Save(path, io.MultiReader(parts...), math.MaxInt64-1)
	return n, err
}
