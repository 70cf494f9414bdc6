package main

import (
	"log/slog"
	"reflect"
	"testing"
	"time"

	"parley/agent"
	"parley/audit"
	"parley/channels"
	"parley/channels/attachments"
	webchat "parley/channels/web"
	"parley/config"
	"parley/store/mem"
	"parley/web/observe"
	"parley/workspace"
)

// TestUpkeepIsWired: P28. What removes old things is given all of them.
func TestUpkeepIsWired(t *testing.T) {
	g := &gateway{
		options:     options{Config: &config.Config{DataDir: "data", Workspace: "workspace", Timezone: "UTC"}, Log: slog.New(slog.DiscardHandler)},
		store:       mem.New(),
		hub:         &channels.Hub{},
		pool:        &agent.Pool{},
		auditLog:    &audit.Log{},
		browser:     &webchat.Channel{},
		attachments: &attachments.Inbox{},
		files:       &workspace.Workspace{},
		observer:    &observe.Observer{},
	}
	c := &config.Config{Retention: config.Retention{Files: time.Hour}}
	g.now.Store(c)
	u := upkeepOf(g)
	for f, v := range reflect.ValueOf(u).Fields() {
		if v.IsZero() {
			t.Errorf("%s is not given", f.Name)
		}
	}
	if got := u.Periods().Files; got != time.Hour {
		t.Errorf("files stay for %s, where the config says an hour", got)
	}
}
