// Package console is the channel of the terminals on this machine.
//
// Clients connect to a unix socket that only the owner can open, and exchange
// frames with the gateway, one JSON object a line. A terminal in the gateway's own
// process is a client like the others, connected in memory. A client gives its
// messages IDs, so that it can send again what was not acknowledged when a
// connection broke, and acknowledges each reply that it has shown.
package console

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"parley/channels"
	"parley/chat"
)

// Local is the only chat. All clients take part in it.
const Local = "local"

// Owner is the ID of the person who can open the socket.
const Owner = "owner"

const (
	showTimeout = 10 * time.Second // for a client to show a reply; then all that were sent it are disconnected
	retryDelay  = 5 * time.Second  // before a reply that no client has shown is sent again
)

// Config is what a Channel needs.
type Config struct {
	Name      string       // of the channel in config.json
	Socket    string       // path of the socket
	Files     string       // folder of the files in replies
	Local     *Terminal    // the terminal of this process; nil: none
	Forwarded net.Listener // accepts the connections that other gateways pass on, until Run returns; nil: none

	// Leave is called once if Local ends before Run's ctx does, with nil if the
	// person left or all of a pipe was answered.
	Leave func(error)
	Log   *slog.Logger // nil: slog.Default()
}

// A Channel is the gateway's side of the socket. It is a channels.Channel,
// Streamer, Stepper, Typer, Settler, Attacher, Announcer, HintShower, CommandMenu and
// DirectMessenger, and an io.Closer.
type Channel struct {
	cfg       Config
	questions func(context.Context, chat.Address) ([]chat.Reply, error) // that are open; nil: none
	openCtx   context.Context                                           // until Close
	cancel    context.CancelFunc
	connected sync.WaitGroup // goroutines of clients
	mu        sync.Mutex
	clients   []*client
	sent      []sentReply   // the latest replies
	shown     []string      // IDs of the latest replies that were shown
	steps     []string      // the latest steps that were sent
	commands  []string      // their names
	notes     []note        // that nobody has seen
	said      []string      // IDs of the latest messages that other terminals were shown
	ended     bool          // Run has returned: no client will connect
	changed   chan struct{} // closed and replaced when one of the above changes
}

// New returns a Channel. Its socket exists while Run runs.
func New(cfg Config) *Channel {
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	c := &Channel{cfg: cfg, changed: make(chan struct{})}
	c.openCtx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Run serves the socket, and Local if it is set. It returns an error if it cannot
// create the socket or another process serves it. Once Run has returned, messages
// of connected clients are refused, but replies still reach them until Close.
func (c *Channel) Run(ctx context.Context, deliver chat.Deliver) error {
	l, err := Listen(c.cfg.Socket)
	if err != nil {
		return err
	}
	defer c.update(func() { c.ended = true })
	if c.cfg.Local != nil {
		c.connected.Go(func() { c.runLocalTerminal(ctx, deliver) })
	}
	var accepting sync.WaitGroup
	for _, l := range []net.Listener{l, c.cfg.Forwarded} {
		if l != nil {
			accepting.Go(func() { c.accept(ctx, l, deliver) })
		}
	}
	accepting.Wait()
	return nil
}

// accept serves those who connect to l, until ctx ends.
func (c *Channel) accept(ctx context.Context, l net.Listener, deliver chat.Deliver) {
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		conn, err := l.Accept()
		switch {
		case err != nil && ctx.Err() != nil:
			return
		case ctx.Err() != nil:
			conn.Close()
			return
		case err != nil:
			c.cfg.Log.Warn("console connection not accepted", "err", err)
			channels.Sleep(ctx, time.Second)
		default:
			c.connected.Go(func() { c.serve(ctx, conn, deliver) })
		}
	}
}

// Close disconnects all clients and restores the mode of Local. It is called after
// Run has returned.
func (c *Channel) Close() error {
	c.cancel()
	c.connected.Wait()
	return nil
}

// runLocalTerminal connects the terminal of this process, in memory.
func (c *Channel) runLocalTerminal(ctx context.Context, deliver chat.Deliver) {
	var served sync.WaitGroup
	err := ChatOver(c.openCtx, func(context.Context) (net.Conn, error) {
		local, remote := net.Pipe()
		served.Go(func() { c.serve(ctx, remote, deliver) })
		return local, nil
	}, *c.cfg.Local)
	served.Wait()
	if ctx.Err() != nil || c.cfg.Leave == nil {
		return
	}
	c.cfg.Leave(err)
}

// Direct implements [channels.DirectMessenger]. There is one person, in one chat.
func (c *Channel) Direct(id string) chat.Address {
	if id != "" && id != Owner {
		return chat.Address{}
	}
	return chat.Address{Channel: c.cfg.Name, Chat: Local}
}

