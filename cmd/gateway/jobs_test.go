package main

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/audit"
	"parley/channels"
	"parley/chat"
	"parley/config"
	"parley/scheduler"
	"parley/scheduler/jobs"
	"parley/store/mem"
	"parley/texts"
	"parley/tools"
)

// A watch is a gateway of which only the scheduler is there, in a bubble.
type watch struct{ *house }

func newWatch(t *testing.T) *watch {
	t.Helper()
	c := &config.Config{Timezone: "Europe/Berlin", Models: map[string]*config.Model{"main": {}, "small": {}}}
	w := &watch{&house{options: options{Config: c, Redact: &redactor{}}, texts: texts.English()}}
	w.now.Store(c)
	w.auditLog = audit.New(mem.New(), w.redact, slog.New(slog.DiscardHandler))
	w.clock = scheduler.New(scheduler.Config{
		Store: mem.New(), Zone: c.Zone(),
		System: []scheduler.System{
			{ID: jobs.DreamID, Schedule: scheduler.Schedule{Cron: "0 4 * * *"}, Do: nothing},
			{ID: heartbeatID, Schedule: scheduler.Schedule{Every: 30 * time.Minute}, Do: nothing},
		},
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.clock.Run(ctx) }()
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
	synctest.Test(t, func(t *testing.T) { f(t, newWatch(t)) })
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
	c := &config.Config{Owners: []string{"console", "web", "telegram:1", "telegram:3", "discord:77"}}
	h := &house{hub: channels.NewHub(channels.Config{Store: mem.New(), Log: slog.New(slog.DiscardHandler)})}
	h.now.Store(c)
	access, err := accessOf(c)
	if err != nil {
		t.Fatal(err)
	}
	h.hub.SetAccess(access)
	h.hub.Add("discord", mailbox{})
	for to, want := range map[string]string{
		"telegram:1":         `{telegram 1 } by "1"`,
		"telegram:2":         `{telegram 2 } by "1" among others`,
		"telegram:3":         `{telegram 3 } by "3"`,
		"telegram:-100/7":    `{telegram -100 7} by "1" among others`,
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
		s, err := h.ownerAt(to)
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

// D-098: what is done at a terminal is done by the gateway that runs.
func TestD098CronAtATerminal(t *testing.T) {
	t.Parallel()
	w, tokyo := newTown(t, echo), time.FixedZone("JST", 9*60*60)
	w.more["timezone"] = "Asia/Tokyo"
	w.start()
	w.base()               // it is open
	w.tg.Say(person, "hi") // a bot cannot speak first
	w.says(person, "heard hi")
	run := func(args ...string) string {
		t.Helper()
		out, code := w.run("", append([]string{"cron"}, args...)...)
		if code != 0 {
			t.Errorf("%q ended with %d: %s", args, code, out)
		}
		return strings.TrimSpace(out)
	}
	made := run("add", "Make", "tea", "--every", "24h", "--name", "Tea", "--to", fmt.Sprint("telegram:", person))
	id := regexp.MustCompile(`id: (\w+),`).FindStringSubmatch(made)
	if id == nil {
		t.Fatal(made)
	}
	for want, args := range map[string][]string{
		"Enabled job " + id[1]: {"enable", id[1]}, "Changed job Biscuits (id: " + id[1] + ", at 2099-01-01 09:00)": {"edit", id[1], "Bake", "biscuits", "--at", "2099-01-01T09:00", "--name", "Biscuits"},
		"Job " + id[1] + " has not run yet.": {"history", id[1]},
	} {
		if got := run(args...); got != want {
			t.Errorf("%q says %q, not %q", args, got, want)
		}
	}
	run("run", id[1])
	w.says(person, "heard Bake biscuits")
	w.job(id[1], "delivered", hasEnded(scheduler.Delivered))
	if got := run("history", id[1]); !strings.Contains(got, " JST: delivered, ") { // as a chat tells it
		t.Error(got)
	}
	// Times are printed in the zone of the config.
	out, _ := w.run("", "sessions", "list")
	status, _ := w.run("", "status")
	for text, past := range map[string]*regexp.Regexp{
		out:    regexp.MustCompile(`telegram:\d+ +(\S+ \S+)`),
		status: regexp.MustCompile(`up since +(\S+ \S+)`),
	} {
		m := past.FindStringSubmatch(text)
		if m == nil {
			t.Fatal(text)
		}
		when, err := time.ParseInLocation("2006-01-02 15:04", m[1], tokyo)
		if since := time.Since(when); err != nil || since < 0 || since > 5*time.Minute {
			t.Errorf("it is %s, %v", m[0], err)
		}
	}
	if out, code := w.run("", "cron", "sing"); code != exitUsage {
		t.Errorf("parley cron sing ended with %d: %s", code, out)
	}
	run("remove", id[1])
	if got := run("list"); strings.Contains(got, id[1]) || !strings.Contains(got, "dream") {
		t.Error(got)
	}
}
