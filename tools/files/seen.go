package files

import (
	"crypto/sha256"
	"sync"

	"parley/chat"
	"parley/tools"
	"parley/workspace"
)

// maxSeen is how many looks are remembered. A forgotten one counts as never had.
const maxSeen = 50_000

// A look is what a session knows of a file.
type look struct {
	mtime int64 // ns since 1970
	hash  [sha256.Size]byte
	key   string // of the call that read it; "" if the session wrote it since
	part  string // of the file that the call asked for
}

// A viewer is who had a look at what: a session, and a file of a workspace.
type viewer struct {
	session   chat.SessionID
	workspace *workspace.Workspace
	file      workspace.Path
}

// seen remembers which files each session has read or written, while the
// program runs. It is safe for use by several goroutines.
type seen struct {
	mu    sync.Mutex
	looks map[viewer]look
}

// last returns what c's session knows of a file.
func (s *seen) last(c tools.Call, at workspace.Path) (look, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.looks[viewer{c.Session, c.Workspace, at}]
	return l, ok
}

// note remembers what c's session now knows of the file.
func (s *seen) note(c tools.Call, at workspace.Path, l look) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.looks == nil {
		s.looks = map[viewer]look{}
	}
	for v := range s.looks { // any will do
		if len(s.looks) < maxSeen {
			break
		}
		delete(s.looks, v)
	}
	s.looks[viewer{c.Session, c.Workspace, at}] = l
}

// warning is what a model should know that changes a file, which holds what
// has this hash, without having seen that; "" if it has (D-067).
func (s *seen) warning(c tools.Call, at workspace.Path, hash [sha256.Size]byte) string {
	switch l, ok := s.last(c, at); {
	case !ok:
		return "Warning: file has not been read yet. Read it first to verify content before editing."
	case l.hash != hash:
		return "Warning: file has been modified since last read. Re-read to verify content before editing."
	}
	return ""
}
