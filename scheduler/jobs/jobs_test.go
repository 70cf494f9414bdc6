package jobs

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/scheduler"
	"parley/store/mem"
	"parley/texts"
	"parley/texts/textstest"
	"parley/timetest"
	"parley/tools"
)

// A fixture is a Manager in a synctest bubble, which starts at midnight UTC on
// 1 January 2000. The gateway's time zone is Berlin's.
type fixture struct {
	*Manager
	t     *testing.T
	calls int

	audited atomic.Int64

	mu  sync.Mutex
	ran []chat.Message // several runs may begin at once
}

func (f *fixture) run(_ context.Context, m chat.Message) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ran = append(f.ran, m)
	return nil
}

// runs waits until nothing is under way any more, and returns what was run.
func (f *fixture) runs() []chat.Message {
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.ran)
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t}
	s := scheduler.New(scheduler.Config{
		Store:   mem.New(),
		Zone:    berlin,
		MaxJobs: func() int { return 20 },
		Role:    func(_ context.Context, _ chat.Address, from chat.Sender) (chat.Role, error) { return from.Role, nil },
		Tell:    func(context.Context, string, chat.Address, string) error { return nil },
		Deliver: f.run,
		System: []scheduler.System{
			{ID: DreamID, Schedule: scheduler.Schedule{Cron: "0 4 * * *"}, Do: nothing},
			{ID: "heartbeat", Schedule: scheduler.Schedule{Every: 30 * time.Minute}, Do: nothing},
		},
	})
	f.Manager = &Manager{
		Scheduler: s,
		Zone:      berlin,
		Texts:     texts.English(),
		Models:    func() []string { return []string{"main", "small"} },
		CheckTool: checkTool,
		Audit:     func(_, _, _ string) { f.audited.Add(1) },
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	return f
}

// checkTool knows two tools: echo, and root for owners.
func checkTool(ctx context.Context, j scheduler.Job) (string, error) {
	type in struct {
		N int   `json:"n,omitempty"`
		A []int `json:"a,omitempty"`
	}
	echo := tools.New("echo", "Says it again.", func(context.Context, tools.Call, in) (tools.Result, error) {
		return tools.Result{}, nil
	})
	root := echo
	root.Name = "root"
	root.Category = "files"
	rules := tools.Rules{"files": tools.Owners}
	scope := tools.Scope{At: j.At, From: j.By, Group: j.Group}
	kit, err := tools.NewKit(ctx, scope, rules.Permit(tools.Fixed{echo, root}))
	if err != nil {
		return "", err
	}
	c, err := kit.Check(tools.Call{ToolCall: llm.ToolCall{Name: j.Tool, Args: j.Args}, Scope: scope})
	return c.Name, err
}

func nothing(context.Context, scheduler.Job, scheduler.Run) (scheduler.Ended, error) {
	return scheduler.Ended{Outcome: scheduler.Silent}, nil
}

// Askers: people in their chats.
var (
	inPrivate = Asker{At: chat.Address{Channel: "telegram", Chat: "1"}, From: chat.Sender{ID: "1", Role: chat.Owner}}
	anna      = Asker{At: chat.Address{Channel: "telegram", Chat: "2"}, From: chat.Sender{ID: "2", Role: chat.User}}
	bert      = Asker{At: chat.Address{Channel: "telegram", Chat: "3"}, From: chat.Sender{ID: "3", Role: chat.User}}
	group     = chat.Address{Channel: "telegram", Chat: "-100"}
	inGroup   = Asker{At: group, Group: true, From: inPrivate.From}
	annaThere = Asker{At: group, Group: true, From: anna.From}
	bertThere = Asker{At: group, Group: true, From: bert.From}
)

// do carries out an order as a call of its own.
func (f *fixture) do(s Asker, o Order) string {
	f.t.Helper()
	f.calls++
	return f.call(fmt.Sprint(f.calls), s, o)
}

// call carries out an order as the call with this ID.
func (f *fixture) call(id string, s Asker, o Order) string {
	f.t.Helper()
	r, err := f.Order(f.t.Context(), s, id, o)
	if err != nil {
		return "Error: " + err.Error()
	}
	return r.Text
}

func (f *fixture) says(got, want string) {
	f.t.Helper()
	if got != want {
		f.t.Errorf("it says\n%s\nnot\n%s", got, want)
	}
}

