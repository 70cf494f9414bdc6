package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/channels/network"
	"parley/chat"
	"parley/response"
	"parley/store"
)

// Name is the name of the agent as a model.
const Name = "parley"

// Serve answers a request for a path below /v1/. The caller has authenticated who by
// an API key, and prefix is that of the key's sessions.
func (c *Channel) Serve(w http.ResponseWriter, r *http.Request, who chat.Sender, prefix string) {
	names, err := c.modelNames(r.Context(), chat.Address{Channel: c.cfg.Name, Chat: who.ID, Thread: prefix}, who)
	if err != nil {
		c.cfg.Log.Error("models not listed", "who", who.ID, "err", err)
		problemOf(err).WriteJSON(w)
		return
	}
	from := caller{who, prefix, names}
	c.mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, from)))
}

// callerKey is the context key of the caller of a request.
type callerKey struct{}

// A caller is who sent a request.
type caller struct {
	who    chat.Sender
	prefix string   // of the sessions of their key
	models []string // that they may ask
}

// A handler answers a request. The error is a problem that the client is told.
type handler func(http.ResponseWriter, *http.Request, caller) error

// routes returns what is served, by its pattern of http.ServeMux.
func (c *Channel) routes() map[string]handler {
	return map[string]handler{
		"GET /v1/models":            c.serveModels,
		"GET /v1/models/{model...}": c.serveModel,
		"POST /v1/chat/completions": c.serveCompletion,
	}
}

// Patterns returns the patterns of all routes, in order.
func (c *Channel) Patterns() []string { return slices.Sorted(maps.Keys(c.routes())) }

func (c *Channel) newMux() *http.ServeMux {
	mux := http.NewServeMux()
	handle := func(pattern string, do handler) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			who, _ := r.Context().Value(callerKey{}).(caller)
			if p, ok := errors.AsType[response.Problem](do(w, r, who)); ok {
				p.WriteJSON(w)
			}
		})
	}
	for pattern, do := range c.routes() {
		handle(pattern, do)
	}
	handle("/v1/models", refuseMethod)
	handle("/v1/chat/completions", refuseMethod)
	handle("/", func(http.ResponseWriter, *http.Request, caller) error {
		return response.Problem{Status: http.StatusNotFound, Text: "This URL is unknown.", Code: "unknown_url"}
	})
	return mux
}

func refuseMethod(_ http.ResponseWriter, r *http.Request, _ caller) error {
	return response.Problem{
		Status: http.StatusMethodNotAllowed,
		Text:   "The method " + r.Method + " is not allowed here.",
	}
}

// modelNames returns the names of the models that who may ask at that address.
func (c *Channel) modelNames(ctx context.Context, at chat.Address, who chat.Sender) ([]string, error) {
	names := []string{Name}
	if c.cfg.Models == nil {
		return names, nil
	}
	more, err := c.cfg.Models(ctx, at, who)
	return append(names, more...), err
}

func (c *Channel) serveModels(w http.ResponseWriter, _ *http.Request, from caller) error {
	var all []map[string]any
	for _, n := range from.models {
		all = append(all, modelObject(n))
	}
	response.JSON(w, http.StatusOK, map[string]any{"object": "list", "data": all})
	return nil
}

// serveModel describes one model.
func (c *Channel) serveModel(w http.ResponseWriter, r *http.Request, from caller) error {
	name := r.PathValue("model")
	if !slices.Contains(from.models, name) {
		return unknownModel(name)
	}
	response.JSON(w, http.StatusOK, modelObject(name))
	return nil
}

func modelObject(name string) map[string]any {
	return map[string]any{"id": name, "object": "model", "created": 0, "owned_by": Name}
}

func unknownModel(name string) response.Problem {
	return response.Problem{
		Status: http.StatusNotFound,
		Text:   fmt.Sprintf("There is no model %.64q; use %q.", name, Name),
		Param:  "model",
		Code:   "model_not_found",
	}
}

