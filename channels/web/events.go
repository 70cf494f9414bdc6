package web

import (
	"cmp"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"parley/response"
)

const (
	heartbeatInterval = 15 * time.Second
	writeTimeout      = 30 * time.Second // for one write to a reader
)

// serveEvents sends the log entries after Last-Event-ID, and then what happens next.
func (c *Channel) serveEvents(req request) error {
	after, err := strconv.ParseUint(cmp.Or(req.r.Header.Get("Last-Event-ID"), req.r.FormValue("after"), "0"), 10, 64)
	if err != nil {
		return response.BadRequest("Invalid event number.")
	}
	c.readers.RLock()
	defer c.readers.RUnlock()
	if c.openCtx.Err() != nil {
		return response.Problem{
			Status: http.StatusServiceUnavailable,
			Text:   "Parley is shutting down. Please try again in a moment.",
		}
	}
	req.w.Header().Set("Content-Type", "text/event-stream")
	req.w.Header().Set("Cache-Control", "no-store")
	req.w.Header().Set("X-Accel-Buffering", "no")
	out := eventWriter{req.w, http.NewResponseController(req.w)}
	if err := c.streamEvents(req, after, out); err != nil && req.r.Context().Err() == nil {
		c.cfg.Log.Warn("browser chat: event stream broken", "path", req.r.URL.Path, "err", err)
	}
	return nil
}

// streamEvents sends the entries after number seq, and then events until the reader
// leaves or c is closed.
func (c *Channel) streamEvents(req request, seq uint64, out eventWriter) error {
	ctx := req.r.Context()
	rd := req.room.addReader(seq)
	visible := func(events ...sseEvent) [][]byte { // B-071
		haveSteps := slices.ContainsFunc(events, func(e sseEvent) bool { return e.hasSteps })
		return bodies(events, haveSteps && c.cfg.Blocked(ctx, req.who, blockSteps))
	}
	if err := out.send([]byte("retry: 1000\n\n")); err != nil {
		return err
	}
	for s, err := range req.room.entriesAfter(ctx, seq) {
		if err != nil {
			return err
		}
		rd.lastSeq = s.Seq
		if err := out.send(visible(messageEvent(s))...); err != nil {
			return err
		}
	}
	for {
		events, changed, wait, lost := req.room.nextEvents(rd)
		if lost {
			events = []sseEvent{newEvent("resync", 0, struct{}{})}
		}
		if err := out.send(visible(events...)...); err != nil || lost {
			return err
		}
		select {
		case <-changed:
		case <-time.After(wait):
			if wait == heartbeatInterval {
				if err := out.send([]byte(":\n\n")); err != nil {
					return err
				}
			}
		case <-ctx.Done():
			return nil
		case <-c.openCtx.Done():
			return nil
		}
	}
}

// An eventWriter writes events to a reader.
type eventWriter struct {
	io.Writer
	*http.ResponseController
}

// send writes and flushes parts within writeTimeout.
func (s eventWriter) send(parts ...[]byte) error {
	if len(parts) == 0 {
		return nil
	}
	_ = s.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer can
	for _, p := range parts {
		if _, err := s.Write(p); err != nil {
			return err
		}
	}
	return s.Flush()
}
