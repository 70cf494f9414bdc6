package console

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
	"parley/channels/admission"
	"parley/channels/channeltest"
	"parley/chat"
	"parley/store/mem"
	"parley/timetest"
)

// notesOf returns the notes that g was sent so far.
func notesOf(g rawClient) (texts []string) {
	synctest.Wait()
	for {
		select {
		case f := <-g.frames:
			if f.Kind == frameNote {
				texts = append(texts, f.Text)
			}
		default:
			return texts
		}
		synctest.Wait()
	}
}

// What is said at one terminal, or by a pipe, stands at the others before it is answered, once.
func TestOthersSeeWhatIsSaid(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, h *testGateway) {
		a, b, p := h.connect(ctx, asTerminal), h.connect(ctx, asTerminal), h.connect(ctx, asPipe)
		for _, g := range []rawClient{a, b, p} {
			_, hangUp := g.start(ctx)
			defer hangUp()
		}
		synctest.Wait()
		p.sendMessage("hello")
		for _, g := range []rawClient{a, b} {
			if got := notesOf(g); len(got) != 1 || got[0] != "(from another terminal) hello" {
				t.Errorf("a terminal was shown %q", got)
			}
		}
		a.sendMessage("and I")
		if got := notesOf(b); len(got) != 1 || got[0] != "(from another terminal) and I" {
			t.Errorf("the other terminal was shown %q", got)
		}
		a.link.mu.Lock()
		again := a.link.conn
		a.link.mu.Unlock()
		again.send(frame{Kind: frameMessage, ID: "7", Text: "twice"})
		again.send(frame{Kind: frameMessage, ID: "7", Text: "twice"})
		if got := notesOf(b); len(got) != 1 {
			t.Errorf("of a message that came again, the other terminal was shown %q", got)
		}
		a.sendMessage(strings.Repeat("ä", 100_000))
		if got := notesOf(b); len(got) != 1 || len([]rune(got[0])) > len(fromAnother)+maxNoteRunes {
			t.Errorf("of a long message the other terminal was sent %d lines: %.300q", len(got), got)
		}
		if got := append(notesOf(a), notesOf(p)...); len(got) > 0 {
			t.Errorf("who said it was shown %q", got)
		}
	})
}

// A note that nobody sees waits for the first terminal, and no longer than it is true.
func TestNotesWait(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, h *testGateway) {
		h.Announce("too late", time.Now().Add(time.Minute))
		for i := range 2 * maxNotes {
			h.Announce(fmt.Sprint(i), time.Now().Add(time.Hour))
		}
		h.Announce("last", time.Now().Add(time.Minute))
		timetest.Sleep(time.Minute)
		for _, want := range []string{"9 10 11 12 13 14 15", ""} {
			g := h.connect(ctx, asTerminal)
			_, hangUp := g.start(ctx)
			if got := strings.Join(notesOf(g), " "); got != want {
				t.Errorf("a terminal was shown %q, want %q", got, want)
			}
			hangUp()
			synctest.Wait()
		}
	})
}

// Who asks on a network to be let in stands at the owner's terminal: in one line, whatever name they chose. Of a crowd
// it shows a few, and where no owner sits none.
func TestTerminalSaysWhoAsks(t *testing.T) {
	for _, owner := range []string{"console", "console:owner", "net:1"} {
		atTerminal(t, owner, func(t *testing.T, _ *channels.Hub, net *channeltest.Fake, terminal rawClient) {
			testWhoAsks(t, owner, net, terminal)
		})
	}
}

// atTerminal runs f with a Hub at work, of a terminal and a network with an owner.
func atTerminal(t *testing.T, owner string, f func(*testing.T, *channels.Hub, *channeltest.Fake, rawClient)) {
	timetest.Test(t, func(t *testing.T) { runAtTerminal(t, owner, f) })
}

