package web

import (
	"net/http"

	"parley/chat"
)

// recording sends the lines of a recording of a session. Whatever secrets were
// said in it are in there.
func (s *Server) recording(w http.ResponseWriter, r *http.Request, _ visitor) error {
	begun := false
	for line, err := range s.House.Recording(r.Context(), chat.SessionID(r.PathValue("id"))) {
		if err != nil && !begun {
			return err
		}
		if !begun {
			w.Header().Set("Content-Type", "application/x-ndjson")
		}
		begun = true
		if err == nil {
			_, err = w.Write(line)
		}
		if err != nil {
			panic(http.ErrAbortHandler) // half a recording must not look whole
		}
	}
	return nil
}
