package console

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
	"parley/chat"
	"parley/timetest"
)

// P9: what nobody is there to read waits, and is seen at once by whoever comes.
// D-089: files are shown by their path.
func TestNobodyThereThenSomebody(t *testing.T) {
	for _, as := range []string{asTerminal, asPipe} {
		bubble(t, func(t *testing.T, ctx context.Context, h *testGateway) {
			h.cfg.Files = "/home/parley"
			began, sent := time.Now(), make(chan error)
			go func() {
				_, err := h.Send(ctx, chat.Reply{ID: "job/1", To: here, Text: "good morning", Files: []chat.File{{Path: "out/a.txt"}}})
				sent <- err
			}()
			timetest.Sleep(time.Minute)
			g := h.connect(ctx, as)
			_, hangUp := g.start(ctx)
			defer hangUp()
			f := <-g.frames
			if got := replyText(f, io.Discard, false); got != "good morning\n[file: /home/parley/out/a.txt]" {
				t.Errorf("saw %q", got)
			}
			timetest.Sleep(showTimeout - time.Second) // all of that is given to who came late
			g.acknowledge(f.ID)
			<-g.frames
			if err := <-sent; err != nil || time.Since(began) > time.Minute+showTimeout {
				t.Errorf("sent after %v: %v", time.Since(began), err)
			}
		})
	}
}

// P9: who leaves without having shown a reply leaves it to the next.
func TestP9ReplyIsHandedOn(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, h *testGateway) {
		first, second := h.connect(ctx, asTerminal), h.connect(ctx, asTerminal)
		_, leave := first.start(ctx)
		sent := make(chan error)
		go func() {
			_, err := h.Send(ctx, chat.Reply{ID: "1", To: here, Text: "hi"})
			sent <- err
		}()
		<-first.frames
		leave()
		timetest.Sleep(time.Hour)
		_, hangUp := second.start(ctx)
		defer hangUp()
		second.acknowledge((<-second.frames).ID)
		<-second.frames
		if err := <-sent; err != nil {
			t.Error(err)
		}
	})
}

// P16: when Run has ended nobody comes, and what waits is to be tried again.
func TestP16NobodyWaitsAfterRun(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		c := New(Config{Name: "console"})
		r := chat.Reply{ID: "1", To: here, Text: "hi"}
		sent := make(chan error, 1)
		go func() {
			_, err := c.Send(t.Context(), r)
			sent <- err
		}()
		timetest.Sleep(time.Minute)
		if len(sent) > 0 {
			t.Fatal("Send does not wait:", <-sent)
		}
		c.update(func() { c.ended = true })
		_, again := c.Send(t.Context(), r)
		for _, err := range []error{<-sent, again} {
			if retryable(err) != retryDelay {
				t.Errorf("Send: %v, want one to try again in %v", err, retryDelay)
			}
		}
	})
}

// P16: whoever is still there when Run has ended is told what there is to tell,
// and has the time to show it; who does not is hung up on (P14).
func TestP16ToldAfterRun(t *testing.T) {
	for wait, want := range map[time.Duration]time.Duration{showTimeout / 2: 0, showTimeout + time.Second: retryDelay} {
		bubble(t, func(t *testing.T, ctx context.Context, h *testGateway) {
			g := h.connect(ctx, asTerminal)
			_, hangUp := g.start(ctx)
			defer hangUp()
			synctest.Wait()
			h.update(func() { h.ended = true })
			sent := make(chan error, 1)
			go func() {
				_, err := h.Send(ctx, chat.Reply{ID: "1", To: here, Text: "bye"})
				sent <- err
			}()
			f := <-g.frames
			timetest.Sleep(wait)
			g.acknowledge(f.ID)
			<-g.frames
			if err := <-sent; retryable(err) != want || err != nil && want == 0 {
				t.Errorf("shown after %v: %v", wait, err)
			}
		})
	}
}

func TestDirect(t *testing.T) {
	c := New(Config{Name: "console"})
	if c.Direct("") != here || c.Direct(Owner) != here || c.Direct("somebody").Chat != "" {
		t.Error("the owner is not where they should be, or somebody else is")
	}
}

func TestUnknownChatIsPermanent(t *testing.T) {
	_, err := New(Config{}).Send(t.Context(), chat.Reply{ID: "1", To: chat.Address{Chat: "42"}})
	if e, ok := errors.AsType[*channels.Error](err); !ok || !e.Permanent {
		t.Errorf("Send: %v, want a permanent error", err)
	}
}

