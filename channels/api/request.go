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
	"strings"
	"time"

	"parley/channels/network"
	"parley/chat"
	"parley/lazyregexp"
	"parley/response"
)

const (
	maxBody     = 20 << 20    // bytes of a request with its images
	maxText     = 4 << 20     // bytes of a request without its images, which is held in memory
	maxImages   = 20          // of the new messages
	maxParts    = 10_000      // messages of a request, and parts of a message; each takes more memory than its text
	readTimeout = time.Minute // for reading a request
	assistant   = "assistant"
	tool        = "tool"
)

// A request is a chat completion request.
type request struct {
	Model         string
	Messages      messages
	Stream        bool
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	User string
	options

	at       chat.Address // of the client; Thread is the prefix of its sessions
	name     string       // of the conversation; "": the client gave none
	system   []string
	history  []textMessage // the messages up to the last answer
	newTurns []textMessage // the messages after it
	images   []image
}

// An image is one of the new messages.
type image struct {
	kind string
	data *io.SectionReader
}

// A message is one message of a request.
type message struct {
	Role      string
	Content   content
	ToolCalls []toolCall `json:"tool_calls,omitempty"`   // of an assistant
	ToolCall  string     `json:"tool_call_id,omitempty"` // of a tool: the call whose result it is
}

// A toolCall is a call of one of the client's tools.
type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// messages are the messages of a request, at most maxParts.
type messages []message

// UnmarshalJSON implements [json.Unmarshaler].
func (ms *messages) UnmarshalJSON(b []byte) (err error) {
	*ms, err = readList[message](b)
	return err
}

// errTooMany is returned by readList.
var errTooMany = errors.New("too many elements")

// readList decodes a JSON list of at most maxParts elements.
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

// A textMessage is a message without its images.
type textMessage struct {
	Role, Text string
	Calls      string // IDs of its calls of tools, or of the call whose result it is
}

// A content is the content of a message: a text or a list of parts.
type content []part

type part struct {
	Type     string
	Text     string
	ImageURL struct{ URL string } `json:"image_url"`
}

// UnmarshalJSON accepts both forms, and null.
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

