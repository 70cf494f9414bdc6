package web

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"parley/channels/markdown"
	"parley/chat"
)

// A reader is a browser that reads along. What it has not taken yet is bounded:
// one that is too slow is told to begin again where it is (P15).
type reader struct {
	seen   uint64 // number of the last record that they read from the log
	frames []frame
	size   int           // bytes in frames
	lost   bool          // there was more than frames may hold
	news   bool          // the draft has changed
	due    time.Time     // when it may have the draft again
	wake   chan struct{} // holds one, if there is something to take
}

const (
	maxFrames = 64
	maxBytes  = 256 << 10

	fresh    = 10 * time.Second // how long a sign of life counts
	maxSteps = 100
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
	steps []step
	at    time.Time // of the last sign of life
}

// A step is a chat.Step, on the way to the reply of that ID.
type step struct {
	Reply string         `json:"reply"`
	Call  string         `json:"call"`
	Tool  string         `json:"tool"`
	State chat.StepState `json:"state"`
	Tip   string         `json:"tip,omitempty"`
}

// join adds a reader, for whom frames are kept from now on.
func (rm *room) join() *reader {
	rd := &reader{wake: make(chan struct{}, 1)}
	rm.mu.Lock()
	defer rm.mu.Unlock()
	rm.readers[rd] = struct{}{}
	return rd
}

func (rm *room) part(rd *reader) {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	delete(rm.readers, rd)
}

// catchUp shows rd, who has read the log up to seq, what is in the making now.
func (rm *room) catchUp(rd *reader, seq uint64) {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	rd.seen = seq // a record is in the log before it is shown
	rd.frames = slices.DeleteFunc(rd.frames, func(f frame) bool { return f.seq <= seq })
	rd.size = 0
	for _, f := range rd.frames {
		rd.size += len(f.body)
	}
	if time.Since(rm.making.at) > fresh {
		return
	}
	rd.push(event("busy", 0, on{true}))
	for _, s := range rm.making.steps {
		rd.push(event("step", 0, s))
	}
	rd.news = rm.making.text != ""
}

type on struct {
	On bool `json:"on"`
}

// push shows everybody f.
func (rm *room) push(f frame) {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	rm.pushing(f)
}

func (rm *room) pushing(f frame) {
	for rd := range rm.readers {
		rd.push(f)
	}
}

func (rd *reader) push(f frame) {
	if rd.lost || f.seq > 0 && f.seq <= rd.seen {
		return
	}
	rd.frames, rd.size = append(rd.frames, f), rd.size+len(f.body)
	if len(rd.frames) > maxFrames || rd.size > maxBytes {
		rd.lose()
	}
	rd.rouse()
}

// lose has rd begin again where it is.
func (rd *reader) lose() {
	rd.frames, rd.size, rd.lost = nil, 0, true
	rd.rouse()
}

func (rd *reader) rouse() {
	select {
	case rd.wake <- struct{}{}:
	default:
	}
}

// show shows everybody s, which is record seq. A reply takes the place of its draft.
func (rm *room) show(seq uint64, s said) {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	over := s.Who == parley && s.Edits == 0 && (rm.making.reply == s.ID || rm.making.reply == "")
	if over {
		rm.making = making{}
	}
	if len(rm.readers) == 0 {
		return
	}
	rm.pushing(event("message", seq, rm.c.entry(seq, s)))
	if over {
		rm.pushing(event("busy", 0, on{false}))
	}
}

// begin turns to the reply of that ID. The caller holds mu.
func (rm *room) begin(reply string) {
	if rm.making.reply != reply {
		rm.making = making{reply: reply}
	}
	rm.making.at = time.Now()
}

// stream shows the text of r. Readers take it when they may.
func (rm *room) stream(r chat.Reply) {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	rm.begin(r.ID)
	rm.making.text, rm.making.draft = r.Text, nil
	for rd := range rm.readers {
		if !rd.news {
			rd.news = true
			rd.rouse()
		}
	}
}

// step shows how far a tool is.
func (rm *room) step(r chat.Reply, s chat.Step) {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	rm.begin(r.ID)
	n := step{r.ID, s.Call, s.Tool, s.State, s.Tip}
	if i := slices.IndexFunc(rm.making.steps, func(o step) bool { return o.Call == n.Call }); i >= 0 {
		rm.making.steps[i] = n
	} else if rm.making.steps = append(rm.making.steps, n); len(rm.making.steps) > maxSteps {
		rm.making.steps = rm.making.steps[1:]
	}
	rm.pushing(event("step", 0, n))
}

// busy shows that the agent is at work.
func (rm *room) busy() {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	if time.Since(rm.making.at) > fresh { // what was in the making was given up
		rm.making = making{}
	}
	rm.making.at = time.Now()
	rm.pushing(event("busy", 0, on{true}))
}

const (
	draftEvery = 100 * time.Millisecond
	perByte    = 4 * time.Microsecond // a long draft is sent less often: it is sent whole
)

// take returns what rd is to be sent now, and when the draft is due if it has
// to wait. The frames are rd's; lost says that some are not among them.
func (rm *room) take(rd *reader) (frames []frame, due time.Time, lost bool) {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	frames, rd.frames, rd.size = rd.frames, nil, 0
	if !rd.news {
		return frames, time.Time{}, rd.lost
	}
	now := time.Now()
	if now.Before(rd.due) {
		return frames, rd.due, rd.lost
	}
	if rd.news = false; rm.making.text == "" {
		return frames, time.Time{}, rd.lost
	}
	if rm.making.draft == nil {
		rm.making.draft = event("draft", 0, draft{rm.making.reply, markdown.HTML(rm.making.text)}).body
	}
	rd.due = now.Add(draftEvery + time.Duration(len(rm.making.draft))*perByte)
	return append(frames, frame{body: rm.making.draft}), time.Time{}, rd.lost
}

type draft struct {
	Reply string `json:"reply"`
	HTML  string `json:"html"`
}
