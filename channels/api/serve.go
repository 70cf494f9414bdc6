package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/channels/network"
	"parley/chat"
	"parley/store"
)

// Name is the model that requests are for.
const Name = "parley"

// Serve answers a request for /v1/chat/completions or /v1/models. Who sent it
// was found out by its key, to which the prefix of its sessions belongs.
func (c *Channel) Serve(w http.ResponseWriter, r *http.Request, who chat.Sender, prefix string) {
	var err error
	switch is := r.Method + " " + r.URL.Path; {
	case is == "GET /v1/models":
		c.models(w)
	case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/v1/models/"):
		err = c.model(w, strings.TrimPrefix(r.URL.Path, "/v1/models/"))
	case is == "POST /v1/chat/completions":
		err = c.complete(w, r, who, prefix)
	case r.URL.Path == "/v1/models", r.URL.Path == "/v1/chat/completions":
		err = &failure{status: http.StatusMethodNotAllowed, message: "This address does not take " + r.Method + "."}
	default:
		err = &failure{status: http.StatusNotFound, message: "There is nothing here.", code: "unknown_url"}
	}
	if f, ok := errors.AsType[*failure](err); ok {
		f.write(w)
	}
}

func (c *Channel) names() []string {
	if c.cfg.Models == nil {
		return []string{Name}
	}
	return append([]string{Name}, c.cfg.Models()...)
}

func (c *Channel) models(w http.ResponseWriter) {
	var all []map[string]any
	for _, n := range c.names() {
		all = append(all, modelObject(n))
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": all})
}

// model describes one model.
func (c *Channel) model(w http.ResponseWriter, name string) error {
	if !slices.Contains(c.names(), name) {
		return noModel(name)
	}
	writeJSON(w, http.StatusOK, modelObject(name))
	return nil
}

func modelObject(name string) map[string]any {
	return map[string]any{"id": name, "object": "model", "created": 0, "owned_by": Name}
}

func noModel(name string) *failure {
	return &failure{
		status:  http.StatusNotFound,
		message: fmt.Sprintf("There is no model %.64q; use %q.", name, Name),
		param:   "model",
		code:    "model_not_found",
	}
}

func (c *Channel) complete(w http.ResponseWriter, r *http.Request, who chat.Sender, prefix string) error {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return &failure{status: http.StatusUnsupportedMediaType, message: "The content type must be application/json."}
	}
	k, err := c.take(w, r, who, prefix)
	if err != nil {
		return err
	}
	defer k.leave()
	return c.respond(w, r, k)
}

// take reads a request and delivers the message that it is, whose answer the
// call waits for until leave is called. Nothing of the request stays in memory.
func (c *Channel) take(w http.ResponseWriter, r *http.Request, who chat.Sender, prefix string) (k *call, err error) {
	q, release, err := c.read(w, r, who.ID)
	if err != nil {
		return nil, err
	}
	defer release()
	if !slices.Contains(c.names(), q.Model) {
		return nil, noModel(q.Model)
	}
	q.at = chat.Address{Channel: c.cfg.Name, Chat: who.ID, Thread: prefix}
	id := q.id(cmp.Or(r.Header.Get("Idempotency-Key"), r.Header.Get("X-Request-Id"), rand.Text()))
	k = &call{
		id: id, model: q.Model, prefix: prefix, live: q.Stream, usage: q.StreamOptions.IncludeUsage,
		stop: strings.EqualFold(q.text(), "/stop"), news: make(chan struct{}, 1),
	}
	k.leave = c.wait(id, k)
	if err := c.begin(context.WithoutCancel(r.Context()), q, id, who, k); err != nil {
		k.leave()
		c.cfg.Log.Warn("request not taken", "session", q.at.Session(), "err", err)
		return nil, failed(err)
	}
	return k, nil
}

