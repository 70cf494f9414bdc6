package api

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"parley/channels/network"
	"parley/chat"
)

const (
	maxBody   = 20 << 20    // bytes of a request, images included
	maxText   = 4 << 20     // bytes of a request without its images, which is in memory
	maxImages = 20          // of what is said now
	maxParts  = 10_000      // messages of a request, and parts of one of them; each takes more memory than its text
	readTime  = time.Minute // for a request to come in
	assistant = "assistant"
)

// A request is what a client sent.
type request struct {
	Model         string
	Messages      messages
	Stream        bool
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	User string
	N    *int

	at      chat.Address // whose it is; Thread is the prefix of their sessions
	name    string       // of the conversation, if the client gives one
	system  []string
	history []turn // what was said, up to the last answer
	fresh   []turn // what is said now
	images  []image
}

// An image is one that is said now.
type image struct {
	kind string
	data *io.SectionReader
}

// A message is one of the conversation that a client sends.
type message struct {
	Role    string
	Content content
}

// messages are those of a request, not more than we read.
type messages []message

// UnmarshalJSON implements [json.Unmarshaler].
func (ms *messages) UnmarshalJSON(b []byte) (err error) {
	*ms, err = readList[message](b)
	return err
}

// errTooMany is returned by readList.
var errTooMany = errors.New("too many elements")

