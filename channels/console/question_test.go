package console

import (
	"bytes"
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
	"parley/channels/admission"
	"parley/chat"
	"parley/store"
	"parley/store/mem"
	"parley/timetest"
)

// A socketless is a Channel whose clients are connected in memory.
type socketless struct {
	*Channel
	delivers chan chat.Deliver
}

func (s socketless) Run(ctx context.Context, deliver chat.Deliver) error {
	s.delivers <- deliver
	<-ctx.Done()
	return nil
}

// An askingGateway is a gateway whose agent asks before it does anything for the message "do it", and repeats
// what any other message says.
type askingGateway struct {
	channel *Channel
	deliver chat.Deliver
	stop    func()
}

func startAsking(t *testing.T, s store.Store) *askingGateway {
	t.Helper()
	hub := channels.NewHub(channels.Config{Store: s, Log: quiet})
	channel := socketless{New(Config{Name: "console", Log: quiet}), make(chan chat.Deliver, 1)}
	hub.Add("console", channel)
	access, err := admission.NewRules([]string{"console"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	hub.Access().SetRules(access)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = hub.Work(ctx) })
	running.Go(func() {
		_ = hub.Receive(ctx, func(_ context.Context, m chat.Message) error {
			running.Go(func() { answer(ctx, hub, m) })
			return nil
		})
	})
	g := &askingGateway{channel: channel.Channel, deliver: <-channel.delivers}
	g.stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	t.Cleanup(g.stop)
	return g
}

func answer(ctx context.Context, hub *channels.Hub, m chat.Message) {
	r := m.Reply()
	r.Text = "echo: " + m.Text
	if strings.HasPrefix(m.Text, "do it") {
		c, err := hub.Questions().Ask(ctx, chat.Reply{ID: "ask:1", To: m.At, Text: "Shall I?",
			Ask: &chat.Question{ID: "q1", Choices: []string{"Yes", "No"}, Whom: m.From.ID, Free: m.Text == "do it somehow"}})
		if err != nil {
			return
		}
		r.Text = "You said " + c.Text + "."
	}
	_ = hub.Send(ctx, r)
}

func (g *askingGateway) dial(ctx context.Context) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go g.channel.serve(ctx, theirs, g.deliver)
	return ours, nil
}

// pipe sends lines as a pipe does and returns what became of them within an hour.
func (g *askingGateway) pipe(ctx context.Context, lines ...string) (out, notes string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	in := make(chan string, len(lines))
	for _, line := range lines {
		in <- line
	}
	close(in)
	var o, n bytes.Buffer
	err = answerLines(ctx, g.dial, in, Terminal{Out: &o, Notes: &n})
	return o.String(), n.String(), err
}

const asked = "Shall I?\n\n1. Yes\n2. No\n\nAnswer y or n."

// A line that answers the question about another message gets no reply, so the pipe goes on to the next.
func TestAnswerSettlesLineOfPipe(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		g := startAsking(t, mem.New())
		defer g.stop()
		if _, notes, err := g.pipe(t.Context(), "do it"); err == nil || notes != asked+"\n" {
			t.Fatalf("the first pipe was told %q, %v; want the question, and no end", notes, err)
		}
		if out, _, err := g.pipe(t.Context(), "n", "hello"); err != nil || out != "echo: hello\n" {
			t.Errorf("after its answer, the pipe was told %q, %v", out, err)
		}
	})
}

// A message that a pipe sends again, because its connection broke, does not answer the question that the agent has asked
// about it meanwhile, at another terminal: the pipe would end without an answer, as if all was well.
func TestRepeatedMessageAnswersNoQuestion(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		s := mem.New()
		g := startAsking(t, s)
		defer func() { g.stop() }()
		terminal := &link{dial: func(ctx context.Context) (net.Conn, error) { return g.dial(ctx) }, kind: asTerminal, frames: make(chan frame)}
		_, hangUp := terminal.start(t.Context())
		defer hangUp()
		next := func(kind string) frame {
			for {
				if f := <-terminal.frames; f.Kind == kind {
					return f
				}
			}
		}
		var out, notes bytes.Buffer
		done := make(chan error, 1)
		conns := make(chan net.Conn, 9)
		dial := func(ctx context.Context) (net.Conn, error) {
			conn, err := g.dial(ctx)
			conns <- conn
			return conn, err
		}
		lines := make(chan string, 1)
		lines <- "do it somehow"
		close(lines)
		go func() { done <- answerLines(t.Context(), dial, lines, Terminal{Out: &out, Notes: &notes}) }()
		terminal.acknowledge(next(frameReply).ID) // the question
		synctest.Wait()
		(<-conns).Close()
		<-conns
		synctest.Wait()
		if len(done) > 0 {
			t.Fatalf("the pipe ended with %v, and was told %q and %q", <-done, out.String(), notes.String())
		}
		terminal.sendMessage("No")
		terminal.acknowledge(next(frameReply).ID)
		if err := <-done; err != nil || !strings.HasPrefix(out.String(), "You said No.") {
			t.Errorf("the pipe was told %q, %v", out.String(), err)
		}
	})
}

// A pipe that sends the letter of no choice is told how to answer, and does not wait behind the question.
func TestWrongLetterOfPipe(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		g := startAsking(t, mem.New())
		defer g.stop()
		_, _, _ = g.pipe(t.Context(), "do it")
		if out, _, err := g.pipe(t.Context(), "h"); err != nil || out != "Answer y or n.\n" {
			t.Errorf("the pipe was told %q, %v", out, err)
		}
	})
}

// A terminal that connects while a question is open is shown it: after the terminal that
// was asked has left, after a restart, and once. One that was answered is not shown.
func TestOpenQuestionIsShownToLaterTerminal(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		s := mem.New()
		g := startAsking(t, s)
		defer func() { g.stop() }()
		_, _, _ = g.pipe(t.Context(), "do it")
		for _, restart := range []bool{false, true} {
			if restart {
				g.stop()
				g = startAsking(t, s)
			}
			for range 2 {
				if got := g.seenBy(t); !slices.Equal(got, []string{asked}) {
					t.Errorf("restarted: %t: a later terminal was shown %q", restart, got)
				}
			}
		}
		_, _, _ = g.pipe(t.Context(), "y")
		if got := g.seenBy(t); len(got) > 0 {
			t.Errorf("after the answer a terminal was shown %q", got)
		}
	})
}

// seenBy connects a terminal for a minute and returns the replies that it was shown.
func (g *askingGateway) seenBy(t *testing.T) (texts []string) {
	t.Helper()
	l := &link{dial: g.dial, kind: asTerminal, frames: make(chan frame)}
	_, hangUp := l.start(t.Context())
	defer hangUp()
	for end := time.After(time.Minute); ; {
		select {
		case f := <-l.frames:
			if f.Kind == frameReply {
				texts = append(texts, f.Text)
				l.acknowledge(f.ID)
			}
		case <-end:
			return texts
		}
	}
}
