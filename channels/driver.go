package channels

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"parley/chat"
	"parley/store"
	"parley/texts"
)

// A HealthState is why nothing comes in at present, at first nothing. It makes a
// driver a HealthReporter.
type HealthState struct {
	err       atomic.Pointer[error]
	recovered atomic.Pointer[func()]
}

// SetHealth notes why nothing comes in, or with nil that something does.
func (t *HealthState) SetHealth(err error) {
	before := t.err.Swap(&err)
	if f := t.recovered.Load(); f != nil && err == nil && before != nil && *before != nil {
		(*f)()
	}
}

// OnRecovery implements [RecoveryNotifier].
func (t *HealthState) OnRecovery(f func()) { t.recovered.Store(&f) }

// Health implements [HealthReporter].
func (t *HealthState) Health() error {
	if err := t.err.Load(); err != nil {
		return *err
	}
	return nil
}

const maxDead = 1000 // records

// KeepDeadLetter keeps in dead, as it came, what a driver cannot understand (P4): the last 1000.
func KeepDeadLetter(ctx context.Context, dead store.Log, raw []byte) error {
	seq, err := dead.Append(ctx, raw)
	if err == nil && seq > maxDead {
		err = dead.Trim(ctx, seq-maxDead)
	}
	if err != nil {
		return fmt.Errorf("keep what cannot be understood: %w", err)
	}
	return nil
}

// Button is what the button of choice i of q carries.
func Button(q *chat.Question, i int) string { return fmt.Sprintf("q:%s:%d", q.ID, i) }

// buttonForm matches a Button: 1 is its question, 2 its choice.
var buttonForm = regexp.MustCompile(`^q:([A-Za-z0-9]{1,32}):([0-9]{1,2})$`)

// Pressed returns the answer by the button of message rc that carries data, or
// nil for one that is none of ours: whoever sees a button can send anything as
// a press of it.
func Pressed(data string, rc Receipt) *chat.Answer {
	form := buttonForm.FindStringSubmatch(data)
	if form == nil {
		return nil
	}
	choice, _ := strconv.Atoi(form[2]) // two digits
	return &chat.Answer{Question: form[1], Choice: choice, Receipt: string(rc)}
}

// NewClient returns a client that speaks HTTP/1.1, so that giving up a request
// gives up its connection, too: a dead HTTP/2 connection would be used again (P24).
// It follows no redirect.
func NewClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Protocols, t.TLSClientConfig = new(http.Protocols), &tls.Config{} // the clone's own offers HTTP/2
	t.Protocols.SetHTTP1(true)
	t.ForceAttemptHTTP2, t.MaxIdleConnsPerHost = false, 64
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Bare returns err without the address that a client was to call, which may
// hold a secret (R-S26).
func Bare(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		return ue.Err
	}
	return err
}

const maxTold = 500 // bytes of an error, which may quote an answer

// Plainly returns err without secret, and cut short (R-S26). Of its causes only
// the end of a context is kept.
func Plainly(err error, secret string) error {
	for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, end) {
			return end
		}
	}
	text := err.Error()
	if secret != "" {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return errors.New(strings.ToValidUTF8(text[:min(len(text), maxTold)], ""))
}

// Download returns what is at link, which no error tells.
func Download(ctx context.Context, c *http.Client, link string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return nil, fmt.Errorf("download: %w", Bare(err))
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, fmt.Errorf("download: %w", Bare(err))
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		gone := []int{http.StatusForbidden, http.StatusNotFound, http.StatusGone}
		return nil, &Error{Permanent: slices.Contains(gone, resp.StatusCode), Err: fmt.Errorf("download: the server answered %d", resp.StatusCode)}
	}
	return resp.Body, nil
}

// An Upload is a file of a reply, opened to be sent.
type Upload struct {
	*os.File
	Of   chat.File
	Name string // that people see; of several each has another
	Size int64
}

// OpenAll opens files by open, each try anew, since what was streamed is gone.
// Of those that cannot be sent it says why, in a line each: most is how many
// bytes the network takes of one.
func OpenAll(say texts.Files, files []chat.File, most int64, open func(path string) (*os.File, error), log *slog.Logger) (ups []Upload, lost string) {
	named := func(f chat.File) string { return cmp.Or(SafeName(path.Base(f.Path)), "file") }
	for i, f := range files {
		u := Upload{Of: f, Name: named(f)}
		if slices.ContainsFunc(files[:i], func(g chat.File) bool { return named(g) == u.Name }) {
			u.Name = fmt.Sprintf("%d-%s", i+1, u.Name)
		}
		var err error
		if u.File, err = open(f.Path); err == nil {
			var info os.FileInfo
			if info, err = u.Stat(); err == nil {
				u.Size = info.Size()
			}
		}
		why := ""
		switch {
		case err != nil:
			log.Warn("file not sent", "path", f.Path, "err", err)
			why = say.Gone.With(u.Name)
		case u.Size == 0:
			why = say.Empty.With(u.Name)
		case u.Size > most:
			why = say.TooLarge.With(u.Name, most>>20)
		default:
			ups = append(ups, u)
			continue
		}
		u.Close() // of nil does nothing
		lost = join(lost, "\n", Lost(say, f, why))
	}
	return ups, lost
}

// Lost is the line that tells that f was not sent, and why. Of the file with the
// whole of a long answer it tells where that is kept, too.
func Lost(say texts.Files, f chat.File, why string) string {
	if isAnswer(f.Path) {
		why += ". " + say.Kept.With(f.Path)
	}
	return "📎 " + why
}

// An Intake takes in the messages of a channel whose network calls us by
// requests. It is open while Run runs.
type Intake struct {
	mu      sync.RWMutex // held while a message is delivered
	deliver func(chat.Message) error
}

// ErrShut is returned by [Intake.Deliver] before Run and after.
var ErrShut = errors.New("messages are not taken in now")

// Open lets messages in by deliver until ctx ends, and returns when none is on
// its way any more.
func (g *Intake) Open(ctx context.Context, deliver chat.Deliver) {
	g.set(func(m chat.Message) error { return deliver(ctx, m) })
	<-ctx.Done()
	g.set(nil)
}

func (g *Intake) set(deliver func(chat.Message) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deliver = deliver
}

// Deliver hands m over, even if the request that brought it ends.
func (g *Intake) Deliver(m chat.Message) error {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.deliver == nil {
		return ErrShut
	}
	return g.deliver(m)
}
