package channels_test

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"parley/channels"
	"parley/chat"
)

// P20: what waited in the outboxes when a backup was made is parked, not sent;
// other queues, and other stores of the same kind, are left alone.
func TestP20Shelve(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		old := channels.NewHub(channels.Config{Store: m.disk(), Log: discard})
		old.Add("net", m.fake.As(0))
		send(t, &testHub{Hub: old}, reply("a", "one"), reply("b", "two"))
		for name, body := range map[string]string{"outbox/gone": "{", "inbox": "{}"} {
			if err := m.disk().Queue(name).Push(t.Context(), "x", []byte(body)); err != nil {
				t.Fatal(err)
			}
		}
		queues := []string{"inbox", "outbox/gone", "outbox/net"}
		for _, want := range []int{3, 0} {
			hub := channels.NewHub(channels.Config{Store: m.disk(), Log: discard})
			if n, err := hub.DeadLetters().FromOutboxes(t.Context(), queues, "it waited"); n != want || err != nil {
				t.Errorf("%d shelved, %v, want %d", n, err, want)
			}
		}
		for name, want := range map[string]int{"inbox": 1, "outbox/gone": 0, "outbox/net": 0} {
			if n, err := m.disk().Queue(name).Len(t.Context()); n != want || err != nil {
				t.Errorf("%d left in %s, %v, want %d", n, name, err, want)
			}
		}
		h := m.start(0)
		h.drain()
		m.shows()
		parked, err := h.DeadLetters().List(t.Context())
		if err != nil || len(parked) != 3 {
			t.Fatalf("parked: %+v, %v", parked, err)
		}
		for _, want := range []chat.Reply{{ID: "x", To: chat.Address{Channel: "gone"}}, reply("a", "one"), reply("b", "two")} {
			if !slices.ContainsFunc(parked, func(p chat.DeadLetter) bool {
				return reflect.DeepEqual(p.Reply, want) && p.Reason == "it waited"
			}) {
				t.Errorf("parked: %+v, and not %+v", parked, want)
			}
		}
	})
}

// P21: what is damaged counts and is never handed out; it is not waited for.
func TestP21Shelve(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		q := m.disk().Queue("outbox/net")
		for _, id := range []string{"damaged", "good"} {
			if err := q.Push(t.Context(), id, []byte("{}")); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := q.Pull(t.Context()); err != nil {
			t.Fatal(err)
		}
		hub := channels.NewHub(channels.Config{Store: m.disk(), Log: discard})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if n, err := hub.DeadLetters().FromOutboxes(ctx, []string{"outbox/net"}, "it waited"); n != 1 || err != nil {
			t.Errorf("%d shelved, %v", n, err)
		}
	})
}

// P9: a crash while they are parked loses none; one at most is there twice.
func TestP9ShelveCrash(t *testing.T) {
	for crash := 1; crash <= 6; crash++ {
		for _, late := range []bool{false, true} {
			in(t, func(t *testing.T, m *machine) {
				shelve := func() error {
					hub := channels.NewHub(channels.Config{Store: m.disk(), Log: discard})
					_, err := hub.DeadLetters().FromOutboxes(t.Context(), []string{"outbox/net"}, "it waited")
					return err
				}
				old := channels.NewHub(channels.Config{Store: m.disk(), Log: discard})
				old.Add("net", m.fake.As(0))
				send(t, &testHub{Hub: old}, reply("a", "one"), reply("b", "two"))
				m.crash, m.late = m.ops+crash, late
				died := shelve() != nil
				m.reboot(t.Context())
				if died && shelve() != nil {
					t.Error("the second time")
				}
				seen := map[string]int{}
				parked, err := channels.NewHub(channels.Config{Store: m.disk(), Log: discard}).DeadLetters().List(t.Context())
				for _, p := range parked {
					seen[p.Reply.ID]++
				}
				if err != nil || seen["a"] == 0 || seen["b"] == 0 || len(parked) > 3 {
					t.Errorf("crash at %d, late %v: parked %v, %v", crash, late, seen, err)
				}
			})
		}
	}
}
