package api

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"parley/chat"
)

const (
	maxBody   = 20 << 20    // bytes of a request, images included
	readTime  = time.Minute // for a request to come in
	assistant = "assistant"
)

// A request is what a client sent.
type request struct {
	Model         string
	Messages      []message
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
	images  [][]byte
}

// A message is one of the conversation that a client sends.
type message struct {
	Role    string
	Content content
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
func (c *content) UnmarshalJSON(b []byte) error {
	if b[0] == '[' {
		return json.Unmarshal(b, (*[]part)(c))
	}
	p := part{Type: "text"}
	err := json.Unmarshal(b, &p.Text)
	*c = content{p}
	return err
}

// read reads the request of r. Its error is a *failure.
func read(w http.ResponseWriter, r *http.Request) (*request, error) {
	q, body := &request{}, http.MaxBytesReader(w, r.Body, maxBody)
	var large *http.MaxBytesError
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(readTime)) // not every writer can
	err := json.NewDecoder(body).Decode(q)
	_ = control.SetReadDeadline(time.Time{}) // it would end the request's context
	switch {
	case errors.As(err, &large):
		return nil, &failure{status: http.StatusRequestEntityTooLarge, message: fmt.Sprintf("The request is larger than %d MiB.", maxBody>>20), code: "request_too_large"}
	case err != nil:
		return nil, bad("", "The body is not a chat completion request in JSON.")
	case len(q.Messages) == 0:
		return nil, bad("messages", "There must be at least one message.")
	case q.N != nil && *q.N != 1:
		return nil, bad("n", "There is one answer only.")
	}
	q.name = named(cmp.Or(r.Header.Get("X-Session-Id"), q.User))
	return q, q.sort()
}

// sort tells what was said before from what is new.
func (q *request) sort() error {
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
			switch image := p.Type == "image_url"; {
			case image && m.Role == "user" && i >= last:
				data, err := picture(p.ImageURL.URL)
				if err != nil {
					return bad(param, err.Error())
				}
				q.images = append(q.images, data)
			case !image && p.Type != "text" && p.Type != "refusal":
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

// picture returns the bytes of an image in a data URL. Others are not fetched:
// a client could have us call any address we can reach (R-S19).
func picture(url string) ([]byte, error) {
	rest, isData := strings.CutPrefix(url, "data:")
	kind, coded, ok := strings.Cut(rest, ";base64,")
	if !isData || !ok {
		return nil, errors.New("images must be sent as data: URLs in base64; addresses are not fetched")
	}
	data, err := base64.StdEncoding.DecodeString(coded)
	if err != nil || !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, http.DetectContentType(data)) {
		return nil, fmt.Errorf("an image of type %.40q cannot be read; it must be PNG, JPEG, GIF or WebP", kind)
	}
	return data, nil
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
