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
	sessions map[chat.SessionID]*session
	ticks    int
}

type session struct {
	used  int // when, in ticks
	files map[string]look
}

// last returns what c's session knows of the file called name, as
// Workspace.Path returned it.
func (s *seen) last(c tools.Call, name string) (look, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l, ok := s.of(c.Session).files[path.Join(c.Workspace.Dir(), name)]
	return l, ok
}

// note remembers what c's session now knows of the file.
func (s *seen) note(c tools.Call, name string, l look) {
	s.mu.Lock()
	defer s.mu.Unlock()
	files := s.of(c.Session).files
	for other := range files {
		if len(files) < maxSeen {
			break
		}
		delete(files, other)
	}
	files[path.Join(c.Workspace.Dir(), name)] = l
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

// of returns the session called id, which is now the latest that was used.
func (s *seen) of(id chat.SessionID) *session {
	if s.sessions == nil {
		s.sessions = map[chat.SessionID]*session{}
	}
	if s.sessions[id] == nil {
		s.forget()
		s.sessions[id] = &session{files: map[string]look{}}
	}
	s.ticks++
	s.sessions[id].used = s.ticks
	return s.sessions[id]
}

// forget makes room for one more session.
func (s *seen) forget() {
	if len(s.sessions) < maxSessions {
		return
	}
	var oldest chat.SessionID
	for id, one := range s.sessions {
		if o := s.sessions[oldest]; o == nil || one.used < o.used {
			oldest = id
		}
	}
	delete(s.sessions, oldest)
}
