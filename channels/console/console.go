// Package console is the channel of whoever sits at a terminal of this machine.
//
// Its clients connect to a unix socket that only the owner may open, and speak
// frames of JSON, one a line. A terminal in the gateway's own process is a
// client like the others, connected in memory. A client names its messages, so
// that it can say again what was not acknowledged when a connection broke, and
// acknowledges a reply once it is shown.
package console

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"parley/channels"
	"parley/chat"
)

// Local is the only chat there is: all clients take part in it.
const Local = "local"

// Owner is the ID of whoever can open the socket.
const Owner = "owner"

const (
	showTime  = 10 * time.Second // for a client to show a reply; then it is dropped
	againTime = 5 * time.Second  // until a reply that nobody was there to read is tried again
)

// Config is what a Channel needs.
type Config struct {
	Name   string       // of the channel in config.json
	Socket string       // path of the socket
	Local  *Terminal    // of this process, if it takes part
	Leave  func(error)  // called once when Local has ended before Run's ctx: the person left, or a pipe was answered (nil)
	Log    *slog.Logger // nil: slog.Default()
}

// A Channel is the gateway's end of the socket. It is a channels.Channel, a
// channels.Streamer and a channels.Typer.
type Channel struct {
	cfg     Config
	mu      sync.Mutex
	clients []*client
}

// New returns the Channel of cfg. The socket is there while Run runs.
func New(cfg Config) *Channel {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Channel{cfg: cfg}
}

// Run serves the socket, and Local if there is one. It returns an error when
// another process serves the socket, or it cannot be made. When Run returns,
// the terminal's mode is as it was before.
func (c *Channel) Run(ctx context.Context, deliver chat.Deliver) error {
	l, err := listen(c.cfg.Socket)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var live sync.WaitGroup
	defer live.Wait()
	defer cancel()
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	if c.cfg.Local != nil {
		live.Go(func() { c.sit(ctx, deliver) })
	}
	for {
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				conn.Close()
			}
			return nil
		case err != nil:
			c.cfg.Log.Warn("accept console client", "err", err)
			pause(ctx, time.Second)
		default:
			live.Go(func() { c.serve(ctx, conn, deliver) })
		}
	}
}

// sit runs the terminal of this process as a client in memory.
func (c *Channel) sit(ctx context.Context, deliver chat.Deliver) {
	var served sync.WaitGroup
	err := converse(ctx, func(context.Context) (net.Conn, error) {
		ours, theirs := net.Pipe()
		served.Go(func() { c.serve(ctx, theirs, deliver) })
		return ours, nil
	}, *c.cfg.Local)
	served.Wait()
	if ctx.Err() == nil && c.cfg.Leave != nil {
		c.cfg.Leave(err)
	}
}

// Send shows r to every client and returns nil once one has acknowledged it.
// When there is none, r is to be tried again: whoever comes later sees it.
func (c *Channel) Send(ctx context.Context, r chat.Reply) (channels.Receipt, error) {
	if r.To.Chat != Local {
		return "", &channels.Error{Permanent: true, Err: errors.New("send to console: no chat " + r.To.Chat)}
	}
	f := frame{Kind: reply, ID: r.ID, To: append(r.Also, r.Quote), Text: r.Text}
	for _, file := range r.Files {
		f.Files = append(f.Files, file.Path)
	}
	readers := c.readers(f.To)
	seen := make(chan bool, len(readers))
	for _, k := range readers {
		go func() { seen <- k.show(ctx, f) }()
	}
	shown := false
	for range readers {
		shown = <-seen || shown
	}
	if !shown {
		return "", &channels.Error{After: againTime, Err: errors.New("send to console: nobody is there to read")}
	}
	return channels.Receipt(r.ID), nil
}

// Stream shows r on the terminals, not in pipes.
func (c *Channel) Stream(r chat.Reply) {
	c.tell(r.To, frame{Kind: live, ID: r.ID, Text: r.Text})
}

