package web

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"

	"parley/chat"
	"parley/response"
)

const (
	maxText = 64 << 10 // bytes of a message
	maxSent = 20       // files of a message
)

var idForm = regexp.MustCompile(`^[A-Za-z0-9_-]{8,64}$`)

// message begins a message of whoever calls, which the page calls id. To the
// house it is known with its conversation: what is unique must be so among all of a person.
func (k call) message(id string) (chat.Message, error) {
	if !idForm.MatchString(id) {
		return chat.Message{}, response.BadRequest("An id has 8 to 64 letters and digits.")
	}
	return chat.Message{
		ID:   k.room.at.Thread + "." + id,
		At:   k.room.at,
		From: chat.Sender{ID: k.who.ID, Name: k.who.Name},
		Time: time.Now(),
	}, nil
}

// say takes a message. It is answered once the message is in the log and in the
// house (P3). The same again is answered the same, and not done again.
func (c *Channel) say(k call) error {
	var in struct {
		ID, Text string
		Files    []string
		Quiet    bool // a command, which is not shown
	}
	if err := k.read(&in); err != nil {
		return err
	}
	m, err := k.message(in.ID)
	switch {
	case err != nil:
		return err
	case len(in.Text) > maxText:
		return response.Problem{
			Status: http.StatusRequestEntityTooLarge,
			Text:   "That message is too long: 64 KB is the most.",
		}
	case strings.TrimSpace(in.Text) == "" && len(in.Files) == 0,
		len(in.Files) > maxSent,
		in.Quiet && !strings.HasPrefix(in.Text, "/"):
		return response.BadRequest("That is not a message.")
	}
	if !chat.IsShortCommand(in.Text) {
		if err := c.takeBytes(k, int64(len(in.Text))); err != nil { // what is not taken is not kept either
			return err
		}
	}
	m.Text = in.Text
	s := said{ID: in.ID, Who: you, Text: m.Text, Time: m.Time}
	for _, id := range in.Files {
		f, err := c.stored(k.r.Context(), k.who.ID, id)
		if err != nil {
			return err
		}
		s.Files, m.Files = append(s.Files, view(id, f)), append(m.Files, f)
	}
	k.room.writing.Lock()
	defer k.room.writing.Unlock()
	if in.Quiet {
		return c.hand(k, m, 0)
	}
	// What is in the log must reach the agent even if the browser does not wait.
	ctx := context.WithoutCancel(k.r.Context())
	seq, again, err := k.room.append(ctx, s)
	if again { // the house may have forgotten that it knows it
		again, err = k.room.wasAnswered(ctx, in.ID, seq)
	}
	if err != nil {
		return err
	}
	if again {
		return k.answer(http.StatusAccepted, taken{seq})
	}
	return c.hand(k, m, seq)
}

// inPage is what the page calls the message that the house knows as id.
func inPage(id string) string { return id[strings.LastIndexByte(id, '.')+1:] }

type taken struct {
	Seq uint64 `json:"seq"`
}

// hand hands m to the house and says so.
func (c *Channel) hand(k call, m chat.Message, seq uint64) error {
	if err := c.gate.Deliver(m); err != nil {
		c.cfg.Log.Warn("message not taken", "chat", m.At.Session(), "id", m.ID, "err", err)
		return response.Problem{
			Status: http.StatusServiceUnavailable,
			Text:   "I cannot take that in right now. Please try again.",
		}
	}
	return k.answer(http.StatusAccepted, taken{seq})
}

// press takes the press of a button.
func (c *Channel) press(k call) error {
	var in struct {
		ID, Question string
		Choice       int
	}
	if err := k.read(&in); err != nil {
		return err
	}
	m, err := k.message(in.ID)
	if err != nil {
		return err
	}
	q, err := k.room.question(k.r.Context(), in.Question)
	if errors.Is(err, errGone) || err == nil && (in.Choice < 0 || in.Choice >= len(q.Ask.Choices)) {
		return response.Problem{Status: http.StatusNotFound, Text: "This question no longer exists."}
	}
	if err != nil {
		return err
	}
	m.Answer = &chat.Answer{Question: in.Question, Choice: in.Choice, Receipt: string(receipt(q.Seq))}
	return c.hand(k, m, q.Seq)
}
