// Package api is the channel of programs that speak to the agent as they would
// to a model, by OpenAI's chat completions.
//
// A request is a message, delivered like any other, and its response is the
// answer. Such clients send the whole conversation each time; the channel
// knows by it which conversation goes on, and takes only what is new.
package api

import (
	"context"
	"log/slog"
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
	Name   string          // of the channel in config.json
	Store  store.Store     // remembers requests, answers and conversations
	Save   channels.Save   // puts an upload into the workspace
	Dir    string          // where pictures are while a request comes in; "": the system's folder for such
	Budget *network.Budget // of the bytes of requests that are in memory; nil: as much as a small machine has

	// Bodies bounds the bytes of incoming requests with their pictures, which go to
	// the disk; nil: as above.
	Bodies *network.Budget
	// TakeBytes counts bytes that a person sends, or returns why no more are taken,
	// a [*chat.Refusal]; nil: there is no limit.
	TakeBytes func(ctx context.Context, who chat.Person, bytes int64) error

	Models func() []string // names that requests may give besides "parley"; nil: none
	Log    *slog.Logger
}

const (
	keepAlive = 20 * time.Second // between signs of life on a stream
	maxWait   = time.Hour        // for an answer; one that comes later is in the session
)

// A Channel answers requests. It is a channels.Channel, a channels.Streamer
// and an io.Closer.
type Channel struct {
	cfg   Config
	book  book
	gate  network.Intake
	open  context.Context // until Close
	close context.CancelFunc

	mu      sync.Mutex
	waiting map[string][]*call // by the ID of their message
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
	c := &Channel{cfg: cfg, book: newBook(cfg.Store, cfg.Log), waiting: map[string][]*call{}}
	c.open, c.close = context.WithCancel(context.Background())
	return c
}

// Run takes requests until ctx ends. Those that wait for an answer then still
// get it, until Close.
func (c *Channel) Run(ctx context.Context, deliver chat.Deliver) error {
	var pruning sync.WaitGroup
	defer pruning.Wait()
	pruning.Go(func() {
		for first := true; first || channels.Sleep(ctx, time.Hour); first = false {
			if err := c.book.prune(ctx); err != nil && ctx.Err() == nil {
				c.cfg.Log.Warn("old requests not forgotten", "err", err)
			}
		}
	})
	c.gate.Open(ctx, deliver)
	return nil
}

// Close tells the requests that still wait to come again.
func (c *Channel) Close() error {
	c.close()
	return nil
}

// A call is a request that waits. The fields from at on are guarded by Channel.mu.
type call struct {
	id     string // of its message
	model  string // as the client named it
	prefix string // of its person's sessions
	usage  bool   // a stream tells what the answer took
	leave  func() // ends the waiting

	at     chat.Address
	live   bool         // it is streamed
	stop   bool         // it asks for the end of a turn, whose answer is its answer, too
	text   string       // to be written so far; it only ever grows
	ended  bool         // text will not grow
	over   bool         // and the answer is on disk
	tokens *chat.Tokens // that the answer took; nil: none
	fault  string       // why there is no answer
	news   chan struct{}
}

// grow makes k's text say all that whole says. With end nothing comes after;
// what was written then and is not the beginning of whole stays before it.
func (k *call) grow(whole string, end bool) {
	rest, ok := remainder(k.text, strings.TrimRight(whole, " \t\r\n"))
	switch {
	case k.ended:
		return
	case ok:
		k.text += rest
	case end:
		k.text += "\n\n" + strings.TrimSpace(whole)
	}
	k.ended = end
	k.wake()
}

// end has k be told text: the answer, or why there is none, and what it took.
func (k *call) end(text string, failed bool, tokens *chat.Tokens) {
	k.tokens = tokens
	if failed {
		k.fault = text
	} else {
		k.grow(text, true)
	}
	k.over = true
	k.wake()
}

func (k *call) wake() {
	select {
	case k.news <- struct{}{}:
	default:
	}
}

