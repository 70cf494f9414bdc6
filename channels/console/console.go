// Package console is the channel of whoever sits at a terminal of this machine.
//
// Its clients connect to a unix socket that only the owner may open, and speak
// frames of JSON, one a line. A terminal in the gateway's own process is a
// client like the others, connected in memory. A client names its messages, so
// that it can say again what was not acknowledged when a connection broke, and
// acknowledges a reply once it is shown.
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

// Local is the only chat there is: all clients take part in it.
const Local = "local"

// Owner is the ID of whoever can open the socket.
const Owner = "owner"

const (
	showTime  = 10 * time.Second // for anybody to show a reply; then all who were sent it are dropped
	againTime = 5 * time.Second  // until a reply that nobody has shown is tried again
)

// Config is what a Channel needs.
type Config struct {
	Name   string    // of the channel in config.json
	Socket string    // path of the socket
	Files  string    // the folder that files of replies are in
	Local  *Terminal // of this process, if it takes part

	// Leave is called once if Local ends before Run's ctx: with nil, because the
	// person left or a pipe was answered.
	Leave func(error)
	Log   *slog.Logger // nil: slog.Default()
}

// A Channel is the gateway's end of the socket. It is a channels.Channel,
// Streamer, Stepper, Typer and DirectMessenger, and an io.Closer.
type Channel struct {
	cfg     Config
	open    context.Context // until Close
	close   context.CancelFunc
	live    sync.WaitGroup // of those connected
	mu      sync.Mutex
	clients []*client
	seen    []string      // IDs of the latest replies that were shown
	steps   []string      // the latest that were told
	ended   bool          // Run has, and nobody will come
	news    chan struct{} // closed when any of these has changed
}

// New returns the Channel of cfg. The socket is there while Run runs.
func New(cfg Config) *Channel {
	cfg.Log = cmp.Or(cfg.Log, slog.Default())
	c := &Channel{cfg: cfg, news: make(chan struct{})}
	c.open, c.close = context.WithCancel(context.Background())
	return c
}

// Run serves the socket, and Local if there is one. It returns an error when
// another process serves the socket, or it cannot be made. Whoever is connected
// when Run returns is heard no more, but still told what there is to tell,
// until Close.
func (c *Channel) Run(ctx context.Context, deliver chat.Deliver) error {
	l, err := Listen(c.cfg.Socket)
	if err != nil {
		return err
	}
	defer c.change(func() { c.ended = true })
	defer l.Close()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	if c.cfg.Local != nil {
		c.live.Go(func() { c.sit(ctx, deliver) })
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
			channels.Sleep(ctx, time.Second)
		default:
			c.live.Go(func() { c.serve(ctx, conn, deliver) })
		}
	}
}

// Close hangs up on everybody. The mode of Local is then as it was before Run,
// which must have returned.
func (c *Channel) Close() error {
	c.close()
	c.live.Wait()
	return nil
}

// sit runs the terminal of this process as a client in memory.
func (c *Channel) sit(ctx context.Context, deliver chat.Deliver) {
	var served sync.WaitGroup
	err := converse(c.open, func(context.Context) (net.Conn, error) {
		ours, theirs := net.Pipe()
		served.Go(func() { c.serve(ctx, theirs, deliver) })
		return ours, nil
	}, *c.cfg.Local)
	served.Wait()
	if ctx.Err() == nil && c.cfg.Leave != nil {
		c.cfg.Leave(err)
	}
}

// Direct implements [channels.DirectMessenger]: there is one person, in one chat.
func (c *Channel) Direct(id string) chat.Address {
	if id != "" && id != Owner {
		return chat.Address{}
	}
	return chat.Address{Channel: c.cfg.Name, Chat: Local}
}