// inBubble runs f with a fixture.
func inBubble(t *testing.T, f func(*testing.T, *fixture)) {
	timetest.Test(t, func(t *testing.T) { f(t, newFixture(t)) })
}

// The exact texts for adding, listing and removing jobs (D-094, D-095).
func TestD095Texts(t *testing.T) {
	inBubble(t, func(t *testing.T, w *fixture) {
		for _, c := range []struct {
			o    Order
			want string
		}{
			{Order{Action: "list"}, "No scheduled jobs."},
			{Order{Action: "add", Change: Change{Every: 60}}, "Error: message is required for add"},
			{Order{Action: "add", Change: Change{Message: "x"}}, "Error: either every_seconds, cron_expr, or at is required"},
			{Order{Action: "add", Change: Change{Message: "x", Cron: "@daily", Zone: "X"}}, "Error: unknown timezone 'X'"},
			{Order{Action: "add", Change: Change{Message: "x", Every: 60, Zone: "UTC"}}, "Error: tz can only be used with cron_expr"},
			{Order{Action: "add", Change: Change{Message: "x", At: "soon"}}, "Error: invalid ISO datetime format 'soon'. Expected format: YYYY-MM-DDTHH:MM:SS"},
			{Order{Action: "add", Change: Change{Message: "x", At: "1999-12-31T09:00:00"}}, "Error: at is in the past: it is 2000-01-01T01:00:00 now"},
			{Order{Action: "add", Change: Change{Message: "x", Every: 9}}, "Error: every_seconds must be at least 10"},
			{Order{Action: "add", Change: Change{Message: "x", Every: -1 << 62}}, "Error: every_seconds must be at least 10"},
			{Order{Action: "add", Change: Change{Message: "x", Every: 60, Model: "big"}}, "Error: there is no model 'big'; there are main, small"},
			{Order{Action: "add", Change: Change{Tool: "rm", Every: 60}}, "Error: Tool 'rm' not found. Available: echo"},
			{Order{Action: "add", Change: Change{Tool: "root", Every: 60}}, "Error: Tool 'root' not found. Available: echo"},
			{Order{Action: "add", Change: Change{Tool: "echo", Args: map[string]any{"n": "x", "b": 1}, Every: 60}}, "Error: Invalid parameters for tool 'echo': unexpected parameter b; n should be integer"},
			{Order{Action: "add", Change: Change{Message: "x", Args: map[string]any{"n": 1}, Every: 60}}, "Error: args can only be used with tool"},
			{Order{Action: "add", Change: Change{Message: "x", Every: 60, Missed: "twice"}}, "Error: missed must be 'once' or 'skip'"},
			{Order{Action: "add", ID: "j1", Change: Change{Name: "Stretch", Message: "Stretch!", Every: 3600}}, "Created job 'Stretch' (id: j1)"},
			{Order{Action: "add", ID: "j1", Change: Change{Name: "Stretch", Message: "Stretch!", Every: 3600}}, "Created job 'Stretch' (id: j1)"}, // again: P6
			{Order{Action: "add", ID: "j2", Change: Change{Message: "Tell me the news of the town, and of the world", Cron: "0 9 * * 1-5", Zone: "Asia/Tokyo"}}, "Created job 'Tell me the news of the town' (id: j2)"},
			{Order{Action: "add", ID: "j5", Change: Change{Message: "Send me a briefing: the weather, and the news", Cron: "5 */2 * * *"}}, "Created job 'Send me a briefing: the' (id: j5)"},
			{Order{Action: "history", ID: "j5"}, "Job j5 has not run yet."},
			{Order{Action: "remove", ID: "j5"}, "Removed job j5"},
			{Order{Action: "add", ID: "j3", Change: Change{Message: "Party", At: "2000-01-02T18:00"}}, "Created job 'Party' (id: j3)"}, // in the gateway's zone
			{Order{Action: "add", ID: "j4", Change: Change{Tool: "Echo", Args: map[string]any{"n": 1}, Every: 86400, Missed: "once"}}, "Created job 'echo' (id: j4)"},
			{Order{Action: "disable", ID: "j4"}, "Disabled job j4"},
			{Order{Action: "list"}, "Scheduled jobs:\n" +
				"- Stretch (id: j1, every 1h)\n  next: 2000-01-01 02:00 CET; has not run yet\n" +
				"- Party (id: j3, at 2000-01-02 18:00)\n  next: 2000-01-02 18:00 CET; has not run yet\n" +
				"- Tell me the news of the town (id: j2, every weekday at 9:00 (Asia/Tokyo))\n  next: 2000-01-03 01:00 CET; has not run yet\n" +
				"- echo (id: j4, every 24h)\n  off; has not run yet"},
			{Order{Action: "enable", ID: "j4"}, "Enabled job j4"},
			{Order{Action: "edit", ID: "j4", Change: Change{Tool: "rm"}}, "Error: Tool 'rm' not found. Available: echo"},
			{Order{Action: "edit", ID: "j4", Change: Change{Args: map[string]any{"a": 1}}}, "Error: Invalid parameters for tool 'echo': a should be array"},
			{Order{Action: "edit", ID: "j4", Change: Change{Model: "big"}}, "Error: there is no model 'big'; there are main, small"},
			{Order{Action: "edit", ID: "j4", Change: Change{Zone: "UTC"}}, "Error: tz can only be used with cron_expr"},
			{Order{Action: "edit", ID: "j2", Change: Change{Zone: "UTC", Model: "small"}}, "Changed job j2"},
			{Order{Action: "history", ID: "j3"}, "Job j3 has not run yet."},
			{Order{Action: "run", ID: "j3"}, "Job j3 runs now"},
			{Order{Action: "run", ID: "j3"}, "Error: this job is running already"},
			{Order{Action: "remove", ID: "j4"}, "Removed job j4"},
			{Order{Action: "remove", ID: "j4"}, "Job j4 not found"},
			{Order{Action: "run", ID: "j4"}, "Job j4 not found"},
		} {
			w.says(w.do(anna, c.o), c.want)
		}
		j, err := w.Scheduler.Job(t.Context(), "j2")
		if err != nil || j.Schedule != (scheduler.Schedule{Cron: "0 9 * * 1-5", Zone: "UTC"}) || j.Model != "small" || j.At != anna.At || j.By != anna.From || j.Text == "" {
			t.Errorf("%+v, %v", j, err)
		}
	})
}

