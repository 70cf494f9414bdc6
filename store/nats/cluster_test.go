package nats_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley/store"
	"parley/store/nats"
	"parley/store/nats/natstest"
	"parley/store/storetest"
)

// startCluster starts a cluster of three in this process and returns its address.
func startCluster(t testing.TB) (address string) {
	t.Helper()
	clients, routes := natstest.FreePorts(t, 3), natstest.FreePorts(t, 3)
	var members []*server.Server
	for i := range clients {
		members = append(members, natstest.Start(t, natstest.MemberOptions(i, storetest.TempDir(t), clients, routes)))
	}
	waitFor(t, "a leader", func() bool {
		for _, m := range members {
			if m.JetStreamIsLeader() && len(m.JetStreamClusterPeers()) == len(members) {
				return true
			}
		}
		return false
	})
	return natstest.AddressOf(clients)
}

// waitFor waits until done is true, of what other processes or servers do.
func waitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited for %s in vain", what)
		}
	}
}

// Each Store of a cluster has its own prefix.
func TestStoreOnCluster(t *testing.T) {
	address := startCluster(t)
	t.Run("stand by", func(t *testing.T) { testStandByChangesNothing(t, address) })
	t.Run("all", func(t *testing.T) { // ends with its cases, and the cluster after it
		storetest.RunUntimed(t, true, func(t *testing.T) func() store.Store {
			cfg := nats.Config{URL: address, Replicas: 3, Prefix: rand.Text()}
			t.Cleanup(func() { removeStreams(t, cfg) })
			return func() store.Store {
				s, err := nats.Open(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				return s
			}
		})
	})
}

// Who stands by with another config changes nothing of what the gateway uses that answers.
func testStandByChangesNothing(t *testing.T, address string) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cfg := nats.Config{URL: address, Replicas: 3, Prefix: rand.Text()}
	t.Cleanup(func() { removeStreams(t, cfg) })
	s, err := cfg.Open(ctx, store.Host{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	other := cfg
	other.Replicas = 1
	if _, err := other.Open(ctx, store.Host{Waiting: func(string, store.Dial, store.Remote) { cancel() }}); !errors.Is(err, context.Canceled) {
		t.Errorf("Open = %v", err)
	}
	if text, err := cfg.Examine(t.Context()); err != nil || !strings.Contains(text, "copies of everything: 3") {
		t.Errorf("Examine = %q, %v", text, err)
	}
}

// removeStreams removes the streams of a Store, each of which costs servers some time.
func removeStreams(t *testing.T, cfg nats.Config) {
	conn, err := client.Connect(cfg.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // that of the test has ended
	defer cancel()
	for _, name := range []string{"buckets", "logs", "queues"} {
		if err := js.DeleteStream(ctx, cfg.Prefix+"-"+name); err != nil {
			t.Error(err)
		}
	}
}
