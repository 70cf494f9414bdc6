package discordtest

import (
	"net/http"
	"slices"
	"strings"
)

// A Fault makes requests fail. Its zero value does nothing.
type Fault struct {
	Times      int     // how many requests it hits: 1 when 0, all below 0
	Channel    string  // hits only requests about this channel, unless empty
	Uploads    bool    // hits only requests that bring files
	Hang       bool    // no answer until the client gives up
	DropBefore bool    // the connection breaks and nothing was done
	DropAfter  bool    // what was asked is done, but the connection breaks before the answer
	Status     int     // nothing is done and this is the status
	Code       int     // in the answer's body
	RetryAfter float64 // seconds, for Status 429
	Page       string  // nothing is done; with Status, this is the answer instead of JSON
}

// Fail makes requests of a route such as "POST /channels/{id}/messages" fail,
// after the faults it was given before.
func (s *Server) Fail(route string, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	s.faults[route] = append(s.faults[route], &f)
}

func (s *Server) fault(route, channel string, r *http.Request) Fault {
	uploads := strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/")
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.faults[route] {
		if f.Channel != "" && f.Channel != channel || f.Uploads && !uploads {
			continue
		}
		if f.Times--; f.Times == 0 {
			s.faults[route] = slices.Delete(s.faults[route], i, i+1)
		}
		return *f
	}
	return Fault{}
}

// before reports whether the request ends here.
func (f Fault) before(s *Server, w http.ResponseWriter, r *http.Request) bool {
	if f.Hang {
		select {
		case <-r.Context().Done():
		case <-s.closed.Done():
		}
		return true
	}
	switch {
	case f.DropBefore:
		panic(http.ErrAbortHandler)
	case f.Page != "":
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(max(f.Status, http.StatusOK))
		_, _ = w.Write([]byte(f.Page))
		return true
	case f.Status != 0:
		answer(w, &apiError{Status: f.Status, Code: f.Code, Text: "a fault", After: f.RetryAfter})
		return true
	}
	return false
}

// An Event is a request, before it is processed or after, and before the answer is written.
type Event struct {
	Route   string
	Channel string // empty if it is about none
	Done    bool   // it has been processed
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
