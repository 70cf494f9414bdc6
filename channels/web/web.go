// Package web is the chat in the browser: the page, and the network behind it.
//
// What other networks keep on their servers is kept here, in the store: each
// conversation is a log of what was said, and its numbers are what a browser
// that was away goes on from. A message is taken once it is in that log and in
// the house (P3). Signing in, and the guards of every request, are not here.
package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/channels"
	"parley/channels/network"
	"parley/chat"
	"parley/store"
)

// A Config is what a Channel works with.
type Config struct {
	Name    string // of the channel in config.json
	Store   store.Store
	Open    func(path string) (*os.File, error) // opens a file of the workspace (R-S18)
	Save    channels.Save                       // puts an upload into the workspace's inbox
	MaxFile int64                               // bytes of an upload; 0: 20 MiB
	// TakeBytes counts bytes that a person sends, or returns why no more are taken,
	// a [*chat.Refusal]; nil: there is no limit.
	TakeBytes func(ctx context.Context, who chat.Person, bytes int64) error

	// Forget ends a session and deletes it; nil if there is nothing to delete.
	Forget func(context.Context, chat.SessionID) error
	// Search finds what was said with person; if it is nil, only titles are searched.
	Search func(ctx context.Context, person, words string) ([]chat.Find, error)
	Log    *slog.Logger
}

// A Channel is the chat in the browser. A person is a chat, and each of their
// conversations a thread of it. It is also a channels.Streamer,
// Stepper, Typer, Asker and DirectMessenger, and an io.Closer.
type Channel struct {
	cfg    Config
	gate   network.Intake
	talks  store.Table[held]      // by person and conversation
	files  store.Table[chat.File] // by person and ID
	assets string                 // digest of the files of the page
	mux    *http.ServeMux
	bodies *network.Budget // of the bytes of requests in JSON that are in memory

	open    context.Context // until Close
	close   context.CancelFunc
	reading sync.RWMutex // held by those who read along

	mu    sync.Mutex
	rooms map[chat.Address]*room // in which somebody is, or an answer in the making
}

// New returns the Channel of cfg. The error is of its own page.
func New(cfg Config) (*Channel, error) {
	cfg.MaxFile = cmp.Or(cfg.MaxFile, 20<<20)
	if cfg.TakeBytes == nil {
		cfg.TakeBytes = func(context.Context, chat.Person, int64) error { return nil }
	}
	c := &Channel{
		cfg:   cfg,
		talks: store.NewTable(cfg.Store.Bucket(store.BucketChats(cfg.Name)), stillUsed),
		files: store.NewTable(cfg.Store.Bucket(store.BucketFiles(cfg.Name)), store.Forget[chat.File](cfg.Log, "file")),
		rooms: map[chat.Address]*room{}, bodies: network.NewBudget(16<<20, 4<<20),
	}
	var err error
	if c.assets, err = digestAssets(); err != nil {
		return nil, fmt.Errorf("page of the browser chat: %w", err)
	}
	c.mux = c.routes()
	c.open, c.close = context.WithCancel(context.Background())
	return c, nil
}

// stillUsed replaces a damaged entry of the list: what was said in the
// conversation is in its log (P21).
func stillUsed(string, error) (held, error) { return held{Used: true}, nil }

// takeBytes counts bytes that whoever calls sends, or returns why no more are taken.
func (c *Channel) takeBytes(k call, bytes int64) error {
	return c.cfg.TakeBytes(k.r.Context(), chat.Whose(c.address(k.who.ID, ""), k.who, false), bytes)
}

// Run lets browsers speak to the house until ctx ends. They can read before and
// after, until Close.
func (c *Channel) Run(ctx context.Context, deliver chat.Deliver) error {
	c.gate.Open(ctx, deliver)
	return nil
}

// Close hangs up on everybody who reads along.
func (c *Channel) Close() error {
	c.close()
	c.reading.Lock()
	defer c.reading.Unlock()
	return nil
}

