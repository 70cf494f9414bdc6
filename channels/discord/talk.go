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

// A talk is one connection. A packet must come within the patience of the
// handshake until the session is ready, and an ACK within two heartbeats from
// then on: a connection that is dead is found out (P24).
type talk struct {
	*gateway
	socket
	writing sync.Mutex
	heart   sync.WaitGroup
	every   time.Duration // between two heartbeats
	ready   bool          // the session is
}

// The kinds of packets.
const (
	opEvent     = 0
	opBeat      = 1
	opIdentify  = 2
	opResume    = 6
	opReconnect = 7
	opInvalid   = 9
	opHello     = 10
	opAck       = 11
)

func (t *talk) say(op int, data any) error {
	t.writing.Lock()
	defer t.writing.Unlock()
	_ = t.SetWriteDeadline(time.Now().Add(writeTime))
	return t.WriteJSON(map[string]any{"op": op, "d": data})
}

// leave closes the connection. The code keeps the session: what is said until it
// is resumed is not lost. Code 1000 would end it.
func (t *talk) leave() {
	const closing, resuming = 8, "\x10\x68" // code 4200
	_ = t.WriteControl(closing, []byte(resuming), time.Now().Add(time.Second))
	_ = t.Close()
}

// beat keeps the connection alive until ctx ends.
func (t *talk) beat(ctx context.Context) {
	for wait := rand.N(t.every); channels.Sleep(ctx, wait); wait = t.every {
		if t.say(opBeat, t.in.tracker.acknowledge()) != nil {
			_ = t.Close()
			return
		}
	}
}

// alive gives the next ACK two heartbeats.
func (t *talk) alive() {
	if t.ready {
		_ = t.SetReadDeadline(time.Now().Add(2 * t.every))
	}
}

// listen takes packets until the connection ends, and returns why. The first
// must be HELLO, and no other.
func (t *talk) listen(ctx context.Context) error {
	_ = t.SetReadDeadline(time.Now().Add(t.c.patience))
	for first := true; ; first = false {
		_, raw, err := t.ReadMessage()
		if err != nil {
			return err
		}
		var p discordgo.Event
		if !bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{")) || json.Unmarshal(raw, &p) != nil || first != (p.Operation == opHello) {
			return errNonsense
		}
		if err := t.take(ctx, p); err != nil {
			return err
		}
	}
}

func (t *talk) take(ctx context.Context, p discordgo.Event) error {
	switch p.Operation {
	case opHello:
		var d struct {
			Every int64 `json:"heartbeat_interval"` // milliseconds
		}
		if json.Unmarshal(p.RawData, &d) != nil || d.Every < 1 || d.Every > time.Hour.Milliseconds() {
			return fmt.Errorf("%w: a HELLO without a heartbeat", errNonsense)
		}
		t.every = time.Duration(d.Every) * time.Millisecond
		t.heart.Go(func() { t.beat(ctx) })
		return t.open(ctx)
	case opBeat:
		return t.say(opBeat, t.in.tracker.acknowledge())
	case opAck:
		t.alive()
	case opReconnect:
		return errMoved
	case opInvalid:
		if string(p.RawData) == "true" {
			return errMoved
		}
		return errInvalid
	case opEvent:
		return t.event(p)
	}
	return nil
}

// open resumes the session, or begins one.
func (t *talk) open(ctx context.Context) error {
	if t.session != "" {
		return t.say(opResume, map[string]any{"token": t.lib.Token, "session_id": t.session, "seq": t.seq.Load()})
	}
	if err := t.in.tracker.startSession(ctx, idAt(t.c.server.Now())); err != nil {
		return err
	}
	t.seq.Store(0)
	id := t.lib.Identify
	id.Intents, id.Compress = intents, false
	return t.say(opIdentify, id)
}

// event passes on what Discord tells.
func (t *talk) event(p discordgo.Event) error {
	switch p.Type {
	case "READY":
		var d struct {
			Session string `json:"session_id"`
			Next    string `json:"resume_gateway_url"`
			Guilds  []struct {
				ID string `json:"id"`
			} `json:"guilds"`
		}
		if json.Unmarshal(p.RawData, &d) != nil || d.Session == "" {
			return fmt.Errorf("%w: a READY without a session", errNonsense)
		}
		t.session, t.resume = d.Session, d.Next
		var guilds []string
		for _, g := range d.Guilds {
			guilds = append(guilds, g.ID)
		}
		t.in.beginSession(d.Session, d.Next, p.Sequence, guilds)
		fallthrough
	case "RESUMED":
		t.ready = true
		t.alive()
		t.c.SetHealth(nil)
	}
	if p.Sequence > 0 {
		t.seq.Store(p.Sequence)
	}
	t.in.hear(p.Type, p.Sequence, p.RawData)
	return nil
}
