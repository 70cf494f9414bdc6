// Package attachments takes in the files that people send: it brings them into the
// workspace, finds out what they are, and has voice messages transcribed.
package attachments

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path"
	"slices"
	"strings"
	"time"

	"parley/channels"
	"parley/channels/safetext"
	"parley/chat"
	"parley/panics"
	"parley/store"
	"parley/texts"
	"parley/workspace"
)

const (
	maxFileBytes   = 20 << 20
	fetchTimeout   = 2 * time.Minute // for all the files of a message
	retryDelay     = time.Second     // before the first retry of a download
	longRetryDelay = 5 * time.Minute
	sniffedBytes   = 512 // as many as http.DetectContentType looks at
)

// A Config is what an Inbox works with. Only Files, Transcribe and MaxStored may
// be nil.
type Config struct {
	Files *workspace.Workspace // where files are kept; nil takes no file in
	Store store.Store          // what is known of them
	Log   *slog.Logger
	Texts *texts.Channels // what people are told

	// Channel returns the channel of that name, or nil.
	Channel func(name string) channels.Channel
	// RoleOf returns the role of the sender of m.
	RoleOf func(ctx context.Context, m chat.Message) (chat.Role, error)
	// Transcribe returns what is said in audio, whose name has the extension of its
	// format; nil if no transcription is configured.
	Transcribe func(ctx context.Context, name string, audio io.Reader) (string, error)
	// TakeBytes counts bytes of files that a person sends, or returns why no more
	// are accepted, a [*chat.Refusal].
	TakeBytes func(ctx context.Context, who chat.Person, bytes int64) error
	// MaxStored returns how many bytes of files a person may have in the workspace.
	// Nil, and a result of 0 or less, mean no limit; owners have none.
	MaxStored func() int64
	// CheckSpace returns store.ErrFull if the disk has no room for files.
	CheckSpace func() error
}

// An Inbox takes in the files that people send. Its methods may be called
// concurrently.
type Inbox struct {
	cfg      Config
	received store.Table[received]
}

// New returns an Inbox.
func New(cfg Config) *Inbox { return &Inbox{cfg, receivedFiles(cfg)} }

// Fetch returns m with its files in the workspace, in the inbox of the person, and
// with the words of voice messages in its Text. The names of the files follow from
// the message, so Fetch may be repeated. It never fails: a file that could not be
// taken in is mentioned to the person in Notice and to the model in Media. If ctx
// has ended, m is returned unchanged.
func (in *Inbox) Fetch(ctx context.Context, m chat.Message) chat.Message {
	if len(m.Files) == 0 {
		return m
	}
	limited, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	got := m
	got.Files = slices.Clone(m.Files)
	for i := range got.Files {
		f := &got.Files[i]
		if err := in.take(limited, m, i, f); err != nil {
			f.Path = ""
			in.reportFailure(&got, safetext.FileName(f.Name), err)
			continue
		}
		if f.Voice {
			in.listen(limited, &got, f.Path)
		}
	}
	if ctx.Err() != nil {
		return m
	}
	return got
}

// reportFailure tells the person, and the model, that the file called name was not
// taken in because of err.
func (in *Inbox) reportFailure(m *chat.Message, name string, err error) {
	in.cfg.Log.Warn("file not taken in", "chat", m.At.Session(), "name", name, "err", err)
	m.Notice = joined(m.Notice, " ", in.failureText(name, err))
	if refusal, ok := errors.AsType[*chat.Refusal](err); ok {
		m.Notice += " " + refusal.Text
	}
	m.Media = joined(m.Media, ", ", cmp.Or(name, "a file")+" not taken in"+reasonFor(err))
}

// listen adds the words of the voice message in the file at path to m.
func (in *Inbox) listen(ctx context.Context, m *chat.Message, path string) {
	m.Media = cmp.Or(m.Media, "voice")
	text, err := in.transcribe(ctx, path)
	if err != nil {
		in.cfg.Log.Warn("voice not transcribed", "chat", m.At.Session(), "err", err)
		m.Notice = joined(m.Notice, " ", in.cfg.Texts.Fetch.NotHeard)
		m.Media += ", not listened to"
		return
	}
	m.Text = joined(m.Text, "\n\n", text)
	m.Spoken = true
	m.Media += ", transcribed"
}

