package discord

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/channels"
	"parley/channels/network"
)

// intents are the kinds of events that the gateway is to send.
const intents = discordgo.IntentsGuilds | discordgo.IntentsGuildMessages |
	discordgo.IntentsDirectMessages | discordgo.IntentMessageContent

const (
	maxPacket    = 32 << 20         // bytes of one packet of the gateway
	writeTimeout = 10 * time.Second // of one packet of ours
)

// Codes with which Discord closes a connection.
const (
	closeBadToken       = 4004
	closeBadSequence    = 4007
	closeSessionTimeout = 4009
	closeBadIntents     = 4014
)

// fatalCodes are the errors after which no attempt can succeed: those from 4010 on
// are about shards, the version and intents.
var fatalCodes = []int{http.StatusUnauthorized, closeBadToken, 4010, 4011, 4012, 4013, closeBadIntents}

// Why a connection to the gateway ends, besides its being closed.
var (
	errReconnect      = errors.New("discord asks to connect anew")
	errInvalidSession = errors.New("discord has forgotten the session")
	errProtocol       = errors.New("the gateway sends nonsense")
)

// A gateway is our side of the conversation in which Discord sends events. It
// outlives the connections, so that each resumes the session of the one before.
// The library provides the connection and the packets. Its own conversation hangs
// when a packet comes out of turn, and loses events.
type gateway struct {
	api       *botAPI
	directory *directory
	intake    *intake
	library   *discordgo.Session
	url       string // as configured; empty: as the API says
	timing    timing
	backoff   func() channels.Backoff
	health    *network.HealthState
	log       *slog.Logger

	session   string // to be resumed; empty: the next connection begins one
	resumeURL string // where Discord wants that; empty: at the usual address
	sequence  int64  // number of the last event
}

// newGateway returns the gateway for c's Run, whose events in takes.
func newGateway(c *Channel, in *intake) *gateway {
	library, _ := discordgo.New("Bot " + c.cfg.Token) // never returns an error
	return &gateway{
		api:       c.api,
		directory: c.directory,
		intake:    in,
		library:   library,
		url:       c.cfg.GatewayURL,
		timing:    c.timing,
		backoff:   c.backoff,
		health:    c.health,
		log:       c.log,
	}
}

// run stays connected until ctx ends, or Discord refuses the bot for good. It
// first resumes the session of the previous process.
func (g *gateway) run(ctx context.Context) error {
	g.session, g.resumeURL, g.sequence = g.intake.tracker.resumable()
	backoff := g.backoff()
	for ctx.Err() == nil {
		ready, err := g.connect(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if hasCode(err, fatalCodes...) {
			return g.api.adviseOn(err)
		}
		if !ready {
			g.resumeURL = "" // which may be the reason
		}
		if ready && !errors.Is(err, errInvalidSession) {
			backoff = g.backoff()
		}
		pause := backoff.Next(g.api.channelError("", err))
		if errors.Is(err, errInvalidSession) || hasCode(err, closeBadSequence, closeSessionTimeout) {
			g.session = ""
			pause = max(pause, g.timing.newSession+rand.N(g.timing.newSession)) // as Discord asks
		}
		err = g.api.redact(err)
		g.health.SetHealth(err)
		g.log.Warn("not connected to discord", "retryIn", pause.Round(time.Millisecond), "err", err)
		channels.Sleep(ctx, pause)
	}
	return nil
}

// connect opens a connection and receives until it ends. It returns why the
// connection ended, and whether the session was ever ready.
func (g *gateway) connect(ctx context.Context) (ready bool, err error) {
	address, err := g.locate(ctx)
	if err != nil {
		return false, err
	}
	socket, err := g.dial(ctx, address)
	if err != nil {
		return false, err
	}
	c := &connection{gateway: g, socket: socket}
	defer c.heartbeat.Wait()
	heartbeat, stop := context.WithCancel(ctx)
	defer stop()
	defer c.socket.Close() // without a code: closing with code 1000 would end the session
	defer context.AfterFunc(ctx, c.leave)()
	err = c.listen(heartbeat)
	return c.ready, err
}

// locate finds out who the bot is and where to connect.
func (g *gateway) locate(ctx context.Context) (string, error) {
	if err := g.directory.identify(ctx); err != nil {
		return "", err
	}
	if g.session != "" && g.resumeURL != "" && g.url == "" {
		return g.resumeURL, nil
	}
	var answer struct {
		URL    string `json:"url"`
		Starts struct {
			Remaining *int  `json:"remaining"`
			After     int64 `json:"reset_after"` // milliseconds
		} `json:"session_start_limit"`
	}
	if err := g.api.call(ctx, "GET", "/gateway/bot", nil, &answer); err != nil {
		return "", err
	}
	remaining := answer.Starts.Remaining
	if g.session == "" && remaining != nil && *remaining == 0 { // one more, and Discord revokes the token
		return "", &apiError{
			status:     http.StatusTooManyRequests,
			Text:       "the bot may begin no more sessions today",
			retryAfter: time.Duration(answer.Starts.After) * time.Millisecond,
		}
	}
	return cmp.Or(g.url, answer.URL), nil
}

// dial connects. The error with which Discord closes the connection is an apiError.
func (g *gateway) dial(ctx context.Context, address string) (socket, error) {
	dialer := *g.library.Dialer
	dialer.Proxy = nil
	dialer.HandshakeTimeout = g.timing.handshake
	stopWatching := func() bool { return true }
	dialer.NetDialContext = func(dialing context.Context, protocol, host string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(dialing, protocol, host)
		if err != nil {
			return nil, err
		}
		stopWatching = context.AfterFunc(ctx, func() { conn.Close() }) // the library ignores ctx in the handshake
		return conn, nil
	}
	conn, answer, err := dialer.DialContext(ctx, strings.TrimRight(address, "/")+"/?v=9&encoding=json", nil)
	stopWatching()
	if answer != nil {
		_ = answer.Body.Close() // not that of the connection
	}
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(maxPacket)
	conn.SetCloseHandler(func(code int, text string) error {
		return &apiError{status: code, Text: strings.TrimSuffix("discord closed the connection: "+text, ": ")}
	})
	return conn, nil
}