// An edit changes only the given fields; of alternatives, the last one given counts.
func TestClockEdit(t *testing.T) {
	inBubble(t, func(t *testing.T, w *fixture) {
		yes, no := true, false
		w.do(inPrivate, Order{Action: "add", ID: "j", Change: Change{Message: "x", Cron: "@daily", Zone: "UTC", Quiet: &yes, Isolated: &yes, Model: "small", Missed: "skip"}})
		for _, c := range []struct {
			o    Order
			want func(*scheduler.Job)
		}{
			{Order{Change: Change{Name: "N"}}, func(j *scheduler.Job) { j.Name = "N" }},
			{Order{Change: Change{Every: 60, Quiet: &no}}, func(j *scheduler.Job) {
				j.Schedule, j.Quiet = scheduler.Schedule{Every: time.Minute}, false
			}},
			{Order{Change: Change{Tool: "root", Args: map[string]any{"a": []int{1}}}}, func(j *scheduler.Job) { j.Tool, j.Args = "root", `{"a":[1]}` }},
			{Order{Change: Change{Tool: "echo"}}, func(j *scheduler.Job) { j.Tool, j.Args = "echo", `{}` }},
			{Order{Change: Change{Message: "y", Model: "default", Missed: "once"}}, func(j *scheduler.Job) {
				j.Text, j.Tool, j.Args, j.Model, j.Missed = "y", "", "", "", scheduler.Once
			}},
		} {
			before, err := w.Scheduler.Job(t.Context(), "j")
			if err != nil {
				t.Fatal(err)
			}
			c.o.Action, c.o.ID = "edit", "j"
			w.says(w.do(inPrivate, c.o), "Changed job j")
			after, err := w.Scheduler.Job(t.Context(), "j")
			c.want(&before)
			before.Next = after.Next
			if err != nil || fmt.Sprintf("%+v", after) != fmt.Sprintf("%+v", before) {
				t.Errorf("%+v\nnot\n%+v (%v)", after, before, err)
			}
		}
	})
}

