package files

import (
	"crypto/sha256"
	"io/fs"
	"path"
	"sync"

	"parley/chat"
	"parley/tools"
)

// What is remembered at most. What is forgotten counts as never read.
const (
	maxSessions = 256
	maxSeen     = 1000 // files of a session
)

// A stamp tells what a file holds from what it held before or will hold.
type stamp struct {
	mtime int64 // ns since 1970
	size  int64
	hash  [sha256.Size]byte
}

func stampOf(info fs.FileInfo, hash [sha256.Size]byte) stamp {
	return stamp{info.ModTime().UnixNano(), info.Size(), hash}
}

// A look is what a session knows of a file.
type look struct {
	stamp
	key  string // of the call that read it; "" if the session wrote it since
	part string // of the file that the call asked for
}

// seen remembers which files each session has read or written, while the
// program runs. It is safe for use by several goroutines.
type seen struct {
	mu       sync.Mutex
	sessions map[chat.SessionID]map[string]look // by the files' absolute paths
}

// last returns what c's session knows of the file called name, as
// Workspace.Path returned it.
func (s *seen) last(c tools.Call, name string) (look, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.sessions[c.Session][path.Join(c.Workspace.Dir(), name)]
	return l, ok
}

// note remembers what c's session now knows of the file.
func (s *seen) note(c tools.Call, name string, l look) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions == nil {
		s.sessions = map[chat.SessionID]map[string]look{}
	}
	if s.sessions[c.Session] == nil {
		makeRoom(s.sessions, maxSessions)
		s.sessions[c.Session] = map[string]look{}
	}
	files := s.sessions[c.Session]
	makeRoom(files, maxSeen)
	files[path.Join(c.Workspace.Dir(), name)] = l
}

// makeRoom drops any of m so that one more makes it most at most.
func makeRoom[K comparable, V any](m map[K]V, most int) {
	for k := range m {
		if len(m) < most {
			return
		}
		delete(m, k)
	}
}

// warning is what a model should know that changes a file, which is now as
// the stamp says, without having seen what is in it; "" if it has (D-067).
func (s *seen) warning(c tools.Call, name string, now stamp) string {
	switch l, ok := s.last(c, name); {
	case !ok:
		return "Warning: file has not been read yet. Read it first to verify content before editing."
	case l.hash != now.hash:
		return "Warning: file has been modified since last read. Re-read to verify content before editing."
	}
	return ""
}
