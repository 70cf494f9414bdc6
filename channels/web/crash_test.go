package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/chat"
	"parley/store"
	"parley/store/bolt"
)

var errDead = errors.New("the process is dead")

// A disk dies at its crash-th write, which takes effect if late.
type disk struct {
	store.Store
	mu    sync.Mutex
	ops   int
	crash int
	late  bool
	died  chan struct{}
}

func (d *disk) write(f func() error) error {
	d.mu.Lock()
	d.ops++
	n := d.ops
	d.mu.Unlock()
	switch {
	case d.crash == 0 || n < d.crash:
		return f()
	case n > d.crash:
		return errDead
	}
	defer close(d.died)
	if d.late {
		return errors.Join(f(), errDead)
	}
	return errDead
}

func (d *disk) Bucket(name string) store.Bucket { return bucket{d.Store.Bucket(name), d} }
func (d *disk) Log(name string) store.Log       { return log{d.Store.Log(name), d} }
func (d *disk) Queue(name string) store.Queue   { return queue{d.Store.Queue(name), d} }

type bucket struct {
	store.Bucket
	d *disk
}

func (b bucket) Put(ctx context.Context, key string, val []byte, rev uint64) (n uint64, err error) {
	err = b.d.write(func() (err error) { n, err = b.Bucket.Put(ctx, key, val, rev); return err })
	return n, err
}

type log struct {
	store.Log
	d *disk
}

func (l log) Append(ctx context.Context, after uint64, recs ...[]byte) (n uint64, err error) {
	if len(recs) == 0 {
		return l.Log.Append(ctx, after)
	}
	err = l.d.write(func() (err error) { n, err = l.Log.Append(ctx, after, recs...); return err })
	return n, err
}

type queue struct {
	store.Queue
	d *disk
}

func (q queue) Push(ctx context.Context, id string, body []byte) error {
	return q.d.write(func() error { return q.Queue.Push(ctx, id, body) })
}

func (q queue) Pull(ctx context.Context) (store.Item, error) {
	item, err := q.Queue.Pull(ctx)
	done := item.Done
	item.Done = func(ctx context.Context) error { return q.d.write(func() error { return done(ctx) }) }
	return item, err
}

// P2 P3 P9: wherever the process dies, each message is heard once and shown
// once, in order, and each reply is shown once.
func TestP3CrashAnywhere(t *testing.T) {
	for _, late := range []bool{false, true} {
		writes := 1
		for crash := 1; crash <= writes; crash++ {
			t.Run(fmt.Sprintf("write %d, in effect %v", crash, late), func(t *testing.T) {
				writes = crashAt(t, crash, late)
			})
		}
	}
}

// crashAt has a talk with a gateway that dies at that write, and returns how many there were.
func crashAt(t *testing.T, crash int, late bool) int {
	dir, turns := t.TempDir(), map[string]int{}
	said, writes := 0, 0
	for over := false; !over; crash = 0 {
		s, err := bolt.Open(t.Context(), bolt.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		d := &disk{Store: s, crash: crash, late: late, died: make(chan struct{})}
		h := open(t, d)
		ctx, stop := context.WithCancel(t.Context())
		var live sync.WaitGroup
		live.Go(func() {
			_ = h.Channel.Run(ctx, func(ctx context.Context, m chat.Message) error {
				body, err := json.Marshal(m)
				return errors.Join(err, d.Queue("inbox").Push(ctx, m.Key(), body))
			})
		})
		live.Go(func() { echo(ctx, h.Channel, d.Queue("inbox"), turns) })
		for said < 3 && talkOn(h, d, said) {
			said++
		}
		over = drained(t, d) && said == 3
		stop()
		live.Wait()
		if writes = max(writes, d.ops); over {
			checkTalk(t, h, turns)
		}
		h.Channel.Close()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return writes
}

// talkOn says message n until it is taken, or the gateway is dead.
func talkOn(h *testGateway, d *disk, n int) bool {
	for {
		res, _ := h.do("anna", "POST", "/c/first/messages", words{"id": fmt.Sprintf("message-%d", n), "text": fmt.Sprint("say ", n)})
		if res.StatusCode == http.StatusAccepted {
			return true
		}
		select {
		case <-d.died:
			return false
		default:
		}
	}
}

// echo answers what is in the inbox, each as long as it takes.
func echo(ctx context.Context, c *Channel, q store.Queue, turns map[string]int) {
	for {
		item, err := q.Pull(ctx)
		if err != nil {
			return
		}
		var m chat.Message
		_ = json.Unmarshal(item.Body, &m)
		r := m.Reply()
		r.Text = "re " + m.Text
		if _, err := c.Send(ctx, r); err != nil {
			continue // it is in the queue at the next start
		}
		if item.Done(ctx) == nil {
			turns[m.ID]++
		}
	}
}

// drained waits until everything is answered, or returns false when the gateway is dead.
func drained(t *testing.T, d *disk) (alive bool) {
	until(t, "the inbox is empty or the gateway dead", func() bool {
		n, err := d.Store.Queue("inbox").Len(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-d.died:
			return true
		default:
			alive = n == 0
			return alive
		}
	})
	return alive
}

func checkTalk(t *testing.T, h *testGateway, turns map[string]int) {
	t.Helper()
	rm, leave := h.openRoom(h.address("anna", firstID))
	defer leave()
	es, _, _, err := rm.pageBefore(t.Context(), 60)
	if err != nil {
		t.Fatal(err)
	}
	var mine, all []string
	for _, e := range es {
		all = append(all, e.Text)
		if e.Who == whoPerson {
			mine = append(mine, e.Text)
		}
	}
	if want := []string{"say 0", "say 1", "say 2"}; !slices.Equal(mine, want) {
		t.Errorf("messages %q, want %q", mine, want)
	}
	for n := range 3 {
		q, a := slices.Index(all, fmt.Sprint("say ", n)), slices.Index(all, fmt.Sprint("re say ", n))
		if a < q || strings.Count(strings.Join(all, "\n")+"\n", fmt.Sprintf("re say %d\n", n)) != 1 {
			t.Errorf("answer %d is lost, shown twice or before its question: %q", n, all)
		}
	}
	for id, n := range turns {
		if n != 1 {
			t.Errorf("%s was answered %d times", id, n)
		}
	}
}
