// Package chatpage connects the chat in the browser with the rest of the gateway.
package chatpage

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"parley/agent"
	"parley/agent/budget"
	"parley/agent/timeline"
	making "parley/agent/titles"
	"parley/channels/network"
	"parley/channels/web"
	"parley/channels/web/titles"
	"parley/chat"
	"parley/cmd/gateway/pushes"
	"parley/store"
	"parley/texts"
)

const (
	name          = "web"
	maxSearchHits = 50
)

// A Config is what the page needs. What the functions work with may be opened later.
type Config struct {
	Store store.Store
	Pool  *agent.Pool
	Texts *texts.Catalogue
	Log   *slog.Logger

	Open   func(path string) (*os.File, error)
	Save   network.SaveFile
	Forget func(context.Context, chat.SessionID) error

	Blocked func(ctx context.Context, who chat.Sender, part string) bool
	Models  func(ctx context.Context, at chat.Address, who chat.Sender) ([]string, error)
	Role    func(ctx context.Context, at chat.Address, from chat.Sender) (chat.Role, error)
	Page    func() pushes.Page // where the page is

	// TitleModel names the model that names conversations; "": their first words do.
	TitleModel func() string
	// Hears reports that voice messages are understood.
	Hears bool
}

// New returns the chat in the browser.
func New(c Config) (*web.Channel, error) {
	return web.New(web.Config{
		Name:      name,
		Store:     c.Store,
		Log:       c.Log,
		Open:      c.Open,
		Save:      c.Save,
		TakeBytes: c.Pool.Budget().TakeBytes,
		Search:    c.search,
		Forget:    c.Forget,
		Blocked:   c.Blocked,
		Models:    c.Models,
		Model:     c.model,
		Hears:     c.Hears,
		Steps:     timeline.Of(c.Pool, &c.Texts.Agent),
		Notify:    pushes.New(c.Store, c.Log, c.Page),
		Titles: titles.New(titles.Config{
			Store: c.Store,
			On:    func() bool { return c.TitleModel() != "" },
			Make:  c.makeTitle,
			Log:   c.Log,
		}),
	})
}

// search finds what was said with a person of the page.
func (c Config) search(ctx context.Context, person, words string) ([]chat.Find, error) {
	chats := string(chat.Address{Channel: name, Chat: person}.Session()) + "/"
	return c.Pool.Sessions().SearchIn(ctx, chats, words, maxSearchHits)
}

// makeTitle has a model name what began with b, at the expense of its person.
func (c Config) makeTitle(ctx context.Context, b titles.Beginning) (string, error) {
	from := chat.Sender{ID: b.At.Chat}
	role, err := c.Role(ctx, b.At, from)
	if err != nil {
		return "", err
	}
	if role == chat.Unknown {
		return "", errors.New("the person may not talk any more")
	}
	from.Role = role
	who := budget.Spender{Person: chat.Whose(b.At, from, false), Session: b.At.Session()}
	model := c.TitleModel()
	metered := c.Pool.Budget().Meter(who, model, c.Pool.Model(model).Model)
	return making.Make(ctx, metered, b.Asked, b.Answered)
}

// model returns the name of the model that answers who there.
func (c Config) model(ctx context.Context, at chat.Address, who chat.Sender) (string, error) {
	_, name, err := c.Pool.ModelsFor(ctx, chat.Message{At: at, From: who})
	return name, err
}