// Owners see dream and heartbeat and can run them, but cannot change them (D-096).
func TestD096Protected(t *testing.T) {
	inBubble(t, func(t *testing.T, w *fixture) {
		list := "Scheduled jobs:\n- heartbeat (id: heartbeat, every 30m)\n  next: 2000-01-01 01:30 CET; has not run yet\n" +
			"- dream (id: dream, every day at 4:00)\n  next: 2000-01-01 04:00 CET; has not run yet"
		w.says(w.do(inPrivate, Order{Action: "list"}), list)
		w.says(w.do(inPrivate, Order{Action: "remove", ID: "dream"}), "Cannot remove job `dream`.\nThis is the system's job for consolidating memory (dream). It can only be viewed.")
		w.says(w.do(inPrivate, Order{Action: "disable", ID: "dream"}), "Cannot disable job `dream`.\nThis is the system's job for consolidating memory (dream). It can only be viewed.")
		w.says(w.do(inPrivate, Order{Action: "edit", ID: "heartbeat", Change: Change{Every: 60}}), "Cannot edit job `heartbeat`.\nIt belongs to Parley and cannot be changed.")
		w.says(w.do(inPrivate, Order{Action: "add", ID: "dream", Change: Change{Message: "x", Every: 60}}), "Error: a job cannot have the id 'dream'")
		w.says(w.do(inPrivate, Order{Action: "list"}), list)
		w.says(w.do(inPrivate, Order{Action: "run", ID: "dream"}), "Job dream runs now")
		for _, s := range []Asker{anna, annaThere, inGroup} {
			w.says(w.do(s, Order{Action: "list"}), "No scheduled jobs.")
			w.says(w.do(s, Order{Action: "remove", ID: "dream"}), "Job dream not found")
			w.says(w.do(s, Order{Action: "run", ID: "dream"}), "Job dream not found")
		}
	})
}

// Who may see and change which jobs (D-098, R-S24). Private jobs are not listed in
// groups, and nobody can reword a job that runs with another person's rights.
func TestD098Whose(t *testing.T) {
	inBubble(t, func(t *testing.T, w *fixture) {
		made := []struct {
			id string
			by Asker
		}{{"own", inPrivate}, {"annas", anna}, {"berts", bert}, {"ownThere", inGroup}, {"annasThere", annaThere}, {"bertsThere", bertThere}}
		elsewhere := inPrivate // the same owner on another network
		elsewhere.At, elsewhere.From.ID = chat.Address{Channel: "console", Chat: "local"}, "owner"
		for _, c := range []struct {
			who  string
			s    Asker
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
				w.do(m.by, Order{Action: "add", ID: m.id, Change: Change{Message: m.id, Every: 3600}})
			}
			list, sees := w.do(c.s, Order{Action: "list"}), strings.Fields(c.sees)
			for _, m := range made {
				may := slices.Contains(sees, m.id)
				if strings.Contains(list, "(id: "+m.id+",") != may {
					t.Errorf("%s is listed %v to %s", m.id, !may, c.who)
				}
				for action, done := range map[string]string{"edit": "Changed job " + m.id, "disable": "Disabled job " + m.id, "enable": "Enabled job " + m.id, "history": "Job " + m.id + " has not run yet."} {
					if !may {
						done = "Job " + m.id + " not found"
					}
					w.says(w.do(c.s, Order{Action: action, ID: m.id, Change: Change{Name: "n"}}), done)
				}
			}
			for _, m := range made {
				done := "Removed job " + m.id
				if !slices.Contains(sees, m.id) {
					done = "Job " + m.id + " not found"
				}
				w.says(w.do(c.s, Order{Action: "remove", ID: m.id}), done)
			}
		}
	})
}

// Lists that quote other people and histories with untrusted content are marked
// as such (R-S12).
func TestRS12ClockTaint(t *testing.T) {
	inBubble(t, func(t *testing.T, w *fixture) {
		tainted := func(s Asker, o Order) bool {
			t.Helper()
			r, err := w.Order(t.Context(), s, "", o)
			if err != nil {
				t.Error(err)
			}
			return r.Foreign
		}
		list, past := Order{Action: "list"}, Order{Action: "history", ID: "annas"}
		w.do(inPrivate, Order{Action: "add", ID: "own", Change: Change{Message: "x", Every: 3600}})
		if tainted(inPrivate, list) {
			t.Error("their own list")
		}
		w.do(anna, Order{Action: "add", ID: "annas", Change: Change{Message: "Owner, do as I say", Every: 3600}})
		if !tainted(inPrivate, list) || tainted(anna, list) || !tainted(inPrivate, past) || tainted(anna, past) {
			t.Error("the words of others")
		}
		w.do(anna, Order{Action: "run", ID: "annas"})
		if err := w.Scheduler.Ended(t.Context(), w.runs()[0], scheduler.Ended{Outcome: scheduler.Failed, Note: "a page says: do as I say", Tainted: true}); err != nil {
			t.Fatal(err)
		}
		if !tainted(anna, list) || !tainted(anna, past) {
			t.Error("the words of strangers")
		}
	})
}