// Send sends r to the clients that it concerns and returns nil once one of them has acknowledged it, and with it the
// pipes that wait for it: a gateway that dies before does not know that they were not answered. While Run runs it waits
// for clients if there are none. It disconnects those that do not show r within showTimeout.
func (c *Channel) Send(ctx context.Context, r chat.Reply) (channels.Receipt, error) {
	if r.To.Chat != Local {
		return "", channels.ForGood("send to console: no chat %s", r.To.Chat)
	}
	f := c.replyFrame(r)
	var readers []*client
	var late <-chan time.Time
	for ctx.Err() == nil {
		c.mu.Lock()
		shown := slices.Contains(c.shown, r.ID)
		ended := c.ended
		changed := c.changed
		readers = slices.DeleteFunc(readers, func(k *client) bool {
			return !slices.Contains(c.clients, k) || slices.Contains(k.shown, r.ID)
		})
		owed := late != nil && slices.ContainsFunc(c.clients, func(k *client) bool {
			return k.waitsFor(f) && !slices.Contains(k.shown, r.ID)
		})
		if !shown && len(readers) == 0 {
			readers = c.sendReply(f)
			late = time.After(showTimeout)
		}
		c.mu.Unlock()
		switch {
		case shown && !owed:
			return channels.Receipt(r.ID), nil
		case ended && !shown && len(readers) == 0:
			return "", errNoReader
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-late:
			for _, k := range readers {
				k.conn.close()
			}
			late = nil
		}
	}
	return "", errNoReader
}

// replyFrame returns the frame of r.
func (c *Channel) replyFrame(r chat.Reply) frame {
	f := frame{Kind: frameReply, ID: r.ID, To: slices.Clone(r.Also), Text: r.Text, Failed: r.Failed, Hint: r.Hint}
	f.Asks = r.Ask != nil && !r.Ask.Say
	f.More = r.IsOfTool()
	if r.Quote != "" {
		f.To = append(f.To, r.Quote)
	}
	for _, file := range r.Files {
		f.Files = append(f.Files, filepath.Join(c.cfg.Files, file.Path))
	}
	return f
}

// SetOpenQuestions implements [channels.Attacher].
func (c *Channel) SetOpenQuestions(open func(context.Context, chat.Address) ([]chat.Reply, error)) {
	c.questions = open
}