// transcribe returns what is said in the file at name.
func (in *Inbox) transcribe(ctx context.Context, name string) (text string, err error) {
	if in.cfg.Transcribe == nil {
		return "", errors.New("no transcription is configured")
	}
	file, err := in.cfg.Files.OpenNamed(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	err = panics.Try(func() error {
		text, err = in.cfg.Transcribe(ctx, path.Base(name), file)
		return err
	})
	if err != nil {
		return "", err
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return "", errors.New("no words in it")
	}
	return text, nil
}

// joined returns a and b with between in the middle, unless a is empty.
func joined(a, between, b string) string {
	if a == "" {
		return b
	}
	return a + between + b
}

// failureText tells the person that the file called name was not taken in, and the
// reason if that helps them.
func (in *Inbox) failureText(name string, err error) string {
	say := in.cfg.Texts.Fetch
	text := say.Failed
	switch {
	case errors.Is(err, workspace.ErrTooBig):
		text = say.TooBig
	case errors.Is(err, store.ErrFull):
		text = say.DiskFull
	case channels.IsPermanent(err):
		text = say.Gone
	}
	return text.With(cmp.Or(name, say.File))
}

// reasonFor tells the model why a file was not taken in, if that helps it.
func reasonFor(err error) string {
	switch {
	case errors.Is(err, workspace.ErrTooBig):
		return " because it is too big"
	case errors.Is(err, store.ErrFull):
		return " because my disk is full"
	case channels.IsPermanent(err):
		return " because it is no longer there"
	}
	return ""
}

var errNoFiles = errors.New("files are not taken in here")

// take brings f, which is file i of m, into the workspace and sets its type.
func (in *Inbox) take(ctx context.Context, m chat.Message, i int, f *chat.File) error {
	if in.cfg.Files == nil {
		return errNoFiles
	}
	if f.Path == "" {
		if f.Size > maxFileBytes {
			return workspace.ErrTooBig
		}
		if err := in.checkLimits(ctx, m, f.Size); err != nil {
			return err
		}
		who := chat.Whose(m.At, m.From, m.Group)
		f.Path = inboxPath(*f, who, m.Time, sha256.Sum256(fmt.Append(nil, m.Key(), "\x00", i)))
		if err := in.download(ctx, m, f); err != nil {
			return err
		}
	}
	return in.detectType(f)
}

// checkLimits returns an error if a file of that size, which came with m, must not
// be taken in.
func (in *Inbox) checkLimits(ctx context.Context, m chat.Message, size int64) error {
	if err := in.cfg.CheckSpace(); err != nil {
		return err
	}
	return in.cfg.TakeBytes(ctx, chat.Whose(m.At, m.From, m.Group), size)
}

// download saves f at its Path. It starts over after temporary errors until ctx
// ends.
func (in *Inbox) download(ctx context.Context, m chat.Message, f *chat.File) error {
	fetcher, ok := in.cfg.Channel(m.At.Channel).(channels.Fetcher)
	if !ok {
		return errNoFiles
	}
	backoff := channels.Backoff{Least: retryDelay, Most: longRetryDelay}
	for {
		body := &source{}
		err := panics.Try(func() error {
			if body.from, body.err = fetcher.Fetch(ctx, m, *f); body.err != nil {
				return body.err
			}
			defer body.from.Close()
			defer context.AfterFunc(ctx, func() { _ = body.from.Close() })() // a read may hang
			size, err := in.save(ctx, chat.Whose(m.At, m.From, m.Group), f.Path, body)
			f.Size = cmp.Or(size, f.Size)
			return err
		})
		isTemporary := err != nil && body.err != nil && !channels.IsPermanent(err)
		if !isTemporary || !channels.Sleep(ctx, backoff.Next(err)) {
			return err
		}
	}
}

// A source is the body of a download. It tells errors of the network from those of
// our disk.
type source struct {
	from io.ReadCloser
	err  error // of the network
}

// Read implements [io.Reader].
func (s *source) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// Save puts a file that from uploads at at into the inbox of that person. Its type
// follows from its contents, not from its name. The error is workspace.ErrTooBig
// for a file that is too big.
func (in *Inbox) Save(
	ctx context.Context, at chat.Address, from chat.Sender, name string, r io.Reader,
) (chat.File, error) {
	if in.cfg.Files == nil {
		return chat.File{}, errNoFiles
	}
	if err := in.cfg.CheckSpace(); err != nil {
		return chat.File{}, fmt.Errorf("save file: %w", err)
	}
	role, err := in.cfg.RoleOf(ctx, chat.Message{At: at, From: from})
	if err != nil {
		return chat.File{}, err
	}
	from.Role = role
	f := chat.File{Name: name}
	who := chat.Whose(at, from, false)
	f.Path = inboxPath(f, who, time.Now(), sha256.Sum256([]byte(rand.Text())))
	if f.Size, err = in.save(ctx, who, f.Path, r); err != nil {
		return f, err
	}
	return f, in.detectType(&f)
}

// save writes the bytes of r to the file called name, which is in the inbox of who.
// The error is a [*chat.Refusal] if the file would exceed what they may store.
func (in *Inbox) save(ctx context.Context, who chat.Person, name string, r io.Reader) (size int64, err error) {
	at, err := in.cfg.Files.Named(name)
	if err != nil {
		return 0, err
	}
	sum := sha256.New()
	if size, err = in.cfg.Files.Save(at, io.TeeReader(r, sum), maxFileBytes); err != nil {
		return 0, err
	}
	if err := in.countStored(who, size); err != nil {
		return 0, errors.Join(err, in.cfg.Files.Remove(at))
	}
	in.noteReceived(ctx, name, size, sum.Sum(nil))
	return size, nil
}

// countStored counts a file that was saved for who. The error is a [*chat.Refusal]
// if it exceeds what they may store.
func (in *Inbox) countStored(who chat.Person, size int64) error {
	if who == chat.TheOwner || in.cfg.MaxStored == nil {
		return nil
	}
	most := in.cfg.MaxStored()
	if most <= 0 {
		return nil
	}
	_, ok, err := in.cfg.Files.Count(string(who), who.InboxFolder(), workspace.DiskBytes(size), most)
	if err != nil {
		return err
	}
	if !ok {
		return &chat.Refusal{Text: in.cfg.Texts.Files.TooMany.With((most + 999_999) / 1_000_000)}
	}
	return nil
}