// remainder returns what of whole is missing behind have, if have is its
// beginning; how much space there is between words does not matter.
func remainder(have, whole string) (rest string, ok bool) {
	rest = strings.TrimSpace(whole)
	for _, word := range strings.Fields(have) {
		if rest, ok = strings.CutPrefix(strings.TrimLeft(rest, " \t\r\n"), word); !ok {
			return "", false
		}
	}
	return rest, true
}

// wait registers a request for the answer to the message with that ID.
func (c *Channel) wait(id string, k *call) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[id] = append(c.waiting[id], k)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.waiting[id] = slices.DeleteFunc(c.waiting[id], func(o *call) bool { return o == k })
		if len(c.waiting[id]) == 0 {
			delete(c.waiting, id)
		}
	}
}

// Stream implements [channels.Streamer].
func (c *Channel) Stream(r chat.Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.waiting[r.Quote] {
		if k.live {
			k.grow(r.Text, false)
		}
	}
}

// Send gives r to the requests that it answers. One whose client went away is
// answered all the same, for when it asks again. What answers no request, such
// as a reminder, is kept and goes behind the next answer.
func (c *Channel) Send(ctx context.Context, r chat.Reply) (channels.Receipt, error) {
	text := strings.TrimSpace(r.Text)
	for _, f := range r.Files {
		text += "\n\n[file: " + path.Base(f.Path) + "]"
	}
	if later, err := c.book.postpones(ctx, r); err != nil {
		return "", err
	} else if later {
		c.postpone(r, text)
		return channels.Receipt(r.ID), nil
	}
	asked, again, err := c.book.answers(ctx, r, c.beside(r))
	switch {
	case err != nil:
		return "", err
	case len(asked) == 0 && !again:
		return channels.Receipt(r.ID), c.book.note(ctx, r, text)
	}
	for _, rec := range asked {
		if err := c.answer(ctx, rec, r, text); err != nil {
			return "", err
		}
	}
	return channels.Receipt(r.ID), nil
}

// postpone tells the requests that wait for the answer that r puts off why there
// is none yet. They find it by asking again under the same key.
func (c *Channel) postpone(r chat.Reply, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range append([]string{r.Quote}, r.Also...) {
		for _, k := range c.waiting[id] {
			k.end(why, true, r.Tokens)
		}
	}
}

// beside returns the IDs of messages that r answers although it does not quote
// them: a question asks whoever is there, and /stop has no answer of its own.
func (c *Channel) beside(r chat.Reply) (ids []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, ks := range c.waiting {
		if slices.ContainsFunc(ks, func(k *call) bool { return k.at == r.To && (k.stop || asks(r)) }) {
			ids = append(ids, id)
		}
	}
	return ids
}

// asks says that r is a question. The Hub writes the choices into the text and
// drops Ask for channels without buttons, so its ID tells.
func asks(r chat.Reply) bool { return r.Ask != nil || strings.HasPrefix(r.ID, "ask:") }

// answer keeps text, and what was said without being asked, as the answer to
// the message of rec, and then gives it to those who wait.
func (c *Channel) answer(ctx context.Context, rec record, r chat.Reply, text string) error {
	c.mu.Lock()
	here := slices.Clone(c.waiting[rec.Message.ID])
	c.mu.Unlock()
	var notes []note
	if len(here) > 0 {
		t, _, err := get(ctx, c.book.talks, string(r.To.Session()))
		if err != nil {
			return err
		}
		for notes = t.Notes; len(t.Notes) > 0; t.Notes = t.Notes[1:] {
			text += "\n\n" + t.Notes[0].Text
		}
	}
	said := []string{text}
	c.mu.Lock()
	for _, k := range here {
		if !r.Failed {
			k.grow(text, true)
		}
		said = append(said, k.text)
	}
	c.mu.Unlock()
	slices.Sort(said)
	if err := c.book.answered(ctx, rec, r, text, slices.Compact(said), notes); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.waiting[rec.Message.ID] { // also those that came since and did not find the answer yet
		k.end(text, r.Failed, r.Tokens)
	}
	return nil
}
