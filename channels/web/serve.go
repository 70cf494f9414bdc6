package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"parley/chat"
	"parley/store"
)

const (
	maxText = 64 << 10  // bytes of a message
	maxBody = 512 << 10 // bytes of it as JSON
	maxSent = 20        // files of a message
)

// Serve serves who, who is signed in: their conversations and files, and nobody
// else's. What belongs to others is as if it were not there. The caller has
// refused what comes from other pages.
func (c *Channel) Serve(w http.ResponseWriter, r *http.Request, who chat.Sender) {
	c.mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitor{}, who)))
}

type visitor struct{}

// A call is one request of a person.
type call struct {
	w   http.ResponseWriter
	r   *http.Request
	who chat.Sender
	id  string // of the conversation, which is there; "" for what concerns none
}

func (c *Channel) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, do := range map[string]func(call) error{
		"GET /{$}":                 c.home,
		"GET /c/{id}":              c.show,
		"GET /c/{id}/before":       c.older,
		"GET /c/{id}/events":       c.events,
		"POST /c/{id}/messages":    c.say,
		"POST /c/{id}/answer":      c.answer,
		"PATCH /c/{id}":            c.rename,
		"DELETE /c/{id}":           c.remove,
		"POST /c":                  c.make,
		"GET /talks":               c.find,
		"PUT /files":               c.upload,
		"GET /files/{file}/{name}": c.download,
		"GET /assets/{v}/{file}":   c.asset,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			who, _ := r.Context().Value(visitor{}).(chat.Sender)
			k := call{w, r, who, r.PathValue("id")}
			var err error
			if k.id != "" {
				_, _, err = c.held(r.Context(), who.ID, k.id)
			}
			if err == nil {
				err = do(k)
			}
			if err != nil {
				c.refuse(k, err)
			}
		})
	}
	return mux
}

// A problem is an error that whoever asked can do something about.
type problem struct {
	status int
	text   string
}

func (p problem) Error() string { return p.text }

// refuse says why not: a page to people, JSON to the page.
func (c *Channel) refuse(k call, err error) {
	var p problem
	switch {
	case errors.As(err, &p):
	case errors.Is(err, errGone):
		p = problem{http.StatusNotFound, "There is no such conversation, or not any more."}
	case errors.Is(err, store.ErrFull):
		p = problem{http.StatusInsufficientStorage, "The disk is full, so nothing was changed. Please tell whoever runs this."}
	case k.r.Context().Err() != nil:
		return // they left
	default:
		c.cfg.Log.Error("browser chat", "path", k.r.URL.Path, "err", err)
		p = problem{http.StatusInternalServerError, "That did not work. Please try again."}
	}
	if k.r.Method == http.MethodGet && strings.Contains(k.r.Header.Get("Accept"), "text/html") {
		k.w.Header().Set("Content-Type", "text/html; charset=utf-8")
		k.w.WriteHeader(p.status)
		_, _ = fmt.Fprintf(k.w, "<!doctype html><html lang=en><meta name=viewport content=\"width=device-width\"><title>Parley</title><h1>%s</h1><p><a href=\"/\">Back</a></p>", p.text)
		return
	}
	_ = k.answer(p.status, map[string]any{"error": map[string]string{"message": p.text}})
}

// answer answers with v as JSON.
func (k call) answer(status int, v any) error {
	k.w.Header().Set("Content-Type", "application/json; charset=utf-8")
	k.w.WriteHeader(status)
	_ = json.NewEncoder(k.w).Encode(v) // an error is theirs: they left
	return nil
}

// read reads the JSON they sent into v.
func (k call) read(v any) error {
	if t, _, _ := mime.ParseMediaType(k.r.Header.Get("Content-Type")); t != "application/json" {
		return problem{http.StatusUnsupportedMediaType, "This takes application/json."}
	}
	d := json.NewDecoder(http.MaxBytesReader(k.w, k.r.Body, maxBody))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		return problem{http.StatusRequestEntityTooLarge, "That is too long."}
	case err != nil || d.More():
		return problem{http.StatusBadRequest, "That is not the JSON expected here."}
	}
	return nil
}

var idForm = regexp.MustCompile(`^[A-Za-z0-9_-]{8,64}$`)

func checkID(id string) error {
	if !idForm.MatchString(id) {
		return problem{http.StatusBadRequest, "An id has 8 to 64 letters and digits."}
	}
	return nil
}

