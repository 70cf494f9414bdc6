package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/chat"
	"parley/store"
)

// resultsSource is where the results of the client's tools come from: nobody knows what they hold (R-S12).
const resultsSource = "tools of a program"

// ErrNoClient is returned by [Channel.HandOver] when the message is answered already.
var ErrNoClient = errors.New("the program does not wait for an answer any more")

// ClientTools returns the tools of the program that sent that message.
func (c *Channel) ClientTools(ctx context.Context, message string) ([]chat.ClientTool, error) {
	rec, err := c.records.latest(ctx, message)
	return rec.Tools, err
}

// HandOver has the answer to that message ask for call, which the program then makes. It returns what the answer
// says of it to people who read the conversation elsewhere.
func (c *Channel) HandOver(ctx context.Context, message string, call chat.ClientCall) (said string, err error) {
	latest, err := c.records.latest(ctx, message)
	if err != nil {
		return "", err
	}
	message = latest.Message.ID
	call.ID = message[:min(len(message), 8)] + "-" + call.ID // the ID that a model gives may come again in each turn
	_, _, err = c.records.requests.Update(ctx, message, func(rec *requestRecord) error {
		if rec.Reply != "" {
			return ErrNoClient
		}
		if slices.ContainsFunc(rec.Calls, func(o chat.ClientCall) bool { return o.ID == call.ID }) {
			return store.ErrUnchanged
		}
		rec.Calls = append(rec.Calls, call)
		return nil
	})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "", ErrNoClient
	case err != nil:
		return "", fmt.Errorf("hand over a call: %w", err)
	}
	return toldOf(call), nil
}

// toldOf says that the program makes call.
func toldOf(call chat.ClientCall) string { return "The program runs " + call.Name + "." }

// withoutCalls returns text without what is told of calls: the program is told of these themselves.
func withoutCalls(text string, calls []chat.ClientCall) string {
	for _, call := range calls {
		before, after, found := strings.Cut(text, toldOf(call))
		if found {
			text = strings.TrimSpace(strings.TrimRight(before, " \n") + "\n\n" + strings.TrimLeft(after, " \n"))
		}
	}
	return text
}

// callIDs identify the calls that m makes, or the one whose result it is.
func (m message) callIDs() string {
	if m.Role == tool {
		return m.ToolCall
	}
	var ids []string
	for _, c := range m.ToolCalls {
		ids = append(ids, c.ID)
	}
	return strings.Join(ids, " ")
}

// results returns the results of the client's tools among the new messages, as a quotation: they are data, and not
// what a person says (R-S11). nil: there are none.
func (q *request) results() *chat.Quote {
	names := map[string]string{}
	for _, m := range q.Messages {
		for _, c := range m.ToolCalls {
			names[c.ID] = c.Function.Name
		}
	}
	var b strings.Builder
	for _, t := range q.newTurns {
		if t.Role == tool {
			fmt.Fprintf(&b, "Result of %s (%s):\n%s\n", names[t.Calls], t.Calls, t.Text)
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return &chat.Quote{From: "this program", Text: b.String(), Forwarded: true}
}

// joinQuotes returns one quote with the text of both, each of which may be nil.
func joinQuotes(a, b *chat.Quote) *chat.Quote {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	joined := *a
	joined.Text += b.Text
	return &joined
}
