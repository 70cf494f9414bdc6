package main

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"

	"parley/channels"
	"parley/channels/api"
	"parley/channels/console"
	"parley/channels/discord"
	"parley/channels/telegram"
	webchat "parley/channels/web"
	"parley/config"
	"parley/llm"
	"parley/llm/demo"
	"parley/llm/openai"
	"parley/llm/textmode"
)

// newModel makes the model that an entry of models describes.
func newModel(name string, m *config.Model) (made llm.Model) {
	if m.Type == "demo" {
		made = demo.New(name)
	} else {
		made = openai.New(openai.Config{
			Name: name, BaseURL: m.BaseURL, APIKey: string(m.APIKey), Model: m.Model,
			MaxTokens: m.MaxTokens, Temperature: m.Temperature, Blind: !sees(m),
		})
	}
	if m.ToolCalls == "text" {
		return textmode.New(made)
	}
	return made
}

// sees says whether m can be shown pictures.
func sees(m *config.Model) bool {
	if m.Vision != nil {
		return *m.Vision
	}
	return m.Type == "openai" && openai.Sees(m.Model)
}

// modelNames are the names of the models in the config.
func (h *house) modelNames() []string { return slices.Sorted(maps.Keys(h.now.Load().Models)) }

func (h *house) hasModel(name string) bool { return h.now.Load().Models[name] != nil }

// addChannels adds the channels of the config to the hub. It returns the
// handlers of those that the network calls, by the address they listen at.
func (h *house) addChannels(leave func(error)) (map[string]*http.ServeMux, error) {
	h.hub.Add("console", h.console(leave))
	h.api = api.New(api.Config{Name: "api", Store: h.store, Save: h.hub.Save, Dir: h.Config.DataDir, TakeBytes: h.pool.TakeBytes, Models: h.modelNames, Log: h.Log})
	h.hub.Add("api", h.api)
	if h.Config.Channels.Web != nil {
		browser, err := webchat.New(webchat.Config{
			Name: "web", Store: h.store, Open: h.files.OpenNamed, Save: h.hub.Save, TakeBytes: h.pool.TakeBytes, Log: h.Log, Search: h.heard, Forget: h.forgetSession,
		})
		if err != nil {
			return nil, err
		}
		h.browser = browser
		h.hub.Add("web", browser)
	}
	for name, b := range h.Config.Channels.Discord {
		cfg := discordConfig(name, b, h.Log)
		cfg.Texts = &h.texts.Channels
		cfg.Open, cfg.Dead, cfg.Seen = h.files.OpenNamed, h.store.Log("dead/"+name), h.store.Bucket("seen/"+name)
		c, err := discord.New(cfg)
		if err != nil {
			return nil, err
		}
		h.hub.Add(name, c)
	}
	handlers := map[string]*http.ServeMux{}
	for name, t := range h.Config.Channels.Telegram {
		cfg := telegramConfig(name, t, h.Log)
		cfg.Texts = &h.texts.Channels
		cfg.Open, cfg.Dead, cfg.Alias = h.files.OpenNamed, h.store.Log("dead/"+name), h.store.Bucket("alias/"+name)
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
		if !h.Chat {
			h.Terminal.Serves = strings.Join(h.othersServed(), ", ")
		}
		cfg.Local = &h.Terminal
	}
	return console.New(cfg)
}

// othersServed names the channels besides the terminal.
func (h *house) othersServed() []string {
	c := h.Config.Channels
	names := slices.Concat(slices.Sorted(maps.Keys(c.Telegram)), slices.Sorted(maps.Keys(c.Discord)))
	if c.Web != nil {
		names = append(names, "the web page")
	}
	return names
}

// checkBot asks the network of that channel who its bot is.
func checkBot(ctx context.Context, c *config.Config, name string) (who string, err error) {
	var bot interface {
		Check(context.Context) (string, error)
	}
	log := slog.New(slog.DiscardHandler)
	if t := c.Channels.Telegram[name]; t != nil {
		bot, err = telegram.New(telegramConfig(name, t, log))
	} else {
		bot, err = discord.New(discordConfig(name, c.Channels.Discord[name], log))
	}
	if err != nil {
		return "", err
	}
	return bot.Check(ctx)
}

// telegramConfig says which bot an entry of channels is.
func telegramConfig(name string, t *config.Telegram, log *slog.Logger) telegram.Config {
	c := telegram.Config{Name: name, Token: string(t.Token), APIURL: t.APIURL, Groups: t.Groups, Rate: t.Rate, Reactions: t.Reactions, Log: log}
	if w := t.Webhook; w != nil {
		c.Webhook = &telegram.Webhook{URL: w.URL, Secret: string(w.Secret)}
	}
	return c
}

// discordConfig says which bot an entry of channels is.
func discordConfig(name string, d *config.Discord, log *slog.Logger) discord.Config {
	return discord.Config{Name: name, Token: string(d.Token), APIURL: d.APIURL, GatewayURL: d.GatewayURL, Groups: d.Groups, Reactions: d.Reactions, Log: log}
}
