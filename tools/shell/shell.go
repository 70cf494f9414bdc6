// Package shell runs the commands that a model writes: exec, and what of it goes on in the
// background. Every command is a process of its own in a sandbox (R-S16); what makes a series of
// them feel like one shell, the folder and the exported variables, is kept in the store.
package shell

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"parley/chat"
	"parley/store"
	"parley/tools"
	"parley/tools/sandbox"
	"parley/workspace"
)

// Config is what a Shell is made of.
type Config struct {
	Store  store.Store
	Files  func() *workspace.Workspace // all of it, once Run is called; may be nil
	Runner sandbox.Runner
	// MaxStored returns how many bytes of files each person may have in the workspace. Owners have no
	// limit. If it is nil, or returns 0 or less, nobody has.
	MaxStored func() int64
	Deliver   chat.Deliver // takes the message that tells how a command in the background has ended
	Log       *slog.Logger
}

// Settings are what commands may use. They may change while a Shell is in use.
type Settings struct {
	Timeout   time.Duration     // of a command that names none
	Network   []string          // hosts that every command may reach; "*" is all public ones
	Env       map[string]string // variables that every command has
	Memory    int64             // bytes
	Processes int

	// HostNetwork says that a command that asks for the network gets that of the machine, and not
	// only the public internet.
	HostNetwork bool

	// OnlyOwners says that commands run without a sandbox, and so for owners only, whatever the
	// rules of the config say.
	OnlyOwners bool
}

// timeout returns how long a command that names no time may take.
func (s Settings) timeout() time.Duration { return cmp.Or(s.Timeout, time.Minute) }

// A Shell runs commands, and knows those in the background. It is safe for concurrent use.
type Shell struct {
	cfg      Config
	states   store.Table[state]
	writings store.Table[writing]
	commands store.Table[Command]
	id       string // of this process: what others ran is over

	marks sync.Mutex // held while the record of what may be written in work changes

	mu      sync.Mutex
	running map[string]*process // in the background, by the ID of their Command
	closing bool
	work    sync.WaitGroup // of those in running; none is added once closing is set
}

// New returns a Shell. Commands in the background need its Run.
func New(c Config) *Shell {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	shells := c.Store.Bucket(store.BucketShells)
	background := c.Store.Bucket(store.BucketBackground)
	return &Shell{
		cfg:      c,
		id:       rand.Text(),
		states:   store.NewTable(shells, store.Forget[state](c.Log, "the state of a shell")),
		writings: store.NewTable(shells, store.Forget[writing](c.Log, "what a command may write")),
		commands: store.NewTable(background, store.Forget[Command](c.Log, "a command in the background")),
		running:  map[string]*process{},
	}
}

// category is that of all tools here.
const category = "exec"

// Tools returns exec, exec_status and exec_stop. They are for owners unless a rule says otherwise.
func (s *Shell) Tools(set Settings) []tools.Tool {
	return []tools.Tool{s.exec(set), s.status(), s.stop()}
}

// A state is what is kept of a session's shell between two commands.
type state struct {
	Dir string            `json:"dir"` // where the next command starts; "" is the folder of programs
	Env map[string]string `json:"env,omitempty"`

	// Tainted says that untrusted content may have had a part in Env (R-S12).
	Tainted bool `json:"tainted,omitempty"`
}

// EndConversation forgets the folder and the variables of a session.
func (s *Shell) EndConversation(id chat.SessionID) {
	if err := s.states.Delete(context.Background(), string(id)); err != nil {
		s.cfg.Log.Error("the state of a shell was not forgotten", "session", id, "err", err)
	}
}

// state returns what is known of a session's shell.
func (s *Shell) state(ctx context.Context, id chat.SessionID) (state, error) {
	st, _, err := s.states.Get(ctx, string(id))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return state{}, fmt.Errorf("read the state of the shell: %w", err)
	}
	return st, nil
}
