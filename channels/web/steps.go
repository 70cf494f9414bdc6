package web

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/channels/markdown"
	"parley/chat"
	"parley/response"
)

// A pastStep is a step of a reply that is there, with the addresses of its pictures.
type pastStep struct {
	chat.Step
	Pictures []string `json:"pictures,omitempty"`
	HTML     safeHTML `json:"html,omitempty"` // of its Words
}

// pastSteps serves the steps of replies that are there.
type pastSteps struct{ channel *Channel }

// of returns the steps of the reply that req names, of its conversation.
func (p pastSteps) of(req request) ([]chat.Step, error) {
	if err := p.channel.checkBlocked(req, blockSteps); err != nil {
		return nil, err
	}
	if p.channel.cfg.Steps == nil {
		return nil, nil
	}
	return p.channel.cfg.Steps(req.r.Context(), req.room.address.Session(), req.r.FormValue("reply"))
}

// serve sends the steps of a reply.
func (p pastSteps) serve(req request) error {
	all, err := p.of(req)
	if err != nil {
		return err
	}
	steps := make([]pastStep, len(all))
	for i, s := range all {
		steps[i].Step = s
		if s.Words != "" {
			steps[i].HTML = safeHTML(markdown.HTML(s.Words))
		}
		for n := range s.Pictures {
			q := url.Values{"reply": {req.r.FormValue("reply")}, "call": {s.Call}, "n": {strconv.Itoa(n)}}
			steps[i].Pictures = append(steps[i].Pictures, "/c/"+req.room.address.Thread+"/picture?"+q.Encode())
		}
	}
	return req.writeJSON(http.StatusOK, map[string]any{"steps": steps})
}

// servePicture sends a picture of a step: that file, while it is there.
func (p pastSteps) servePicture(req request) error {
	all, err := p.of(req)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(req.r.FormValue("n"))
	for _, s := range all {
		if err == nil && s.Call == req.r.FormValue("call") && 0 <= n && n < len(s.Pictures) {
			return req.sendFile(p.channel.cfg.Open, chat.File{Path: s.Pictures[n], Name: path.Base(s.Pictures[n])})
		}
	}
	return response.Problem{Status: http.StatusNotFound, Text: "This picture does not exist."}
}

// completeAnswer adds r, the end of a turn, to the last thing that a tool has said in it: that was the answer, also to
// the messages that end, the entry for r, answers. Its steps stand above it then, and what was said before it.
// Repeating it has no further effect. It reports whether there is such an answer.
func (rm *room) completeAnswer(ctx context.Context, r chat.Reply, end logEntry) (done bool, err error) {
	rm.writeMu.Lock()
	defer rm.writeMu.Unlock()
	if err := rm.load(ctx); err != nil {
		return false, err
	}
	var seq uint64
	for key, n := range rm.seqs {
		if key.who == whoAgent && r.IsPart(key.id) {
			seq = max(seq, n)
		}
	}
	if seq == 0 {
		return false, nil
	}
	answer, err := rm.entryNow(ctx, seq)
	if errors.Is(err, errGone) {
		return false, nil
	}
	before := strings.TrimSpace(end.Text) // with what is to be said of files
	if err != nil || answer.StepsOf == r.ID || r.Taken == nil && before == "" && end.Replies == "" {
		return err == nil, err
	}
	if before != "" {
		answer.Text = before + "\n\n" + answer.Text
	}
	answer.Steps = r.Steps
	answer.Taken = r.Taken
	answer.StepsOf = r.ID
	answer.Replies = end.Replies
	answer.Also = end.Also
	answer.Edits = seq
	_, err = rm.writeEntry(ctx, answer)
	return true, err
}

// stepsFold returns what the steps of e fold into: "3 steps · 12 s". The script opens it.
func (e renderedEntry) stepsFold() g.Node {
	if e.Steps == "" {
		return nil
	}
	if e.Taken == nil { // it was answered by an earlier version
		return h.P(h.Class("steps"), g.Text(e.Steps))
	}
	return h.Details(h.Class("steps"), h.Data("reply", cmp.Or(e.StepsOf, e.ID)), h.Title(e.Steps),
		h.Summary(h.I(h.Class("mark")), h.Span(g.Text(e.Taken.Label()))), h.Ul())
}
