package nats_test

import (
	"strings"
	"testing"
	"time"

	"parley/store"
	"parley/store/nats"
	"parley/store/nats/natstest"
)

// A command finds the gateway that has the Store at once, and whoever has taken over from it. It finds none where there
// was no Store yet, where nobody has it, and where whoever had it was killed. Who has it and does not answer is named.
func TestLocate(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, natstest.Listening(t))
	p := natstest.StartProxy(t, srv.Addr().String())
	const leaseTime = 1500 * time.Millisecond
	ctx := t.Context()
	locate := func(want string) *store.Peer {
		t.Helper()
		cfg := nats.WithLeaseTime(nats.Config{URL: srv.ClientURL()}, leaseTime)
		found, err := cfg.Locate(ctx, "commands")
		switch {
		case err != nil:
			t.Fatal(err)
		case found == nil && want != "", found != nil && !strings.HasPrefix(found.Name, want):
			t.Fatalf("found %v, want %q", found, want)
		}
		return found
	}
	locate("")
	cfg := nats.WithLeaseTime(nats.Config{URL: p.Address()}, leaseTime)
	first, err := cfg.Open(ctx, store.Host{})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, err := cfg.Locate(ctx, "commands"); err == nil || !strings.Contains(err.Error(), "in use by another gateway, process ") ||
		!strings.Contains(err.Error(), "which does not answer: try again in a minute, or stop it first") {
		t.Errorf("a gateway that does not listen: %v", err)
	}
	if _, err := first.(store.Connector).Listen("commands"); err != nil {
		t.Fatal(err)
	}
	found := locate("process ")
	if conn, err := found.Dial(ctx, "commands", store.Caller{}); err != nil {
		t.Error(err)
	} else if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if err := found.Close(); err != nil {
		t.Error(err)
	}
	p.Stall(true)
	locate("")
	p.Stall(false)
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	locate("")
}