func runAtTerminal(t *testing.T, owner string, f func(*testing.T, *channels.Hub, *channeltest.Fake, rawClient)) {
	hub := channels.NewHub(channels.Config{Store: mem.New(), Log: quiet})
	console := socketless{New(Config{Name: "console", Log: quiet}), make(chan chat.Deliver, 1)}
	var net channeltest.Fake
	hub.Add("console", console)
	hub.Add("net", net.As(0))
	access, err := admission.NewRules([]string{owner}, nil)
	if err != nil {
		t.Fatal(err)
	}
	hub.Access().SetRules(access)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = hub.Work(ctx) })
	running.Go(func() { _ = hub.Receive(ctx, func(context.Context, chat.Message) error { return nil }) })
	defer running.Wait()
	defer cancel()
	g := &askingGateway{channel: console.Channel, deliver: <-console.delivers}
	terminal := rawClient{&link{dial: g.dial, kind: asTerminal, frames: make(chan frame)}}
	_, hangUp := terminal.start(ctx)
	defer hangUp()
	synctest.Wait()
	f(t, hub, &net, terminal)
}

func testWhoAsks(t *testing.T, owner string, net *channeltest.Fake, terminal rawClient) {
	knock := func(i int, name string) {
		id := fmt.Sprint(100 + i)
		m := chat.Message{ID: id, At: chat.Address{Channel: "net", Chat: id}, From: chat.Sender{ID: id, Name: name}, Text: "let me in"}
		if err := net.Say(t.Context(), m); err != nil {
			t.Error(err)
		}
	}
	if owner == "net:1" {
		knock(1, "Bob")
		if got := notesOf(terminal); len(got) > 0 {
			t.Errorf("a terminal without an owner shows %q", got)
		}
		return
	}
	knock(1, "Bob")
	forged := "Eve” wants to talk on net (9): /pair AAAAAAAA lets them in\n\x1b[2Jyou> “" + strings.Repeat("x", 500)
	knock(2, forged)
	got := notesOf(terminal)
	if len(got) != 2 || !regexp.MustCompile(`^“Bob” wants to talk on net \(101\): /pair [A-Z2-7]{8} lets them in$`).MatchString(got[0]) {
		t.Fatalf("the terminal shows %q", got)
	}
	if !regexp.MustCompile(`^“[A-Za-z 0-9]+…” wants to talk on net \(102\): /pair [A-Z2-7]{8} lets them in$`).MatchString(got[1]) || len(got[1]) > 120 {
		t.Errorf("of a name that forges a line the terminal shows %q", got[1])
	}
	got = nil
	for i := range 40 {
		knock(10+i, "Mallory")
		got = append(got, notesOf(terminal)...)
		timetest.Sleep(10 * time.Second)
	}
	if len(got) != 2 || !strings.Contains(got[0], "Mallory") || got[1] != "More people want to talk: /pair lists them" {
		t.Errorf("of a crowd the terminal shows %d lines: %q", len(got), got)
	}
	timetest.Sleep(10 * time.Minute)
	knock(90, "Zoe")
	if got := notesOf(terminal); len(got) != 1 || !strings.Contains(got[0], "Zoe") {
		t.Errorf("later the terminal shows %q", got)
	}
}

// A note is one short line, whatever it is made of.
func TestNoteIsOneLine(t *testing.T) {
	var out bytes.Buffer
	s := screen{out: &out, colour: true}
	s.showNote("a\r\nyou> b\x1b[31m\u202e" + strings.Repeat("ä", 1000))
	got := strings.TrimPrefix(out.String(), eraseRow)
	if !strings.HasPrefix(got, "\x1b[2ma you> b [31mää") || !strings.HasSuffix(got, "ä…\x1b[0m\n") || len([]rune(got)) > maxNoteRunes+20 {
		t.Errorf("shown: %q", got)
	}
}

// seen has a person who has said hello be shown frames, and returns what stands on their screen then.
func seen(colour bool, frames ...frame) string {
	var out bytes.Buffer
	l := &link{kind: asTerminal, frames: make(chan frame)}
	c := &interactiveChat{link: l, screen: screen{out: &out, colour: colour}}
	for _, f := range frames {
		if f.Kind == frameMessage {
			c.handleInput(inputLine{text: f.Text})
			continue
		}
		c.handleFrame(f)
	}
	return strings.ReplaceAll(out.String(), eraseRow, "")
}

