package admission_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"parley/channels/admission"
	"parley/chat"
	"parley/store"
	"parley/store/mem"
)

// TestBlock: who is blocked has no role, whatever the config and a pairing say, gets no code, and has what they had
// once they are unblocked; a group that is blocked is heard from its owners only, and what others have waiting or
// scheduled there is not begun.
func TestBlock(t *testing.T) {
	s := mem.New()
	c := admission.NewControl(admission.Config{
		Store: s, Log: slog.New(slog.DiscardHandler), Welcome: func(context.Context, admission.Pairing) error { return nil },
	})
	rules, err := admission.NewRules([]string{"net:1"}, map[string][]string{"net": {"2", "3"}, "open": {"*"}})
	if err != nil {
		t.Fatal(err)
	}
	c.SetRules(rules)
	ctx := t.Context()
	from := func(channel, id, group string) chat.Message {
		m := chat.Message{ID: "1", At: chat.Address{Channel: channel, Chat: id}, From: chat.Sender{ID: id}, Account: "bot"}
		if group != "" {
			m.At.Chat, m.Group = group, true
		}
		return m
	}
	p, due, err := c.Request(ctx, from("net", "4", ""))
	if err != nil || !due {
		t.Fatal(due, err)
	}
	if _, err := c.Approve(ctx, p.Code); err != nil {
		t.Fatal(err)
	}
	asked, due, err := c.Request(ctx, from("net", "5", ""))
	if err != nil || !due {
		t.Fatal(due, err)
	}
	for _, who := range [][2]string{{"net", "2"}, {"net", "4"}, {"net", "5"}, {"open", "7"}, {"net", "-100"}} {
		if err := c.Block(ctx, who[0], who[1], "owner"); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Block(ctx, "net", "1", "owner"); !errors.Is(err, admission.ErrOwner) {
		t.Errorf("an owner was blocked: %v", err)
	}
	if _, err := c.Approve(ctx, asked.Code); !errors.Is(err, admission.ErrNoPairing) {
		t.Errorf("what somebody asked before they were blocked is approved: %v", err)
	}
	if _, due, err := c.Request(ctx, from("net", "5", "")); due || err != nil {
		t.Errorf("who is blocked gets a code: %v, %v", due, err)
	}
	want := func(blocked bool) {
		t.Helper()
		for _, w := range []struct {
			m       chat.Message
			role    chat.Role
			another bool // they are not blocked
		}{
			{from("net", "1", ""), chat.Owner, true},
			{from("net", "1", "-100"), chat.Owner, true},
			{from("net", "2", ""), chat.User, false},
			{from("net", "2", "-200"), chat.User, false},
			{from("net", "3", ""), chat.User, true},
			{from("net", "3", "-100"), chat.User, false},
			{from("net", "3", "-200"), chat.User, true},
			{from("net", "4", ""), chat.User, false},
			{from("open", "7", ""), chat.User, false},
			{from("open", "2", ""), chat.User, true},
		} {
			role := w.role
			if blocked && !w.another {
				role = chat.Unknown
			}
			if got, err := c.RoleOf(ctx, w.m); got != role || err != nil {
				t.Errorf("%+v: %q, %v, want %q", w.m.At, got, err, role)
			}
			if got, err := c.Role(ctx, w.m.At, w.m.From.ID); got != role || err != nil {
				t.Errorf("%+v later: %q, %v, want %q", w.m.At, got, err, role)
			}
		}
	}
	want(true)
	all, err := c.Blocked(ctx)
	if err != nil || len(all) != 5 || all[0].By != "owner" {
		t.Errorf("%+v, %v", all, err)
	}
	for _, b := range all {
		if found, err := c.Unblock(ctx, b.Channel, b.ID); !found || err != nil {
			t.Error(found, err)
		}
	}
	if found, err := c.Unblock(ctx, "net", "2"); found || err != nil {
		t.Errorf("nobody was unblocked: %v, %v", found, err)
	}
	want(false)

	// What cannot be read stays a block.
	if _, err := s.Bucket(store.BucketBlocked).Put(ctx, "net\x002", []byte("{"), store.Any); err != nil {
		t.Fatal(err)
	}
	if got, err := c.RoleOf(ctx, from("net", "2", "")); got != chat.Unknown || err != nil {
		t.Errorf("with a damaged block %q, %v", got, err)
	}
	if found, err := c.Unblock(ctx, "net", "2"); !found || err != nil {
		t.Error(found, err)
	}
}
