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

const (
	maxEvents     = 64
	maxEventBytes = 256 << 10 // of the events that a room keeps

	activityTimeout   = 10 * time.Second // after its last sign of life, a reply counts as abandoned
	draftInterval     = 100 * time.Millisecond
	draftDelayPerByte = 4 * time.Microsecond // added to draftInterval, because each draft is sent whole
)

// An sseEvent is a server-sent event. Log entries have their number, other events 0.
type sseEvent struct {
	seq  uint64
	body []byte

	// hasSteps means that body tells which tools are at work. Readers who may not know that
	// (B-071) are sent plain instead, and nothing if it is empty.
	hasSteps bool
	plain    []byte
}

// messageEvent encodes an entry.
func messageEvent(e logEntry) sseEvent {
	event := newEvent("message", e.Seq, e.render())
	if e.Steps != "" {
		event.hasSteps = true
		event.plain = newEvent("message", e.Seq, e.withoutSteps().render()).body
	}
	return event
}

// stepEvent encodes a tool call made for the reply with that ID.
func stepEvent(reply string, s chat.Step) sseEvent {
	event := newEvent("step", 0, stepData{reply, s})
	event.hasSteps = true
	return event
}

// bodies returns what a reader is sent of events.
func bodies(events []sseEvent, withoutSteps bool) (parts [][]byte) {
	for _, e := range events {
		if !withoutSteps || !e.hasSteps {
			parts = append(parts, e.body)
		} else if len(e.plain) > 0 {
			parts = append(parts, e.plain)
		}
	}
	return parts
}

// newEvent encodes an event, once for all readers.
func newEvent(name string, seq uint64, data any) sseEvent {
	var b bytes.Buffer
	b.WriteString("event: " + name + "\n")
	if seq > 0 {
		b.WriteString("id: " + strconv.FormatUint(seq, 10) + "\n")
	}
	b.WriteString("data: ")
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(data) // it ends with a newline; all our types can be encoded
	b.WriteByte('\n')
	return sseEvent{seq: seq, body: b.Bytes()}
}

// A pendingReply is a reply that is being written.
type pendingReply struct {
	replyID    string // ID; "": not known yet
	text       string
	draftEvent []byte // of text; nil: not encoded yet
	steps      chat.Steps
	lastActive time.Time // time of the last sign of life

	// below are the person's messages that came while it was being written and have no answer.
	// It stands above them and what was said after them, and all else above it.
	below []logEntry
}

type draftData struct {
	Reply string `json:"reply"`
	HTML  string `json:"html"`
}

type busyData struct {
	On bool `json:"on"`
	// Before is the number of the entry above which the pending reply stands; 0: it is the last.
	Before uint64 `json:"before,omitempty"`
}

// busyEvent encodes that a reply is pending, and where it stands. The caller holds mu.
func (rm *room) busyEvent() sseEvent {
	data := busyData{On: true}
	if len(rm.pending.below) > 0 {
		data.Before = rm.pending.below[0].Seq
	}
	return newEvent("busy", 0, data)
}

// A reader is a browser that follows the events of a room. The room keeps the latest
// events for all of them, and a reader that is too slow has to start over (P15).
type reader struct {
	taken       uint64    // number of events that it was sent, or that preceded it
	lastSeq     uint64    // number of the last entry that it read from the log
	sentPending bool      // it was sent the pending reply
	draftsTaken uint64    // draftCount when it was last sent a draft
	nextDraft   time.Time // when it may be sent another
}

// addReader returns a reader of the events from now on, which has read or will read
// the log up to number seq.
func (rm *room) addReader(seq uint64) *reader {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	return &reader{taken: rm.eventCount, lastSeq: seq}
}

// nextEvents returns what rd is to be sent now, and then has to wait for: changed or
// the end of wait. Lost reports that events rd needs were dropped.
func (rm *room) nextEvents(rd *reader) (events []sseEvent, changed <-chan struct{}, wait time.Duration, lost bool) {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	missing := rm.eventCount - rd.taken
	if missing > uint64(len(rm.events)) {
		return nil, nil, 0, true
	}
	for _, e := range rm.events[len(rm.events)-int(missing):] {
		if e.seq == 0 || e.seq > rd.lastSeq {
			events = append(events, e)
		}
	}
	rd.taken = rm.eventCount
	if !rd.sentPending {
		rd.sentPending = true
		events = append(events, rm.pendingEvents(rd)...)
	}
	if rm.pending.text == "" || rd.draftsTaken == rm.draftCount {
		return events, rm.changed, heartbeatInterval, false
	}
	wait = time.Until(rd.nextDraft)
	if wait <= 0 {
		d := rm.draftEvent()
		wait = draftInterval + time.Duration(len(d))*draftDelayPerByte
		events = append(events, sseEvent{body: d})
		rd.draftsTaken = rm.draftCount
		rd.nextDraft = time.Now().Add(wait)
	}
	return events, rm.changed, wait, false
}

