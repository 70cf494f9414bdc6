package discord

import (
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"parley/channels"
	"parley/channels/network"
	"parley/chat"
	"parley/store"
	"parley/texts"
)

const defaultAPIURL = "https://discord.com/api/v9"

// A Config says which bot to be, and how. The fields with tags are keys of its
// entry in config.json (see package config).
type Config struct {
	Name string // of the channel in config.json, such as "discord:work"
	// Token is from https://discord.com/developers/applications, under Bot.
	Token  string `json:"token" secret:"yes" unique:"one bot can have one reader"`
	APIURL string `json:"apiUrl" default:"https://discord.com/api/v9" url:"https http"`
	// GatewayURL is where events come from. The API says so if it is empty.
	GatewayURL string `json:"gatewayUrl" url:"wss ws" optional:"yes"`
	// Groups is what to read in servers: "" is "mention".
	Groups string `json:"groups" default:"mention" allowed:"mention, all, none"`
	// Reactions show how far the agent is with a message.
	Reactions bool `json:"reactions" default:"true"`

	Client *http.Client // for requests; nil for one of its own

	Seen  store.Bucket                        // holds how far each chat was read, and the session
	Dead  store.Log                           // gets the last 1000 events that cannot be understood, verbatim (P4)
	Open  func(path string) (*os.File, error) // opens a file of the workspace (R-S18)
	Texts *texts.Channels                     // what people read; nil: in English
	Log   *slog.Logger                        // nil for slog.Default
}

// errToken does not hold the token (R-S26).
var errToken = errors.New(
	"token: not a bot token: copy it from https://discord.com/developers/applications, under Bot")

func isToken(s string) bool { return s != "" && !strings.ContainsAny(s, " \t\n\f\r") }

// CheckID implements [network.Driver].
func (c *Config) CheckID(id string) error { return network.CheckNumericID(id) }

// CheckChat implements [network.ChatChecker].
func (c *Config) CheckChat(a chat.Address) error {
	isThread := a.Thread == "" || snowflake.MatchString(a.Thread)
	if !isThread || !snowflake.MatchString(strings.TrimPrefix(a.Chat, "@")) {
		return errors.New("on Discord it is a number, that of a channel, or @ and that of a person")
	}
	return nil
}

// Check reports values that have the right type but cannot work.
func (c *Config) Check(report func(key, problem string)) {
	if !isToken(c.Token) {
		report("token", "is no bot token; https://discord.com/developers/applications gives one, under Bot")
	}
}

// Build implements [network.Driver].
func (c *Config) Build(h network.Host) (channels.Channel, error) {
	cfg := *c
	cfg.Name = h.Name
	cfg.Seen = h.Seen
	cfg.Dead = h.Dead
	cfg.Client = h.NewClient()
	cfg.Open = h.Open
	cfg.Texts = h.Texts
	cfg.Log = h.Log
	return New(cfg)
}