// A rawClient is a client on a connection in memory.
type rawClient struct{ *link }

func (h *testGateway) connect(ctx context.Context, as string) rawClient {
	g := rawClient{&link{kind: as, frames: make(chan frame)}}
	g.dial = func(context.Context) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go h.serve(ctx, theirs, func(_ context.Context, m chat.Message) error {
			h.heard <- m
			return nil
		})
		return ours, nil
	}
	return g
}

func bubble(t *testing.T, f func(t *testing.T, ctx context.Context, h *testGateway)) {
	timetest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		h := &testGateway{Channel: New(Config{Name: "console", Log: quiet}), t: t, heard: make(chan chat.Message, 10)}
		f(t, ctx, h)
		cancel()
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
}

var here = chat.Address{Channel: "console", Chat: Local}

// P14: one who does not read holds nobody up, and is dropped where it is alone.
func TestTwoClientsOneDead(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, h *testGateway) {
		a, dead := h.connect(ctx, asTerminal), h.connect(ctx, asTerminal)
		_, leave := a.start(ctx)
		_, hangUp := dead.start(ctx)
		defer hangUp()
		synctest.Wait()
		read := make(chan frame)
		go func() {
			a.acknowledge((<-a.frames).ID)
			read <- <-a.frames
		}()
		start := time.Now()
		if _, err := h.Send(ctx, chat.Reply{ID: "1", To: here, Text: "hi"}); err != nil || time.Since(start) > 0 {
			t.Errorf("Send took %v: %v", time.Since(start), err)
		}
		<-read
		leave()
		synctest.Wait()
		patient, cancel := context.WithTimeout(ctx, showTimeout+time.Second) // the dead one may be gone before it is dropped; then Send waits for another
		defer cancel()
		if _, err := h.Send(patient, chat.Reply{ID: "2", To: here, Text: "hi"}); retryable(err) != retryDelay || time.Since(start) < showTimeout {
			t.Errorf("Send took %v: %v", time.Since(start), err)
		}
		for _, want := range []string{frameReply, frameLost} {
			if f := <-dead.frames; f.Kind != want {
				t.Errorf("the dead one got %+v, want %s", f, want)
			}
		}
	})
}

// Both see what is said; a reply in the making is for terminals, its newest text only.
func TestTwoClients(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, h *testGateway) {
		a, b, p := h.connect(ctx, asTerminal), h.connect(ctx, asTerminal), h.connect(ctx, asPipe)
		for _, g := range []rawClient{a, b, p} {
			_, hangUp := g.start(ctx)
			defer hangUp()
		}
		synctest.Wait()
		h.Stream(chat.Reply{ID: "1", To: here, Text: "so f"})
		for _, g := range []rawClient{a, b} {
			if f := <-g.frames; f.Kind != frameDraft || f.Text != "so f" {
				t.Errorf("got %+v", f)
			}
		}
		seen := make(chan error)
		go func() {
			_, err := h.Send(ctx, chat.Reply{ID: "1", To: here, Text: "so far"})
			seen <- err
		}()
		for _, g := range []rawClient{a, b} {
			if f := <-g.frames; f.Kind != frameReply || f.Text != "so far" {
				t.Errorf("got %+v", f)
			}
			g.acknowledge("1")
			if f := <-g.frames; f.Kind != frameTaken {
				t.Errorf("got %+v", f)
			}
		}
		if err := <-seen; err != nil {
			t.Error(err)
		}
		select {
		case f := <-p.frames:
			t.Errorf("the pipe, which had not asked, got %+v", f)
		default:
		}
		// The same reply again, as after a crash: acknowledged and not shown.
		if _, err := h.Send(ctx, chat.Reply{ID: "1", To: here, Text: "so far"}); err != nil {
			t.Error(err)
		}
	})
}