// readList reads a list in JSON, of maxParts at most.
func readList[E any](b []byte) (all []E, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	begin, err := d.Token()
	switch {
	case err != nil:
		return nil, err
	case begin == nil:
		return nil, nil
	case begin != json.Delim('['):
		return nil, errors.New("not a list")
	}
	for d.More() {
		if len(all) == maxParts {
			return nil, errTooMany
		}
		var e E
		if err := d.Decode(&e); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// A turn is what somebody said.
type turn struct{ Role, Text string }

// A content is a text, or parts.
type content []part

type part struct {
	Type     string
	Text     string
	ImageURL struct{ URL string } `json:"image_url"`
}

// UnmarshalJSON takes both forms, and null.
func (c *content) UnmarshalJSON(b []byte) (err error) {
	if b[0] == '[' {
		*c, err = readList[part](b)
		return err
	}
	p := part{Type: "text"}
	err = json.Unmarshal(b, &p.Text)
	*c = content{p}
	return err
}

// read reads the request of r, whose pictures stay in the spool until release
// is called. Its error is a *failure.
func (c *Channel) read(w http.ResponseWriter, r *http.Request, who string) (q *request, release func(), err error) {
	whole, uncountWhole := c.cfg.Bodies.Reader(who, http.MaxBytesReader(w, r.Body, maxBody))
	pictures := newSpool(whole, c.cfg.Dir)
	body, uncount := c.cfg.Budget.Reader(who, http.MaxBytesReader(w, io.NopCloser(pictures), maxText))
	release = func() {
		pictures.close()
		uncount()
		uncountWhole()
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	q = &request{}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(readTime)) // not every writer can
	err = json.NewDecoder(body).Decode(q)
	_ = control.SetReadDeadline(time.Time{}) // it would end the request's context
	if err == nil {
		q.name = named(cmp.Or(r.Header.Get("X-Session-Id"), q.User))
		err = q.sort(pictures)
	} else {
		err = c.unread(err)
	}
	return q, release, err
}

// unread is what a client is told of err, which broke off the reading of its request.
func (c *Channel) unread(err error) *failure {
	var large *http.MaxBytesError
	var file *fs.PathError
	switch {
	case errors.As(err, &large):
		return &failure{
			status: http.StatusRequestEntityTooLarge,
			message: fmt.Sprintf("The request is larger than %d MiB, or %d MiB without its images.",
				maxBody>>20, maxText>>20),
			code: "request_too_large",
		}
	case errors.Is(err, errTooMany):
		return &failure{
			status: http.StatusRequestEntityTooLarge,
			message: fmt.Sprintf("The request has more than %d messages, or a message more than %[1]d parts.",
				maxParts),
			code: "request_too_large",
		}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &failure{
			status:  http.StatusRequestTimeout,
			message: "The request took too long to come in.",
			code:    "request_timeout",
		}
	case errors.Is(err, network.ErrBusyPerson):
		return &failure{
			status:  http.StatusTooManyRequests,
			message: "You send too much at once. Wait for other requests to finish, then try again.",
			code:    "rate_limit_exceeded",
			after:   "2",
		}
	case errors.Is(err, network.ErrBusy):
		return &failure{
			status:  http.StatusServiceUnavailable,
			message: "Too much is being sent at once. Try again in a moment.",
			code:    "unavailable",
			after:   "2",
		}
	case errors.As(err, &file):
		c.cfg.Log.Error("images of a request were not kept", "err", err)
		return failed(err)
	}
	return bad("", "The body is not a chat completion request in JSON.")
}

// sort tells what was said before from what is new.
func (q *request) sort(pictures *spool) error {
	switch {
	case len(q.Messages) == 0:
		return bad("messages", "There must be at least one message.")
	case q.N != nil && *q.N != 1:
		return bad("n", "There is one answer only.")
	}
	last := 0
	for i, m := range q.Messages {
		if m.Role == assistant {
			last = i
		}
	}
	for i, m := range q.Messages {
		param := fmt.Sprintf("messages[%d]", i)
		t := turn{Role: m.Role}
		for _, p := range m.Content {
			switch isImage := p.Type == "image_url"; {
			case isImage && m.Role == "user" && i >= last:
				picture, err := pictures.picture(p.ImageURL.URL)
				if err != nil {
					return bad(param, err.Error())
				}
				kind, err := picture.contentType()
				if err != nil {
					return bad(param, err.Error())
				}
				if len(q.images) == maxImages {
					return bad(param, fmt.Sprintf("A message can have %d images at most.", maxImages))
				}
				q.images = append(q.images, image{kind, picture.data})
			case !isImage && p.Type != "text" && p.Type != "refusal":
				return bad(param, "A part can be text or image_url only.")
			}
			t.Text = strings.TrimSpace(t.Text + "\n" + p.Text)
		}
		switch m.Role {
		case "system", "developer":
			q.system = append(q.system, t.Text)
		case "user":
			if i < last {
				q.history = append(q.history, t)
			} else {
				q.fresh = append(q.fresh, t)
			}
		case assistant:
			q.history = append(q.history, t)
		case "tool", "function": // of tools that are not ours
		default:
			return bad(param+".role", "There is no such role.")
		}
	}
	if q.text() == "" && len(q.images) == 0 {
		return bad("messages", "The last message must be the user's, and say something.")
	}
	return nil
}

// text is what is said now.
func (q *request) text() string {
	var texts []string
	for _, t := range q.fresh {
		texts = append(texts, t.Text)
	}
	return strings.TrimSpace(strings.Join(texts, "\n\n"))
}

// before is what the agent has to know of a conversation that is new to it. It
// is passed on as a quotation: whoever wrote it, it is data (R-S11).
func (q *request) before() *chat.Quote {
	var b strings.Builder
	if len(q.system) > 0 {
		b.WriteString("What the program asks of its assistant:\n" + strings.Join(q.system, "\n\n") + "\n")
	}
	if len(q.history) > 0 {
		b.WriteString("What was said before, as the program tells it:\n")
	}
	for _, t := range q.history {
		fmt.Fprintf(&b, "%s: %s\n", t.Role, t.Text)
	}
	if b.Len() == 0 {
		return nil
	}
	return &chat.Quote{From: "this program", Text: b.String(), Forwarded: true}
}

// id returns the ID of the message that q is, the same for a request that
// comes again under its key (P3).
func (q *request) id(key string) string {
	body, _ := json.Marshal([]any{q.at, q.name, key, q.Messages})
	return hash(body)[:32]
}

// digest tells a conversation from all others of the same person.
func (q *request) digest(said []turn) string {
	d := hash([]byte(q.at.Session()))
	for _, t := range said {
		d = extend(d, t)
	}
	return d
}

// extend returns the digest of a conversation after t. Clients do not keep
// every blank of what they were sent.
func extend(digest string, t turn) string {
	return hash([]byte(digest + t.Role + "\x00" + strings.Join(strings.Fields(t.Text), " ")))
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

var plain = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// named returns what stands for a name that the client chose.
func named(name string) string {
	if name == "" || plain.MatchString(name) {
		return name
	}
	return hash([]byte(name))[:16]
}
