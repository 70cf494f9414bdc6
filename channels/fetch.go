package channels

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/panics"
	"parley/store"
	"parley/workspace"
)

const (
	maxFile   = 20 << 20        // bytes of one file
	fetchTime = 2 * time.Minute // for all the files of a message
)

// Fetch returns m with its files in the workspace, in the inbox of the person, and the words
// that were spoken in them in its Text. The same message has the same names
// there, so Fetch may be repeated. It never fails: what could not be taken in
// is told to the person in Notice and to the model in Media. When ctx has
// ended, m is as it was.
func (h *Hub) Fetch(ctx context.Context, m chat.Message) chat.Message {
	if len(m.Files) == 0 {
		return m
	}
	limited, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	got := m
	got.Files = slices.Clone(m.Files)
	for i := range got.Files {
		f := &got.Files[i]
		if err := h.take(limited, m, i, f); err != nil {
			f.Path = ""
			name := SafeName(f.Name)
			h.cfg.Log.Warn("file not taken in", "chat", m.At.Session(), "name", name, "err", err)
			got.Notice = join(got.Notice, " ", h.notTakenIn(name, err))
			if refusal, ok := errors.AsType[*chat.Refusal](err); ok {
				got.Notice += " " + refusal.Text
			}
			got.Media = join(got.Media, ", ", cmp.Or(name, "a file")+" not taken in"+why(err))
		} else if f.Voice {
			h.listen(limited, &got, f.Path)
		}
	}
	if ctx.Err() != nil {
		return m
	}
	return got
}

// listen adds the words that are spoken in the file at path to m.
func (h *Hub) listen(ctx context.Context, m *chat.Message, path string) {
	m.Media = cmp.Or(m.Media, "voice")
	text, err := h.transcribe(ctx, path)
	if err != nil {
		h.cfg.Log.Warn("voice not transcribed", "chat", m.At.Session(), "err", err)
		m.Notice = join(m.Notice, " ", h.cfg.Texts.Fetch.NotHeard)
		m.Media += ", not listened to"
		return
	}
	m.Text, m.Spoken = join(m.Text, "\n\n", text), true
	m.Media += ", transcribed"
}