// A call or message that is repeated after its run has ended runs nothing again (P6).
func TestP6RunOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *fixture) {
		w.do(anna, Order{Action: "add", ID: "j", Change: Change{Message: "x", Every: 86400}})
		m := chat.Message{ID: "7", At: anna.At, From: anna.From, Text: "/cron run j"}
		for _, run := range []func() string{
			func() string { return w.call("same", anna, Order{Action: "run", ID: "j"}) },
			func() string { text, _ := w.Command(t.Context(), m); return text },
		} {
			before := len(w.runs())
			for range 2 {
				w.says(run(), "Job j runs now")
				ran := w.runs()
				if len(ran) != before+1 {
					t.Fatalf("%d ran", len(ran)-before)
				}
				if err := w.Scheduler.Ended(t.Context(), ran[before], scheduler.Ended{Outcome: scheduler.Answered}); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// The answers of /cron, and what it does (D-095).
func TestCronCommand(t *testing.T) {
	inBubble(t, func(t *testing.T, w *fixture) {
		n := 0
		say := func(s Asker, text, want string) {
			t.Helper()
			n++
			got, err := w.Command(t.Context(), chat.Message{ID: fmt.Sprint(n), At: s.At, From: s.From, Group: s.Group, Text: text})
			if err != nil {
				t.Error(err)
			}
			w.says(got, want)
		}
		say(anna, "/cron", "No scheduled jobs.")
		say(anna, "/cron LIST", "No scheduled jobs.")
		w.do(anna, Order{Action: "add", ID: "tea", Change: Change{Name: "Tea\x1b[2J", Message: "Make tea", Every: 3600}})
		say(anna, "/cron list", "Scheduled jobs:\n- Tea [2J (id: tea, every 1h)\n  next: 2000-01-01 02:00 CET; has not run yet")
		say(anna, "/cron off tea", "Disabled job tea")
		say(anna, "/cron ON tea", "Enabled job tea")
		say(anna, "/cron history tea", "Job tea has not run yet.")
		say(anna, "/cron run tea", "Job tea runs now")
		say(anna, "/cron run tea", "I could not do that: this job is running already.")
		say(bert, "/cron run tea", "Job tea not found")
		say(anna, "/cron tea", w.Texts.Gateway.Jobs.Usage)
		say(anna, "/cron remove", w.Texts.Gateway.Jobs.Usage)
		say(anna, "/cron sing tea", w.Texts.Gateway.Jobs.Usage)
		say(anna, "/cron list tea", w.Texts.Gateway.Jobs.Usage)
		say(anna, "/cron off tea now", "Job tea now not found")
		synctest.Wait()
		timetest.Sleep(90 * time.Second)
		if err := w.Scheduler.Ended(t.Context(), w.runs()[0], scheduler.Ended{Outcome: scheduler.Answered, Text: "It is ready.", Tokens: 340, Cost: 0.0123}); err != nil {
			t.Fatal(err)
		}
		say(anna, "/cron", "Scheduled jobs:\n- Tea [2J (id: tea, every 1h)\n  next: 2000-01-01 02:00 CET; last: 2000-01-01 01:00 CET, answered")
		timetest.Sleep(time.Hour)
		synctest.Wait()
		say(anna, "/cron history tea", "History of Tea [2J (id: tea, every 1h):\n- 2000-01-01 02:00 CET: running\n- 2000-01-01 01:00 CET: answered, 1m30s, 340 tokens, cost 0.0123")
		if err := w.Scheduler.Ended(t.Context(), w.runs()[1], scheduler.Ended{Outcome: scheduler.Failed, Note: "the model\ndid not answer"}); err != nil {
			t.Fatal(err)
		}
		say(anna, "/cron", "Scheduled jobs:\n- Tea [2J (id: tea, every 1h)\n  next: 2000-01-01 03:00 CET; last: 2000-01-01 02:00 CET, failed – the model did not answer")
		say(anna, "/cron remove tea", "Removed job tea")
		if w.audited.Load() != 6 { // off, on, run, running another person's job, switching off an unknown one, remove
			t.Errorf("%d events in the audit log", w.audited.Load())
		}
	})
}

// A very long list is cut. A job that answers in another chat is listed with it.
func TestLongList(t *testing.T) {
	here, there := chat.Address{Channel: "telegram", Chat: "42"}, chat.Address{Channel: "telegram", Chat: "-7", Thread: "3"}
	if text := English(time.UTC).List([]scheduler.Job{{At: here}, {At: there}, {System: true}}, here); strings.Count(text, "; in ") != 1 || !strings.Contains(text, "; in telegram:-7/3\n") {
		t.Error(text)
	}
	text := English(time.UTC).List(make([]scheduler.Job, 250), chat.Address{})
	if n := strings.Count(text, "\n- "); n != 100 || !strings.HasSuffix(text, "\n… and 150 more") {
		t.Errorf("%d of them\n%s", n, text[len(text)-50:])
	}
}

// allFromCatalogue checks that text is in full-width letters, except for what data
// matches.
func allFromCatalogue(t *testing.T, text string, data *regexp.Regexp) {
	t.Helper()
	if rest := textstest.Foreign(text, data); rest != "" || text == "" {
		t.Errorf("%q is not in the catalogue, of\n%s", rest, text)
	}
}

// TestAllFromCatalogue uses /cron with a catalogue in full-width letters: every word
// for people comes from the catalogue. Models read the same in English.
func TestAllFromCatalogue(t *testing.T) {
	data := regexp.MustCompile("`[^`]*`|/[a-z]+|\\b(tea|dream|heartbeat|none|telegram|NOTE|CET|every day at|[0-9hms]*[0-9][hms])\\b")
	inBubble(t, func(t *testing.T, w *fixture) {
		w.Texts = textstest.Wide()
		w.Scheduler.Texts = &w.Texts.Scheduler
		n := 0
		say := func(text string) {
			t.Helper()
			n++
			m := chat.Message{ID: fmt.Sprint(n), At: inPrivate.At, From: inPrivate.From, Text: text}
			got, err := w.Command(t.Context(), m)
			if err != nil {
				t.Error(err)
			}
			allFromCatalogue(t, got, data)
		}
		say("/cron sing")
		w.do(inPrivate, Order{Action: "add", ID: "tea", Change: Change{Name: "tea", Message: "x", Every: 3600}})
		for _, text := range []string{
			"/cron", "/cron history tea", "/cron history none", "/cron off tea", "/cron", "/cron run tea", "/cron on tea", "/cron run tea", "/cron run tea", "/cron",
			"/cron off dream", "/cron on dream", "/cron remove dream",
		} {
			say(text)
			synctest.Wait()
		}
		timetest.Sleep(90 * time.Second)
		if err := w.Scheduler.Ended(t.Context(), w.runs()[0], scheduler.Ended{Outcome: scheduler.Failed, Note: "NOTE", Tokens: 340, Cost: 0.0123}); err != nil {
			t.Fatal(err)
		}
		say("/cron")
		say("/cron history tea")
		w.says(w.do(inPrivate, Order{Action: "disable", ID: "tea"}), "Disabled job tea")
		say("/cron remove tea")
		w.do(inPrivate, Order{Action: "add", ID: "tea", Change: Change{Name: "tea", Message: "x", At: "2000-01-01T12:00"}})
		say("/cron off tea")
		timetest.Sleep(12 * time.Hour)
		say("/cron on tea")
	})
	say := Texts{texts: textstest.Wide().Gateway.Jobs, zone: time.UTC}
	for _, s := range []scheduler.Schedule{{At: time.Unix(0, 0)}, {Every: time.Minute}} {
		allFromCatalogue(t, say.schedule(s), data)
	}
	allFromCatalogue(t, say.List(make([]scheduler.Job, maxListed+1), chat.Address{}), data)
	allFromCatalogue(t, say.List(nil, chat.Address{}), data)
	for _, o := range []scheduler.Outcome{
		scheduler.Waiting, scheduler.Running, scheduler.Answered, scheduler.Sending, scheduler.Delivered, scheduler.Undelivered, scheduler.Silent,
		scheduler.Done, scheduler.Failed, scheduler.Interrupted, scheduler.Stopped, scheduler.Skipped, scheduler.Missing, scheduler.Refused,
	} {
		allFromCatalogue(t, say.outcome(o), data)
	}
}
