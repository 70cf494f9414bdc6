package main

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"parley/channels"
	"parley/channels/api"
	"parley/channels/console"
	"parley/channels/discord"
	"parley/channels/network"
	"parley/channels/telegram"
	webchat "parley/channels/web"
	"parley/config"
	"parley/llm"
	"parley/llm/demo"
	"parley/llm/openai"
	"parley/llm/textmode"
	"parley/store/bolt"
	"parley/store/mem"
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
func (h *house) modelNames() []string { return slices.Sorted(maps.Keys(h.now.Load().Models)) }

func (h *house) hasModel(name string) bool { return h.now.Load().Models[name] != nil }

// networks are the channels of c on which people have ids, sorted by name.
func networks(c *config.Config) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(c.Channels)) {
		if c.Channels[name].Senders != nil {
			list = append(list, name)
		}
	}
	return list
}

// addChannels adds the channels of the config to the hub. It returns the
// handlers of those that the network calls, by the address they listen at.
func (h *house) addChannels(leave func(error)) (map[string]*http.ServeMux, error) {
	h.hub.Add("console", h.console(leave))
	h.api = api.New(api.Config{
		Name: "api", Store: h.store, Save: h.hub.Save, Dir: h.Config.DataDir, TakeBytes: h.pool.TakeBytes,
		Models: h.modelNames, Log: h.Log,
	})
	h.hub.Add("api", h.api)
	if h.Config.Channels["web"] != nil {
		browser, err := webchat.New(webchat.Config{
			Name: "web", Store: h.store, Open: h.files.OpenNamed, Save: h.hub.Save, TakeBytes: h.pool.TakeBytes,
			Log: h.Log, Search: h.heard, Forget: h.forgetSession,
		})
		if err != nil {
			return nil, err
		}
		h.browser = browser
		h.hub.Add("web", browser)
	}
	webhooks := map[string]*http.ServeMux{}
	for _, name := range networks(h.Config) {
		host := network.NewHost(name, h.store)
		host.Open = h.files.OpenNamed
		host.Texts = &h.texts.Channels
		host.Log = h.Log
		c, err := h.Config.Channels[name].Driver.(network.Driver).Build(host)
		if err != nil {
			return nil, err
		}
		h.hub.Add(name, c)
		if listen, path, handler := webhookOf(c); listen != "" {
			if webhooks[listen] == nil {
				webhooks[listen] = http.NewServeMux()
			}
			webhooks[listen].Handle(path, handler)
		}
	}
	return webhooks, nil
}

// webhookOf returns what answers c's network at the address listen, which is "" if
// the network does not call.
func webhookOf(c channels.Channel) (listen, path string, handler http.Handler) {
	r, ok := c.(network.WebhookReceiver)
	if !ok {
		return "", "", nil
	}
	return r.Webhook()
}

// console is the terminal: of this process if a person or a pipe is at it, and
// of "parley chat" by the socket.
func (h *house) console(leave func(error)) channels.Channel {
	cfg := console.Config{
		Name: "console", Socket: socketOf(h.Config), Files: h.Config.Workspace,
		Leave: leave, Log: h.Log.With("channel", "console"),
	}
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
	names := networks(h.Config)
	if h.Config.Channels["web"] != nil {
		names = append(names, "the web page")
	}
	return names
}