func (c *Channel) serveCompletion(w http.ResponseWriter, r *http.Request, from caller) error {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return response.Problem{
			Status: http.StatusUnsupportedMediaType,
			Text:   "The content type must be application/json.",
		}
	}
	k, err := c.acceptRequest(w, r, from)
	if err != nil {
		return err
	}
	defer k.leave()
	return c.writeAnswer(w, r, k)
}

// acceptRequest reads a request and delivers it as a message. The returned waiter
// waits for the answer until its leave is called. The request itself is not kept in
// memory.
func (c *Channel) acceptRequest(w http.ResponseWriter, r *http.Request, from caller) (k *waiter, err error) {
	who, prefix := from.who, from.prefix
	q, release, err := c.readRequest(w, r, who.ID)
	if err != nil {
		return nil, err
	}
	defer release()
	q.at = chat.Address{Channel: c.cfg.Name, Chat: who.ID, Thread: prefix}
	if !slices.Contains(from.models, q.Model) {
		return nil, unknownModel(q.Model)
	}
	id := q.messageID(cmp.Or(r.Header.Get("Idempotency-Key"), r.Header.Get("X-Request-Id"), rand.Text()))
	k = &waiter{
		id: id, model: q.Model, prefix: prefix, streams: q.Stream, wantsUsage: q.StreamOptions.IncludeUsage,
		stop: q.Stop, changed: make(chan struct{}, 1),
	}
	k.leave = c.addWaiter(id, k)
	if err := c.startRequest(context.WithoutCancel(r.Context()), q, id, who, k); err != nil {
		k.leave()
		c.cfg.Log.Warn("request not accepted", "session", q.at.Session(), "err", err)
		return nil, problemOf(err)
	}
	return k, nil
}

// startRequest delivers q as the message with that ID, unless it is answered
// already. If it fails it undoes what it has stored, as far as the store allows.
func (c *Channel) startRequest(ctx context.Context, q *request, id string, who chat.Sender, k *waiter) error {
	var files []chat.File
	for {
		rec, rev, err := getOrZero(ctx, c.records.requests, id)
		if err != nil {
			return err
		}
		if rev != 0 {
			return c.deliverOrAnswer(rec, k)
		}
		if files == nil {
			if err = c.chargeBytes(ctx, q, id, who); err != nil {
				return err
			}
			if files, err = c.saveImages(ctx, q, who); err != nil {
				return err
			}
		}
		rec, conv, rev, err := c.newRecord(ctx, q, id, who, files)
		if err != nil {
			return err
		}
		undo, err := c.records.addRequest(ctx, rec, conv, rev)
		switch {
		case errors.Is(err, store.ErrConflict): // another request was faster
			continue
		case err == nil:
			err = c.deliverOrAnswer(rec, k)
		}
		if err != nil && undo != nil {
			err = errors.Join(err, undo(ctx))
		}
		return err
	}
}

// newRecord finds the conversation that q continues and makes the record of its
// message.
func (c *Channel) newRecord(
	ctx context.Context, q *request, id string, who chat.Sender, files []chat.File,
) (requestRecord, conversation, uint64, error) {
	at, conv, rev, err := c.records.findConversation(ctx, q, id)
	m := chat.Message{ID: id, At: at, From: who, Text: q.newText(), Files: files, Time: time.Now()}
	m.Wishes = q.wishes()
	if results := q.results(); results != nil {
		m.Quote = results
		m.Tainted = true
		m.Sources = []string{resultsSource}
	}
	if conv.Turns == 0 {
		m.Quote = joinQuotes(q.contextQuote(), m.Quote)
	}
	digest := q.digest(append(slices.Clone(q.history), q.newTurns...))
	rec := requestRecord{
		Message: m, Turn: conv.Turns + 1, Digest: digest, Stop: q.Stop, Tools: q.clientTools(), Time: m.Time,
	}
	return rec, conv, rev, err
}

