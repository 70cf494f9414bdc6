package main

import (
	"maps"
	"net"
	"slices"

	"parley/channels"
	"parley/channels/api"
	"parley/channels/console"
	"parley/channels/discord"
	"parley/channels/network"
	"parley/channels/telegram"
	webchat "parley/channels/web"
	"parley/cmd/gateway/chatpage"
	"parley/cmd/gateway/endpoints"
	"parley/cmd/gateway/pushes"
	"parley/config"
	"parley/llm"
	"parley/llm/demo"
	"parley/llm/openai"
	"parley/llm/textmode"
	"parley/store/bolt"
	"parley/store/mem"
	"parley/store/nats"
)

// drivers lists what config.json can name. A new channel, model provider or store
// is a folder of its own and a line here.
func drivers() config.Drivers {
	return config.Drivers{
		Channels: []config.Driver{
			config.DriverOf[console.Config]("console"),
			config.DriverOf[webchat.Config]("web"),
			config.DriverOf[telegram.Config]("telegram"),
			config.DriverOf[discord.Config]("discord"),
		},
		Models: []config.Driver{
			config.DriverOf[openai.Config]("openai"),
			config.DriverOf[demo.Config]("demo"),
		},
		Stores: []config.Driver{
			config.DriverOf[bolt.Config]("bolt"),
			config.DriverOf[nats.Config]("nats"),
			config.DriverOf[mem.Config]("mem"),
		},
		Categories: toolCategories,
	}
}

// driverOf returns what the driver of m is told.
func driverOf(m *config.Model) llm.Driver { return m.Driver.(llm.Driver) }

// newModel makes the model that an entry of models describes.
func newModel(name string, m *config.Model) llm.Model {
	made := driverOf(m).Build(name)
	if m.ToolCalls == "text" {
		return textmode.New(made)
	}
	return made
}

// modelNames are the names of the models in the config.
func (g *gateway) modelNames() []string { return slices.Sorted(maps.Keys(g.now.Load().Models)) }

func (g *gateway) hasModel(name string) bool { return g.now.Load().Models[name] != nil }

// addChannels adds the channels of the config to the hub. It returns the
// handlers of those that the network calls, by the address they listen at.
func (g *gateway) addChannels(leave func(error)) (endpoints.Webhooks, error) {
	forwarded, err := g.servers.Forwarded(endpoints.Terminal)
	if err != nil {
		return nil, err
	}
	g.hub.Add("console", g.console(leave, forwarded))
	g.api = api.New(api.Config{
		Name: "api", Store: g.store, Save: g.attachments.Save, Dir: g.Config.DataDir,
		TakeBytes: g.pool.Budget().TakeBytes, Models: toolboxOf(g).modelsOf, Log: g.Log,
	})
	g.hub.Add("api", g.api)
	if g.Config.Channels["web"] != nil {
		browser, err := chatpage.New(chatpage.Config{
			Store: g.store, Pool: g.pool, Texts: g.texts, Log: g.Log,
			Open: g.files.OpenNamed, Save: g.attachments.Save, Forget: g.forgetSession,
			Blocked: g.policy.Blocked, Models: toolboxOf(g).modelsOf, Role: jobHostOf(g).roleNow,
			Page:       func() pushes.Page { return g.web },
			Hears:      g.Config.Transcription != nil,
			TitleModel: func() string { return g.now.Load().TitleModel() },
		})
		if err != nil {
			return nil, err
		}
		g.browser = browser
		g.hub.Add("web", browser)
	}
	webhooks := endpoints.Webhooks{}
	for _, name := range g.Config.Networks() {
		base := network.NewHost(name, g.store)
		base.Open = g.files.OpenNamed
		base.Texts = &g.texts.Channels
		base.Log = g.Log
		c, err := g.Config.Channels[name].Driver.(network.Driver).Build(base)
		if err != nil {
			return nil, err
		}
		g.hub.Add(name, c)
		if at := network.WebhookAddress(g.Config.DriverOf(name)); at != "" {
			path, handler := c.(network.WebhookReceiver).Webhook()
			webhooks.Add(name, at, path, handler)
		}
	}
	return webhooks, nil
}

// console is the terminal: of this process if a person or a pipe is at it, and
// of "parley chat" by the socket.
func (g *gateway) console(leave func(error), forwarded net.Listener) channels.Channel {
	cfg := console.Config{
		Name: "console", Socket: console.Socket(g.Config.DataDir), Files: g.Config.Workspace,
		Forwarded: forwarded, Leave: leave, Log: g.Log.With("channel", "console"),
	}
	if g.Chat || g.Terminal.Interactive() {
		if !g.Chat {
			g.Terminal.Serves = g.Config.OthersServed()
		}
		cfg.Local = &g.Terminal
	}
	return console.New(cfg)
}
