package discord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/channels"
)

// intents are what the gateway is to tell us of.
const intents = discordgo.IntentsGuilds | discordgo.IntentsGuildMessages | discordgo.IntentsDirectMessages | discordgo.IntentMessageContent

const (
	maxPacket = 32 << 20         // bytes of one packet of the gateway
	writeTime = 10 * time.Second // of one of ours
)

// Codes with which Discord closes a connection.
const (
	badToken     = 4004
	unknownSeq   = 4007
	timedOut     = 4009
	notPermitted = 4014
)

// hopeless are the refusals after which there is no coming back: those from
// 4010 on are about shards, the version and intents.
var hopeless = []int{http.StatusUnauthorized, badToken, 4010, 4011, 4012, 4013, notPermitted}

// Why a connection to the gateway ends, besides its being closed.
var (
	errMoved    = errors.New("discord asks to connect anew")
	errInvalid  = errors.New("discord has forgotten the session")
	errNonsense = errors.New("the gateway sends nonsense")
)

// A gateway is our side of the conversation by which Discord tells of events. It
// outlives the connections, so that each resumes what the one before left off.
// The library gives the connection and the packets. Its own way of conversing
// hangs when anything comes out of turn, and loses events.
type gateway struct {
	c       *Channel
	lib     *discordgo.Session
	in      *intake
	session string       // to be resumed; empty: the next connection begins one
	resume  string       // where Discord wants that, if anywhere special
	seq     atomic.Int64 // of the last event
}

// stay is connected until ctx ends, or Discord refuses us for good. It first
// resumes the session of the process before this one.
func (c *Channel) stay(ctx context.Context, in *intake) error {
	lib, _ := discordgo.New("Bot " + c.cfg.Token) // which has no error to return
	g := &gateway{c: c, lib: lib, in: in}
	var seq int64
	g.session, g.resume, seq = in.tracker.resumable()
	g.seq.Store(seq)
	for wait := c.pauses(); ctx.Err() == nil; {
		ready, err := g.connect(ctx)
		if !ready {
			g.resume = "" // which may be why
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case said(err, hopeless...):
			return c.advice(err)
		case ready && !errors.Is(err, errInvalid):
			wait = c.pauses()
		}
		d := wait.Next(c.refused("", err))
		if errors.Is(err, errInvalid) || said(err, unknownSeq, timedOut) {
			g.session = ""
			d = max(d, c.calm+rand.N(c.calm)) // as Discord asks, before the next IDENTIFY
		}
		err = c.plainly(err)
		c.SetHealth(err)
		c.log.Warn("not connected to discord", "again in", d.Round(time.Millisecond), "err", err)
		channels.Sleep(ctx, d)
	}
	return nil
}

// pauses are those between attempts.
func (c *Channel) pauses() channels.Backoff {
	return channels.Backoff{Least: c.haste, Most: 30 * time.Second}
}

// connect opens a connection and hears until it ends. It returns why that was,
// and whether the session was ever ready.
func (g *gateway) connect(ctx context.Context) (ready bool, err error) {
	at, err := g.locate(ctx)
	if err != nil {
		return false, err
	}
	t := &talk{gateway: g}
	if t.socket, err = g.dial(ctx, at); err != nil {
		return false, err
	}
	defer t.heart.Wait()
	beating, stop := context.WithCancel(ctx)
	defer stop()
	defer t.Close() // without a word: a session that is closed with code 1000 is gone
	defer context.AfterFunc(ctx, t.leave)()
	err = t.listen(beating)
	return t.ready, err
}

// locate finds out who we are and where to connect.
func (g *gateway) locate(ctx context.Context) (string, error) {
	if g.c.me.ID == "" {
		if err := g.c.call(ctx, "GET", "/users/@me", nil, &g.c.me); err != nil {
			return "", err
		}
		if !snowflake.MatchString(g.c.me.ID) {
			g.c.me.ID = ""
			return "", errors.New("the server does not say who we are")
		}
	}
	if g.session != "" && g.resume != "" && g.c.cfg.GatewayURL == "" {
		return g.resume, nil
	}
	var at struct {
		URL    string `json:"url"`
		Starts struct {
			Remaining *int  `json:"remaining"`
			After     int64 `json:"reset_after"` // milliseconds
		} `json:"session_start_limit"`
	}
	if err := g.c.call(ctx, "GET", "/gateway/bot", nil, &at); err != nil {
		return "", err
	}
	if left := at.Starts.Remaining; g.session == "" && left != nil && *left == 0 { // else Discord takes the token away
		return "", &refusal{status: http.StatusTooManyRequests, Text: "the bot may begin no more sessions today", after: time.Duration(at.Starts.After) * time.Millisecond}
	}
	return cmp.Or(g.c.cfg.GatewayURL, at.URL), nil
}

// A socket is what we use of the library's websocket. The one who reads it and
// those who write to it do not wait for each other.
type socket interface {
	ReadMessage() (kind int, body []byte, err error)
	SetReadDeadline(time.Time) error
	WriteJSON(v any) error
	SetWriteDeadline(time.Time) error
	WriteControl(kind int, body []byte, by time.Time) error
	Close() error
}

// dial connects. What Discord says when it closes the connection is a refusal.
func (g *gateway) dial(ctx context.Context, at string) (socket, error) {
	dialer := *g.lib.Dialer
	dialer.Proxy, dialer.HandshakeTimeout = nil, g.c.patience
	opened := func() bool { return true }
	dialer.NetDialContext = func(dialing context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(dialing, network, addr)
		if err == nil {
			opened = context.AfterFunc(ctx, func() { conn.Close() }) // else it would wait for the answer
		}
		return conn, err
	}
	conn, answer, err := dialer.DialContext(ctx, strings.TrimRight(at, "/")+"/?v=9&encoding=json", nil)
	opened()
	if answer != nil {
		_ = answer.Body.Close() // of the connection nothing
	}
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(maxPacket)
	conn.SetCloseHandler(func(code int, text string) error {
		return &refusal{status: code, Text: strings.TrimSuffix("discord closed the connection: "+text, ": ")}
	})
	return conn, nil
}

// advice says what to do about err where that is known.
func (c *Channel) advice(err error) error {
	switch {
	case said(err, http.StatusUnauthorized, badToken):
		return fmt.Errorf("discord refuses the token of channels.%s: it was reset or mistyped: copy it anew from https://discord.com/developers/applications, under Bot", c.cfg.Name)
	case said(err, notPermitted):
		return c.closedEyes()
	case said(err, http.StatusNotFound):
		return fmt.Errorf("no Discord at %s: check apiUrl of channels.%s", c.cfg.APIURL, c.cfg.Name)
	}
	return fmt.Errorf("call discord: %w", c.plainly(err))
}

// closedEyes is the error of a bot that may not read what people write.
func (c *Channel) closedEyes() error {
	return fmt.Errorf("discord does not let the bot of channels.%s read messages: switch on Message Content Intent at https://discord.com/developers/applications, under Bot", c.cfg.Name)
}