// P2, P3: what was not acknowledged is said again with the same id, in order.
func TestReconnectSaysAgain(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, h *testGateway) {
		var mu sync.Mutex
		fail := errors.New("disk full")
		var heard []chat.Message
		g := h.connect(ctx, asTerminal)
		g.dial = func(context.Context) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go h.serve(ctx, theirs, func(_ context.Context, m chat.Message) error {
				mu.Lock()
				defer mu.Unlock()
				heard = append(heard, m)
				return fail
			})
			return ours, nil
		}
		one, two := g.sendMessage("one"), g.sendMessage("two")
		_, hangUp := g.start(ctx)
		defer hangUp()
		if f := <-g.frames; f.Kind != frameLost {
			t.Fatalf("got %+v, want a lost connection", f)
		}
		mu.Lock()
		if len(heard) != 1 || heard[0].ID != one {
			t.Fatalf("heard %v before the first was taken", heard)
		}
		fail, heard = nil, nil
		mu.Unlock()
		for range 2 {
			if f := <-g.frames; f.Kind != frameTaken {
				t.Fatalf("got %+v", f)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if len(heard) != 2 || heard[0].ID != one || heard[1].ID != two {
			t.Errorf("heard %v, want the same again in order", heard)
		}
		if m := heard[0]; m.From.ID != Owner || m.At != here || m.Time.IsZero() || m.Text != "one" {
			t.Errorf("message: %+v", m)
		}
		if n := g.countUnsettled(); n != 0 {
			t.Errorf("%d messages still to be said", n)
		}
	})
}

// A pipe says it again until it is answered, so that no answer is missed.
func TestPipeAsksAgainAfterReconnect(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, h *testGateway) {
		g := h.connect(ctx, asPipe)
		var conns []net.Conn
		inner := g.dial
		dial := func(ctx context.Context) (net.Conn, error) {
			conn, err := inner(ctx)
			conns = append(conns, conn)
			return conn, err
		}
		lines := make(chan string, 1)
		lines <- "hi"
		close(lines)
		var out bytes.Buffer
		done := make(chan error)
		go func() { done <- answerLines(ctx, dial, lines, Terminal{Out: &out}) }()
		first := <-h.heard
		conns[0].Close()
		if again := <-h.heard; again.ID != first.ID {
			t.Errorf("asked again as %q, want %q", again.ID, first.ID)
		}
		r := first.Reply()
		r.Text = "ho"
		if _, err := h.Send(ctx, r); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil || out.String() != "ho\n" {
			t.Errorf("answer %q, %v", out.String(), err)
		}
	})
}

// A pipe whose connection broke is answered although another client was shown the
// answer meanwhile: it would wait for ever.
func TestPipeIsAnsweredAfterAnother(t *testing.T) {
	for _, as := range []string{asTerminal, asPipe} {
		bubble(t, func(t *testing.T, ctx context.Context, h *testGateway) {
			asks, other := h.connect(ctx, asPipe), h.connect(ctx, as)
			conns := make(chan net.Conn, 2)
			dial := func(ctx context.Context) (net.Conn, error) {
				conn, err := asks.dial(ctx)
				conns <- conn
				return conn, err
			}
			lines := make(chan string, 1)
			lines <- "hi"
			close(lines)
			var out bytes.Buffer
			done := make(chan error, 1)
			ctx, giveUp := context.WithTimeout(ctx, time.Hour)
			defer giveUp()
			go func() { done <- answerLines(ctx, dial, lines, Terminal{Out: &out}) }()
			r := (<-h.heard).Reply()
			r.Text = "ho"
			_, hangUp := other.start(ctx)
			defer hangUp()
			synctest.Wait()
			(<-conns).Close()
			synctest.Wait()
			sent := make(chan error)
			go func() {
				_, err := h.Send(ctx, r)
				sent <- err
			}()
			other.acknowledge((<-other.frames).ID)
			<-other.frames
			if err := <-sent; err != nil {
				t.Error(err)
			}
			if err := <-done; err != nil || out.String() != "ho\n" {
				t.Errorf("beside a %s: answer %q, %v", as, out.String(), err)
			}
		})
	}
}