// Send shows r to those it concerns and returns nil once one has acknowledged
// it. When nobody is there it waits for somebody, while Run runs. On those who
// do not show it in time it hangs up.
func (c *Channel) Send(ctx context.Context, r chat.Reply) (channels.Receipt, error) {
	if r.To.Chat != Local {
		return "", channels.ForGood("send to console: no chat %s", r.To.Chat)
	}
	f := frame{Kind: reply, ID: r.ID, To: slices.Clone(r.Also), Text: r.Text, Failed: r.Failed}
	if r.Quote != "" {
		f.To = append(f.To, r.Quote)
	}
	for _, file := range r.Files {
		f.Files = append(f.Files, filepath.Join(c.cfg.Files, file.Path))
	}
	var told []*client
	var late <-chan time.Time
	for ctx.Err() == nil {
		c.mu.Lock()
		shown := slices.Contains(c.seen, r.ID)
		ended := c.ended
		news := c.news
		told = slices.DeleteFunc(told, func(k *client) bool { return !slices.Contains(c.clients, k) })
		if !shown && len(told) == 0 {
			told = c.tellReply(f)
			late = time.After(showTime)
		}
		c.mu.Unlock()
		switch {
		case shown:
			return channels.Receipt(r.ID), nil
		case ended && len(told) == 0:
			return "", errNobody
		}
		select {
		case <-news:
		case <-ctx.Done():
		case <-late:
			for _, k := range told {
				k.conn.Close()
			}
		}
	}
	return "", errNobody
}

var errNobody = &channels.Error{After: againTime, Err: errors.New("send to console: nobody is there to read")}

// tellReply sends f to the terminals and to the pipe that asked. When there are
// none, any pipe may have it: else a reply that waits for a reader would hold up
// the answers behind it. c.mu is held.
func (c *Channel) tellReply(f frame) []*client {
	readers := slices.DeleteFunc(slices.Clone(c.clients), func(k *client) bool {
		return k.pipe && !slices.Contains(f.To, k.asked)
	})
	if len(readers) == 0 {
		readers = slices.Clone(c.clients)
	}
	for _, k := range readers {
		k.send(f)
	}
	return readers
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

// serve speaks with one client until it leaves, and hears it until ctx ends.
func (c *Channel) serve(ctx context.Context, conn net.Conn, deliver chat.Deliver) {
	k := &client{wire: newWire(conn)}
	k.run(c.open, func(f frame) {
		switch f.Kind {
		case hello:
			c.change(func() {
				if !slices.Contains(c.clients, k) {
					k.pipe = f.ID == asPipe
					c.clients = append(c.clients, k)
				}
			})
		case say:
			c.hear(ctx, k, f, deliver)
		case got:
			c.change(func() { c.seen = remember(c.seen, f.ID) })
			k.send(frame{Kind: taken, ID: f.ID})
		}
	})
	c.change(func() { c.clients = slices.DeleteFunc(c.clients, func(o *client) bool { return o == k }) })
}

// change does how, which changes what is known, and wakes the replies that wait.
func (c *Channel) change(how func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	how()
	close(c.news)
	c.news = make(chan struct{})
}

// hear delivers what a client said. A message that the house cannot take ends
// the connection: the client says it again, and what follows it, in order, on
// the next (P3).
func (c *Channel) hear(ctx context.Context, k *client, f frame, deliver chat.Deliver) {
	if f.ID == "" || k.refused {
		return
	}
	c.mu.Lock()
	k.asked = f.ID
	c.mu.Unlock()
	err := ctx.Err()
	if err == nil {
		err = deliver(ctx, chat.Message{
			ID:   f.ID,
			At:   chat.Address{Channel: c.cfg.Name, Chat: Local},
			From: chat.Sender{ID: Owner, Name: Owner},
			Text: f.Text,
			Time: time.Now(),
		})
	}
	switch {
	case err == nil && !k.pipe:
		k.send(frame{Kind: taken, ID: f.ID})
	case err != nil:
		k.refused = true
		if ctx.Err() == nil { // else it stays for what is still to be told
			c.cfg.Log.Warn("message from console not taken", "id", f.ID, "err", err)
			k.conn.Close()
		}
	}
}

// A client is the gateway's view of one connection.
type client struct {
	*wire
	pipe    bool   // shows no reply in the making, and no steps; guarded by Channel.mu
	asked   string // ID of its latest message; guarded by Channel.mu
	refused bool   // a message was not taken; of the reading goroutine
}

const remembered = 256

// remember adds id to the latest ids.
func remember(ids []string, id string) []string {
	ids = append(ids, id)
	return ids[max(0, len(ids)-remembered):]
}
