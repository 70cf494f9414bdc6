// Package serve makes Parley a server of the Model Context Protocol: programs send messages to people's chats,
// ask the agent, manage scheduled jobs, search what is known, and talk to people from coding sessions.
//
// A Server runs in the gateway and serves HTTP. A [Bridge] runs in a process of its own and serves the standard
// streams; it calls the Server. What a caller may do is what the person may do whose key it has.
package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/chat"
	"parley/scheduler/jobs"
	"parley/store"
	"parley/texts"
	"parley/tools"
	"parley/workspace"
)

// Config is what a Server needs of the gateway.
type Config struct {
	Version string
	Store   store.Store // for messages to coding sessions
	Texts   texts.Coding
	Log     *slog.Logger

	// Ask asks the agent. If ctx ends, the turn goes on, and asking again under the same key waits for its answer.
	Ask func(ctx context.Context, who chat.Sender, prefix string, q Question) (Answer, error)
	// Kit returns the tools that the person of a scope may use.
	Kit func(context.Context, tools.Scope) (*tools.Kit, error)
	// OwnerAt returns the owner in the chat of that session; "" is the chat where owners are told things.
	OwnerAt func(session string) (jobs.Asker, error)
	// PrivateChat returns the chat in which somebody can be written to, such as "web:anna".
	PrivateChat func(person string) (at chat.Address, ok bool)
	// Sees returns the workspace as a person sees it.
	Sees func(chat.Person) *workspace.Workspace
	// Search returns the latest places where somebody said all words in a session for which in returns true.
	Search func(ctx context.Context, in func(chat.SessionID) bool, words string, most int) ([]chat.Find, error)
}

// A Question is a message to the agent.
type Question struct {
	Text    string
	Session string          // name of the conversation; "": a new one
	Key     string          // the same question under the same key is asked once
	Stop    <-chan struct{} // closed when the turn is to be stopped
	Step    func(chat.Step) // is told of tools at work, and must not block
}

// An Answer is the agent's.
type Answer struct {
	Text    string
	Session string // under which the conversation goes on
	Tokens  chat.Tokens
}

// A Server serves the protocol over HTTP.
type Server struct {
	cfg      Config
	inbox    *inbox
	endpoint *endpoint
	closing  chan struct{} // closed by Close
}

// New returns the Server of cfg.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, inbox: newInbox(cfg.Store, cfg.Log), closing: make(chan struct{})}
	again := &repeats{made: map[string]chan struct{}{}}
	s.endpoint = newEndpoint(func(c caller) *mcp.Server {
		server := newServer(cfg.Version, mcp.ServerOptions{GetSessionID: c.newSessionID})
		(&api{cfg: cfg, inbox: s.inbox, repeats: again, closing: s.closing, caller: c}).addTools(server)
		return server
	})
	return s
}

// Serve answers a request of who, who was identified by a key whose sessions begin with prefix.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, who chat.Sender, prefix string) {
	s.endpoint.serve(w, r, caller{who, prefix})
}

// Close ends all sessions. Turns that were asked for go on.
func (s *Server) Close() error {
	close(s.closing)
	return s.endpoint.close()
}

// newServer returns a server without tools.
func newServer(version string, options mcp.ServerOptions) *mcp.Server {
	options.Instructions = instructions
	if options.Capabilities == nil {
		options.Capabilities = &mcp.ServerCapabilities{}
	}
	options.Capabilities.Tools = &mcp.ToolCapabilities{}
	info := &mcp.Implementation{Name: "parley", Title: "Parley", Version: version}
	return mcp.NewServer(info, &options)
}

const instructions = "Parley is a chat gateway with an agent. Calls act for the person whose key is used. " +
	"Give a call that changes something a key of your own, and repeat it with the same key if you do not know " +
	"whether it was done: nothing is done twice. A person writes to a coding session with /code in their chat: " +
	"wait_for_message returns what they wrote, reply answers, and what was neither answered nor acknowledged is " +
	"returned again. People see only what you send with reply, send_message or ask_person."

// digest returns a name for parts.
func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}
