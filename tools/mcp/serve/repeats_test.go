package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/chat"
	"parley/scheduler/jobs"
	"parley/store/mem"
	"parley/timetest"
	"parley/tools"
	"parley/workspace"
)

// testTurns are the turns of an agent that takes its time.
type testTurns struct {
	release chan struct{}

	mu     sync.Mutex
	events []string
}

// ask is a Config's Ask.
func (s *testTurns) ask(ctx context.Context, _ chat.Sender, _ string, q Question) (Answer, error) {
	event := "answered"
	select {
	case <-s.release:
	case <-ctx.Done():
		event = "left"
	case <-q.Stop:
		event = "stopped"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, event)
	if event != "answered" {
		return Answer{}, errors.New(event)
	}
	return Answer{Text: "here it is"}, nil
}

func (s *testTurns) noted() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.events, " ")
}

// TestLostQuestion: P3: where a closed connection cancels a call, a question with a key can be asked again for a
// minute, and its turn goes on. Without one, nobody can get the answer any more, and the turn is stopped at once.
func TestLostQuestion(t *testing.T) {
	for name, c := range map[string]struct {
		key   string
		again time.Duration // after the end of the connection; 0: never
		want  []string      // what became of the calls, a second and two minutes after that
	}{
		"asked again": {key: "k", again: 30 * time.Second, want: []string{"", "left answered"}},
		"late":        {key: "k", again: 90 * time.Second, want: []string{"", "stopped answered"}},
		"never":       {key: "k", want: []string{"", "stopped"}},
		"without key": {want: []string{"stopped", "stopped"}},
	} {
		t.Run(name, func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				turns := &testTurns{release: make(chan struct{})}
				server := New(Config{Ask: turns.ask, Store: mem.New(), Log: slog.New(slog.DiscardHandler)})
				s := serveHTTP(t, server.endpoint)
				args := fmt.Sprintf(`{"message":"hello","key":%q}`, c.key)
				conn := s.send(callWith("ask_agent", args, ""))
				synctest.Wait()
				_ = conn.Close()
				timetest.Sleep(time.Second)
				if got := turns.noted(); got != c.want[0] {
					t.Errorf("a second later: %q, want %q", got, c.want[0])
				}
				if c.again > 0 {
					timetest.Sleep(c.again - time.Second)
					go func() {
						time.Sleep(10 * time.Second)
						close(turns.release)
					}()
					if status, _, body := s.read(callWith("ask_agent", args, "")); !strings.Contains(body, "here it is") {
						t.Errorf("asked again: %d %s", status, body)
					}
				}
				timetest.Sleep(2 * time.Minute)
				if got := turns.noted(); got != c.want[1] {
					t.Errorf("in the end: %q, want %q", got, c.want[1])
				}
			})
		})
	}
}

// TestKeyOfAnotherTool: a key belongs to the calls of one tool: another tool that is called under the same one does
// not make a lost question again, whose turn is stopped.
func TestKeyOfAnotherTool(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		turns := &testTurns{release: make(chan struct{})}
		server := New(Config{
			Ask:     turns.ask,
			Store:   mem.New(),
			Log:     slog.New(slog.DiscardHandler),
			OwnerAt: func(string) (jobs.Asker, error) { return jobs.Asker{}, errors.New("there is none") },
			PrivateChat: func(string) (chat.Address, bool) {
				return chat.Address{Channel: "web", Chat: "anna"}, true
			},
			Sees: func(chat.Person) *workspace.Workspace { return nil },
			Kit:  func(context.Context, tools.Scope) (*tools.Kit, error) { return nil, errors.New("none") },
		})
		s := serveHTTP(t, server.endpoint)
		conn := s.send(callWith("ask_agent", `{"message":"hello","key":"k"}`, ""))
		synctest.Wait()
		_ = conn.Close()
		timetest.Sleep(time.Second)
		s.read(callWith("send_message", `{"text":"hello","chat":"web:anna","key":"k"}`, ""))
		timetest.Sleep(2 * time.Minute)
		if got := turns.noted(); got != "stopped" {
			t.Errorf("the question was %q, want it stopped", got)
		}
	})
}
