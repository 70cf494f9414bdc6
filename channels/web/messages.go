package web

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"parley/chat"
	"parley/lazyregexp"
	"parley/response"
)

const (
	maxText         = 64 << 10 // bytes of a message
	maxMessageFiles = 20       // files of a message
)

var idForm = lazyregexp.New(`^[A-Za-z0-9_-]{8,64}$`)

// newMessage returns a message of the person of req, which the page calls id. Its own
// ID includes that of the conversation, so that it is unique among those of the person.
func (req request) newMessage(id string) (chat.Message, error) {
	if !idForm.MatchString(id) {
		return chat.Message{}, response.BadRequest("An id must have 8 to 64 letters, digits, hyphens or underscores.")
	}
	return chat.Message{
		ID:   req.room.address.Thread + "." + id,
		At:   req.room.address,
		From: chat.Sender{ID: req.who.ID, Name: req.who.Name},
		Time: time.Now(),
	}, nil
}

// postMessage accepts a message. It responds once the message is in the log and
// delivered (P3). Repeating a request has no further effect and gets the same response.
func (c *Channel) postMessage(req request) error {
	var in struct {
		ID, Text string
		Files    []string
		Quiet    bool   // it is a command that is not shown
		Instead  uint64 // number of the person's message that it changes
		Again    uint64 // number of the answer in whose place another is asked for; then there is nothing else
	}
	if err := req.readJSON(&in); err != nil {
		return err
	}
	m, err := req.newMessage(in.ID)
	switch {
	case err != nil:
		return err
	case len(in.Text) > maxText:
		return response.Problem{
			Status: http.StatusRequestEntityTooLarge,
			Text:   "That message is too long. The limit is 64 KB.",
		}
	case in.Again == 0 && strings.TrimSpace(in.Text) == "" && len(in.Files) == 0,
		in.Again > 0 && (in.Text != "" || len(in.Files) > 0 || in.Instead > 0),
		len(in.Files) > maxMessageFiles,
		in.Quiet && !strings.HasPrefix(in.Text, "/"):
		return response.BadRequest("That is not a valid message.")
	}
	if !chat.IsShortCommand(in.Text) {
		if err := c.chargeBytes(req, int64(len(in.Text))); err != nil { // a refused message is not stored
			return err
		}
	}
	m.Text = in.Text
	e := logEntry{ID: in.ID, Who: whoPerson, Text: m.Text, Time: m.Time}
	for _, id := range in.Files {
		f, err := c.getFile(req.r.Context(), req.who.ID, id)
		if err != nil {
			return err
		}
		e.Files = append(e.Files, newFileLink(id, f))
		m.Files = append(m.Files, f)
	}
	req.room.writeMu.Lock()
	defer req.room.writeMu.Unlock()
	if in.Quiet {
		return c.deliver(req, m, 0)
	}
	if e, m, err = req.room.placeInBranch(req.r.Context(), e, m, in.Instead, in.Again); err != nil {
		return err
	}
	// A message in the log must reach the agent even if the browser disconnects.
	ctx := context.WithoutCancel(req.r.Context())
	seq, again, err := req.room.appendEntry(ctx, e)
	if again { // the gateway may not recognise it any more
		m.Time, again, err = req.room.lookUp(ctx, in.ID, seq)
	}
	if err != nil {
		return err
	}
	if again {
		return req.writeJSON(http.StatusAccepted, acceptedResponse{seq})
	}
	return c.deliver(req, m, seq)
}

// pageID returns the ID that the page gave to the message with that ID.
func pageID(id string) string { return id[strings.LastIndexByte(id, '.')+1:] }

// An acceptedResponse is the response to an accepted message.
type acceptedResponse struct {
	Seq uint64 `json:"seq"`
}

// deliver delivers m and writes the response.
func (c *Channel) deliver(req request, m chat.Message, seq uint64) error {
	err := c.intake.Deliver(m)
	if wrong, isWrong := errors.AsType[*chat.WrongValues](err); isWrong {
		answer := wrongResponse{"Some values are not right.", wrong.Problems}
		return req.writeJSON(http.StatusUnprocessableEntity, answer)
	}
	if err != nil {
		c.cfg.Log.Warn("message not accepted", "chat", m.At.Session(), "id", m.ID, "err", err)
		return response.Problem{
			Status: http.StatusServiceUnavailable,
			Text:   "Your message cannot be accepted right now. Please try again.",
		}
	}
	return req.writeJSON(http.StatusAccepted, acceptedResponse{seq})
}

// A wrongResponse is the response to a form with wrong values, which stays open.
type wrongResponse struct {
	Error  string   `json:"error"`
	Fields []string `json:"fields"` // what is wrong with each; "" for nothing
}

// pressButton accepts the answer to a question: a choice, and the values of a form.
func (c *Channel) pressButton(req request) error {
	var in struct {
		ID, Question string
		Choice       int
		Values       [][]string
	}
	if err := req.readJSON(&in); err != nil {
		return err
	}
	m, err := req.newMessage(in.ID)
	if err != nil {
		return err
	}
	q, err := req.room.findQuestion(req.r.Context(), in.Question)
	if errors.Is(err, errGone) || err == nil && (in.Choice < 0 || in.Choice >= len(q.Ask.Choices)) {
		return response.Problem{Status: http.StatusNotFound, Text: "This question no longer exists."}
	}
	if err != nil {
		return err
	}
	m.Answer = &chat.Answer{
		Question: in.Question,
		Choice:   in.Choice,
		Receipt:  string(receipt(q.Seq)),
		Values:   in.Values,
	}
	return c.deliver(req, m, q.Seq)
}
