package web

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"

	"parley/channels/markdown"
	"parley/chat"
)

const (
	maxFrames = 64
	maxBytes  = 256 << 10 // of frames

	fresh      = 10 * time.Second // how long a sign of life counts
	draftEvery = 100 * time.Millisecond
	perByte    = 4 * time.Microsecond // a long draft is sent less often: it is sent whole
)

// A frame is an event, as it is sent. Those that are in the log have their number.
type frame struct {
	seq  uint64
	body []byte
}

// event makes a frame of data. What it says is rendered once for all readers.
func event(name string, seq uint64, data any) frame {
	var b bytes.Buffer
	b.WriteString("event: " + name + "\n")
	if seq > 0 {
		b.WriteString("id: " + strconv.FormatUint(seq, 10) + "\n")
	}
	b.WriteString("data: ")
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(data) // ends its line; all that we send can be encoded
	b.WriteByte('\n')
	return frame{seq, b.Bytes()}
}

// A making is a reply in the making, as long as somebody may watch.
type making struct {
	reply string // its ID
	text  string
	draft []byte // the event that shows text; nil: not rendered
	steps chat.Steps
	at    time.Time // of the last sign of life
}

type draft struct {
	Reply string `json:"reply"`
	HTML  string `json:"html"`
}

type on struct {
	On bool `json:"on"`
}

// A reader is a browser that reads along. The room keeps the latest frames for
// all of them, and one that is too slow is told to begin again (P15).
type reader struct {
	at    uint64    // how many frames it has taken, or were there before it came
	seq   uint64    // number of the last record that it read in the log
	began bool      // it knows what is in the making
	draft uint64    // how many drafts there were when it had one
	due   time.Time // when it may have another
}

// join returns a reader, for whom frames are kept from now on.
func (rm *room) join(seq uint64) *reader {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	return &reader{at: rm.end, seq: seq}
}

// take returns what rd is to be sent now, and what it then waits for and how
// long. Lost says that some is not there any more.
func (rm *room) take(rd *reader) (bodies [][]byte, news <-chan struct{}, wait time.Duration, lost bool) {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	missing := rm.end - rd.at
	if missing > uint64(len(rm.frames)) {
		return nil, nil, 0, true
	}
	for _, f := range rm.frames[len(rm.frames)-int(missing):] {
		if f.seq == 0 || f.seq > rd.seq {
			bodies = append(bodies, f.body)
		}
	}
	if rd.at = rm.end; !rd.began {
		rd.began = true
		bodies = append(bodies, rm.opening(rd)...)
	}
	if wait = heartbeat; rm.making.text == "" || rd.draft == rm.drafts {
		return bodies, rm.news, wait, false
	}
	if wait = time.Until(rd.due); wait <= 0 {
		d := rm.draft()
		wait = draftEvery + time.Duration(len(d))*perByte
		bodies = append(bodies, d)
		rd.draft = rm.drafts
		rd.due = time.Now().Add(wait)
	}
	return bodies, rm.news, wait, false
}

// opening shows rd, who has just read the log, what is in the making.
func (rm *room) opening(rd *reader) (bodies [][]byte) {
	if !rm.alive() {
		rd.draft = rm.drafts // it was given up
		return nil
	}
	bodies = append(bodies, event("busy", 0, on{true}).body)
	for _, s := range rm.making.steps {
		bodies = append(bodies, event("step", 0, step{rm.making.reply, s}).body)
	}
	return bodies
}

// draft shows the text so far. The caller holds mu.
func (rm *room) draft() []byte {
	m := &rm.making
	if m.draft == nil {
		m.draft = event("draft", 0, draft{m.reply, markdown.HTML(m.text)}).body
	}
	return m.draft
}

// push shows everybody f.
func (rm *room) push(f frame) {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	rm.pushing(f)
}

func (rm *room) pushing(f frame) {
	rm.frames = append(rm.frames, f)
	rm.size += len(f.body)
	rm.end++
	for len(rm.frames) > maxFrames || rm.size > maxBytes {
		rm.size -= len(rm.frames[0].body)
		rm.frames = rm.frames[1:]
	}
	rm.rouse()
}

func (rm *room) rouse() {
	close(rm.news)
	rm.news = make(chan struct{})
}

// empty has everybody who reads along begin again: there is nothing any more.
func (rm *room) empty() {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	rm.making = making{}
	rm.frames = nil
	rm.size = 0
	rm.end++
	rm.rouse()
}

// show shows everybody s. A reply takes the place of its draft.
func (rm *room) show(s said) {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	over := s.Who == parley && s.Edits == 0 && (rm.making.reply == s.ID || rm.making.reply == "")
	rm.pushing(event("message", s.Seq, s.entry()))
	if over {
		rm.over()
	}
}

func (rm *room) over() {
	rm.making = making{}
	rm.pushing(event("busy", 0, on{false}))
}

// alive says whether something is in the making. The caller holds mu.
func (rm *room) alive() bool { return time.Since(rm.making.at) <= fresh }

func (rm *room) isMaking() bool {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	return rm.alive()
}

// begin turns to the reply of that ID. The caller holds mu.
func (rm *room) begin(reply string) {
	if rm.making.reply != reply {
		rm.making = making{reply: reply}
	}
	rm.making.at = time.Now()
}

// stream shows the text of r, which is over if there is none. Readers take it
// when they may.
func (rm *room) stream(r chat.Reply) {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	if r.Text == "" {
		if rm.making.reply == r.ID || rm.making.reply == "" {
			rm.over()
		}
		return
	}
	rm.begin(r.ID)
	rm.making.text, rm.making.draft = r.Text, nil
	rm.drafts++
	rm.rouse()
}

// busy shows that the agent is at work.
func (rm *room) busy() {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	if !rm.alive() { // what was in the making was given up
		rm.making = making{}
	}
	rm.making.at = time.Now()
	rm.pushing(event("busy", 0, on{true}))
}

// A step is a chat.Step, on the way to the reply of that ID.
type step struct {
	Reply string `json:"reply"`
	chat.Step
}

// step shows how far a tool is (A-089: in the order in which they began).
func (rm *room) step(r chat.Reply, s chat.Step) {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	rm.begin(r.ID)
	if s, news := rm.making.steps.Add(s); news {
		rm.pushing(event("step", 0, step{r.ID, s}))
	}
}
