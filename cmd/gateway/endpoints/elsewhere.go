package endpoints

import (
	"context"
	"net"
	"os"
	"sync"
	"syscall"

	"parley/channels/console"
	"parley/host"
	"parley/store"
)

// Elsewhere is the gateway that answers on another machine, for a command where none runs.
type Elsewhere struct {
	driver  any // of the store
	name    string
	closing context.Context // ends with Close
	stop    context.CancelFunc

	mu   sync.Mutex
	peer *store.Peer // nil until it is found
}

// NewElsewhere returns the gateway that has the store of driver, and serves what is reached under name. The caller
// closes it.
func NewElsewhere(driver any, name string) *Elsewhere {
	e := &Elsewhere{driver: driver, name: name}
	e.closing, e.stop = context.WithCancel(context.Background())
	return e
}

// Dial implements [admin.Remote]. The first call looks for the gateway.
func (e *Elsewhere) Dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.closing, cancel)()
	e.mu.Lock()
	defer e.mu.Unlock()
	servers, ok := e.driver.(store.Locator)
	if !ok {
		return nil, nil
	}
	if e.peer == nil {
		peer, err := servers.Locate(ctx, e.name)
		if peer == nil || err != nil {
			return nil, err
		}
		e.peer = peer
	}
	return e.peer.Dial(ctx, e.name, store.Caller{})
}

// Close ends all connections.
func (e *Elsewhere) Close() error {
	e.stop()
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.peer == nil {
		return nil
	}
	return e.peer.Close()
}

// ChatElsewhere has t talk to the gateway that has the store of driver. It returns false if there is none.
func ChatElsewhere(ctx context.Context, driver any, t console.Terminal) (found bool, err error) {
	ctx, stop := host.UntilSignal(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	e := NewElsewhere(driver, Terminal)
	defer e.Close()
	conn, err := e.Dial(ctx)
	if conn == nil || err != nil {
		return false, err
	}
	conn.Close()
	return true, console.ChatOver(ctx, e.Dial, t)
}
