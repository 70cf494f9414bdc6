package telegramtest

import (
	"net/http"
	"slices"
	"time"
)

// A Fault makes requests fail. Its zero value does nothing.
type Fault struct {
	Times      int           // how many requests it hits: 1 when 0, all below 0
	Chat       int64         // hits only requests about this chat, unless 0
	Delay      time.Duration // before anything else
	Hang       bool          // no answer until the client gives up
	DropBefore bool          // the connection breaks and nothing was done
	DropAfter  bool          // what was asked is done, but the connection breaks before the answer
	Code       int           // nothing is done and this is the error_code
	Text       string        // its description
	RetryAfter int           // seconds, for Code 429
	Page       string        // nothing is done; with the status Code, this is the answer instead of JSON

	Answer string // what was asked is done, and this is the whole answer, with the message's number for each {id}
}

// Fail makes requests for method fail, after the faults it was given before.
func (s *Server) Fail(method string, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	s.faults[method] = append(s.faults[method], &f)
}

// Heal forgets all faults.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.faults)
}

// fault takes the fault that hits a request.
func (s *Server) fault(method string, chat int64) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.faults[method] {
		if f.Chat != 0 && f.Chat != chat {
			continue
		}
		if f.Times--; f.Times == 0 {
			s.faults[method] = slices.Delete(s.faults[method], i, i+1)
		}
		return *f
	}
	return Fault{}
}

// before reports whether the request ends here.
func (f Fault) before(s *Server, w http.ResponseWriter, r *http.Request) bool {
	if f.Delay > 0 || f.Hang {
		delay := time.NewTimer(f.Delay)
		defer delay.Stop()
		fired := delay.C
		if f.Hang {
			fired = nil
		}
		select {
		case <-fired:
		case <-r.Context().Done():
			return true
		case <-s.closed.Done():
			return true
		}
	}
	switch {
	case f.DropBefore:
		panic(http.ErrAbortHandler)
	case f.Page != "":
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(max(f.Code, http.StatusOK))
		_, _ = w.Write([]byte(f.Page))
		return true
	case f.Code != 0:
		failure := &apiError{Code: f.Code, Text: f.Text}
		if f.RetryAfter > 0 {
			failure.Params = map[string]any{"retry_after": f.RetryAfter}
		}
		answer(w, nil, failure)
		return true
	}
	return false
}

// An Event is a request, before it is processed or after, and before the
// answer is written.
type Event struct {
	Method string
	Chat   int64 // 0 if it is about none
	Params map[string]string
	Done   bool // it has been processed
	OK     bool // and was not refused
}

// Watch calls f at every Event. The request waits for f, which may do anything,
// such as end another process.
func (s *Server) Watch(f func(Event)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers = append(s.watchers, f)
}

func (s *Server) emit(e Event) {
	s.mu.Lock()
	watchers := s.watchers
	s.mu.Unlock()
	for _, f := range watchers {
		f(e)
	}
}