// pendingEvents returns the events that show the pending reply to rd, which has just
// read the log. The caller holds mu.
func (rm *room) pendingEvents(rd *reader) (events []sseEvent) {
	if !rm.isActiveLocked() {
		rd.draftsTaken = rm.draftCount // it was abandoned
		return nil
	}
	events = append(events, rm.busyEvent())
	for _, s := range rm.pending.steps {
		events = append(events, stepEvent(rm.pending.replyID, s))
	}
	return events
}

// draftEvent returns the event with the text so far. The caller holds mu.
func (rm *room) draftEvent() []byte {
	m := &rm.pending
	if m.draftEvent == nil {
		m.draftEvent = newEvent("draft", 0, draftData{m.replyID, markdown.HTML(m.text)}).body
	}
	return m.draftEvent
}

// publish sends an event to all readers.
func (rm *room) publish(e sseEvent) {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	rm.publishLocked(e)
}

// publishLocked is publish for a caller that holds mu.
func (rm *room) publishLocked(e sseEvent) {
	rm.events = append(rm.events, e)
	rm.eventBytes += len(e.body) + len(e.plain)
	rm.eventCount++
	for len(rm.events) > maxEvents || rm.eventBytes > maxEventBytes {
		rm.eventBytes -= len(rm.events[0].body) + len(rm.events[0].plain)
		rm.events = rm.events[1:]
	}
	rm.wakeReaders()
}

// wakeReaders has all readers call nextEvents. The caller holds mu.
func (rm *room) wakeReaders() {
	close(rm.changed)
	rm.changed = make(chan struct{})
}

// reset has all readers start over, with an empty conversation.
func (rm *room) reset() {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	rm.pending = pendingReply{}
	rm.events = nil
	rm.eventBytes = 0
	rm.eventCount++
	rm.wakeReaders()
}

// showEntry sends an entry to all readers. A reply replaces its draft.
func (rm *room) showEntry(e logEntry) {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	isNew := e.Who == whoAgent && e.Edits == 0
	isLater := slices.ContainsFunc(rm.pending.below, func(m logEntry) bool { return e.answers(m.ID) })
	ended := isNew && (rm.pending.replyID == e.ID || rm.pending.replyID == "" && !isLater)
	rm.publishLocked(messageEvent(e))
	switch {
	case ended:
		rm.endPending()
	case e.Who == whoPerson && !e.Again && rm.isActiveLocked():
		rm.pending.below = append(rm.pending.below, e)
	case isNew:
		rm.pending.rise(e.answers)
	}
}

// rise has the pending reply stand below messages that are answered.
func (p *pendingReply) rise(isAnswered func(id string) bool) {
	p.below = slices.DeleteFunc(p.below, func(e logEntry) bool { return isAnswered(e.ID) })
}

// endPending ends the pending reply. The caller holds mu.
func (rm *room) endPending() {
	rm.pending = pendingReply{}
	rm.publishLocked(newEvent("busy", 0, busyData{}))
}

// isActiveLocked reports whether a reply is pending. The caller holds mu.
func (rm *room) isActiveLocked() bool { return time.Since(rm.pending.lastActive) <= activityTimeout }

func (rm *room) isActive() bool {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	return rm.isActiveLocked()
}

// setPending makes r the pending reply. The caller holds mu.
func (rm *room) setPending(r chat.Reply) {
	if old := rm.pending; old.replyID != r.ID {
		rm.pending = pendingReply{replyID: r.ID, below: old.below}
		rm.pending.rise(func(id string) bool { return id == pageID(r.Quote) })
		if old.replyID != "" { // it was abandoned
			rm.publishLocked(rm.busyEvent())
		}
	}
	rm.pending.lastActive = time.Now()
}

// showDraft shows the text of r so far, at the pace of each reader. Without a text it
// ends the pending reply.
func (rm *room) showDraft(r chat.Reply) {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	if r.Text == "" {
		if rm.pending.replyID == r.ID || rm.pending.replyID == "" {
			rm.endPending()
		}
		return
	}
	rm.setPending(r)
	rm.pending.text = r.Text
	rm.pending.draftEvent = nil
	rm.draftCount++
	rm.wakeReaders()
}

// showBusy shows that the agent is at work.
func (rm *room) showBusy() {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	if !rm.isActiveLocked() { // the previous reply was abandoned
		rm.pending = pendingReply{}
	}
	rm.pending.lastActive = time.Now()
	rm.publishLocked(rm.busyEvent())
}

// stepData is a tool call made for the reply with that ID.
type stepData struct {
	Reply string `json:"reply"`
	chat.Step
}

// showStep shows the state of a tool call. Calls are in the order in which they began
//
func (rm *room) showStep(r chat.Reply, s chat.Step) {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	rm.setPending(r)
	if s, news := rm.pending.steps.Add(s); news {
		rm.publishLocked(stepEvent(r.ID, s))
	}
}
