package endpoints

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"time"

	"parley/channels/console"
	"parley/store"
)

const (
	healthTimeout = 5 * time.Second // for a gateway to say how it is
	reachTimeout  = 2 * time.Second // for the servers of its store to answer it
	maxProblem    = 4 << 10         // bytes
)

// healthSocket returns the path of the socket at which each gateway, also one that stands by, says how it is: it writes
// what is wrong, nothing if all is well, and closes the connection.
func healthSocket(dataDir string) string { return filepath.Join(dataDir, "health.sock") }

func (c Config) listenHealth() (net.Listener, error) { return console.Listen(healthSocket(c.DataDir)) }

// serveHealth says at l how this gateway is, whose store is on the servers, until l is closed; nil: on none.
func serveHealth(l net.Listener, servers store.Remote) {
	acceptAll(l, func(conn net.Conn) { tellHealth(conn, servers) })
}

func tellHealth(conn net.Conn, servers store.Remote) {
	defer conn.Close()
	if servers == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), reachTimeout)
	defer cancel()
	if err := servers.Reach(ctx); err != nil {
		_, _ = io.WriteString(conn, err.Error()) // whoever asks may have left
	}
}

// CheckHealth asks the gateway with that data folder, also one that stands by, how it is. The error says in one
// sentence that none runs, that it does not answer in time, or that it cannot reach the servers of its store.
func CheckHealth(ctx context.Context, dataDir string) error {
	conn, err := console.Dial(ctx, healthSocket(dataDir))
	if err != nil {
		return errors.New("no gateway runs with the data in " + dataDir)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(healthTimeout)) // it can only fail once conn is closed
	problem, err := io.ReadAll(io.LimitReader(conn, maxProblem))
	switch {
	case err != nil:
		return fmt.Errorf("the gateway with the data in %s does not answer within %v: "+
			"it stands still, or this machine is overloaded", dataDir, healthTimeout)
	case len(problem) > 0:
		return fmt.Errorf("the gateway runs, but cannot reach the servers of its store: %s", problem)
	}
	return nil
}
