package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/channels"
)

// A socket is what we use of the library's websocket. One goroutine may read from
// it while others write to it.
type socket interface {
	ReadMessage() (kind int, body []byte, err error)
	SetReadDeadline(time.Time) error
	WriteJSON(v any) error
	SetWriteDeadline(time.Time) error
	WriteControl(kind int, body []byte, by time.Time) error
	Close() error
}

// A connection is one connection to the gateway. A packet must arrive within the
// handshake timeout until the session is ready, and an ACK within two heartbeat
// intervals from then on: so a dead connection is noticed (P24).
type connection struct {
	gateway   *gateway
	socket    socket
	writing   sync.Mutex
	heartbeat sync.WaitGroup
	interval  time.Duration // between two heartbeats
	ready     bool          // the session is
}

// The operations of packets.
const (
	opEvent          = 0
	opHeartbeat      = 1
	opIdentify       = 2
	opResume         = 6
	opReconnect      = 7
	opInvalidSession = 9
	opHello          = 10
	opAck            = 11
)

// send writes one packet.
func (c *connection) send(op int, data any) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	_ = c.socket.SetWriteDeadline(time.Now().Add(writeTimeout))
	return c.socket.WriteJSON(map[string]any{"op": op, "d": data})
}

// leave closes the connection with a code that keeps the session, so that no
// message is lost until it is resumed. Code 1000 would end the session.
func (c *connection) leave() {
	const closeMessage = 8
	const closeResuming = "\x10\x68" // code 4200
	_ = c.socket.WriteControl(closeMessage, []byte(closeResuming), time.Now().Add(time.Second))
	_ = c.socket.Close()
}

// sendHeartbeats keeps the connection alive until ctx ends.
func (c *connection) sendHeartbeats(ctx context.Context) {
	pause := rand.N(c.interval) // so that many bots do not send them at once
	for channels.Sleep(ctx, pause) {
		if err := c.send(opHeartbeat, c.gateway.intake.tracker.acknowledge()); err != nil {
			_ = c.socket.Close()
			return
		}
		pause = c.interval
	}
}

// extendDeadline gives the next ACK two heartbeat intervals.
func (c *connection) extendDeadline() {
	if c.ready {
		_ = c.socket.SetReadDeadline(time.Now().Add(2 * c.interval))
	}
}

// listen handles packets until the connection ends, and returns why it did. The
// first packet, and no other, must be HELLO.
func (c *connection) listen(ctx context.Context) error {
	_ = c.socket.SetReadDeadline(time.Now().Add(c.gateway.timing.handshake))
	for first := true; ; first = false {
		_, raw, err := c.socket.ReadMessage()
		if err != nil {
			return err
		}
		var packet discordgo.Event
		if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) || json.Unmarshal(raw, &packet) != nil {
			return errProtocol
		}
		if first != (packet.Operation == opHello) {
			return errProtocol
		}
		if err := c.handle(ctx, packet); err != nil {
			return err
		}
	}
}

func (c *connection) handle(ctx context.Context, packet discordgo.Event) error {
	switch packet.Operation {
	case opHello:
		return c.handleHello(ctx, packet.RawData)
	case opHeartbeat:
		return c.send(opHeartbeat, c.gateway.intake.tracker.acknowledge())
	case opAck:
		c.extendDeadline()
	case opReconnect:
		return errReconnect
	case opInvalidSession:
		resumable := string(packet.RawData) == "true"
		if resumable {
			return errReconnect
		}
		return errInvalidSession
	case opEvent:
		return c.handleEvent(packet)
	}
	return nil
}

// handleHello begins the heartbeat, and resumes the session or begins one.
func (c *connection) handleHello(ctx context.Context, data json.RawMessage) error {
	var hello struct {
		Interval int64 `json:"heartbeat_interval"` // milliseconds
	}
	err := json.Unmarshal(data, &hello)
	if err != nil || hello.Interval < 1 || hello.Interval > time.Hour.Milliseconds() {
		return fmt.Errorf("%w: a HELLO without a heartbeat", errProtocol)
	}
	c.interval = time.Duration(hello.Interval) * time.Millisecond
	c.heartbeat.Go(func() { c.sendHeartbeats(ctx) })
	g := c.gateway
	if g.session != "" {
		return c.send(opResume, map[string]any{
			"token": g.library.Token, "session_id": g.session, "seq": g.sequence,
		})
	}
	if err := g.intake.tracker.startSession(ctx, idBefore(g.api.clock.Now())); err != nil {
		return err
	}
	g.sequence = 0
	identify := g.library.Identify
	identify.Intents = intents
	identify.Compress = false
	return c.send(opIdentify, identify)
}

// handleEvent passes an event on.
func (c *connection) handleEvent(packet discordgo.Event) error {
	g := c.gateway
	switch packet.Type {
	case "READY":
		if err := g.beginSession(packet.Sequence, packet.RawData); err != nil {
			return err
		}
		c.setReady()
	case "RESUMED":
		c.setReady()
	}
	if packet.Sequence > 0 {
		g.sequence = packet.Sequence
	}
	g.intake.handleEvent(packet.Type, packet.Sequence, packet.RawData)
	return nil
}

func (c *connection) setReady() {
	c.ready = true
	c.extendDeadline()
	c.gateway.health.SetHealth(nil)
}

// beginSession notes the session of a READY.
func (g *gateway) beginSession(sequence int64, data json.RawMessage) error {
	var ready struct {
		Session   string `json:"session_id"`
		ResumeURL string `json:"resume_gateway_url"`
		Guilds    []struct {
			ID string `json:"id"`
		} `json:"guilds"`
	}
	if json.Unmarshal(data, &ready) != nil || ready.Session == "" {
		return fmt.Errorf("%w: a READY without a session", errProtocol)
	}
	g.session = ready.Session
	g.resumeURL = ready.ResumeURL
	var guilds []string
	for _, guild := range ready.Guilds {
		guilds = append(guilds, guild.ID)
	}
	g.intake.beginSession(ready.Session, ready.ResumeURL, sequence, guilds)
	return nil
}
