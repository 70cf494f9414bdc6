package console

import (
	"context"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"parley/channels/channeltest"
)

func TestConformance(t *testing.T) {
	channeltest.Run(t, func(t *testing.T) channeltest.Rig {
		c := New(Config{Name: "console", Socket: filepath.Join(t.TempDir(), "s"), Log: quiet})
		reader := follow(t, func(ctx context.Context) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go c.serve(ctx, theirs, nil)
			return ours, nil
		})
		t.Cleanup(func() { c.Close() })
		until(t, func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.clients) > 0
		})
		speaker := sync.OnceValue(func() *follower {
			until(t, func() bool { return Running(t.Context(), c.cfg.Socket) })
			return follow(t, dialTo(c.cfg.Socket))
		})
		return channeltest.Rig{Channel: c, At: here, Keeps: true, Shown: reader.texts, Say: func(text string) { speaker().sendMessage(text) }}
	})
}

// A follower is a client that shows whatever it is told.
type follower struct {
	*link
	mu    sync.Mutex
	shown []string
}

func follow(t *testing.T, dial Dialer) *follower {
	f := &follower{link: &link{dial: dial, kind: asTerminal, frames: make(chan frame)}}
	gone, hangUp := f.start(t.Context())
	var live sync.WaitGroup
	live.Go(func() {
		for {
			select {
			case said := <-f.frames:
				f.show(said)
			case _, open := <-gone:
				if !open {
					return
				}
			}
		}
	})
	t.Cleanup(func() {
		hangUp()
		live.Wait()
	})
	return f
}

func (f *follower) show(said frame) {
	if said.Kind != frameReply {
		return
	}
	f.mu.Lock()
	f.shown = append(f.shown, said.Text)
	f.mu.Unlock()
	f.acknowledge(said.ID)
}

func (f *follower) texts() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.shown)
}