// An answer that a terminal has shown is not sent before the pipe that waits for it has shown it, too: a gateway that is
// killed in between would not know that somebody waits. A pipe that does not read is waited for no longer than a terminal.
func TestPipeIsOwedTheAnswer(t *testing.T) {
	for _, reads := range []bool{true, false} {
		bubble(t, func(t *testing.T, ctx context.Context, h *testGateway) {
			asks, other := h.connect(ctx, asPipe), h.connect(ctx, asTerminal)
			id := asks.sendMessage("hi")
			for _, g := range []rawClient{asks, other} {
				_, hangUp := g.start(ctx)
				defer hangUp()
			}
			<-h.heard
			synctest.Wait() // both are connected
			sent := make(chan error, 1)
			began := time.Now()
			go func() {
				_, err := h.Send(ctx, chat.Reply{ID: "r", To: here, Quote: id, Text: "ho"})
				sent <- err
			}()
			f := <-other.frames
			for f.Kind != frameReply { // it may be shown what the pipe has said
				f = <-other.frames
			}
			other.acknowledge(f.ID)
			<-other.frames
			synctest.Wait()
			if len(sent) > 0 {
				t.Fatal("it counts as sent before the pipe has shown it")
			}
			if !reads {
				if err := <-sent; err != nil || time.Since(began) != showTimeout {
					t.Errorf("beside a pipe that does not read it was sent after %v: %v", time.Since(began), err)
				}
				for _, want := range []string{frameReply, frameLost, frameReply} { // and it has it when it reads again
					if f := <-asks.frames; f.Kind != want {
						t.Errorf("got %+v, want %s", f, want)
					}
				}
				return
			}
			asks.acknowledge((<-asks.frames).ID)
			<-asks.frames
			if err := <-sent; err != nil || time.Since(began) > 0 {
				t.Errorf("sent after %v: %v", time.Since(began), err)
			}
		})
	}
}

// A reply that waited for somebody, as after a restart, reaches a pipe that asks again only once:
// not for its hello and for its message.
func TestPipeIsAnsweredOnce(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, h *testGateway) {
		asks := h.connect(ctx, asPipe)
		dial := func(ctx context.Context) (net.Conn, error) {
			time.Sleep(time.Second) // the reply is there first
			return asks.dial(ctx)
		}
		l := &link{dial: dial, kind: asPipe, frames: make(chan frame)}
		id := l.sendMessage("hi")
		sent := make(chan error, 1)
		go func() {
			_, err := h.Send(ctx, chat.Reply{ID: "r", To: here, Quote: id, Text: "ho"})
			sent <- err
		}()
		synctest.Wait()
		_, hangUp := l.start(ctx)
		defer hangUp()
		shown := 0
		for end := time.After(2 * time.Second); end != nil; {
			select {
			case <-h.heard:
			case f := <-l.frames:
				if f.Kind == frameReply {
					shown++
				}
			case <-end:
				end = nil
			}
		}
		if shown != 1 {
			t.Errorf("the answer was sent %d times", shown)
		}
		l.acknowledge("r")
		if err := <-sent; err != nil {
			t.Error(err)
		}
	})
}

// A line that the agent's work for somebody else took in is answered by that answer.
func TestPipeAnsweredTogether(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, h *testGateway) {
		lines := make(chan string, 1)
		lines <- "hi"
		close(lines)
		var out, notes bytes.Buffer
		done := make(chan error)
		g := h.connect(ctx, asPipe)
		go func() { done <- answerLines(ctx, g.dial, lines, Terminal{Out: &out, Notes: &notes}) }()
		m := <-h.heard
		for _, r := range []chat.Reply{
			{ID: "other", To: here, Text: "by the way"},
			{ID: "both", To: here, Quote: "somebody else's", Also: []string{m.ID}, Text: "to both of you"},
		} {
			if _, err := h.Send(ctx, r); err != nil {
				t.Error(err)
			}
		}
		if err := <-done; err != nil || out.String() != "to both of you\n" || notes.String() != "by the way\n" {
			t.Errorf("out %q, notes %q, err %v", &out, &notes, err)
		}
	})
}

// A pipe gives up on a gateway that does not come back.
func TestPipeGatewayGone(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, h *testGateway) {
		lines := make(chan string, 1)
		lines <- "hi"
		g := h.connect(ctx, asPipe)
		gone := errors.New("refused")
		dial := func(ctx context.Context) (net.Conn, error) {
			if len(h.heard) > 0 {
				return nil, gone
			}
			conn, err := g.dial(ctx)
			time.AfterFunc(time.Second, func() { conn.Close() })
			return conn, err
		}
		if err := answerLines(ctx, dial, lines, Terminal{}); !errors.Is(err, gone) {
			t.Errorf("answer: %v, want %v", err, gone)
		}
	})
}

