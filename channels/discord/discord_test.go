package discord_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/channels/discord"
	"parley/channels/discord/discordtest"
	"parley/chat"
	"parley/store"
	"parley/store/mem"
)

// The library sleeps for seconds, so all tests wait at the same time.
func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "64")
	goleak.VerifyTestMain(m)
}

const testTimeout = time.Minute // on a machine that is busy

// A harness is a bot with a fake Discord of its own.
type harness struct {
	*discordtest.Server
	t           *testing.T
	ch          *discord.Channel
	seen        store.Bucket
	deadLetters chan string // as they are appended
	logs        *syncBuffer
	received    chan chat.Message
	setup       func(*discord.Config)

	mu   sync.Mutex
	fail func(chat.Message) error // what deliver returns
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func newHarness(t *testing.T, cfg discordtest.Config, setup func(*discord.Config)) *harness {
	t.Helper()
	h := &harness{Server: discordtest.NewServer(cfg), t: t, logs: &syncBuffer{}, received: make(chan chat.Message, 1000), setup: setup}
	h.seen, h.deadLetters = mem.New().Bucket("seen"), make(chan string, 100)
	t.Cleanup(h.Close)
	t.Cleanup(func() {
		if strings.Contains(h.logs.String(), h.Token()) {
			t.Errorf("R-S26: the token is in the log: %s", h.logs.String())
		}
		if t.Failed() {
			t.Log(h.logs.String())
		}
	})
	h.restart()
	return h
}

// A reportingLog is a log that reports what is appended to it.
type reportingLog struct {
	store.Log
	appended chan string
}

func (l reportingLog) Append(ctx context.Context, after uint64, recs ...[]byte) (uint64, error) {
	for _, rec := range recs {
		l.appended <- string(rec)
	}
	return l.Log.Append(ctx, after, recs...)
}

// restart creates the bot anew, as a restart does.
func (h *harness) restart() {
	c := discord.Config{Name: "discord", Token: h.Token(), APIURL: h.URL, Reactions: true, Seen: h.seen, Dead: reportingLog{mem.New().Log("dead"), h.deadLetters},
		Log: slog.New(slog.NewTextHandler(h.logs, nil))}
	if h.setup != nil {
		h.setup(&c)
	}
	var err error
	if h.ch, err = discord.New(c); err != nil {
		h.t.Fatal(err)
	}
	h.ch.Hasten(10*time.Second, 10*time.Millisecond)
}

// run runs the bot until stop is called, or the test ends, and waits until it is online.
func (h *harness) run() (stop func()) {
	h.t.Helper()
	stop = h.start()
	h.wait(discordtest.View.Online)
	return stop
}

func (h *harness) start() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.ch.Run(ctx, h.deliver) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				h.t.Errorf("Run ended with %v", err)
			}
		case <-time.After(testTimeout):
			h.t.Error("Run does not end")
		}
	})
	h.t.Cleanup(stop)
	return stop
}

func (h *harness) deliver(_ context.Context, m chat.Message) error {
	h.mu.Lock()
	fail := h.fail
	h.mu.Unlock()
	if fail != nil {
		if err := fail(m); err != nil {
			return err
		}
	}
	h.received <- m
	return nil
}

func (h *harness) setDeliverError(f func(chat.Message) error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fail = f
}

func (h *harness) wait(ok func(discordtest.View) bool) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	if err := h.Wait(ctx, ok); err != nil {
		h.t.Fatal("it does not happen")
	}
}

func (h *harness) next() chat.Message {
	h.t.Helper()
	select {
	case m := <-h.received:
		return m
	case <-time.After(testTimeout):
		h.t.Fatal("nothing was delivered")
		return chat.Message{}
	}
}

// wantReceived waits for messages with those texts.
func (h *harness) wantReceived(texts ...string) {
	h.t.Helper()
	for _, want := range texts {
		if got := h.next(); got.Text != want {
			h.t.Fatalf("delivered %q, want %q", got.Text, want)
		}
	}
}

// wantOnlyReceived also checks that nothing else was delivered, with a last message in the chat.
func (h *harness) wantOnlyReceived(channel string, texts ...string) {
	h.t.Helper()
	h.Say(channel, "7", "Ann", "<@101> that is all")
	h.wantReceived(append(texts, "that is all")...)
}

func dm(user string) chat.Address { return chat.Address{Channel: "discord", Chat: "@" + user} }

var errFull = errors.New("the disk is full")
