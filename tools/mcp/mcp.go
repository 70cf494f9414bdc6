// Package mcp offers the tools, resources and prompts of MCP servers: programs and services that
// other people wrote, as config names them.
//
// A server is connected to when the first turn needs it (D-030). A supervisor keeps it connected:
// it starts its program in a sandbox, or reaches it by HTTP, lists what it offers, and begins anew
// when the connection ends. What is listed becomes tools with names such as
// mcp_github_create_issue (D-105). Their results are untrusted content (R-S12, R-S22).
package mcp

import (
	"context"
	"log/slog"
	"time"

	"parley/tools/network"
	"parley/tools/sandbox"
)

// A Config is what servers are used with. Each part may be left out.
type Config struct {
	Log *slog.Logger

	// Sandbox runs the programs of servers, and Bare those of servers without a sandbox. Without
	// one of them, the servers that need it cannot be used.
	Sandbox, Bare sandbox.Runner

	// Folder has a folder for each server that has a program: its home, which it may change.
	Folder string

	// Hidden are files and folders that no server sees, although it was granted a folder with them:
	// the data folder and the config.
	Hidden []string

	// Addresses judges where servers reached by HTTP may send Parley, besides their own address.
	// nil allows the public web.
	Addresses *network.Guard

	// Version is Parley's, which servers are told.
	Version string

	// MaxStored is how many bytes of files a person may have in the workspace, 0 for any number. It
	// may be nil.
	MaxStored func() int64

	// Review returns the part of a listing that may be used. It is called for each new list, before
	// any of it is offered, and for all of them again after Servers.Review. It must be fast: it
	// delays the list. inUse is false before a turn needs the server, which may be connected for
	// other reasons, and is reviewed again then. nil approves everything.
	Review func(ctx context.Context, server string, s Server, l Listing, inUse bool) (Listing, error)

	// Known returns what Review approved of the last listing of a server, which is offered until it is
	// connected; nothing if it is not known. It may be nil.
	Known func(ctx context.Context, server string, s Server) (Listing, error)

	// IdleAfter is how long nobody may call a server until its connection is ended, and its program with
	// it. The next call connects it. 0 is for ever. Servers that are Eager stay connected.
	IdleAfter time.Duration

	// Handshake is how long a server may take to connect, and a turn waits for one that nobody has used
	// before (D-031). 0 is 30 seconds for the server, and 10 for the turn.
	Handshake time.Duration

	// Redact removes the tokens of sign-ins from what servers return: a server may repeat what it was
	// sent. nil leaves texts as they are.
	Redact func(text string) string

	SignIn SignIn // nil: servers are used without signing in
	Inputs Inputs // nil: the questions of servers are declined
}