func TestAsk(t *testing.T) {
	h := open(t, Config{})
	var out, notes sink
	done := make(chan error, 1)
	go func() { done <- Chat(t.Context(), h.socket, Terminal{Text: "two\nlines", Out: &out, Notes: &notes}) }()
	m := h.expectMessage("two\nlines")
	h.sendUntilShown(chat.Reply{ID: "old", Text: "yesterday's news"}) // it must not hold up the answer behind it
	h.answer(m, "**answer** \x1b]0;evil\a")
	if err := wait(t, done); err != nil {
		t.Fatal(err)
	}
	if out.String() != "**answer** ]0;evil\n" || notes.String() != "yesterday's news\n" {
		t.Errorf("out %q, notes %q", out.String(), notes.String())
	}
}

func TestAskWithoutGateway(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "none.sock")
		err := Chat(t.Context(), path, Terminal{Text: "hi", Out: io.Discard})
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("Ask: %v, want an error naming %s", err, path)
		}
		if Running(t.Context(), path) {
			t.Error("Running without a gateway")
		}
	})
}

// TestAskDuringRestart: a gateway that ended between the look for it and the
// first connection, and is there again soon after, answers.
func TestAskDuringRestart(t *testing.T) {
	h := open(t, Config{})
	tries := 0
	dial := func(ctx context.Context) (net.Conn, error) {
		if tries++; tries == 1 {
			return nil, &net.OpError{Op: "dial", Net: "unix", Err: syscall.ENOENT}
		}
		return Dial(ctx, h.socket)
	}
	var out sink
	done := make(chan error, 1)
	go func() { done <- ChatOver(t.Context(), dial, Terminal{Text: "hi", Out: &out}) }()
	h.answer(h.expectMessage("hi"), "hello")
	if err := wait(t, done); err != nil || out.String() != "hello\n" {
		t.Errorf("Ask: %v, %q", err, out.String())
	}
}

// A pipe whose message a tool answers stays until the turn has ended: what ends it, which may have no words, waits for
// nobody else then.
func TestPipeAnsweredByTool(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, h *testGateway) {
		dial := func(context.Context) (net.Conn, error) {
			near, far := net.Pipe()
			go h.serve(ctx, far, func(_ context.Context, m chat.Message) error {
				h.heard <- m
				return nil
			})
			return near, nil
		}
		var out, notes bytes.Buffer
		done := make(chan error, 1)
		go func() { done <- ChatOver(ctx, dial, Terminal{Text: "hi", Out: &out, Notes: &notes}) }()
		m := <-h.heard
		said := m.Reply()
		said.ID = chat.ToolReplyID(m.Key() + "#c1")
		said.Text = "hello"
		if _, err := h.Send(ctx, said); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("it ended before the turn: %v", err)
		default:
		}
		if _, err := h.Send(ctx, m.Reply()); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil || out.String() != "hello\n" || notes.Len() > 0 {
			t.Errorf("%v, %q, beside it %q", err, out.String(), notes.String())
		}
	})
}

// Each line of a pipe is said once the one before is answered; the end waits for the last.
func TestPipe(t *testing.T) {
	leave := make(chan error, 1)
	for _, local := range []bool{false, true} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		var out sink
		terminal, done := Terminal{In: r, Out: &out}, leave
		var h *testGateway
		if local {
			h = open(t, Config{Local: &terminal, Leave: func(err error) { leave <- err }})
		} else {
			h, done = open(t, Config{}), make(chan error, 1)
			go func() { done <- Chat(t.Context(), h.socket, terminal) }()
		}
		_, _ = io.WriteString(w, "one\n\ntwö")
		w.Close()
		m := h.expectMessage("one")
		if len(h.heard) > 0 {
			t.Error("the second line was said before the first was answered")
		}
		h.answer(m, "1")
		m = h.expectMessage("twö")
		select {
		case err := <-done:
			t.Fatalf("ended with a line unanswered: %v", err)
		default:
		}
		h.answer(m, "2")
		if err := wait(t, done); err != nil {
			t.Error(err)
		}
		if out.String() != "1\n2\n" {
			t.Errorf("out %q", out.String())
		}
		h.stop()
		r.Close()
	}
}

// P16: Run and Close end at once although nothing comes from stdin and a line waits for its answer.
func TestEndsWhileStdinBlocks(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	h := open(t, Config{Local: &Terminal{In: r, Out: io.Discard}, Leave: func(error) { t.Error("the terminal left before Run's end") }})
	_, _ = io.WriteString(w, "hi\n")
	h.expectMessage("hi")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		h.stop()
	}()
	select {
	case <-ended:
	case <-time.After(soon):
		t.Error("it does not end")
	}
}

