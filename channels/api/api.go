// Package api is the channel of programs that talk to the agent as they would to
// a model, through OpenAI's chat completions.
//
// A request is a message, delivered like any other, and its response is the
// answer. Clients send the whole conversation each time. The channel recognises
// the conversation by its text and takes only what is new.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/channels"
	"parley/channels/network"
	"parley/chat"
	"parley/store"
)

// Config is what a Channel needs.
type Config struct {
	Name   string           // of the channel in config.json
	Store  store.Store      // for requests, answers and conversations
	Save   network.SaveFile // stores an upload in the workspace
	Dir    string           // for images of requests being read; "": the system's temporary folder
	Budget *network.Budget  // of request bytes in memory; nil: fit for a small machine

	// Bodies limits the bytes of requests being read, images on disk included; nil:
	// as above.
	Bodies *network.Budget
	// TakeBytes charges bytes to a person, or returns a [*chat.Refusal]; nil: no limit.
	TakeBytes func(ctx context.Context, who chat.Person, bytes int64) error

	// Models returns the names of the models that requests of who may name besides "parley". nil: none.
	Models func(ctx context.Context, at chat.Address, who chat.Sender) ([]string, error)
	Log    *slog.Logger
}

const (
	keepAliveInterval = 20 * time.Second // between keep-alive comments on a stream
	maxAnswerWait     = time.Hour        // for an answer; a later one is in the session only
)

// A Channel answers requests. It is a channels.Channel, a channels.Stepper
// and an io.Closer.
type Channel struct {
	cfg     Config
	records recordStore
	mux     *http.ServeMux
	intake  network.Intake
	openCtx context.Context // until Close
	cancel  context.CancelFunc

	mu      sync.Mutex
	waiting map[string][]*waiter // by the ID of their message
}

// New returns the Channel of cfg.
func New(cfg Config) *Channel {
	if cfg.TakeBytes == nil {
		cfg.TakeBytes = func(context.Context, chat.Person, int64) error { return nil }
	}
	if cfg.Budget == nil {
		cfg.Budget = network.NewBudget(16<<20, 8<<20)
	}
	if cfg.Bodies == nil {
		cfg.Bodies = network.NewBudget(1<<30, 768<<20)
	}
	c := &Channel{cfg: cfg, records: newRecordStore(cfg.Store, cfg.Log), waiting: map[string][]*waiter{}}
	c.mux = c.newMux()
	c.openCtx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Run accepts requests until ctx ends. Those that are waiting for an answer by then
// still get it, until Close.
func (c *Channel) Run(ctx context.Context, deliver chat.Deliver) error {
	var pruning sync.WaitGroup
	defer pruning.Wait()
	pruning.Go(func() {
		for first := true; first || channels.Sleep(ctx, time.Hour); first = false {
			if err := c.records.prune(ctx); err != nil && ctx.Err() == nil {
				c.cfg.Log.Warn("could not delete old requests", "err", err)
			}
		}
	})
	c.intake.Open(ctx, deliver)
	return nil
}

// Close tells the requests that are still waiting to try again.
func (c *Channel) Close() error {
	c.cancel()
	return nil
}

// A waiter is a request that waits for its answer. The fields from at on are
// guarded by Channel.mu.
type waiter struct {
	id         string          // of its message
	model      string          // as the client named it
	prefix     string          // of the sessions of its API key
	wantsUsage bool            // a stream ends with the tokens used
	leave      func()          // removes the waiter
	step       func(chat.Step) // is told of tools at work; may be nil
	stop       stops           // texts before which the answer ends

	at        chat.Address
	streams   bool   // the response is a stream
	text      string // to be written so far; it only grows
	textFinal bool   // text will not grow any more
	done      bool   // the answer is stored
	outcome   outcome
	fault     string // why there is no answer
	changed   chan struct{}
}

// extendText extends w's text to whole. If the text so far is not the beginning of
// whole, nothing changes, unless end is set, which makes the text final: then
// whole follows it.
func (w *waiter) extendText(whole string, end bool) {
	rest, ok := missingSuffix(w.text, strings.TrimRight(whole, " \t\r\n"))
	switch {
	case w.textFinal:
		return
	case ok:
		w.text += rest
	case end:
		w.text += "\n\n" + strings.TrimSpace(whole)
	}
	w.textFinal = end
	w.notify()
}

// finish sets the answer, or why there is none, and what else is known of it.
func (w *waiter) finish(text string, failed bool, o outcome) {
	w.outcome = o
	if failed {
		w.fault = text
	} else {
		w.extendText(text, true)
	}
	w.done = true
	w.notify()
}

// notify wakes the goroutine that writes the response.
func (w *waiter) notify() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// missingSuffix returns what follows have in whole, if whole begins with have. The
// amount of space between words does not matter.
func missingSuffix(have, whole string) (rest string, ok bool) {
	rest = strings.TrimSpace(whole)
	for _, word := range strings.Fields(have) {
		if rest, ok = strings.CutPrefix(strings.TrimLeft(rest, " \t\r\n"), word); !ok {
			return "", false
		}
	}
	return rest, true
}

// addWaiter registers w for the answer to the message with that ID.
func (c *Channel) addWaiter(id string, w *waiter) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[id] = append(c.waiting[id], w)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.waiting[id] = slices.DeleteFunc(c.waiting[id], func(o *waiter) bool { return o == w })
		if len(c.waiting[id]) == 0 {
			delete(c.waiting, id)
		}
	}
}