// say takes a message. It is answered once the message is in the log and in the
// house (P3). The same again is answered the same, and not done again.
func (c *Channel) say(k call) error {
	var in struct {
		ID, Text string
		Files    []string
		Quiet    bool // a command, which is not shown
	}
	if err := k.read(&in); err != nil {
		return err
	}
	switch {
	case checkID(in.ID) != nil:
		return checkID(in.ID)
	case len(in.Text) > maxText:
		return problem{http.StatusRequestEntityTooLarge, "That message is too long: 64 KB is the most."}
	case strings.TrimSpace(in.Text) == "" && len(in.Files) == 0, len(in.Files) > maxSent, in.Quiet && !strings.HasPrefix(in.Text, "/"):
		return problem{http.StatusBadRequest, "That is not a message."}
	}
	rm, leave := c.use(c.address(k.who.ID, k.id))
	defer leave()
	rm.posting.Lock()
	defer rm.posting.Unlock()
	m := c.message(in.ID, c.address(k.who.ID, k.id), k.who)
	m.Text = in.Text
	s := said{ID: in.ID, Who: you, Text: in.Text, Time: m.Time}
	for _, id := range in.Files {
		f, err := c.stored(k.r.Context(), k.who.ID, id)
		if err != nil {
			return err
		}
		s.Files, m.Files = append(s.Files, f), append(m.Files, f.File)
	}
	var seq uint64
	if !in.Quiet {
		var again bool
		var err error
		if seq, again, err = rm.append(k.r.Context(), s); err != nil {
			return err
		}
		if again && rm.wasAnswered(in.ID) { // the house may have forgotten that it knows it
			return k.answer(http.StatusAccepted, map[string]uint64{"seq": seq})
		}
	}
	return c.hand(k, m, seq)
}

// hand hands m to the house and says so.
func (c *Channel) hand(k call, m chat.Message, seq uint64) error {
	if err := c.deliver(k.r.Context(), m); err != nil {
		if !errors.Is(err, errDeaf) {
			c.cfg.Log.Warn("message not taken", "chat", m.At.Session(), "id", m.ID, "err", err)
		}
		return problem{http.StatusServiceUnavailable, "I cannot take that in right now. Please try again."}
	}
	return k.answer(http.StatusAccepted, map[string]uint64{"seq": seq})
}

// answer takes the press of a button.
func (c *Channel) answer(k call) error {
	var in struct {
		ID, Question string
		Choice       int
	}
	if err := k.read(&in); err != nil {
		return err
	}
	if err := checkID(in.ID); err != nil {
		return err
	}
	rm, leave := c.use(c.address(k.who.ID, k.id))
	defer leave()
	q, err := rm.question(k.r.Context(), in.Question)
	if errors.Is(err, errGone) || err == nil && (in.Choice < 0 || in.Choice >= q.choices) {
		return problem{http.StatusNotFound, "There is no such question, or not any more."}
	}
	if err != nil {
		return err
	}
	m := c.message(in.ID, c.address(k.who.ID, k.id), k.who)
	m.Answer = &chat.Answer{Question: in.Question, Choice: in.Choice, Receipt: strconv.FormatUint(q.seq, 10)}
	return c.hand(k, m, q.seq)
}

// make makes a conversation.
func (c *Channel) make(k call) error {
	var in struct{}
	if err := k.read(&in); err != nil {
		return err
	}
	id, err := c.begin(k.r.Context(), k.who.ID)
	if err != nil {
		return err
	}
	return k.answer(http.StatusCreated, map[string]string{"id": id})
}

func (c *Channel) rename(k call) error {
	var in struct{ Title string }
	if err := k.read(&in); err != nil {
		return err
	}
	title := plain(in.Title, 200)
	if title == "" {
		return problem{http.StatusBadRequest, "A title has words in it."}
	}
	err := c.change(k.r.Context(), k.who.ID, k.id, func(h *held) bool {
		if h.Last.IsZero() {
			h.Last = time.Now()
		}
		h.Title = title
		return true
	})
	if err != nil {
		return err
	}
	return k.answer(http.StatusOK, map[string]string{"id": k.id, "title": title})
}

func (c *Channel) remove(k call) error {
	rm, leave := c.use(c.address(k.who.ID, k.id))
	defer leave()
	if err := rm.clear(k.r.Context()); err != nil {
		return err
	}
	c.tell(k.who.ID)
	k.w.WriteHeader(http.StatusNoContent)
	return nil
}

// find lists the conversations, or those where q is found.
func (c *Channel) find(k call) error {
	all, err := []talk(nil), error(nil)
	if q := strings.TrimSpace(k.r.FormValue("q")); q != "" {
		all, err = c.search(k.r.Context(), k.who.ID, q)
	} else {
		all, err = c.list(k.r.Context(), k.who.ID)
	}
	if err != nil {
		return err
	}
	return k.answer(http.StatusOK, all)
}

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
	rm, leave := c.use(c.address(k.who.ID, k.id))
	defer leave()
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
