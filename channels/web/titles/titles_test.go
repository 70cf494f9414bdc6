package titles

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/chat"
	"parley/store"
	"parley/store/mem"
	"parley/timetest"
)

// A book is a Page that allows two tries for each conversation.
type book struct {
	mu    sync.Mutex
	tries map[string]int
	names map[string]string
}

func (b *book) BeginTitle(_ context.Context, at chat.Address) (*Beginning, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.names[at.Thread] != "" || b.tries[at.Thread] == 2 {
		return nil, nil
	}
	b.tries[at.Thread]++
	return &Beginning{At: at, Asked: at.Thread}, nil
}

func (b *book) SetTitle(_ context.Context, at chat.Address, title string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.names[at.Thread] = title
	return nil
}

func at(thread string) chat.Address { return chat.Address{Channel: "web", Chat: "ann", Thread: thread} }

func newService(s store.Store, title func(context.Context, Beginning) (string, error)) *Service {
	return New(Config{Store: s, On: func() bool { return true }, Make: title, Log: slog.New(slog.DiscardHandler)})
}

func want(t *testing.T, s *Service, threads ...string) {
	t.Helper()
	for _, thread := range threads {
		for _, reply := range []string{"1", "1", "2"} { // the second is sent again
			if err := s.Want(t.Context(), at(thread), reply); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// run runs s for so long.
func run(t *testing.T, s *Service, page Page, span time.Duration) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, page) }()
	timetest.Sleep(span)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestTitles: each conversation is named once, one after the other; one for which no title comes is tried twice, a
// minute apart, and holds up no other.
func TestTitles(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		var asked []string
		pages := &book{tries: map[string]int{}, names: map[string]string{}}
		s := newService(mem.New(), func(_ context.Context, b Beginning) (string, error) {
			asked = append(asked, b.Asked) // without a lock: the race detector tells if two are made at once
			timetest.Sleep(time.Second)
			switch b.Asked {
			case "fails":
				return "", errors.New("out of reach")
			case "none":
				return "", nil
			case "panics":
				panic("at the model")
			}
			return "About " + b.Asked, nil
		})
		want(t, s, "fails", "tides", "none", "panics", "bread")
		run(t, s, pages, 10*time.Second)
		if want := []string{"fails", "tides", "none", "panics", "bread"}; !slices.Equal(sorted(asked), sorted(append(want, "fails", "none", "panics"))) {
			t.Errorf("asked %q", asked)
		}
		if pages.names["tides"] != "About tides" || pages.names["bread"] != "About bread" || len(pages.names) != 2 {
			t.Errorf("names: %q", pages.names)
		}
		run(t, s, pages, 10*time.Minute)
		if len(asked) != 8 {
			t.Errorf("asked %d times in all, want 8: %q", len(asked), asked)
		}
		if n, err := s.queue.Len(t.Context()); n != 0 || err != nil {
			t.Errorf("%d are left in the queue, %v", n, err)
		}
	})
}

func sorted(all []string) []string { return slices.Sorted(slices.Values(all)) }

// TestHangingModel: a request that hangs is given up, and those that wait are made.
func TestHangingModel(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		pages := &book{tries: map[string]int{}, names: map[string]string{}}
		s := newService(mem.New(), func(ctx context.Context, b Beginning) (string, error) {
			if b.Asked == "hangs" {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "A title", nil
		})
		want(t, s, "hangs", "tides")
		run(t, s, pages, 20*time.Minute)
		if pages.names["tides"] == "" || pages.names["hangs"] != "" || pages.tries["hangs"] != 2 {
			t.Errorf("names %q after tries %v", pages.names, pages.tries)
		}
	})
}

// TestRestart: what was cut off by the end is made after the next start, once more.
func TestRestart(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		kept := mem.New()
		pages := &book{tries: map[string]int{}, names: map[string]string{}}
		cut := newService(kept, func(ctx context.Context, _ Beginning) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		})
		want(t, cut, "tides")
		run(t, cut, pages, time.Second)
		if len(pages.names) != 0 || pages.tries["tides"] != 1 {
			t.Fatalf("names %q after tries %v", pages.names, pages.tries)
		}
		again := newService(kept, func(context.Context, Beginning) (string, error) { return "Tides", nil })
		run(t, again, pages, time.Second)
		run(t, again, pages, time.Second)
		if pages.names["tides"] != "Tides" || pages.tries["tides"] != 2 {
			t.Errorf("names %q after tries %v", pages.names, pages.tries)
		}
	})
}

// TestOff: nothing is asked for while titles are switched off.
func TestOff(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		on := true
		pages := &book{tries: map[string]int{}, names: map[string]string{}}
		s := New(Config{
			Store: mem.New(), On: func() bool { return on }, Log: slog.New(slog.DiscardHandler),
			Make: func(context.Context, Beginning) (string, error) { return "A title", nil },
		})
		want(t, s, "before")
		on = false
		want(t, s, "while")
		run(t, s, pages, time.Hour)
		if len(pages.names)+len(pages.tries) != 0 {
			t.Errorf("names %q after tries %v", pages.names, pages.tries)
		}
		if n, err := s.queue.Len(t.Context()); n != 0 || err != nil {
			t.Errorf("%d are left in the queue, %v", n, err)
		}
	})
}
