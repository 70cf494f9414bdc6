package channels

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime"
	"path"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/workspace"
)

const (
	maxFile   = 20 << 20        // bytes, unless the Config says otherwise
	fetchTime = 2 * time.Minute // for all the files of a message
)

// Fetch returns m with its files in the workspace, under inbox/, and the words
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
		f := fetching{hub: h, m: m, File: &got.Files[i], at: i}
		if err := f.take(limited); err != nil {
			h.log.Warn("file not taken in", "chat", m.At.Session(), "name", SafeName(f.Name), "err", err)
			f.Path = ""
			got.Notice = join(got.Notice, " ", fmt.Sprintf("I could not take in %s%s.", f.called(), why(err)))
			got.Media = join(got.Media, ", ", f.called()+" not taken in"+why(err))
		} else if f.Voice {
			h.listen(limited, &got, f)
		}
	}
	if ctx.Err() != nil {
		return m
	}
	return got
}

// listen adds the words that are spoken in f to m.
func (h *Hub) listen(ctx context.Context, m *chat.Message, f fetching) {
	text, err := f.transcribe(ctx)
	if err != nil {
		h.log.Warn("voice not transcribed", "chat", m.At.Session(), "err", err)
		m.Notice = join(m.Notice, " ", "I could not listen to your voice message. Please write to me instead.")
		m.Media = join(cmp.Or(m.Media, "voice"), ", ", "not listened to")
		return
	}
	m.Text = join(m.Text, "\n\n", text)
	m.Media = join(cmp.Or(m.Media, "voice"), ", ", "transcribed")
}

func join(a, between, b string) string {
	if a == "" {
		return b
	}
	return a + between + b
}

// A fetching is one file of a message being taken in.
type fetching struct {
	*chat.File
	hub *Hub
	m   chat.Message
	at  int // place among the files of m
}

// called names the file for the person.
func (f fetching) called() string {
	if name := SafeName(f.Name); name != "" {
		return name
	}
	return "a file"
}

var (
	errNoFiles  = errors.New("files are not taken in here")
	errNoListen = errors.New("no transcription is configured")
	errNoWords  = errors.New("no words in it")
)

// why says, for whom it concerns, why a file was not taken in, if that helps.
func why(err error) string {
	switch {
	case errors.Is(err, workspace.ErrTooBig):
		return " because it is too big"
	case permanent(err):
		return " because it is no longer there"
	}
	return ""
}

// take brings the file into the workspace and finds out what it is.
func (f fetching) take(ctx context.Context) error {
	if f.hub.files == nil {
		return errNoFiles
	}
	if f.Path == "" {
		if f.Size > f.hub.maxFile {
			return workspace.ErrTooBig
		}
		if err := f.download(ctx); err != nil {
			return err
		}
	}
	var err error
	f.Type, err = f.hub.kind(f.Path, cmp.Or(f.Type, mime.TypeByExtension(path.Ext(f.Name))))
	return err
}

// download saves the file, however often that has to be begun anew while ctx lasts.
func (f fetching) download(ctx context.Context) error {
	l := f.hub.lines[f.m.At.Channel]
	if l == nil {
		return errNoFiles
	}
	c, ok := l.Channel.(Fetcher)
	if !ok {
		return errNoFiles
	}
	for p := (pace{}); ; {
		in := &source{}
		err := safely(func() error { return f.save(ctx, c, in) })
		if err == nil || permanent(err) || in.err == nil || !sleep(ctx, p.wait(err)) {
			return err
		}
	}
}

// save makes one attempt. in knows whether the network is to blame for an error.
func (f fetching) save(ctx context.Context, c Fetcher, in *source) error {
	body, err := c.Fetch(ctx, f.m, *f.File)
	if err != nil {
		in.err = err
		return err
	}
	defer body.Close()
	defer context.AfterFunc(ctx, func() { _ = body.Close() })() // whoever reads it may hang
	in.Reader = body
	name := f.place()
	n, err := f.hub.files.Save(name, in, f.hub.maxFile)
	if err != nil {
		return err
	}
	f.Path, f.Size = name, n
	return nil
}

// A source notes that reading failed.
type source struct {
	io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// place is where in the workspace the file belongs.
func (f fetching) place() string {
	name := SafeName(f.Name)
	if name == "" {
		name, _, _ = strings.Cut(cmp.Or(f.Type, "file"), "/")
		name = SafeName(name)
	}
	if path.Ext(name) == "" {
		name += extension(f.Type)
	}
	sum := sha256.Sum256(fmt.Append(nil, f.m.Key(), "\x00", f.at))
	return fmt.Sprintf("inbox/%s/%x-%s", f.m.Time.UTC().Format(time.DateOnly), sum[:5], name)
}

// transcribe returns what is said in the file.
func (f fetching) transcribe(ctx context.Context) (text string, err error) {
	if f.hub.transcribe == nil {
		return "", errNoListen
	}
	file, err := f.hub.files.Open(f.Path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	err = safely(func() error {
		text, err = f.hub.transcribe(ctx, path.Base(f.Path), file)
		return err
	})
	if text = strings.TrimSpace(text); err == nil && text == "" {
		err = errNoWords
	}
	return text, err
}