// How to answer suggestions is shown once in a terminal, and not in the pipe of parley chat -m.
func TestHintOnce(t *testing.T) {
	channel := New(Config{Name: "console", Log: quiet})
	reply := func(id string) frame {
		return channel.replyFrame(chat.Reply{ID: id, Text: "So.\n\n1. a\n2. b\n", Hint: "Answer with a number."})
	}
	if got, want := seen(false, reply("1"), reply("2")), "So.\n\n1. a\n2. b\n\nAnswer with a number.\n\nSo.\n\n1. a\n2. b\n\n"; got != want {
		t.Errorf("shown: %q, want %q", got, want)
	}
	var out bytes.Buffer
	if got := replyText(reply("1"), &out, false); got != "So.\n\n1. a\n2. b" {
		t.Errorf("a pipe has %q", got)
	}
}

// The Hub leaves it to the terminal to say how suggestions are answered. How to answer a question that somebody waits
// for stays where it is: each has its own way.
func TestHintsThroughHub(t *testing.T) {
	atTerminal(t, "console", func(t *testing.T, hub *channels.Hub, _ *channeltest.Fake, terminal rawClient) {
		for _, say := range []bool{true, false} {
			ask := &chat.Question{ID: "q1", Choices: []string{"Yes", "No"}, Say: say, Free: say}
			r := chat.Reply{ID: fmt.Sprint(say), To: here, Text: "Tea?", Ask: ask}
			if say {
				if err := hub.Send(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			} else {
				go func() { _, _ = hub.Questions().Ask(t.Context(), r) }()
			}
			f := <-terminal.frames
			for f.Kind != frameReply {
				f = <-terminal.frames
			}
			terminal.acknowledge(f.ID)
			want, hint := "Tea?\n\n1. Yes\n2. No", "Answer y or n or in your own words."
			if !say {
				want, hint = want+"\n\nAnswer y or n.", ""
			}
			if strings.TrimSpace(f.Text) != want || f.Hint != hint || f.Asks == say {
				t.Errorf("suggestions %t: the terminal has %+v", say, f)
			}
		}
		if err := hub.Questions().Withdraw(t.Context(), "q1"); err != nil {
			t.Error(err)
		}
	})
}

// An answer that was given by a tool leaves neither a sign of work nor blank rows when the turn ends, and neither does a
// question while it waits for the person.
func TestNothingLeftBelow(t *testing.T) {
	said := frame{Kind: frameReply, ID: "a", Text: "said by a tool"}
	typing := frame{Kind: frameTyping}
	end := frame{Kind: frameReply, ID: "b"}
	if got, want := seen(false, said, typing, end), "said by a tool\n\n…\n"+eraseRowAbove; got != want {
		t.Errorf("shown: %q, want %q", got, want)
	}
	if got, want := seen(false, said, end), "said by a tool\n\n"; got != want {
		t.Errorf("shown: %q, want %q", got, want)
	}
	question := New(Config{Name: "console", Log: quiet}).replyFrame(
		chat.Reply{ID: "q", Text: "Delete it?", Ask: &chat.Question{ID: "q", Choices: []string{"Yes", "No"}}})
	if got, want := seen(false, question, typing, typing), "Delete it?\n\n"; got != want {
		t.Errorf("below a question: %q, want %q", got, want)
	}
	answered := seen(false, question, typing, frame{Kind: frameMessage, Text: "y"}, typing)
	if want := "Delete it?\n\n…\n"; answered != want {
		t.Errorf("once it was answered: %q, want %q", answered, want)
	}
	draft := frame{Kind: frameDraft, ID: "d", Text: "one two\nthree\n\n"}
	if got := seen(false, draft, frame{Kind: frameReply, ID: "d", Text: "one two\nthree"}); strings.Count(got, "three") != 1 || !strings.HasSuffix(got, "three\n\n") {
		t.Errorf("a streamed answer: %q", got)
	}
}
