// Package wire is a small network for tests: people write lines to a TCP server,
// which passes each on as "NUMBER ID TEXT" and shows what it is answered as "ID: TEXT".
package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"sync"
	"time"

	"parley/channels"
	"parley/channels/network"
	"parley/chat"
)

// A Config is an entry of channels in config.json.
type Config struct {
	Address string `json:"address" listen:"yes"` // of the server
	Token   string `json:"token" secret:"yes" unique:"a wire has one end"`
	Style   string `json:"style" default:"plain" allowed:"plain, loud"` // of answers
}

var idForm = regexp.MustCompile(`^u-[0-9]+$`)

// CheckID implements network.Driver.
func (c *Config) CheckID(id string) error {
	if !idForm.MatchString(id) {
		return errors.New(`must be such as "u-7"`)
	}
	return nil
}

// Build implements network.Driver.
func (c *Config) Build(network.Host) (channels.Channel, error) { return &Channel{cfg: *c}, nil }

// A Channel is the gateway's end of the wire.
type Channel struct {
	cfg  Config
	mu   sync.Mutex
	conn net.Conn // nil until Run has it
}

// Check implements network.Identifier.
func (c *Channel) Check(ctx context.Context) (string, error) {
	conn, err := c.dial(ctx)
	if err != nil {
		return "", err
	}
	return "a wire to " + c.cfg.Address + " for " + c.cfg.Token, conn.Close()
}

func (c *Channel) dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", c.cfg.Address)
}

// Run implements channels.Channel.
func (c *Channel) Run(ctx context.Context, deliver chat.Deliver) error {
	conn, err := c.dial(ctx)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := fmt.Fprintln(conn, "token", c.cfg.Token); err != nil {
		return err
	}
	c.mu.Lock()
	c.conn = conn
	c.mu.Unlock()
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		words := strings.SplitN(lines.Text(), " ", 3)
		m := chat.Message{ID: words[0], At: chat.Address{Chat: words[1]}, From: chat.Sender{ID: words[1]}, Text: words[2], Time: time.Now()}
		if err := deliver(ctx, m); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return errors.New("the wire is cut")
}

// Send implements channels.Channel.
func (c *Channel) Send(_ context.Context, r chat.Reply) (channels.Receipt, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil {
		return "", &channels.Error{Unsent: true, Err: errors.New("there is no wire yet")}
	}
	text := strings.ReplaceAll(r.Text, "\n", " ")
	if c.cfg.Style == "loud" {
		text = strings.ToUpper(text)
	}
	_, err := fmt.Fprintf(c.conn, "%s: %s\n", r.To.Chat, text)
	return "", err
}
