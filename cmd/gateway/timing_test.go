package main

import (
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"parley/channels"
	"parley/chat"
	"parley/store"
	"parley/store/mem"
	"parley/web"
)

// R-S24: what somebody may do by now, of every kind of person.
func TestRS24RoleNow(t *testing.T) {
	c, err := parseText(`{"owners": ["telegram:1", "web"], "channels": {"telegram": {"token": "1:a", "allow": ["2"]}}}`)
	if err != nil {
		t.Fatal(err)
	}
	access, err := c.Rules()
	if err != nil {
		t.Fatal(err)
	}
	s, log := mem.New(), slog.New(slog.DiscardHandler)
	for name, removed := range map[string]time.Time{"anna": {}, "bert": time.Now()} {
		b, _ := json.Marshal(map[string]any{"name": name, "invited": time.Now(), "removed": removed})
		if _, err := s.Bucket("web/people").Put(t.Context(), name, b, store.Any); err != nil {
			t.Fatal(err)
		}
	}
	h := &gateway{hub: channels.NewHub(channels.Config{Store: s, Log: log})}
	h.hub.Access().SetRules(access)
	if h.web, err = web.New(web.Config{Listen: "127.0.0.1:18790", Store: s, Log: log}); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		channel, id string
		want        chat.Role
	}{
		{"telegram", "1", chat.Owner}, {"telegram", "2", chat.User}, {"telegram", "3", chat.Unknown},
		{"web", "owner", chat.Owner}, {"web", "anna", chat.User}, {"web", "bert", chat.Unknown}, {"web", "carl", chat.Unknown},
		{"api", "owner", chat.Owner}, {"api", "anna", chat.User}, {"api", "bert", chat.Unknown},
	} {
		got, err := jobHost{h}.roleNow(t.Context(), chat.Address{Channel: x.channel, Chat: "c"}, chat.Sender{ID: x.id, Role: chat.Owner})
		if got != x.want || err != nil {
			t.Errorf("%s:%s is %q, %v; want %q", x.channel, x.id, got, err, x.want)
		}
	}
	if err := h.hub.Access().Block(t.Context(), "telegram", "-100", "1"); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]chat.Role{"1": chat.Owner, "2": chat.Unknown} {
		got, err := jobHost{h}.roleNow(t.Context(), chat.Address{Channel: "telegram", Chat: "-100"}, chat.Sender{ID: id, Role: chat.User})
		if got != want || err != nil {
			t.Errorf("in a blocked group telegram:%s is %q, %v; want %q", id, got, err, want)
		}
	}
}
