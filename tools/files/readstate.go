package files

import (
	"crypto/sha256"
	"sync"

	"parley/chat"
	"parley/tools"
	"parley/workspace"
)

// maxStates is how many read states are kept. A file whose state was dropped counts as
// never read.
const maxStates = 50_000

// A readState is the content of a file as a session last read or wrote it.
type readState struct {
	mtime int64 // Unix time in nanoseconds
	hash  [sha256.Size]byte
	key   string // of the call that read the file; "" if the session wrote it later
	part  string // which part of the file that call read
}

// A stateKey identifies a file of a workspace, and the session that read it.
type stateKey struct {
	session   chat.SessionID
	workspace string // its folder
	file      workspace.Path
}

// readStates remembers, in memory, which files each session has read or written. It is
// safe for concurrent use.
type readStates struct {
	mu     sync.Mutex
	states map[stateKey]readState
}

// last returns the state of a file as c's session knows it.
func (s *readStates) last(c tools.Call, at workspace.Path) (readState, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, ok := s.states[stateKey{c.Session, c.Workspace.Dir(), at}]
	return state, ok
}

// note records the state of a file as c's session now knows it.
func (s *readStates) note(c tools.Call, at workspace.Path, state readState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.states == nil {
		s.states = map[stateKey]readState{}
	}
	for key := range s.states { // in random order
		if len(s.states) < maxStates {
			break
		}
		delete(s.states, key)
	}
	s.states[stateKey{c.Session, c.Workspace.Dir(), at}] = state
}

// warning returns a warning for a model that changes a file without having read its
// current content, whose hash is given. It returns "" if the model has (D-067).
func (s *readStates) warning(c tools.Call, at workspace.Path, hash [sha256.Size]byte) string {
	switch state, ok := s.last(c, at); {
	case !ok:
		return "Warning: file has not been read yet. Read it first to verify content before editing."
	case state.hash != hash:
		return "Warning: file has been modified since last read. Re-read to verify content before editing."
	}
	return ""
}
