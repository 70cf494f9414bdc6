package web

import (
	"cmp"
	"context"
	"io"
	"net/http"
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
		return problem{http.StatusBadRequest, "That is no number of an event."}
	}
	if !c.enter() {
		return problem{http.StatusServiceUnavailable, "I am closing. Please come back in a moment."}
	}
	defer c.live.Done()
	rm := k.room
	rd := rm.join()
	defer rm.part(rd)
	out := stream{k.w, http.NewResponseController(k.w)}
	_ = out.SetReadDeadline(time.Time{})
	k.w.Header().Set("Content-Type", "text/event-stream")
	k.w.Header().Set("Cache-Control", "no-store")
	k.w.Header().Set("X-Accel-Buffering", "no")
	if err := out.send([]byte("retry: 1000\n\n")); err != nil {
		return nil // they left
	}
	ctx := k.r.Context()
	for rec, err := range rm.log.Since(ctx, after) {
		s, err := read(rec, err)
		if err != nil {
			c.cfg.Log.Error("browser chat", "path", k.r.URL.Path, "err", err)
			return nil
		}
		after = rec.Seq
		if out.send(event("message", rec.Seq, c.entry(rec.Seq, s)).body) != nil {
			return nil
		}
	}
	rm.catchUp(rd, after)
	c.follow(ctx, rm, rd, out)
	return nil
}

// follow sends rd what it is to be sent until one of us leaves.
func (c *Channel) follow(ctx context.Context, rm *room, rd *reader, out stream) {
	timer := time.NewTimer(heartbeat)
	defer timer.Stop()
	for quiet := time.Now(); ; {
		frames, due, lost := rm.take(rd)
		if lost {
			_ = out.send(event("resync", 0, struct{}{}).body)
			return
		}
		var batch [][]byte
		for _, f := range frames {
			batch = append(batch, f.body)
		}
		if len(batch) == 0 && time.Since(quiet) >= heartbeat {
			batch = [][]byte{[]byte(":\n\n")}
		}
		if len(batch) > 0 {
			if out.send(batch...) != nil {
				return
			}
			quiet = time.Now()
		}
		if due.IsZero() {
			due = quiet.Add(heartbeat)
		}
		timer.Reset(time.Until(due))
		select {
		case <-rd.wake:
		case <-timer.C:
		case <-ctx.Done():
			return
		case <-c.open.Done():
			return
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
	_ = s.SetWriteDeadline(time.Now().Add(writeTime)) // not every writer can
	for _, p := range parts {
		if _, err := s.Write(p); err != nil {
			return err
		}
	}
	return s.Flush()
}