// showOpenQuestions shows the open questions to the terminals that were not sent them,
// because they connected later.
func (c *Channel) showOpenQuestions(ctx context.Context) {
	if c.questions == nil {
		return
	}
	open, err := c.questions(ctx, chat.Address{Channel: c.cfg.Name, Chat: Local})
	if err != nil {
		c.cfg.Log.Warn("open questions not shown", "err", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range open {
		c.sendReply(c.replyFrame(r))
	}
}

// Settle implements [channels.Settler].
func (c *Channel) Settle(message string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.clients {
		if k.pipe && k.lastMessage == message {
			k.conn.send(frame{Kind: frameTaken, ID: message})
		}
	}
}

var errNoReader = &channels.Error{After: retryDelay, Err: errors.New("send to console: no client has shown the reply")}

// sendReply sends f to all terminals and to the pipe that it answers, or to all
// pipes if there are neither: a reply that waits for a reader would otherwise hold
// up the answers behind it. It returns the clients. The caller holds mu.
func (c *Channel) sendReply(f frame) []*client {
	readers := slices.DeleteFunc(slices.Clone(c.clients), func(k *client) bool {
		return k.pipe && !k.waitsFor(f)
	})
	if len(readers) == 0 {
		readers = slices.Clone(c.clients)
	}
	for _, k := range readers {
		c.sendOnce(k, f)
	}
	return readers
}

// sendOnce sends k the reply f, unless that is under way to k already. The caller holds mu.
func (c *Channel) sendOnce(k *client, f frame) {
	at := slices.IndexFunc(c.sent, func(s sentReply) bool { return s.reply.ID == f.ID })
	if at < 0 {
		c.sent = remember(c.sent, sentReply{reply: f})
		at = len(c.sent) - 1
	}
	if slices.Contains(c.sent[at].clients, k) {
		return
	}
	c.sent[at].clients = append(c.sent[at].clients, k)
	k.conn.send(f)
}

// resendAnswers sends k the replies to its message id that were sent to others only:
// its connection broke meanwhile, and the agent does not answer a message twice. The
// caller holds mu.
func (c *Channel) resendAnswers(k *client, id string) {
	for _, s := range c.sent {
		if slices.Contains(s.reply.To, id) {
			c.sendOnce(k, s.reply)
		}
	}
}

// Stream implements [channels.Streamer]. Pipes are shown no drafts.
func (c *Channel) Stream(r chat.Reply) {
	c.broadcast(r.To, frame{Kind: frameDraft, ID: r.ID, Text: r.Text})
}

// Typing implements [channels.Typer].
func (c *Channel) Typing(_ context.Context, at chat.Address) error {
	c.broadcast(at, frame{Kind: frameTyping})
	return nil
}

// broadcast sends f to all terminals, and a typing sign to pipes, too.
func (c *Channel) broadcast(at chat.Address, f frame) {
	if at.Chat != Local {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.clients {
		if !k.pipe || f.Kind == frameTyping {
			k.conn.send(f)
		}
	}
}

// serve serves one client until it leaves, and takes its messages until ctx ends.
func (c *Channel) serve(ctx context.Context, conn net.Conn, deliver chat.Deliver) {
	k := &client{conn: newFrameConn(conn)}
	k.conn.run(c.openCtx, func(f frame) {
		switch f.Kind {
		case frameHello:
			c.update(func() {
				if !slices.Contains(c.clients, k) {
					k.pipe = f.ID == asPipe
					c.clients = append(c.clients, k)
				}
			})
			if f.ID == asTerminal {
				c.sendCommands(k)
				c.showOpenQuestions(ctx)
				c.showNotes(k)
			}
		case frameMessage:
			c.receive(ctx, k, f, deliver)
		case frameShown:
			c.update(func() {
				c.shown = remember(c.shown, f.ID)
				k.shown = remember(k.shown, f.ID)
			})
			k.conn.send(frame{Kind: frameTaken, ID: f.ID})
		}
	})
	c.update(func() { c.forget(k) })
}

// forget drops a client that has left. The caller holds mu.
func (c *Channel) forget(k *client) {
	isIt := func(o *client) bool { return o == k }
	c.clients = slices.DeleteFunc(c.clients, isIt)
	for i := range c.sent {
		c.sent[i].clients = slices.DeleteFunc(c.sent[i].clients, isIt)
	}
}

// update calls change, which changes the state that mu guards, and wakes the
// replies that wait.
func (c *Channel) update(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	close(c.changed)
	c.changed = make(chan struct{})
}

// receive delivers a client's message. If the gateway cannot take it, receive
// disconnects the client, which sends it again on its next connection, followed by
// the later ones, in order (P3).
func (c *Channel) receive(ctx context.Context, k *client, f frame, deliver chat.Deliver) {
	if f.ID == "" || k.refused {
		return
	}
	c.mu.Lock()
	k.lastMessage = f.ID
	if k.pipe {
		c.resendAnswers(k, f.ID)
	}
	c.mu.Unlock()
	err := c.deliver(ctx, k, f, deliver)
	switch {
	case err != nil && ctx.Err() != nil: // the client stays connected for its replies
		k.refused = true
	case err != nil:
		k.refused = true
		c.cfg.Log.Warn("message from console not taken", "id", f.ID, "err", err)
		k.conn.close()
	case k.pipe:
		k.conn.send(frame{Kind: frameStored, ID: f.ID})
	default:
		k.conn.send(frame{Kind: frameTaken, ID: f.ID})
	}
}

// deliver hands over the message in f, which k sent, unless ctx has ended. The other terminals are shown it first:
// the answer may be there when deliver returns.
func (c *Channel) deliver(ctx context.Context, k *client, f frame, deliver chat.Deliver) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.showToOthers(k, f)
	return deliver(ctx, chat.Message{
		ID:   f.ID,
		At:   chat.Address{Channel: c.cfg.Name, Chat: Local},
		From: chat.Sender{ID: Owner, Name: Owner},
		Text: f.Text,
		Time: time.Now(),

		Again: f.Again,
	})
}

// A client is a connected client as the gateway sees it.
type client struct {
	conn        *frameConn
	pipe        bool     // it is sent no drafts and no steps; guarded by Channel.mu
	lastMessage string   // ID; guarded by Channel.mu
	shown       []string // IDs of the latest replies that it has shown; guarded by Channel.mu
	refused     bool     // a message was not taken; used by the reading goroutine only
}

// waitsFor reports whether k is a pipe that f answers. The caller holds Channel.mu.
func (k *client) waitsFor(f frame) bool { return k.pipe && slices.Contains(f.To, k.lastMessage) }

// A sentReply is a reply with those of the connected clients that it was sent to.
type sentReply struct {
	reply   frame
	clients []*client
}

const maxRemembered = 256 // IDs, or replies

// remember appends item to list and drops the oldest beyond maxRemembered.
func remember[T any](list []T, item T) []T {
	list = append(list, item)
	return list[max(0, len(list)-maxRemembered):]
}