// transcribe returns what is said in the file at name.
func (h *Hub) transcribe(ctx context.Context, name string) (text string, err error) {
	if h.cfg.Transcribe == nil {
		return "", errors.New("no transcription is configured")
	}
	file, err := h.cfg.Files.OpenNamed(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	err = panics.Try(func() error {
		text, err = h.cfg.Transcribe(ctx, path.Base(name), file)
		return err
	})
	if text = strings.TrimSpace(text); err == nil && text == "" {
		err = errors.New("no words in it")
	}
	return text, err
}

func join(a, between, b string) string {
	if a == "" {
		return b
	}
	return a + between + b
}

// notTakenIn tells the person that the file called name was not taken in, and
// why, if that helps.
func (h *Hub) notTakenIn(name string, err error) string {
	say := h.cfg.Texts.Fetch
	text := say.Failed
	switch {
	case errors.Is(err, workspace.ErrTooBig):
		text = say.TooBig
	case errors.Is(err, store.ErrFull):
		text = say.DiskFull
	case permanent(err):
		text = say.Gone
	}
	return text.With(cmp.Or(name, say.File))
}

// why tells the model why a file was not taken in, if that helps.
func why(err error) string {
	switch {
	case errors.Is(err, workspace.ErrTooBig):
		return " because it is too big"
	case errors.Is(err, store.ErrFull):
		return " because my disk is full"
	case permanent(err):
		return " because it is no longer there"
	}
	return ""
}

var errNoFiles = errors.New("files are not taken in here")

// take brings f, which is file i of m, into the workspace and finds out what it is.
func (h *Hub) take(ctx context.Context, m chat.Message, i int, f *chat.File) error {
	if h.cfg.Files == nil {
		return errNoFiles
	}
	if f.Path == "" {
		if f.Size > maxFile {
			return workspace.ErrTooBig
		}
		if err := h.admit(ctx, m, f.Size); err != nil {
			return err
		}
		who := chat.Whose(m.At, m.From, m.Group)
		f.Path = place(*f, who, m.Time, sha256.Sum256(fmt.Append(nil, m.Key(), "\x00", i)))
		if err := h.download(ctx, m, f); err != nil {
			return err
		}
	}
	return h.recognise(f)
}

// admit returns why a file of so many bytes, which came with m, is not taken.
func (h *Hub) admit(ctx context.Context, m chat.Message, size int64) error {
	if err := h.cfg.Room(); err != nil {
		return err
	}
	return h.cfg.TakeBytes(ctx, chat.Whose(m.At, m.From, m.Group), size)
}

// download saves f at its Path, however often that has to be begun anew while ctx lasts.
func (h *Hub) download(ctx context.Context, m chat.Message, f *chat.File) error {
	l := h.lines[m.At.Channel]
	if l == nil {
		return errNoFiles
	}
	c, ok := l.Channel.(Fetcher)
	if !ok {
		return errNoFiles
	}
	for p := patience(); ; {
		in := &source{}
		err := panics.Try(func() error {
			if in.ReadCloser, in.err = c.Fetch(ctx, m, *f); in.err != nil {
				return in.err
			}
			defer in.Close()
			defer context.AfterFunc(ctx, func() { _ = in.Close() })() // whoever reads it may hang
			size, err := h.save(chat.Whose(m.At, m.From, m.Group), f.Path, in)
			f.Size = cmp.Or(size, f.Size)
			return err
		})
		if err == nil || permanent(err) || in.err == nil || !Sleep(ctx, p.Next(err)) {
			return err
		}
	}
}

// A source notes when the network is to blame for an error.
type source struct {
	io.ReadCloser
	err error
}

// Read implements [io.Reader].
func (s *source) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// Save puts a file that somebody uploads into their inbox in the workspace: see
// [Hub.Save].
type Save func(ctx context.Context, at chat.Address, from chat.Sender, name string, r io.Reader) (chat.File, error)

// Save puts a file that from uploads at at into the inbox of that person, as
// Fetch does with those that stay at a network. Its type is what it is, not what
// its name says. The error is workspace.ErrTooBig for one that is too big.
func (h *Hub) Save(ctx context.Context, at chat.Address, from chat.Sender, name string, r io.Reader) (chat.File, error) {
	if h.cfg.Files == nil {
		return chat.File{}, errNoFiles
	}
	if err := h.cfg.Room(); err != nil {
		return chat.File{}, fmt.Errorf("save file: %w", err)
	}
	role, err := h.access.RoleOf(ctx, chat.Message{At: at, From: from})
	if err != nil {
		return chat.File{}, err
	}
	from.Role = role
	f := chat.File{Name: name}
	who := chat.Whose(at, from, false)
	f.Path = place(f, who, time.Now(), sha256.Sum256([]byte(rand.Text())))
	if f.Size, err = h.save(who, f.Path, r); err == nil {
		err = h.recognise(&f)
	}
	return f, err
}

// save makes what r yields the file of the workspace called name, which is in the
// inbox of who. The error is a [*chat.Refusal] if they would have more than they may.
func (h *Hub) save(who chat.Person, name string, r io.Reader) (size int64, err error) {
	at, err := h.cfg.Files.Named(name)
	if err != nil {
		return 0, err
	}
	if size, err = h.cfg.Files.Save(at, r, maxFile); err != nil {
		return 0, err
	}
	if err := h.countStored(who, size); err != nil {
		return 0, errors.Join(err, h.cfg.Files.Remove(at))
	}
	return size, nil
}

// countStored counts a file that was saved for who, unless it is one too many.
func (h *Hub) countStored(who chat.Person, size int64) error {
	if who == chat.TheOwner || h.cfg.MaxStored == nil {
		return nil
	}
	most := h.cfg.MaxStored()
	if most <= 0 {
		return nil
	}
	_, ok, err := h.cfg.Files.Count(string(who), who.InboxFolder(), workspace.DiskBytes(size), most)
	if err == nil && !ok {
		err = &chat.Refusal{Text: h.cfg.Texts.Files.TooMany.With((most + 999_999) / 1_000_000)}
	}
	return err
}

// place is where in the workspace f belongs, which who sent then. The sum tells
// it from others of its name.
func place(f chat.File, who chat.Person, then time.Time, sum [sha256.Size]byte) string {
	name := SafeName(f.Name)
	if name == "" {
		name, _, _ = strings.Cut(cmp.Or(f.Type, "file"), "/")
		name = SafeName(name)
	}
	if path.Ext(name) == "" {
		name += extension(f.Type)
	}
	return fmt.Sprintf("%s/%s/%x-%s", who.InboxFolder(), then.UTC().Format(time.DateOnly), sum[:5], name)
}

// recognise sets the Type of f, which is in the workspace, by what it holds.
func (h *Hub) recognise(f *chat.File) error {
	file, err := h.cfg.Files.OpenNamed(f.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	head, err := io.ReadAll(io.LimitReader(file, 512)) // as much as is looked at
	if err != nil {
		return fmt.Errorf("read %s: %w", f.Path, err)
	}
	f.Type = contents(cmp.Or(f.Type, mime.TypeByExtension(path.Ext(f.Name))), head)
	return nil
}

// contents returns the type of a file that begins with head. What its sender
// claims counts only where that may be so and nobody can tell: a zip is no image.
func contents(claim string, head []byte) string {
	is, _, _ := mime.ParseMediaType(http.DetectContentType(head))
	claim, _, err := mime.ParseMediaType(claim)
	family, _, _ := strings.Cut(claim, "/")
	may := ""
	switch is {
	case "application/octet-stream":
		may = "audio video application text font"
	case "text/plain", "text/xml":
		may = "text application"
	case "application/zip": // as many formats are
		may = "application"
	case "application/ogg", "video/mp4", "video/webm":
		may = "audio video"
	}
	seen := []string{"application/pdf", "application/zip", "application/gzip"} // these would have been
	if err != nil || !slices.Contains(strings.Fields(may), family) || slices.Contains(seen, claim) || len(head) == 0 {
		return is
	}
	return claim
}

// extension is what names of that type end in, for those that have no name.
func extension(typ string) string {
	typ, _, _ = mime.ParseMediaType(typ)
	switch typ {
	case "image/jpeg":
		return ".jpg"
	case "audio/mpeg":
		return ".mp3"
	case "audio/mp4":
		return ".m4a"
	case "image/png", "image/gif", "image/webp", "audio/ogg", "audio/wav", "video/mp4", "application/pdf":
		return "." + path.Base(typ)
	}
	return ""
}