// readRequest reads the request in r. Its images stay in the spool until release is
// called. The error is a response.Problem.
func (c *Channel) readRequest(
	w http.ResponseWriter, r *http.Request, who string,
) (q *request, release func(), err error) {
	whole, uncountWhole := c.cfg.Bodies.Reader(who, http.MaxBytesReader(w, r.Body, maxBody))
	images := newSpool(whole, c.cfg.Dir)
	body, uncount := c.cfg.Budget.Reader(who, http.MaxBytesReader(w, io.NopCloser(images), maxText))
	release = func() {
		images.close()
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
	_ = control.SetReadDeadline(time.Now().Add(readTimeout)) // not every writer can
	err = json.NewDecoder(body).Decode(q)
	_ = control.SetReadDeadline(time.Time{}) // it would end the request's context
	if err != nil {
		return q, release, c.readFailure(err)
	}
	q.name = safeName(cmp.Or(r.Header.Get("X-Session-Id"), q.User))
	return q, release, q.splitMessages(images)
}

// readFailure returns what to tell a client whose request could not be read because
// of err.
func (c *Channel) readFailure(err error) response.Problem {
	var large *http.MaxBytesError
	var file *fs.PathError
	switch {
	case errors.As(err, &large):
		return response.Problem{
			Status: http.StatusRequestEntityTooLarge,
			Text: fmt.Sprintf("The request is larger than %d MiB, or %d MiB without its images.",
				maxBody>>20, maxText>>20),
			Code: "request_too_large",
		}
	case errors.Is(err, errTooMany):
		return response.Problem{
			Status: http.StatusRequestEntityTooLarge,
			Text: fmt.Sprintf("The request has more than %d messages, or a message more than %[1]d parts.",
				maxParts),
			Code: "request_too_large",
		}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return response.Problem{
			Status: http.StatusRequestTimeout,
			Text:   "The request took too long to arrive.",
			Code:   "request_timeout",
		}
	case errors.Is(err, network.ErrBusyPerson):
		return response.Problem{
			Status:     http.StatusTooManyRequests,
			Text:       "You send too much at once. Wait for other requests to finish, then try again.",
			Code:       "rate_limit_exceeded",
			RetryAfter: 2 * time.Second,
		}
	case errors.Is(err, network.ErrBusy):
		return response.Problem{
			Status:     http.StatusServiceUnavailable,
			Text:       "Too much is being sent at once. Try again in a moment.",
			Code:       "unavailable",
			RetryAfter: 2 * time.Second,
		}
	case errors.As(err, &file):
		c.cfg.Log.Error("could not store the images of a request", "err", err)
		return problemOf(err)
	}
	return invalid("", "The body is not a chat completion request in JSON.")
}

// splitMessages separates the messages up to the last answer from the new ones.
func (q *request) splitMessages(images *spool) error {
	if len(q.Messages) == 0 {
		return invalid("messages", "There must be at least one message.")
	}
	if err := q.check(); err != nil {
		return err
	}
	last := 0
	for i, m := range q.Messages {
		if m.Role == assistant {
			last = i
		}
	}
	for i, m := range q.Messages {
		param := fmt.Sprintf("messages[%d]", i)
		t := textMessage{Role: m.Role, Calls: m.callIDs()}
		for _, p := range m.Content {
			switch isImage := p.Type == "image_url"; {
			case isImage && m.Role == "user" && i >= last:
				picture, err := images.picture(p.ImageURL.URL)
				if err != nil {
					return invalid(param, err.Error())
				}
				kind, err := picture.contentType()
				if err != nil {
					return invalid(param, err.Error())
				}
				if len(q.images) == maxImages {
					return invalid(param, fmt.Sprintf("A message can have %d images at most.", maxImages))
				}
				q.images = append(q.images, image{kind, picture.data})
			case !isImage && p.Type != "text" && p.Type != "refusal":
				return invalid(param, "A part must have the type text or image_url.")
			}
			t.Text = strings.TrimSpace(t.Text + "\n" + p.Text)
		}
		switch m.Role {
		case "system", "developer":
			q.system = append(q.system, t.Text)
		case "user", tool:
			if i < last {
				q.history = append(q.history, t)
			} else {
				q.newTurns = append(q.newTurns, t)
			}
		case assistant:
			q.history = append(q.history, t)
		case "function": // of a time before tools
		default:
			return invalid(param+".role", "This role is unknown.")
		}
	}
	if q.newText() == "" && len(q.images) == 0 && q.results() == nil {
		return invalid("messages", "The last message must be from the user or a tool, and not be empty.")
	}
	return nil
}

// newText returns the text of the new messages.
func (q *request) newText() string {
	var texts []string
	for _, t := range q.newTurns {
		if t.Role != tool {
			texts = append(texts, t.Text)
		}
	}
	return strings.TrimSpace(strings.Join(texts, "\n\n"))
}

// contextQuote returns what the agent needs to know of a conversation that is new to
// it, nil if nothing. It is a quotation: whoever wrote it, it is data (R-S11).
func (q *request) contextQuote() *chat.Quote {
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

// messageID returns the ID of the message that q becomes. It is the same for a
// request that is repeated under the same idempotency key (P3).
func (q *request) messageID(key string) string {
	body, _ := json.Marshal([]any{q.at, q.name, key, q.Messages})
	return hash(body)[:32]
}

// digest identifies the conversation that consists of messages among those of the
// client.
func (q *request) digest(messages []textMessage) string {
	d := hash([]byte(q.at.Session()))
	for _, t := range messages {
		d = extendDigest(d, t)
	}
	return d
}

// extendDigest returns the digest of a conversation after t. It ignores the amount
// of white space, which clients do not preserve.
func extendDigest(digest string, t textMessage) string {
	whole := digest + t.Role + "\x00" + strings.Join(strings.Fields(t.Text), " ")
	if t.Calls != "" {
		whole += "\x00" + t.Calls
	}
	return hash([]byte(whole))
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

var safeNameForm = lazyregexp.New(`^[A-Za-z0-9._-]{1,64}$`)

// safeName returns name if it can be part of a session ID, else its hash.
func safeName(name string) string {
	if name == "" || safeNameForm.MatchString(name) {
		return name
	}
	return hash([]byte(name))[:16]
}
