package main

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"parley/audit"
	"parley/channels"
	"parley/channels/discord"
	"parley/channels/telegram"
	"parley/chat"
	"parley/config"
	"parley/redact"
	"parley/scheduler"
	"parley/scheduler/jobs"
	"parley/store/mem"
	"parley/texts"
	"parley/timetest"
	"parley/tools"
)

// A watch is a gateway of which only the scheduler is there, in a bubble.
type watch struct{ *gateway }

func newWatch(t *testing.T) *watch {
	t.Helper()
	c := &config.Config{Timezone: "Europe/Berlin", Models: map[string]*config.Model{"main": {}, "small": {}}}
	w := &watch{&gateway{options: options{Config: c, Redact: &redact.Redactor{}}, texts: texts.English()}}
	w.knowledge.app = w.gateway
	w.now.Store(c)
	w.auditLog = audit.New(mem.New(), w.redact, slog.New(slog.DiscardHandler))
	w.scheduler = scheduler.New(scheduler.Config{
		Store: mem.New(), Zone: c.Zone(),
		System: []scheduler.System{
			{ID: jobs.DreamID, Schedule: scheduler.Schedule{Cron: "0 4 * * *"}, Do: nothing},
			{ID: jobs.HeartbeatID, Schedule: scheduler.Schedule{Every: 30 * time.Minute}, Do: nothing},
		},
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.scheduler.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	return w
}

func nothing(context.Context, scheduler.Job, scheduler.Run) (scheduler.Ended, error) {
	return scheduler.Ended{Outcome: scheduler.Silent}, nil
}

// inBubble runs f with a watch.
func inBubble(t *testing.T, f func(*testing.T, *watch)) {
	timetest.TestWithOthers(t, func(t *testing.T) { f(t, newWatch(t)) })
}

// An owner and a user, each in a private chat.
var (
	inPrivate = tools.Scope{At: chat.Address{Channel: "telegram", Chat: "1"}, From: chat.Sender{ID: "1", Role: chat.Owner}}
	anna      = tools.Scope{At: chat.Address{Channel: "telegram", Chat: "2"}, From: chat.Sender{ID: "2", Role: chat.User}}
)

// A mailbox is a network on which everybody can be spoken to first.
type mailbox struct{ channels.Channel }

func (mailbox) Direct(id string) chat.Address { return chat.Address{Chat: "@" + id} }

// R-S24: jobs that are made for a chat from outside it are those of the owner
// there, and no memory of theirs goes where others read.
func TestRS24OwnerAt(t *testing.T) {
	c := &config.Config{Owners: []string{"console", "web", "telegram:1", "telegram:3", "discord:77"}, Channels: map[string]*config.Channel{
		"telegram": {Driver: new(telegram.Config)}, "discord": {Driver: new(discord.Config)},
	}}
	h := &gateway{hub: channels.NewHub(channels.Config{Store: mem.New(), Log: slog.New(slog.DiscardHandler)})}
	h.now.Store(c)
	access, err := c.Rules()
	if err != nil {
		t.Fatal(err)
	}
	h.hub.Access().SetRules(access)
	h.hub.Add("discord", mailbox{})
	for to, want := range map[string]string{
		"telegram:1":         `{telegram 1 } by "1"`,
		"telegram:2":         `{telegram 2 } by "1" among others`,
		"telegram:3":         `{telegram 3 } by "3"`,
		"telegram:-100/7":    `{telegram -100 7} by "1" among others`,
		"telegram:ID":        "", // what can be no chat there
		"telegram:1/x":       "",
		"discord:anna":       "",
		"discord:@77":        `{discord @77 } by "77"`,
		"console:local":      `{console local } by ""`,
		"web:owner/notices":  `{web owner notices} by "owner"`,
		"web:anna/x":         `{web anna x} by "owner" among others`,
		"api:owner/x":        "", // where nobody can be spoken to
		"slack:1":            "",
		"telegram":           "",
		"telegram:":          "",
		":":                  "",
		"":                   `{discord @77 } by "77"`, // the only one where somebody can be spoken to first
		"telegram:1\x00:1/2": "",
	} {
		s, err := jobHost{h}.ownerAt(to)
		got := fmt.Sprintf("%v by %q", s.At, s.From.ID)
		if s.Group {
			got += " among others"
		}
		if err != nil {
			got = ""
		}
		if got != want || err == nil && s.From.Role != chat.Owner {
			t.Errorf("%q: %s, want %s (%v)", to, got, want, err)
		}
	}
}