func (c *Channel) address(person, id string) chat.Address {
	return chat.Address{Channel: c.cfg.Name, Chat: person, Thread: id}
}

// Direct returns the conversation where somebody finds what nobody asked for.
func (c *Channel) Direct(person string) chat.Address { return c.address(person, notices) }

// Send appends r to its conversation. An r whose ID is there already is not
// said again (P9), and one that says nothing only ends what was in the making.
// A conversation that was deleted is a permanent error.
func (c *Channel) Send(ctx context.Context, r chat.Reply) (channels.Receipt, error) {
	rm, leave := c.use(r.To)
	defer leave()
	files, gone, err := c.attach(ctx, r)
	if err != nil {
		return "", c.unsent(err)
	}
	s := said{
		ID:      r.ID,
		Who:     parley,
		Text:    r.Text + gone,
		Steps:   r.Steps,
		Time:    time.Now(),
		Files:   files,
		Ask:     r.Ask,
		Replies: inPage(r.Quote),
	}
	for _, id := range r.Also {
		s.Also = append(s.Also, inPage(id))
	}
	if strings.TrimSpace(s.Text) == "" && len(files) == 0 {
		rm.stream(chat.Reply{ID: r.ID})
		return channels.Receipt(r.ID), nil
	}
	rm.writing.Lock()
	defer rm.writing.Unlock()
	seq, _, err := rm.append(ctx, s)
	if err != nil {
		return "", c.unsent(err)
	}
	return receipt(seq), nil
}

func receipt(seq uint64) channels.Receipt { return channels.Receipt(strconv.FormatUint(seq, 10)) }

func (c *Channel) unsent(err error) error {
	err = fmt.Errorf("send to %s: %w", c.cfg.Name, err)
	if errors.Is(err, errGone) {
		return channels.ForGood("%w", err)
	}
	return err
}

// Edit implements [channels.Asker]: r takes the place of what rc names.
func (c *Channel) Edit(ctx context.Context, rc channels.Receipt, r chat.Reply) error {
	seq, err := strconv.ParseUint(string(rc), 10, 64)
	if err != nil || seq == 0 {
		return c.unsent(errGone)
	}
	rm, leave := c.use(r.To)
	defer leave()
	if err := rm.edit(ctx, seq, r); err != nil {
		return c.unsent(err)
	}
	return nil
}

// Stream implements [channels.Streamer].
func (c *Channel) Stream(r chat.Reply) {
	rm, leave := c.use(r.To)
	defer leave()
	rm.stream(r)
}

// Step implements [channels.Stepper].
func (c *Channel) Step(r chat.Reply, s chat.Step) {
	rm, leave := c.use(r.To)
	defer leave()
	rm.step(r, s)
}

// Typing implements [channels.Typer].
func (c *Channel) Typing(_ context.Context, at chat.Address) error {
	rm, leave := c.use(at)
	defer leave()
	rm.busy()
	return nil
}

// MaxChoices implements [channels.Asker].
func (c *Channel) MaxChoices() int { return 32 }

// use returns the room of a conversation, for as long as it is used.
func (c *Channel) use(at chat.Address) (rm *room, leave func()) {
	at.Thread = cmp.Or(at.Thread, notices)
	c.mu.Lock()
	defer c.mu.Unlock()
	rm = c.rooms[at]
	if rm == nil {
		rm = newRoom(c, at)
		c.rooms[at] = rm
	}
	rm.users++
	return rm, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		rm.users--
		c.tidy(rm)
	}
}

// tidy forgets rm when nobody needs it. The caller holds mu.
func (c *Channel) tidy(rm *room) {
	if rm.users == 0 && !rm.isMaking() {
		delete(c.rooms, rm.at)
	}
}

// tell tells person, wherever they read along, that their list has changed.
func (c *Channel) tell(person string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, rm := range c.rooms {
		if at.Chat == person {
			rm.push(event("talks", 0, struct{}{}))
		}
		c.tidy(rm) // an answer may have been given up
	}
}
