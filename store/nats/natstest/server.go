// Package natstest runs servers of NATS in the processes of tests.
package natstest

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"parley/store/storetest"
	"parley/timetest"
)

// Listening returns the options of a server with JetStream on a port of its own.
func Listening(t testing.TB) *server.Options {
	t.Helper()
	return &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: storetest.TempDir(t)}
}

// Start starts a server in this process, and stops it at the end of the test.
func Start(t testing.TB, o *server.Options) *server.Server {
	t.Helper()
	o.NoLog = true
	o.NoSigs = true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
		if InBubble() {
			timetest.Sleep(time.Minute) // some of its goroutines end later
		}
	})
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	return s
}

// InBubble reports whether the caller is in a bubble of synctest, whose clock begins in 2000.
func InBubble() bool { return time.Now().Year() < 2010 }