// deliverOrAnswer delivers rec's message, or gives k the stored answer.
func (c *Channel) deliverOrAnswer(rec requestRecord, k *waiter) error {
	c.mu.Lock()
	k.at = rec.Message.At
	if rec.Reply != "" {
		k.finish(rec.Answer, rec.Failed, rec.outcome())
	}
	c.mu.Unlock()
	if rec.Reply != "" {
		return nil
	}
	return c.intake.Deliver(rec.Message)
}

// chargeBytes charges the new messages, and the quoted context of a new
// conversation, to the person, or returns the refusal. A short command is free.
func (c *Channel) chargeBytes(ctx context.Context, q *request, id string, who chat.Sender) error {
	_, conv, _, err := c.records.findConversation(ctx, q, id)
	if err != nil {
		return err
	}
	n := int64(0)
	if text := q.newText(); !chat.IsShortCommand(text) {
		n = int64(len(text))
	}
	if quote := q.contextQuote(); quote != nil && conv.Turns == 0 {
		n += int64(len(quote.Text))
	}
	if results := q.results(); results != nil {
		n += int64(len(results.Text))
	}
	n += q.size()
	for _, img := range q.images {
		n += img.data.Size()
	}
	if n == 0 {
		return nil
	}
	return c.cfg.TakeBytes(ctx, chat.Whose(q.at, who, false), n)
}

// saveImages stores the images of q in the workspace.
func (c *Channel) saveImages(ctx context.Context, q *request, who chat.Sender) ([]chat.File, error) {
	files := []chat.File{}
	for i, img := range q.images {
		name := fmt.Sprintf("image-%d.%s", i+1, strings.TrimPrefix(img.kind, "image/"))
		f, err := c.cfg.Save(ctx, q.at, who, name, io.NewSectionReader(img.data, 0, img.data.Size()))
		if err != nil {
			return nil, fmt.Errorf("save image: %w", err)
		}
		f.Type, f.Size = img.kind, img.data.Size()
		files = append(files, f)
	}
	return files, nil
}

// writeAnswer waits for the answer and writes it. A client that goes away finds it
// in the session, or by asking again under the same key.
func (c *Channel) writeAnswer(w http.ResponseWriter, r *http.Request, k *waiter) error {
	o := output{w: w, id: "chatcmpl-" + k.id, model: k.model, created: time.Now().Unix(), usage: k.wantsUsage}
	w.Header().Set("X-Session-Id", strings.TrimPrefix(strings.TrimPrefix(k.at.Thread, k.prefix), nameSeparator))
	if k.streams {
		o.beginStream()
	}
	defer o.setWriteDeadline(time.Time{})
	alive := time.NewTicker(keepAliveInterval)
	defer alive.Stop()
	timeout := time.NewTimer(maxAnswerWait)
	defer timeout.Stop()
	for written := 0; ; {
		select {
		case <-k.changed:
		case <-alive.C:
			if k.streams {
				o.write(":\n")
			}
			continue
		case <-r.Context().Done():
			return nil
		case <-c.openCtx.Done():
			return o.writeFailure(k.streams, problemOf(network.ErrShut))
		case <-timeout.C:
			return o.writeFailure(k.streams, response.Problem{
				Status: http.StatusGatewayTimeout,
				Text:   "The answer takes too long. It will be in the session.",
				Code:   "timeout",
			})
		}
		c.mu.Lock()
		text := k.text
		done := k.done
		fault := k.fault
		o.outcome = k.outcome
		c.mu.Unlock()
		switch {
		case fault != "":
			return o.writeFailure(k.streams, response.Problem{
				Status: http.StatusBadGateway,
				Text:   fault,
				Code:   "no_answer",
			})
		case k.streams:
			o.writeMore(text[written:], done)
			written = len(text)
		case done:
			o.writeWhole(text)
		}
		if done {
			return nil
		}
	}
}