// Stream implements [channels.Streamer].
func (c *Channel) Stream(r chat.Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.waiting[r.Quote] {
		if w.streams {
			w.extendText(w.stop.end(r.Text, true), false)
		}
	}
}

// Send stores r as the answer to the requests it answers and gives it to those that
// wait. A client that went away finds the answer when it asks again. What answers
// no request, such as a reminder, is stored and appended to the next answer.
func (c *Channel) Send(ctx context.Context, r chat.Reply) (channels.Receipt, error) {
	text := strings.TrimSpace(r.Text)
	for _, f := range r.Files {
		text += "\n\n[file: " + path.Base(f.Path) + "]"
	}
	later, err := c.records.isPostponement(ctx, r)
	if err != nil {
		return "", err
	}
	if later {
		c.reportPostponed(r, text)
		return channels.Receipt(r.ID), nil
	}
	asked, again, err := c.records.requestsAnsweredBy(ctx, r, c.otherAnswered(r))
	switch {
	case err != nil:
		return "", err
	case len(asked) == 0 && strings.HasPrefix(r.Quote, stopPrefix): // nobody waits for that
		return channels.Receipt(r.ID), nil
	case len(asked) == 0 && !again:
		return channels.Receipt(r.ID), c.records.addNote(ctx, r, text)
	}
	for _, rec := range asked {
		if err := c.answerRequest(ctx, rec, r, text); err != nil {
			return "", err
		}
	}
	return channels.Receipt(r.ID), nil
}

// reportPostponed ends the requests whose answer r postpones with the reason. They
// get the answer when they ask again under the same key.
func (c *Channel) reportPostponed(r chat.Reply, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range append([]string{r.Quote}, r.Also...) {
		for _, w := range c.waiting[id] {
			w.finish(why, true, outcome{tokens: r.Tokens})
		}
	}
}

// otherAnswered returns the IDs of waiting messages that r answers without quoting
// them: a question goes to every request of its conversation.
func (c *Channel) otherAnswered(r chat.Reply) (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !isQuestion(r) {
		return nil
	}
	for id, waiters := range c.waiting {
		if slices.ContainsFunc(waiters, func(w *waiter) bool { return w.at == r.To }) {
			ids = append(ids, id)
		}
	}
	return ids
}

// isQuestion reports whether r is a question. For channels without buttons the Hub
// writes the choices into the text and clears Ask, so the ID tells.
func isQuestion(r chat.Reply) bool { return r.Ask != nil || strings.HasPrefix(r.ID, "ask:") }

// answerRequest stores text, followed by the notes of the conversation if somebody
// waits, as the answer to rec, and then gives it to those who wait.
func (c *Channel) answerRequest(ctx context.Context, rec requestRecord, r chat.Reply, text string) error {
	c.mu.Lock()
	here := slices.Clone(c.waiting[rec.Message.ID])
	c.mu.Unlock()
	rec.Tokens, rec.Cut = r.Tokens, r.Cut
	formatted := rec.Message.Wanted().Format != nil
	if formatted { // neither files nor notes are JSON
		text = strings.TrimSpace(r.Text)
	}
	text = withoutCalls(text, rec.Calls)
	if !r.Failed && !isQuestion(r) { // these the model has not said
		text = rec.Stop.end(text, false)
	}
	var notes []note
	if len(here) > 0 && !formatted {
		conv, _, err := getOrZero(ctx, c.records.conversations, string(r.To.Session()))
		if err != nil {
			return err
		}
		notes = conv.Notes
		for _, n := range notes {
			text += "\n\n" + n.Text
		}
	}
	versions := []string{text} // of the answer, as the clients have read it
	c.mu.Lock()
	for _, w := range here {
		if !r.Failed {
			w.extendText(text, true)
		}
		versions = append(versions, w.text)
	}
	c.mu.Unlock()
	slices.Sort(versions)
	if err := c.records.storeAnswer(ctx, rec, r, text, slices.Compact(versions), notes); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range c.waiting[rec.Message.ID] { // also those that came since, before the answer was stored
		w.finish(text, r.Failed, rec.outcome())
	}
	return nil
}
