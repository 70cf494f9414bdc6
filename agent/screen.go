package agent

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"parley/chat"
	"parley/llm"
)

// A screen is the live view of a turn. It knows each step whole (C-010): tools
// tell its news from goroutines of their own, maybe when the turn is over.
type screen struct {
	mu    sync.Mutex
	view  chat.Live            // nil: nobody looks
	hush  bool                 // the person wants to see no steps
	steps map[string]chat.Step // by their calls
}

// dark returns a screen that nobody looks at yet.
func dark() *screen { return &screen{steps: map[string]chat.Step{}} }

// show opens the live view of the reply to m, unless it is open.
func (t *turn) show(ctx context.Context, m chat.Message) {
	if t.Live != nil && t.live.view == nil {
		t.live.open(t.Live(ctx, m.Reply()), t.Quiet)
	}
}

func (s *screen) open(view chat.Live, hush bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view, s.hush = view, hush
}

// Show replaces the text shown.
func (s *screen) Show(text string) {
	if s.view != nil {
		s.view.Show(text)
	}
}

// bright says whether steps are shown.
func (s *screen) bright() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view != nil && !s.hush
}

// Step adds news to what is known of a step, unless it is over or never began.
func (s *screen) Step(news chat.Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, known := s.steps[news.Call]
	if s.view == nil || s.hush || old.State.Over() || !known && news.State == "" {
		return
	}
	step := old.Merge(news)
	s.steps[news.Call] = step
	s.view.Step(step)
}

// settle ends the steps of calls that were coming in, but for those that came.
func (s *screen) settle(came []llm.ToolCall) {
	s.mu.Lock()
	ids := slices.Sorted(maps.Keys(s.steps))
	ids = slices.DeleteFunc(ids, func(id string) bool {
		return s.steps[id].State != chat.Waiting || slices.ContainsFunc(came, func(c llm.ToolCall) bool { return c.ID == id })
	})
	s.mu.Unlock()
	for _, id := range ids {
		s.Step(chat.Step{Call: id, State: chat.Failed, Ended: time.Now()})
	}
}

// Close ends the view: of strays nothing more is shown.
func (s *screen) Close() {
	s.mu.Lock()
	view := s.view
	s.hush = true
	s.mu.Unlock()
	if view != nil {
		view.Close()
	}
}
