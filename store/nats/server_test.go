package nats_test

import (
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats-server/v2/server/ats"
	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"parley/store"
	"parley/store/nats"
	"parley/store/nats/natstest"
	"parley/store/storetest"
)

func TestMain(m *testing.M) {
	if natstest.Serve() {
		return
	}
	// All servers of a process share a clock, which runs as long as one of them does. It must not belong to a bubble,
	// as others would wait for it in vain.
	ats.Register()
	os.Exit(m.Run())
}

// startServer starts a server in this process that is reached without a network, and stops it at the end of the test.
func startServer(t testing.TB) *server.Server {
	t.Helper()
	return natstest.Start(t, &server.Options{DontListen: true, JetStream: true, StoreDir: storetest.TempDir(t)})
}

// jetStream returns a client of a server that listens.
func jetStream(t testing.TB, s *server.Server) jetstream.JetStream {
	t.Helper()
	conn, err := client.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// open opens a Store on a server in this process.
func open(t testing.TB, s *server.Server, cfg nats.Config) *nats.Store {
	t.Helper()
	opened, err := nats.Open(t.Context(), nats.WithOptions(cfg, client.InProcessServer(s)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	return opened
}

func TestStore(t *testing.T) {
	storetest.Run(t, true, func(t *testing.T) func() store.Store {
		s := startServer(t)
		cfg := nats.Config{}
		if natstest.InBubble() {
			cfg = nats.WithLeaseTime(cfg, 10*time.Minute) // days pass, in which locks are renewed
		}
		return func() store.Store { return open(t, s, cfg) }
	})
}
