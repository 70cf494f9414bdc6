// Package web is the chat in the browser: the page, and the network behind it.
//
// What other networks keep on their servers is in the store here. Each conversation
// is a log of messages, and a browser that was away continues from the number of the
// last one it knows. A message is accepted once it is in that log and delivered to
// the gateway (P3). Callers sign people in and check where requests come from.
package web

import (
	"cmp"
	"context"
	"embed"
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
	"parley/channels/web/app"
	"parley/channels/web/assets"
	"parley/channels/web/notify"
	"parley/channels/web/titles"
	"parley/chat"
	"parley/response"
	"parley/store"
)

//go:embed page libraries
var embedded embed.FS

// Config is what a Channel needs.
type Config struct {
	Name    string // of the channel in config.json
	Store   store.Store
	Open    func(path string) (*os.File, error) // opens a file of the workspace (R-S18)
	Save    network.SaveFile                    // stores an upload in the workspace's inbox
	MaxFile int64                               // bytes of an upload; 0: 20 MiB
	// TakeBytes charges bytes to a person, or returns a [*chat.Refusal]; nil: no limit.
	TakeBytes func(ctx context.Context, who chat.Person, bytes int64) error

	// Blocked reports whether the owner's policy takes a part of the page away from who:
	// "block_upload", "block_delete" or "block_steps" (B-071). nil: nothing is blocked.
	Blocked func(ctx context.Context, who chat.Sender, part string) bool

	// Notify tells people who have no page open what was said; nil: nobody is told.
	Notify *notify.Service

	Hears bool // voice messages are understood, so the page can record them

	// Titles names conversations after their first answer; nil: their first words stay.
	Titles *titles.Service

	// Models returns the names of the models that who may choose; nil: none.
	Models func(ctx context.Context, at chat.Address, who chat.Sender) ([]string, error)
	// Model returns the name of the model that answers who there; nil: nobody says.
	Model func(ctx context.Context, at chat.Address, who chat.Sender) (string, error)

	// Steps returns the steps that led to a reply of a session; nil: nothing is known of them.
	Steps func(ctx context.Context, id chat.SessionID, reply string) ([]chat.Step, error)

	// Forget ends a session and deletes it; nil: there are no sessions.
	Forget func(context.Context, chat.SessionID) error
	// Search searches the sessions of person; nil: only titles are searched.
	Search func(ctx context.Context, person, words string) ([]chat.Find, error)
	Log    *slog.Logger
}

// A Channel is the chat in the browser. Each person has a chat, and each of their
// conversations is a thread of it. It is also a channels.Streamer, Stepper, Typer,
// Asker, FormShower, CommandMenu and DirectMessenger, and an io.Closer.
type Channel struct {
	cfg    Config
	intake network.Intake
	files  store.Table[chat.File] // by person and ID
	assets *assets.Files
	mux    *http.ServeMux
	app    *app.Handler
	bodies *network.Budget // of bytes of JSON requests in memory

	conversations *conversationList
	menus         menus

	openCtx context.Context // until Close
	cancel  context.CancelFunc
	readers sync.RWMutex // held for reading while a browser follows events

	mu    sync.Mutex
	rooms map[chat.Address]*room // that are in use, or have a pending reply
}

