package store

import (
	"context"
	"log/slog"
	"net"
)

// A Driver opens the Store of one type: it is "store" in config.json. The keys are its
// fields with a json tag, and the gateway reads and checks them by their tags (see
// package config).
type Driver interface {
	// Open returns the Store, which the caller closes.
	Open(ctx context.Context, host Host) (Store, error)
}

// A Host is what a Driver is told of the process that opens its Store.
type Host struct {
	Log *slog.Logger // nil: log nothing
	// Brief says that the process is a command that soon ends: it does not wait until
	// a gateway on another machine lets go of the Store.
	Brief bool
	// Waiting is called if Open has to wait for the gateway on another machine that holder describes, and again when
	// it waits for yet another one; may be nil. With dial the gateway that has the Store is reached (see [Connector]),
	// and servers are what both depend on.
	Waiting func(holder string, dial Dial, servers Remote)
	// Stopped is called at most once, and must not block, when the Store cannot be used
	// any more until it is opened again; may be nil.
	Stopped func(error)
}

// A Connector is a Store over which gateways that wait for it reach the one that has it.
type Connector interface {
	// Listen returns a listener for the connections that other gateways [Dial] under name. The addresses of a
	// connection, of type [Address], are those of its Caller. The listener is to be closed before the Store.
	Listen(name string) (net.Listener, error)
}

// A Remote is a Store on servers, which may be out of reach.
type Remote interface {
	// Reach asks the servers. It returns an error that says what is wrong unless they answer before ctx ends.
	Reach(ctx context.Context) error
}

// A Dial connects to the gateway that has the Store, which listens under name.
type Dial func(ctx context.Context, name string, c Caller) (net.Conn, error)

// A Locator is a Driver that finds the gateway which has its Store, on whichever machine.
type Locator interface {
	// Locate returns the gateway that has the Store and listens under name, and nil if none does: then the Store can be
	// opened. It changes nothing, and waits while one gateway takes over from another. The caller closes what it gets.
	Locate(ctx context.Context, name string) (*Peer, error)
}

// A Peer is a gateway that has the Store of a [Locator].
type Peer struct {
	Name  string // describes it
	Dial  Dial   // reaches it, or one that has taken over from it
	Close func() error
}

// A Caller says for whom a gateway connects to another one.
type Caller struct {
	From   string // the address of whoever is at the other end of what it passes on
	At     string // the address at which that one has reached it
	Public string // the URL by which people know it, "" if that is At
}

// An Address is one of a Caller.
type Address struct {
	Name   string
	Public string // of At: the URL by which people know it, "" if that is Name
}

// Forwarded is the network of an Address.
const Forwarded = "forwarded"

// Network implements [net.Addr].
func (Address) Network() string { return Forwarded }

// String implements [net.Addr].
func (a Address) String() string { return a.Name }

// An Examiner is a Driver that can tell how its Store is without opening it.
type Examiner interface {
	// Examine returns what is well, in a few words, or an error that says what to do. It changes nothing.
	Examine(ctx context.Context) (text string, err error)
}