// P16: those connected when Run ends are not heard any more, but told what they
// wait for, here and from afar.
func TestP16AnswersAfterRun(t *testing.T) {
	here, far := sink{}, sink{}
	h := open(t, Config{Local: &Terminal{Text: "here", Out: &here}, Leave: func(error) { t.Error("left before Run's end") }})
	m := h.expectMessage("here")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	done := make(chan error, 1)
	go func() { done <- Chat(t.Context(), h.socket, Terminal{In: r, Out: &far}) }()
	_, _ = io.WriteString(w, "far\nnot now\n")
	w.Close()
	m2 := h.expectMessage("far")
	h.rest()
	h.answer(m, "1")
	h.answer(m2, "2")
	if here.String() != "1\n" || far.String() != "2\n" {
		t.Errorf("here %q, far %q", here.String(), far.String())
	}
	if Running(t.Context(), h.socket) {
		t.Error("the socket is still served")
	}
	h.stop()
	again := open(t, Config{Socket: h.socket}) // the next gateway is told what this one did not take
	again.answer(again.expectMessage("not now"), "3")
	if err := wait(t, done); err != nil || far.String() != "2\n3\n" {
		t.Errorf("far %q, %v", far.String(), err)
	}
}

// P9: a client that leaves with its answer is sure that the gateway knows: the
// next one is not shown it again, however fast the first was gone.
func TestP9LeavesWhenTheGatewayKnows(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, h *testGateway) {
		g := h.connect(ctx, asPipe)
		inner, conns := g.dial, 0
		g.dial = func(ctx context.Context) (net.Conn, error) {
			conn, err := inner(ctx)
			if conns++; conns == 1 {
				conn = deaf{conn}
			}
			return conn, err
		}
		lines := make(chan string, 1)
		lines <- "hi"
		close(lines)
		var out bytes.Buffer
		done := make(chan error, 1)
		go func() { done <- answerLines(ctx, g.dial, lines, Terminal{Out: &out}) }()
		h.answer(<-h.heard, "ho")
		if err := <-done; err != nil || out.String() != "ho\n" || conns != 2 {
			t.Errorf("answer %q, %v, %d connections", &out, err, conns)
		}
	})
}

// A deaf connection breaks instead of carrying an acknowledgement.
type deaf struct{ net.Conn }

func (d deaf) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(frameShown)) {
		return 0, errors.Join(errors.New("broken"), d.Close())
	}
	return d.Conn.Write(p)
}

func TestPipeLineTooLong(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		_, _ = io.WriteString(w, strings.Repeat("x", maxLine+1)+"\n")
		w.Close()
	}()
	h := open(t, Config{})
	if err := Chat(t.Context(), h.socket, Terminal{In: r, Out: io.Discard}); err == nil || err.Error() != "read a line: it is longer than 256 KiB" {
		t.Errorf("a line too long: %v", err)
	}
}

func TestSocket(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(file); err == nil {
		t.Error("a file was replaced by a socket")
	}
	if _, err := Listen(filepath.Join(dir, strings.Repeat("d", 100), "s")); err == nil || !strings.Contains(err.Error(), "shorter") {
		t.Errorf("a path too long: %v", err)
	}
	for _, path := range []string{filepath.Join(dir, "s")} {
		// What a process that was killed leaves behind.
		dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		dead.SetUnlinkOnClose(false)
		dead.Close()
		if Running(t.Context(), path) {
			t.Fatalf("%s: a dead socket is served", path)
		}
		h := open(t, Config{Socket: path})
		info, err := os.Lstat(path)
		if err != nil || info.Mode() != fs.ModeSocket|0o600 {
			t.Errorf("%s: mode %v, %v, want a socket of mode 0600", path, info.Mode(), err)
		}
		if err := New(Config{Socket: path, Log: quiet}).Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("second gateway: %v, want an error naming %s", err, path)
		}
		if !Running(t.Context(), path) {
			t.Error("the second gateway broke the first")
		}
		h.stop()
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left behind: %v", path, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".socket*")); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

// A peer that speaks another language is hung up on, and no harm done.
func TestForeignPeer(t *testing.T) {
	h := open(t, Config{})
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", h.socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
	_ = conn.SetReadDeadline(time.Now().Add(soon))
	if _, err := io.ReadAll(conn); err != nil {
		t.Errorf("not hung up: %v", err)
	}
}