// Typing tells the clients that the agent is busy.
func (c *Channel) Typing(_ context.Context, at chat.Address) error {
	c.tell(at, frame{Kind: typing})
	return nil
}

func (c *Channel) tell(at chat.Address, f frame) {
	if at.Chat != Local {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.clients {
		if !k.pipe || f.Kind == typing {
			k.send(f)
		}
	}
}

// readers returns the clients that a reply to messages concerns: the
// terminals and the pipes that asked. When there are none, any pipe may have
// it: else a reply that waits for a reader would hold up the answers behind it.
func (c *Channel) readers(messages []string) []*client {
	c.mu.Lock()
	defer c.mu.Unlock()
	var rs []*client
	for _, k := range c.clients {
		if !k.pipe || slices.ContainsFunc(messages, func(id string) bool { return k.said[id] }) {
			rs = append(rs, k)
		}
	}
	if len(rs) == 0 {
		rs = slices.Clone(c.clients)
	}
	return rs
}

// serve speaks with one client until it leaves.
func (c *Channel) serve(ctx context.Context, conn net.Conn, deliver chat.Deliver) {
	k := &client{wire: newWire(conn), said: map[string]bool{}, shown: map[string]chan struct{}{}, gone: make(chan struct{})}
	k.run(ctx, func(f frame) {
		switch f.Kind {
		case hello:
			c.join(k, f.ID == asPipe)
		case say:
			c.hear(ctx, k, f, deliver)
		case got:
			k.acknowledge(f.ID)
		}
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clients = slices.DeleteFunc(c.clients, func(o *client) bool { return o == k })
	close(k.gone)
}

func (c *Channel) join(k *client, pipe bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.clients, k) {
		k.pipe = pipe
		c.clients = append(c.clients, k)
	}
}

// hear delivers what a client said and acknowledges it. A message that the
// house cannot take ends the connection: the client says it again, and what
// follows it, in order, on the next (P3).
func (c *Channel) hear(ctx context.Context, k *client, f frame, deliver chat.Deliver) {
	if f.ID == "" || k.refused {
		return
	}
	c.mu.Lock()
	k.said[f.ID] = true
	c.mu.Unlock()
	err := deliver(ctx, chat.Message{
		ID:   f.ID,
		At:   chat.Address{Channel: c.cfg.Name, Chat: Local},
		From: chat.Sender{ID: Owner, Name: Owner},
		Text: f.Text,
		Time: time.Now(),
	})
	if err != nil {
		c.cfg.Log.Warn("message from console not taken", "id", f.ID, "err", err)
		k.refused = true
		k.finish()
		return
	}
	k.send(frame{Kind: taken, ID: f.ID})
}

// A client is the gateway's view of one connection.
type client struct {
	*wire
	pipe    bool            // shows no reply in the making; guarded by Channel.mu
	said    map[string]bool // message IDs; guarded by Channel.mu
	refused bool            // a message was not taken; of the reading goroutine
	gone    chan struct{}

	ackMu sync.Mutex
	shown map[string]chan struct{} // by reply ID: closed when the client has shown it
}

// show sends f and says whether the client acknowledged it. One that does not in time is dropped.
func (k *client) show(ctx context.Context, f frame) bool {
	done := make(chan struct{})
	k.ackMu.Lock()
	k.shown[f.ID] = done
	k.ackMu.Unlock()
	defer k.forget(f.ID)
	k.send(f)
	late := time.NewTimer(showTime)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
		k.conn.Close()
	case <-k.gone:
	case <-ctx.Done():
	}
	select {
	case <-done: // also when it was the last thing the client did
		return true
	default:
		return false
	}
}

func (k *client) acknowledge(id string) {
	k.ackMu.Lock()
	defer k.ackMu.Unlock()
	if shown := k.shown[id]; shown != nil {
		close(shown)
		delete(k.shown, id)
	}
}

func (k *client) forget(id string) {
	k.ackMu.Lock()
	defer k.ackMu.Unlock()
	delete(k.shown, id)
}

// pause waits for d or for ctx to end.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
