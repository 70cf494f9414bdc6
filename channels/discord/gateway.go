package discord

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"
)

// intents are what the gateway is to tell us of.
const intents = discordgo.IntentsGuilds | discordgo.IntentsGuildMessages | discordgo.IntentsDirectMessages | discordgo.IntentMessageContent

// Codes with which Discord closes a connection.
const (
	noCode       = 1005
	badToken     = 4004
	unknownSeq   = 4007
	timedOut     = 4009
	notPermitted = 4014
)

// hopeless are the refusals after which there is no coming back: those from
// 4010 on are about shards, the version and intents.
var hopeless = []int{http.StatusUnauthorized, badToken, 4010, 4011, 4012, 4013, notPermitted}

// A gateway is our side of the connection by which Discord tells of events. It
// outlives the connections, so that each resumes what the one before left off.
type gateway struct {
	c      *Channel
	ctx    context.Context // Run's
	hear   func(kind string, data json.RawMessage)
	lib    *discordgo.Session
	fresh  bool          // lib has no session to resume
	gone   chan struct{} // gets a value when the connection has ended
	wire   *wire         // the newest
	opened func() bool   // to be called when it is open, or will not be

	want, have string // where to connect, and where the library thinks it does
	resume     string // where Discord wants the session to be resumed, if anywhere
}

// stay is connected until ctx ends, or Discord refuses us for good. hear is
// called in the order of events and must return at once.
func (c *Channel) stay(ctx context.Context, hear func(kind string, data json.RawMessage)) error {
	g := &gateway{c: c, ctx: ctx, hear: hear}
	wait := backoff{least: c.haste}
	for ctx.Err() == nil {
		if g.lib == nil {
			g.renew()
		}
		err := g.connect()
		if ctx.Err() != nil {
			break
		}
		if said(err, hopeless...) {
			return c.advice(err)
		}
		if g.wire != nil && g.wire.ready.Load() && !errors.Is(err, errInvalid) {
			wait.d = 0
		}
		d := wait.next(err)
		if errors.Is(err, errInvalid) || said(err, unknownSeq, timedOut) {
			g.lib = nil
			d = max(d, c.calm+rand.N(c.calm)) // as Discord asks, before the next IDENTIFY
		}
		err = c.plainly(err)
		c.ill.Store(&err)
		c.log.Warn("not connected to discord", "again in", d.Round(time.Millisecond), "err", err)
		sleep(ctx, d)
	}
	return nil
}

// renew makes a session of the library that will begin with IDENTIFY. All that
// the library would do about a lost connection is off: see wire.
func (g *gateway) renew() {
	s, _ := discordgo.New("Bot " + g.c.cfg.Token) // which has no error to return
	s.Identify.Intents = intents
	s.Client = &http.Client{Transport: address{g}}
	s.SyncEvents, s.StateEnabled, s.ShouldReconnectOnError, s.ShouldRetryOnRateLimit = true, false, false, false
	s.LogLevel = -1 // below all there are: it would print tokens
	dialer := *s.Dialer
	dialer.Proxy, dialer.HandshakeTimeout = nil, 0
	dialer.NetDialContext = func(_ context.Context, network, addr string) (net.Conn, error) { return g.dial(network, addr, false) }
	dialer.NetDialTLSContext = func(_ context.Context, network, addr string) (net.Conn, error) { return g.dial(network, addr, true) }
	s.Dialer = &dialer
	s.AddHandler(func(_ *discordgo.Session, e *discordgo.Event) {
		g.c.ill.Store(nil)
		g.hear(e.Type, e.RawData)
	})
	gone := make(chan struct{}, 1)
	s.AddHandler(func(*discordgo.Session, *discordgo.Disconnect) {
		select {
		case gone <- struct{}{}:
		default: // it may close a connection twice
		}
	})
	g.lib, g.gone, g.fresh, g.resume, g.have = s, gone, true, "", ""
}

// connect opens a connection and returns why it ended.
func (g *gateway) connect() error {
	g.wire = nil
	if err := g.locate(); err != nil {
		return err
	}
	err := g.lib.Open()
	if errors.Is(err, errElsewhere) { // the library has forgotten the old address now
		err = g.lib.Open()
	}
	if g.opened != nil {
		g.opened()
	}
	if err != nil {
		g.resume = ""
		return err
	}
	g.fresh = false
	for {
		select {
		case <-g.gone:
			if !g.wire.over.Load() {
				continue // it was the one before, once more
			}
			if g.wire.ready.Load() && g.wire.next != "" {
				g.resume = g.wire.next
			}
			return g.wire.why()
		case <-g.ctx.Done():
			return g.lib.Close() // by a close frame, so that the bot is seen to leave
		}
	}
}

// locate finds out who we are and where to connect.
func (g *gateway) locate() error {
	if g.c.me.ID == "" {
		if err := g.c.call(g.ctx, "GET", "/users/@me", nil, &g.c.me); err != nil {
			return err
		}
		if !snowflake.MatchString(g.c.me.ID) {
			g.c.me.ID = ""
			return errors.New("the server does not say who we are")
		}
	}
	if g.resume != "" && g.c.cfg.GatewayURL == "" {
		g.want = g.resume
		return nil
	}
	var at struct {
		URL    string `json:"url"`
		Starts struct {
			Remaining *int  `json:"remaining"`
			After     int64 `json:"reset_after"` // milliseconds
		} `json:"session_start_limit"`
	}
	if err := g.c.call(g.ctx, "GET", "/gateway/bot", nil, &at); err != nil {
		return err
	}
	if left := at.Starts.Remaining; g.fresh && left != nil && *left == 0 { // else Discord takes the token away
		return &refusal{status: http.StatusTooManyRequests, Text: "the bot may begin no more sessions today", after: time.Duration(at.Starts.After) * time.Millisecond}
	}
	if g.want = g.c.cfg.GatewayURL; g.want == "" {
		g.want = at.URL
	}
	return nil
}

// errElsewhere says that the library would connect to where it was before.
var errElsewhere = errors.New("the gateway is elsewhere")

// dial connects for the library, which gives no context.
func (g *gateway) dial(network, addr string, secure bool) (net.Conn, error) {
	if g.have != g.want {
		return nil, errElsewhere
	}
	ctx, cancel := context.WithTimeout(g.ctx, g.c.patience)
	defer cancel()
	dial := (&net.Dialer{}).DialContext
	if secure {
		dial = (&tls.Dialer{}).DialContext
	}
	conn, err := dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	g.wire = newWire(conn, g.c.patience)
	g.opened = context.AfterFunc(g.ctx, g.wire.cut) // else Open would wait for Discord
	return g.wire, nil
}

// An address answers the library's question where the gateway is.
type address struct{ g *gateway }

// RoundTrip implements http.RoundTripper.
func (a address) RoundTrip(r *http.Request) (*http.Response, error) {
	a.g.have = a.g.want
	body, err := json.Marshal(map[string]string{"url": a.g.want})
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(body))), Request: r}, err
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

// A backoff says how long to wait between attempts: about least, doubling to 30 s.
type backoff struct{ least, d time.Duration }

// next returns the next wait, which is the one err asks for if it does.
func (b *backoff) next(err error) time.Duration {
	b.d = min(max(2*b.d, b.least), 30*time.Second)
	if no, ok := errors.AsType[*refusal](err); ok && no.after > 0 {
		return no.after
	}
	return b.d - rand.N(b.d/2+1)
}

func sleep(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-ctx.Done()
}