// New returns a Channel. The error is about the embedded page.
func New(cfg Config) (*Channel, error) {
	cfg.MaxFile = cmp.Or(cfg.MaxFile, 20<<20)
	if cfg.TakeBytes == nil {
		cfg.TakeBytes = func(context.Context, chat.Person, int64) error { return nil }
	}
	if cfg.Blocked == nil {
		cfg.Blocked = func(context.Context, chat.Sender, string) bool { return false }
	}
	if cfg.Model == nil {
		cfg.Model = func(context.Context, chat.Address, chat.Sender) (string, error) { return "", nil }
	}
	c := &Channel{
		cfg:    cfg,
		files:  store.NewTable(cfg.Store.Bucket(store.BucketFiles(cfg.Name)), store.Forget[chat.File](cfg.Log, "file")),
		rooms:  map[chat.Address]*room{},
		bodies: network.NewBudget(16<<20, 4<<20),
	}
	c.conversations = &conversationList{
		table:   store.NewTable(cfg.Store.Bucket(store.BucketChats(cfg.Name)), replaceDamaged),
		changed: c.publishListChange,
	}
	var err error
	if c.assets, err = assets.New(embedded); err != nil {
		return nil, fmt.Errorf("page of the browser chat: %w", err)
	}
	if c.app, err = app.New(c.assets.Digest); err != nil {
		return nil, fmt.Errorf("app of the browser chat: %w", err)
	}
	c.menus.channel = c
	c.mux = c.routes()
	c.openCtx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// The parts of the page that a policy may block.
const (
	blockDelete = "block_delete" // deleting conversations
	blockSteps  = "block_steps"  // which tools are at work
	blockUpload = "block_upload" // attaching files
)

// checkBlocked returns a problem if that part of the page is blocked for the person
// of req.
func (c *Channel) checkBlocked(req request, part string) error {
	if c.cfg.Blocked(req.r.Context(), req.who, part) {
		return response.Problem{Status: http.StatusForbidden, Text: "The owner has switched that off."}
	}
	return nil
}

// blockedParts lists what is blocked for the person of req.
func (c *Channel) blockedParts(req request) (parts []string) {
	for _, part := range []string{blockDelete, blockSteps, blockUpload} {
		if c.cfg.Blocked(req.r.Context(), req.who, part) {
			parts = append(parts, part)
		}
	}
	return parts
}

// chargeBytes charges bytes to the person of req, or returns the refusal.
func (c *Channel) chargeBytes(req request, bytes int64) error {
	return c.cfg.TakeBytes(req.r.Context(), chat.Whose(c.address(req.who.ID, ""), req.who, false), bytes)
}

// Run accepts messages until ctx ends. Browsers can read before and after, until
// Close.
func (c *Channel) Run(ctx context.Context, deliver chat.Deliver) error {
	var background sync.WaitGroup
	var notifying, naming error
	if c.cfg.Notify != nil {
		background.Go(func() { notifying = c.cfg.Notify.Run(ctx, hasSeen(c)) })
	}
	if c.cfg.Titles != nil {
		background.Go(func() { naming = c.cfg.Titles.Run(ctx, titledPage{c}) })
	}
	c.intake.Open(ctx, deliver)
	background.Wait()
	return errors.Join(notifying, naming)
}

// App returns what serves the app that the page of c is, to everybody, at [app.Path].
func App(c *Channel) http.Handler { return c.app }

// Close disconnects all browsers that follow events.
func (c *Channel) Close() error {
	c.cancel()
	c.readers.Lock()
	defer c.readers.Unlock()
	return nil
}

func (c *Channel) address(person, id string) chat.Address {
	return chat.Address{Channel: c.cfg.Name, Chat: person, Thread: id}
}

// Direct implements [channels.DirectMessenger]: it returns the conversation for
// messages that answer nothing.
func (c *Channel) Direct(person string) chat.Address { return c.address(person, noticesID) }

// Send appends r to its conversation, unless a reply with its ID is there already
// (P9). A reply without text and files only ends the draft. Send returns a permanent
// error for a deleted conversation.
func (c *Channel) Send(ctx context.Context, r chat.Reply) (channels.Receipt, error) {
	rm, leave := c.openRoom(r.To)
	defer leave()
	files, gone, err := c.attachFiles(ctx, r)
	if err != nil {
		return "", c.sendError(err)
	}
	e := logEntry{
		ID:      r.ID,
		Who:     whoAgent,
		Text:    r.Text + gone,
		Steps:   r.Steps,
		Taken:   r.Taken,
		Time:    time.Now(),
		Files:   files,
		Ask:     r.Ask,
		Replies: pageID(r.Quote),
	}
	for _, id := range r.Also {
		e.Also = append(e.Also, pageID(id))
	}
	if isEmpty := strings.TrimSpace(e.Text) == ""; len(files) == 0 && (isEmpty || r.Before) {
		done, err := rm.completeAnswer(ctx, r, e)
		if err != nil {
			return "", c.sendError(err)
		}
		if done || isEmpty {
			rm.showDraft(chat.Reply{ID: r.ID})
			return channels.Receipt(r.ID), nil
		}
	}
	rm.writeMu.Lock()
	defer rm.writeMu.Unlock()
	seq, _, err := rm.appendEntry(ctx, e)
	if err != nil {
		return "", c.sendError(err)
	}
	e.Seq = seq
	if err := rm.tellAway(ctx, e); err != nil {
		return "", c.sendError(err)
	}
	rm.wantTitle(ctx, r)
	return receipt(seq), nil
}

func receipt(seq uint64) channels.Receipt { return channels.Receipt(strconv.FormatUint(seq, 10)) }

// sendError adds context to an error of Send or Edit, and makes it permanent if the
// conversation is gone.
func (c *Channel) sendError(err error) error {
	err = fmt.Errorf("send to %s: %w", c.cfg.Name, err)
	if errors.Is(err, errGone) {
		return channels.ForGood("%w", err)
	}
	return err
}

// Edit implements [channels.Asker]: r replaces the message of rc.
func (c *Channel) Edit(ctx context.Context, rc channels.Receipt, r chat.Reply) error {
	seq, err := strconv.ParseUint(string(rc), 10, 64)
	if err != nil || seq == 0 {
		return c.sendError(errGone)
	}
	rm, leave := c.openRoom(r.To)
	defer leave()
	if err := rm.editEntry(ctx, seq, r); err != nil {
		return c.sendError(err)
	}
	return nil
}

// Stream implements [channels.Streamer].
func (c *Channel) Stream(r chat.Reply) {
	rm, leave := c.openRoom(r.To)
	defer leave()
	rm.showDraft(r)
}

// Step implements [channels.Stepper].
func (c *Channel) Step(r chat.Reply, s chat.Step) {
	rm, leave := c.openRoom(r.To)
	defer leave()
	rm.showStep(r, s)
}

// Typing implements [channels.Typer].
func (c *Channel) Typing(_ context.Context, at chat.Address) error {
	rm, leave := c.openRoom(at)
	defer leave()
	rm.showBusy()
	return nil
}

// MaxChoices implements [channels.Asker].
func (c *Channel) MaxChoices() int { return 32 }

// MaxFields implements [channels.FormShower].
func (c *Channel) MaxFields() int { return 50 }

// openRoom returns the room of a conversation. It stays open at least until leave is
// called.
func (c *Channel) openRoom(at chat.Address) (rm *room, leave func()) {
	at.Thread = cmp.Or(at.Thread, noticesID)
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
		c.dropIfIdle(rm)
	}
}

// dropIfIdle drops rm if it is not used and has no pending reply. The caller holds mu.
func (c *Channel) dropIfIdle(rm *room) {
	if rm.users == 0 && !rm.isActive() {
		delete(c.rooms, rm.address)
	}
}

// publishListChange notifies all browsers of person that their list has changed.
func (c *Channel) publishListChange(person string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, rm := range c.rooms {
		if at.Chat == person {
			rm.publish(newEvent("talks", 0, struct{}{}))
		}
		c.dropIfIdle(rm) // its pending reply may have been abandoned
	}
}