// begin delivers the message that q is, unless it is answered already. What
// fails leaves nothing behind, as far as the store can do that.
func (c *Channel) begin(ctx context.Context, q *request, id string, who chat.Sender, k *call) error {
	var files []chat.File
	for {
		rec, rev, err := get(ctx, c.book.asked, id)
		if err != nil {
			return err
		}
		if rev != 0 {
			return c.ask(rec, k)
		}
		if files == nil {
			if err = c.takeBytes(ctx, q, id, who); err != nil {
				return err
			}
			if files, err = c.save(ctx, q, who); err != nil {
				return err
			}
		}
		rec, t, rev, err := c.compose(ctx, q, id, who, files)
		if err != nil {
			return err
		}
		back, err := c.book.begin(ctx, rec, t, rev)
		switch {
		case errors.Is(err, store.ErrConflict): // another request was quicker
			continue
		case err == nil:
			err = c.ask(rec, k)
		}
		if err != nil && back != nil {
			err = errors.Join(err, back(ctx))
		}
		return err
	}
}

// compose makes the message that q is, and finds the conversation it goes on with.
func (c *Channel) compose(
	ctx context.Context, q *request, id string, who chat.Sender, files []chat.File,
) (record, talk, uint64, error) {
	at, t, rev, err := c.book.find(ctx, q, id)
	m := chat.Message{ID: id, At: at, From: who, Text: q.text(), Files: files, Time: time.Now()}
	if t.Turns == 0 {
		m.Quote = q.before()
	}
	said := q.digest(append(slices.Clone(q.history), q.fresh...))
	return record{Message: m, Turn: t.Turns + 1, Digest: said, Time: m.Time}, t, rev, err
}

// ask delivers rec's message, or gives k the answer that there is.
func (c *Channel) ask(rec record, k *call) error {
	c.mu.Lock()
	k.at = rec.Message.At
	if rec.Reply != "" {
		k.end(rec.Answer, rec.Failed, rec.Tokens)
	}
	c.mu.Unlock()
	if rec.Reply != "" {
		return nil
	}
	return c.gate.Deliver(rec.Message)
}

// takeBytes counts what is said now, and what is quoted where a conversation
// begins, or returns why no more is taken. A short command alone is free.
func (c *Channel) takeBytes(ctx context.Context, q *request, id string, who chat.Sender) error {
	_, t, _, err := c.book.find(ctx, q, id)
	if err != nil {
		return err
	}
	n := int64(0)
	if text := q.text(); !chat.IsShortCommand(text) {
		n = int64(len(text))
	}
	if quote := q.before(); quote != nil && t.Turns == 0 {
		n += int64(len(quote.Text))
	}
	for _, img := range q.images {
		n += img.data.Size()
	}
	if n == 0 {
		return nil
	}
	return c.cfg.TakeBytes(ctx, chat.Whose(q.at, who, false), n)
}

// save puts the images of q into the workspace.
func (c *Channel) save(ctx context.Context, q *request, who chat.Sender) ([]chat.File, error) {
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

// respond waits for the answer and writes it. A client that goes away finds it
// in the session, or when it asks again under the same key.
func (c *Channel) respond(w http.ResponseWriter, r *http.Request, k *call) error {
	o := output{w: w, id: "chatcmpl-" + k.id, model: k.model, created: time.Now().Unix(), usage: k.usage}
	w.Header().Set("X-Session-Id", strings.TrimPrefix(strings.TrimPrefix(k.at.Thread, k.prefix), between))
	if k.live {
		o.begin()
	}
	defer o.hurry(time.Time{})
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	late := time.NewTimer(maxWait)
	defer late.Stop()
	for done := 0; ; {
		select {
		case <-k.news:
		case <-alive.C:
			if k.live {
				o.write(":\n")
			}
			continue
		case <-r.Context().Done():
			return nil
		case <-c.open.Done():
			return o.fail(k.live, failed(network.ErrShut))
		case <-late.C:
			return o.fail(k.live, &failure{
				status:  http.StatusGatewayTimeout,
				message: "There is no answer yet; it will be in the session.",
				code:    "timeout",
			})
		}
		c.mu.Lock()
		text := k.text
		over := k.over
		fault := k.fault
		o.tokens = k.tokens
		c.mu.Unlock()
		switch {
		case fault != "":
			return o.fail(k.live, &failure{status: http.StatusBadGateway, message: fault, code: "no_answer"})
		case k.live:
			o.more(text[done:], over)
			done = len(text)
		case over:
			o.whole(text)
		}
		if over {
			return nil
		}
	}
}

// writeJSON writes v as the response.
func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client went away
}
