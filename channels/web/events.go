package web

import (
	"cmp"
	"io"
	"net/http"
	"parley/response"
	"strconv"
	"time"
)

const (
	heartbeat = 15 * time.Second
	writeTime = 30 * time.Second // for what one reader is sent at once
)

// events sends what is said after Last-Event-ID, and then what is being said.
func (c *Channel) events(k call) error {
	after, err := strconv.ParseUint(cmp.Or(k.r.Header.Get("Last-Event-ID"), k.r.FormValue("after"), "0"), 10, 64)
	if err != nil {
		return response.BadRequest("That is no number of an event.")
	}
	c.reading.RLock()
	defer c.reading.RUnlock()
	if c.open.Err() != nil {
		return response.Problem{
			Status: http.StatusServiceUnavailable,
			Text:   "I am closing. Please come back in a moment.",
		}
	}
	k.w.Header().Set("Content-Type", "text/event-stream")
	k.w.Header().Set("Cache-Control", "no-store")
	k.w.Header().Set("X-Accel-Buffering", "no")
	out := stream{k.w, http.NewResponseController(k.w)}
	if err := c.follow(k, after, out); err != nil && k.r.Context().Err() == nil {
		c.cfg.Log.Warn("browser chat: reader lost", "path", k.r.URL.Path, "err", err)
	}
	return nil
}

// follow sends what was said after record seq, and what is said then, until one
// of us leaves.
func (c *Channel) follow(k call, seq uint64, out stream) error {
	ctx, rd := k.r.Context(), k.room.join(seq)
	if err := out.send([]byte("retry: 1000\n\n")); err != nil {
		return err
	}
	for s, err := range k.room.since(ctx, seq) {
		if err == nil {
			rd.seq = s.Seq
			err = out.send(event("message", s.Seq, s.entry()).body)
		}
		if err != nil {
			return err
		}
	}
	for {
		bodies, news, wait, lost := k.room.take(rd)
		if lost {
			bodies = [][]byte{event("resync", 0, struct{}{}).body}
		}
		if err := out.send(bodies...); err != nil || lost {
			return err
		}
		select {
		case <-news:
		case <-time.After(wait):
			if wait == heartbeat {
				if err := out.send([]byte(":\n\n")); err != nil {
					return err
				}
			}
		case <-ctx.Done():
			return nil
		case <-c.open.Done():
			return nil
		}
	}
}

// A stream is where events are written to.
type stream struct {
	io.Writer
	*http.ResponseController
}

// send sends parts, if that does not take too long.
func (s stream) send(parts ...[]byte) error {
	if len(parts) == 0 {
		return nil
	}
	_ = s.SetWriteDeadline(time.Now().Add(writeTime)) // not every writer can
	for _, p := range parts {
		if _, err := s.Write(p); err != nil {
			return err
		}
	}
	return s.Flush()
}
