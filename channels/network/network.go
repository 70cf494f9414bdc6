// Package network is what drivers of chat networks share: the contract between a
// driver and the gateway (its part of config.json, and what the gateway gives it),
// and what several drivers need, such as an HTTP client, uploads and buttons.
package network

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"

	"parley/channels"
	"parley/chat"
	"parley/lazyregexp"
	"parley/store"
	"parley/texts"
)

// A Driver makes the channels of one network. It is the contents of an entry of channels
// in config.json: the keys of the entry are its fields with a json tag, and the gateway
// reads and checks them by their tags (see package config).
type Driver interface {
	// CheckID returns an error that says what the id of a person must look like. An
	// id contains no colon, and never changes hands (R-S7).
	CheckID(id string) error
	// Build returns the channel. It does not call the network.
	Build(h Host) (channels.Channel, error)
}

// A ChatChecker is a Driver that knows what the addresses of its network look like.
type ChatChecker interface {
	// CheckChat returns an error that says what an address must be, if a can never be the
	// address of a chat.
	CheckChat(a chat.Address) error
}

// CheckChat returns what the [ChatChecker] driver says of a, nil if it is none.
func CheckChat(driver any, a chat.Address) error {
	if c, ok := driver.(ChatChecker); ok {
		return c.CheckChat(a)
	}
	return nil
}

// A Host is what the gateway provides to a channel.
type Host struct {
	Name  string // of the entry in config.json, such as "telegram:work"
	Store store.Store
	Seen  store.Bucket                        // how far the network was read; emptied when a backup is restored
	Dead  store.Log                           // events that cannot be understood, as they came (P4)
	Open  func(path string) (*os.File, error) // opens a file of the workspace (R-S18)
	Texts *texts.Channels                     // for people
	Log   *slog.Logger
}

// SaveFile puts a file that somebody uploads into their inbox in the workspace. The
// error is workspace.ErrTooBig for a file that is too big.
type SaveFile func(ctx context.Context, at chat.Address, from chat.Sender, name string, r io.Reader) (chat.File, error)

// NewHost returns the Host of that name with its part of s. Its texts are English; it logs
// nothing and has no files.
func NewHost(name string, s store.Store) Host {
	return Host{
		Name: name, Store: s, Seen: s.Bucket(store.BucketSeen(name)), Dead: s.Log(store.LogDeadEvents(name)),
		Open:  func(string) (*os.File, error) { return nil, os.ErrNotExist },
		Texts: &texts.English().Channels, Log: slog.New(slog.DiscardHandler),
	}
}

// An Identifier is a Channel that can ask its network which account it uses.
type Identifier interface {
	// Check returns the name of the bot, or an error that says what to do.
	Check(ctx context.Context) (name string, err error)
}

// A WebhookReceiver is a Channel that its network may call, whose Driver is a [WebhookDriver].
type WebhookReceiver interface {
	// Webhook returns the handler of requests to path.
	Webhook() (path string, handler http.Handler)
}

var numericID = lazyregexp.New(`^-?[1-9][0-9]{0,18}$`)

// CheckNumericID is the CheckID of networks whose ids are numbers.
func CheckNumericID(id string) error {
	if !numericID.MatchString(id) {
		return errors.New(`must be a numeric id such as "123456", because names change hands`)
	}
	return nil
}

// A WebhookDriver is a [Driver] whose network may call.
type WebhookDriver interface {
	// WebhookAddress returns the address to listen at, "" if the network does not call.
	WebhookAddress() string
}

// WebhookAddress returns where to listen for the network that driver is of, "" if it does not call.
func WebhookAddress(driver any) string {
	if d, ok := driver.(WebhookDriver); ok {
		return d.WebhookAddress()
	}
	return ""
}
