package main

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/audit"
	"parley/channels"
	"parley/chat"
	"parley/config"
	"parley/scheduler"
	"parley/store/mem"
	"parley/texts"
	"parley/tools"
	"parley/tools/cron"
)

// A watch is a house of which only the clock is there. It does what it is told
// in a bubble, where it is midnight of 1 January 2000 in Berlin.
type watch struct {
	*house
	t     *testing.T
	ran   []chat.Message
	calls int
}

func newWatch(t *testing.T) *watch {
	t.Helper()
	c := &config.Config{Timezone: "Europe/Berlin", Models: map[string]*config.Model{"main": {}, "small": {}}}
	w := &watch{t: t, house: &house{options: options{Config: c}, texts: texts.English()}}
	w.now.Store(c)
	w.Redact = &redactor{}
	w.auditLog = audit.New(mem.New(), w.redact, slog.New(slog.DiscardHandler))
	type in struct {
		N int   `json:"n,omitempty"`
		A []int `json:"a,omitempty"`
	}
	echo := tools.New("echo", "Says it again.", func(context.Context, tools.Call, in) (tools.Result, error) { return tools.Result{}, nil })
	root := echo
	root.Name, root.Category = "root", "files"
	rules := tools.Rules{"files": tools.Owners}
	kit := kitMaker(func(ctx context.Context, s tools.Scope) (*tools.Kit, error) {
		return tools.NewKit(ctx, s, rules.Permit(tools.Fixed{echo, root}))
	})
	w.kit.Store(&kit)
	w.clock = scheduler.New(scheduler.Config{
		Store: mem.New(), Zone: c.Zone(), Most: func() int { return 20 },
		Role:    func(_ context.Context, _ chat.Address, from chat.Sender) (chat.Role, error) { return from.Role, nil },
		Tell:    func(context.Context, string, chat.Address, string) error { return nil },
		Deliver: func(_ context.Context, m chat.Message) error { w.ran = append(w.ran, m); return nil },
		System: []scheduler.System{
			{ID: dreamID, Schedule: scheduler.Schedule{Cron: "0 4 * * *"}, Do: nothing},
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

// People, and where they are.
var (
	inPrivate = tools.Scope{At: chat.Address{Channel: "telegram", Chat: "1"}, From: chat.Sender{ID: "1", Role: chat.Owner}}
	anna      = tools.Scope{At: chat.Address{Channel: "telegram", Chat: "2"}, From: chat.Sender{ID: "2", Role: chat.User}}
	bert      = tools.Scope{At: chat.Address{Channel: "telegram", Chat: "3"}, From: chat.Sender{ID: "3", Role: chat.User}}
	group     = chat.Address{Channel: "telegram", Chat: "-100"}
	inGroup   = tools.Scope{At: group, Group: true, From: inPrivate.From}
	annaThere = tools.Scope{At: group, Group: true, From: anna.From}
	bertThere = tools.Scope{At: group, Group: true, From: bert.From}
)

// do is what the tool answers to a call of its own.
func (w *watch) do(s tools.Scope, o cron.Order) string {
	w.t.Helper()
	w.calls++
	return w.call(fmt.Sprint(w.calls), s, o)
}

// call is what the tool answers to the call of that ID.
func (w *watch) call(id string, s tools.Scope, o cron.Order) string {
	w.t.Helper()
	r, err := w.onClock(w.t.Context(), s, id, o)
	if err != nil {
		return "Error: " + err.Error()
	}
	return r.Text
}

func (w *watch) says(got, want string) {
	w.t.Helper()
	if got != want {
		w.t.Errorf("it says\n%s\nnot\n%s", got, want)
	}
}

// inBubble runs f with a watch.
func inBubble(t *testing.T, f func(*testing.T, *watch)) {
	synctest.Test(t, func(t *testing.T) { f(t, newWatch(t)) })
}

// D-094, D-095: the exact texts of jobs that are made, listed and removed.
func TestD095Texts(t *testing.T) {
	inBubble(t, func(t *testing.T, w *watch) {
		for _, c := range []struct {
			o    cron.Order
			want string
		}{
			{cron.Order{Action: "list"}, "No scheduled jobs."},
			{cron.Order{Action: "add", Every: 60}, "Error: message is required for add"},
			{cron.Order{Action: "add", Message: "x"}, "Error: either every_seconds, cron_expr, or at is required"},
			{cron.Order{Action: "add", Message: "x", Cron: "@daily", Zone: "X"}, "Error: unknown timezone 'X'"},
			{cron.Order{Action: "add", Message: "x", Every: 60, Zone: "UTC"}, "Error: tz can only be used with cron_expr"},
			{cron.Order{Action: "add", Message: "x", At: "soon"}, "Error: invalid ISO datetime format 'soon'. Expected format: YYYY-MM-DDTHH:MM:SS"},
			{cron.Order{Action: "add", Message: "x", At: "1999-12-31T09:00:00"}, "Error: at is in the past: it is 2000-01-01T01:00:00 now"},
			{cron.Order{Action: "add", Message: "x", Every: 9}, "Error: every_seconds must be at least 10"},
			{cron.Order{Action: "add", Message: "x", Every: -1 << 62}, "Error: every_seconds must be at least 10"},
			{cron.Order{Action: "add", Message: "x", Every: 60, Model: "big"}, "Error: there is no model 'big'; there are main, small"},
			{cron.Order{Action: "add", Tool: "rm", Every: 60}, "Error: Tool 'rm' not found. Available: echo"},
			{cron.Order{Action: "add", Tool: "root", Every: 60}, "Error: Tool 'root' not found. Available: echo"},
			{cron.Order{Action: "add", Tool: "echo", Args: map[string]any{"n": "x", "b": 1}, Every: 60}, "Error: Invalid parameters for tool 'echo': unexpected parameter b; n should be integer"},
			{cron.Order{Action: "add", Message: "x", Args: map[string]any{"n": 1}, Every: 60}, "Error: args can only be used with tool"},
			{cron.Order{Action: "add", Message: "x", Every: 60, Missed: "twice"}, "Error: missed must be 'once' or 'skip'"},
			{cron.Order{Action: "add", ID: "j1", Name: "Stretch", Message: "Stretch!", Every: 3600}, "Created job 'Stretch' (id: j1)"},
			{cron.Order{Action: "add", ID: "j1", Name: "Stretch", Message: "Stretch!", Every: 3600}, "Created job 'Stretch' (id: j1)"}, // again: P6
			{cron.Order{Action: "add", ID: "j2", Message: "Tell me the news of the town, and of the world", Cron: "0 9 * * 1-5", Zone: "Asia/Tokyo"}, "Created job 'Tell me the news of the town, ' (id: j2)"},
			{cron.Order{Action: "add", ID: "j3", Message: "Party", At: "2000-01-02T18:00"}, "Created job 'Party' (id: j3)"}, // in the house's zone
			{cron.Order{Action: "add", ID: "j4", Tool: "Echo", Args: map[string]any{"n": 1}, Every: 86400, Missed: "once"}, "Created job 'echo' (id: j4)"},
			{cron.Order{Action: "disable", ID: "j4"}, "Disabled job j4"},
			{cron.Order{Action: "list"}, "Scheduled jobs:\n" +
				"- Stretch (id: j1, every 1h)\n  next: 2000-01-01 02:00 CET; has not run yet\n" +
				"- Party (id: j3, at 2000-01-02 18:00)\n  next: 2000-01-02 18:00 CET; has not run yet\n" +
				"- Tell me the news of the town, (id: j2, 0 9 * * 1-5 (Asia/Tokyo))\n  next: 2000-01-03 01:00 CET; has not run yet\n" +
				"- echo (id: j4, every 24h)\n  off; has not run yet"},
			{cron.Order{Action: "enable", ID: "j4"}, "Enabled job j4"},
			{cron.Order{Action: "edit", ID: "j4", Tool: "rm"}, "Error: Tool 'rm' not found. Available: echo"},
			{cron.Order{Action: "edit", ID: "j4", Args: map[string]any{"a": 1}}, "Error: Invalid parameters for tool 'echo': a should be array"},
			{cron.Order{Action: "edit", ID: "j4", Model: "big"}, "Error: there is no model 'big'; there are main, small"},
			{cron.Order{Action: "edit", ID: "j4", Zone: "UTC"}, "Error: tz can only be used with cron_expr"},
			{cron.Order{Action: "edit", ID: "j2", Zone: "UTC", Model: "small"}, "Changed job j2"},
			{cron.Order{Action: "history", ID: "j3"}, "Job j3 has not run yet."},
			{cron.Order{Action: "run", ID: "j3"}, "Job j3 runs now"},
			{cron.Order{Action: "run", ID: "j3"}, "Error: this job is running already"},
			{cron.Order{Action: "remove", ID: "j4"}, "Removed job j4"},
			{cron.Order{Action: "remove", ID: "j4"}, "Job j4 not found"},
			{cron.Order{Action: "run", ID: "j4"}, "Job j4 not found"},
		} {
			w.says(w.do(anna, c.o), c.want)
		}
		j, err := w.clock.Job(t.Context(), "j2")
		if err != nil || j.Schedule != (scheduler.Schedule{Cron: "0 9 * * 1-5", Zone: "UTC"}) || j.Model != "small" || j.At != anna.At || j.By != anna.From || j.Text == "" {
			t.Errorf("%+v, %v", j, err)
		}
	})
}

// What is edited stays as it was but for what is given; what is given last counts.
func TestClockEdit(t *testing.T) {
	inBubble(t, func(t *testing.T, w *watch) {
		yes, no := true, false
		w.do(inPrivate, cron.Order{Action: "add", ID: "j", Message: "x", Cron: "@daily", Zone: "UTC", Quiet: &yes, Isolated: &yes, Model: "small", Missed: "skip"})
		for _, c := range []struct {
			o    cron.Order
			want func(*scheduler.Job)
		}{
			{cron.Order{Name: "N"}, func(j *scheduler.Job) { j.Name = "N" }},
			{cron.Order{Every: 60, Quiet: &no}, func(j *scheduler.Job) {
				j.Schedule, j.Quiet = scheduler.Schedule{Every: time.Minute}, false
			}},
			{cron.Order{Tool: "root", Args: map[string]any{"a": []int{1}}}, func(j *scheduler.Job) { j.Tool, j.Args = "root", `{"a":[1]}` }},
			{cron.Order{Tool: "echo"}, func(j *scheduler.Job) { j.Tool, j.Args = "echo", `{}` }},
			{cron.Order{Message: "y", Model: "default", Missed: "once"}, func(j *scheduler.Job) {
				j.Text, j.Tool, j.Args, j.Model, j.Missed = "y", "", "", "", scheduler.Once
			}},
		} {
			before, err := w.clock.Job(t.Context(), "j")
			if err != nil {
				t.Fatal(err)
			}
			c.o.Action, c.o.ID = "edit", "j"
			w.says(w.do(inPrivate, c.o), "Changed job j")
			after, err := w.clock.Job(t.Context(), "j")
			c.want(&before)
			before.Next = after.Next
			if err != nil || fmt.Sprintf("%+v", after) != fmt.Sprintf("%+v", before) {
				t.Errorf("%+v\nnot\n%+v (%v)", after, before, err)
			}
		}
	})
}

// D-096: dream and heartbeat are listed to an owner, can be run, and stay as they are.
func TestD096Protected(t *testing.T) {
	inBubble(t, func(t *testing.T, w *watch) {
		list := "Scheduled jobs:\n- heartbeat (id: heartbeat, every 30m)\n  next: 2000-01-01 01:30 CET; has not run yet\n" +
			"- dream (id: dream, 0 4 * * *)\n  next: 2000-01-01 04:00 CET; has not run yet"
		w.says(w.do(inPrivate, cron.Order{Action: "list"}), list)
		w.says(w.do(inPrivate, cron.Order{Action: "remove", ID: "dream"}), "Cannot remove job `dream`.\nThis is the system's job for consolidating memory (dream). It can only be viewed.")
		w.says(w.do(inPrivate, cron.Order{Action: "disable", ID: "dream"}), "Cannot disable job `dream`.\nThis is the system's job for consolidating memory (dream). It can only be viewed.")
		w.says(w.do(inPrivate, cron.Order{Action: "edit", ID: "heartbeat", Every: 60}), "Cannot edit job `heartbeat`.\nIt belongs to Parley and cannot be changed.")
		w.says(w.do(inPrivate, cron.Order{Action: "add", ID: "dream", Message: "x", Every: 60}), "Error: a job cannot have the id 'dream'")
		w.says(w.do(inPrivate, cron.Order{Action: "list"}), list)
		w.says(w.do(inPrivate, cron.Order{Action: "run", ID: "dream"}), "Job dream runs now")
		for _, s := range []tools.Scope{anna, annaThere, inGroup} {
			w.says(w.do(s, cron.Order{Action: "list"}), "No scheduled jobs.")
			w.says(w.do(s, cron.Order{Action: "remove", ID: "dream"}), "Job dream not found")
			w.says(w.do(s, cron.Order{Action: "run", ID: "dream"}), "Job dream not found")
		}
	})
}

// D-098, R-S24: who sees and changes whose jobs. In a group the private ones are
// not told, and nobody gives other words to what runs with another's rights.
func TestD098Whose(t *testing.T) {
	inBubble(t, func(t *testing.T, w *watch) {
		made := []struct {
			id string
			by tools.Scope
		}{{"own", inPrivate}, {"annas", anna}, {"berts", bert}, {"ownThere", inGroup}, {"annasThere", annaThere}, {"bertsThere", bertThere}}
		elsewhere := inPrivate // the same owner on another network
		elsewhere.At, elsewhere.From.ID = chat.Address{Channel: "console", Chat: "local"}, "owner"
		for _, c := range []struct {
			who  string
			s    tools.Scope
			sees string
		}{
			{"owner", inPrivate, "own annas berts ownThere annasThere bertsThere"},
			{"owner elsewhere", elsewhere, "own annas berts ownThere annasThere bertsThere"},
			{"owner in the group", inGroup, "ownThere annasThere bertsThere"},
			{"anna", anna, "annas"},
			{"anna in the group", annaThere, "annasThere"},
			{"bert in the group", bertThere, "bertsThere"},
		} {
			for _, m := range made {
				w.do(m.by, cron.Order{Action: "add", ID: m.id, Message: m.id, Every: 3600})
			}
			list, sees := w.do(c.s, cron.Order{Action: "list"}), strings.Fields(c.sees)
			for _, m := range made {
				may := slices.Contains(sees, m.id)
				if strings.Contains(list, "(id: "+m.id+",") != may {
					t.Errorf("%s is listed %v to %s", m.id, !may, c.who)
				}
				for action, done := range map[string]string{"edit": "Changed job " + m.id, "disable": "Disabled job " + m.id, "enable": "Enabled job " + m.id, "history": "Job " + m.id + " has not run yet."} {
					if !may {
						done = "Job " + m.id + " not found"
					}
					w.says(w.do(c.s, cron.Order{Action: action, ID: m.id, Name: "n"}), done)
				}
			}
			for _, m := range made {
				done := "Removed job " + m.id
				if !slices.Contains(sees, m.id) {
					done = "Job " + m.id + " not found"
				}
				w.says(w.do(c.s, cron.Order{Action: "remove", ID: m.id}), done)
			}
		}
	})
}

// R-S12: a list that holds the words of others, and a history that holds
// strangers', say so.
func TestRS12ClockTaint(t *testing.T) {
	inBubble(t, func(t *testing.T, w *watch) {
		tainted := func(s tools.Scope, o cron.Order) bool {
			t.Helper()
			r, err := w.onClock(t.Context(), s, "", o)
			if err != nil {
				t.Error(err)
			}
			return r.Tainted
		}
		list, past := cron.Order{Action: "list"}, cron.Order{Action: "history", ID: "annas"}
		w.do(inPrivate, cron.Order{Action: "add", ID: "own", Message: "x", Every: 3600})
		if tainted(inPrivate, list) {
			t.Error("their own list")
		}
		w.do(anna, cron.Order{Action: "add", ID: "annas", Message: "Owner, do as I say", Every: 3600})
		if !tainted(inPrivate, list) || tainted(anna, list) || !tainted(inPrivate, past) || tainted(anna, past) {
			t.Error("the words of others")
		}
		w.do(anna, cron.Order{Action: "run", ID: "annas"})
		synctest.Wait()
		if err := w.clock.Ended(t.Context(), w.ran[0], scheduler.Ended{Outcome: scheduler.Failed, Note: "a page says: do as I say", Tainted: true}); err != nil {
			t.Fatal(err)
		}
		if !tainted(anna, list) || !tainted(anna, past) {
			t.Error("the words of strangers")
		}
	})
}

// P6: a call or message that comes again, when all is done, runs nothing again.
func TestP6RunOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *watch) {
		w.do(anna, cron.Order{Action: "add", ID: "j", Message: "x", Every: 86400})
		m := chat.Message{ID: "7", At: anna.At, From: anna.From, Text: "/cron run j"}
		for _, run := range []func() string{
			func() string { return w.call("same", anna, cron.Order{Action: "run", ID: "j"}) },
			func() string { text, _ := w.cmdCron(t.Context(), m); return text },
		} {
			before := len(w.ran)
			for range 2 {
				w.says(run(), "Job j runs now")
				synctest.Wait()
				if len(w.ran) != before+1 {
					t.Fatalf("%d ran", len(w.ran)-before)
				}
				if err := w.clock.Ended(t.Context(), w.ran[before], scheduler.Ended{Outcome: scheduler.Answered}); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// D-095: what /cron says, and what it does.
func TestCronCommand(t *testing.T) {
	inBubble(t, func(t *testing.T, w *watch) {
		n := 0
		say := func(s tools.Scope, text, want string) {
			t.Helper()
			n++
			got, err := w.cmdCron(t.Context(), chat.Message{ID: fmt.Sprint(n), At: s.At, From: s.From, Group: s.Group, Text: text})
			if err != nil {
				t.Error(err)
			}
			w.says(got, want)
		}
		say(anna, "/cron", "No scheduled jobs.")
		say(anna, "/cron LIST", "No scheduled jobs.")
		w.do(anna, cron.Order{Action: "add", ID: "tea", Name: "Tea\x1b[2J", Message: "Make tea", Every: 3600})
		say(anna, "/cron list", "Scheduled jobs:\n- Tea [2J (id: tea, every 1h)\n  next: 2000-01-01 02:00 CET; has not run yet")
		say(anna, "/cron off tea", "Disabled job tea")
		say(anna, "/cron ON tea", "Enabled job tea")
		say(anna, "/cron history tea", "Job tea has not run yet.")
		say(anna, "/cron run tea", "Job tea runs now")
		say(anna, "/cron run tea", "I could not do that: this job is running already.")
		say(bert, "/cron run tea", "Job tea not found")
		say(anna, "/cron tea", w.texts.Gateway.Jobs.Usage)
		say(anna, "/cron remove", w.texts.Gateway.Jobs.Usage)
		say(anna, "/cron sing tea", w.texts.Gateway.Jobs.Usage)
		say(anna, "/cron list tea", w.texts.Gateway.Jobs.Usage)
		say(anna, "/cron off tea now", "Job tea now not found")
		synctest.Wait()
		time.Sleep(90 * time.Second)
		if err := w.clock.Ended(t.Context(), w.ran[0], scheduler.Ended{Outcome: scheduler.Answered, Text: "It is ready.", Tokens: 340, Cost: 0.0123}); err != nil {
			t.Fatal(err)
		}
		say(anna, "/cron", "Scheduled jobs:\n- Tea [2J (id: tea, every 1h)\n  next: 2000-01-01 02:00 CET; last: 2000-01-01 01:00 CET, answered")
		time.Sleep(time.Hour)
		synctest.Wait()
		say(anna, "/cron history tea", "History of Tea [2J (id: tea, every 1h):\n- 2000-01-01 02:00 CET: running\n- 2000-01-01 01:00 CET: answered, 1m30s, 340 tokens, cost 0.0123")
		if err := w.clock.Ended(t.Context(), w.ran[1], scheduler.Ended{Outcome: scheduler.Failed, Note: "the model\ndid not answer"}); err != nil {
			t.Fatal(err)
		}
		say(anna, "/cron", "Scheduled jobs:\n- Tea [2J (id: tea, every 1h)\n  next: 2000-01-01 03:00 CET; last: 2000-01-01 02:00 CET, failed – the model did not answer")
		say(anna, "/cron remove tea", "Removed job tea")
		w.auditLog.Flush()
		events, err := w.auditLog.Chain().Tail(t.Context(), 100)
		if len(events) != 6 || err != nil { // off, on, run, run of another's, off of none, remove
			t.Errorf("%d records in the audit log, %v", len(events), err)
		}
	})
}

// Of very many jobs the list is cut. Of one that is heard of elsewhere it says where.
func TestLongList(t *testing.T) {
	here, there := chat.Address{Channel: "telegram", Chat: "42"}, chat.Address{Channel: "telegram", Chat: "-7", Thread: "3"}
	if text := inEnglish(time.UTC).list([]scheduler.Job{{At: here}, {At: there}, {System: true}}, here); strings.Count(text, "; in ") != 1 || !strings.Contains(text, "; in telegram:-7/3\n") {
		t.Error(text)
	}
	text := inEnglish(time.UTC).list(make([]scheduler.Job, 250), chat.Address{})
	if n := strings.Count(text, "\n- "); n != 100 || !strings.HasSuffix(text, "\n… and 150 more") {
		t.Errorf("%d of them\n%s", n, text[len(text)-50:])
	}
}

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
