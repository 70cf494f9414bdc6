package main

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"

	"parley/channels"
	"parley/channels/api"
	"parley/channels/console"
	"parley/channels/discord"
	"parley/channels/telegram"
	webchat "parley/channels/web"
	"parley/chat"
	"parley/llm"
	"parley/llm/demo"
	"parley/llm/openai"
	"parley/llm/textmode"
	"parley/store"
	"parley/store/mem"
)

// The drivers, by the type they have in config.json. To add one, make its
// folder and add its line here.
var (
	modelTypes = map[string]func(name string, m *Model) llm.Model{
		"demo": func(name string, _ *Model) llm.Model { return demo.New(name) },
		"openai": func(name string, m *Model) llm.Model {
			return openai.New(openai.Config{
				Name: name, BaseURL: m.BaseURL, APIKey: string(m.APIKey), Model: m.Model,
				MaxTokens: m.MaxTokens, Temperature: m.Temperature, Blind: !m.sees(),
			})
		},
	}
	storeTypes = map[string]func(ctx context.Context, c *Config, log *slog.Logger, stopped func(error)) (s store.Store, notes []string, err error){
		"mem": func(context.Context, *Config, *slog.Logger, func(error)) (store.Store, []string, error) {
			return mem.New(), nil, nil
		},
		"bolt": openBolt,
	}
)

// newModel makes the model that an entry of models describes.
func newModel(name string, m *Model) llm.Model {
	if m.ToolCalls == "text" {
		return textmode.New(modelTypes[m.Type](name, m))
	}
	return modelTypes[m.Type](name, m)
}

// sees says whether m can be shown pictures.
func (m *Model) sees() bool {
	if m.Vision != nil {
		return *m.Vision
	}
	return m.Type == "openai" && openai.Sees(m.Model)
}

// modelNames are the names of the models in the config.
func (h *house) modelNames() []string { return slices.Sorted(maps.Keys(h.now.Load().Models)) }

// newTranscriber makes what transcription describes.
func newTranscriber(t *Transcription) *openai.Transcriber {
	return openai.NewTranscriber(openai.Config{Name: "transcription", BaseURL: t.BaseURL, APIKey: string(t.APIKey), Model: t.Model}, t.Language)
}

// addChannels adds the channels of the config to the hub. It returns the
// handlers of those that the network calls, by the address they listen at.
func (h *house) addChannels(leave func(error)) (map[string]*http.ServeMux, error) {
	h.hub.Add("console", h.console(leave))
	h.api = api.New(api.Config{Name: "api", Store: h.store, Save: h.hub.Save, Models: h.modelNames, Log: h.Log})
	h.hub.Add("api", h.api)
	if h.Config.Channels.Web != nil {
		browser, err := webchat.New(webchat.Config{
			Name: "web", Store: h.store, Open: h.files.Open, Save: h.hub.Save, Log: h.Log, Search: h.heard,
			Forget: func(ctx context.Context, id chat.SessionID) error { return h.pool.Forget(ctx, id) },
		})
		if err != nil {
			return nil, err
		}
		h.browser = browser
		h.hub.Add("web", browser)
	}
	for name, b := range h.Config.Channels.Discord {
		cfg := discordConfig(name, b)
		cfg.Log, cfg.Open = h.Log, h.files.Open
		cfg.Dead, cfg.Seen = h.store.Log("dead/"+name), h.store.Bucket("seen/"+name)
		c, err := discord.New(cfg)
		if err != nil {
			return nil, err
		}
		h.hub.Add(name, c)
	}
	handlers := map[string]*http.ServeMux{}
	for name, t := range h.Config.Channels.Telegram {
		cfg := telegramConfig(name, t)
		cfg.Log, cfg.Open = h.Log, h.files.Open
		cfg.Dead, cfg.Alias = h.store.Log("dead/"+name), h.store.Bucket("alias/"+name)
		c, err := telegram.New(cfg)
		if err != nil {
			return nil, err
		}
		h.hub.Add(name, c)
		if w := t.Webhook; w != nil {
			if handlers[w.Listen] == nil {
				handlers[w.Listen] = http.NewServeMux()
			}
			handlers[w.Listen].Handle(pathOf(w.URL), c.Handler())
		}
	}
	return handlers, nil
}

// console is the terminal: of this process if a person or a pipe is at it, and
// of "parley chat" by the socket.
func (h *house) console(leave func(error)) channels.Channel {
	cfg := console.Config{Name: "console", Socket: socketOf(h.Config), Files: h.Config.Workspace, Leave: leave, Log: h.Log.With("channel", "console")}
	if h.Chat || h.Terminal.Interactive() {
		cfg.Local = &h.Terminal
	}
	return console.New(cfg)
}

// telegramConfig says which bot an entry of channels is.
func telegramConfig(name string, t *Telegram) telegram.Config {
	c := telegram.Config{Name: name, Token: string(t.Token), APIURL: t.APIURL, Groups: t.Groups, Rate: t.Rate, Reactions: t.Reactions}
	if w := t.Webhook; w != nil {
		c.Webhook = &telegram.Webhook{URL: w.URL, Secret: string(w.Secret)}
	}
	return c
}

// discordConfig says which bot an entry of channels is.
func discordConfig(name string, b *Discord) discord.Config {
	return discord.Config{Name: name, Token: string(b.Token), APIURL: b.APIURL, GatewayURL: b.GatewayURL, Groups: b.Groups, Reactions: b.Reactions}
}
