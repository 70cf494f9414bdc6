package main

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"parley/agent"
	"parley/chat"
	"parley/scheduler"
	"parley/scheduler/jobs"
	"parley/store"
)

// openScheduler makes h.clock. It is wound up when the house lives.
func (h *house) openScheduler() {
	c := h.Config
	var own []scheduler.System
	if c.Dream.Cron != "" {
		own = append(own, scheduler.System{ID: jobs.DreamID, Schedule: scheduler.Schedule{Cron: c.Dream.Cron}, Do: h.dream})
	}
	if c.Heartbeat.Every > 0 {
		own = append(own, scheduler.System{ID: heartbeatID, Schedule: scheduler.Schedule{Every: c.Heartbeat.Every}, Do: h.heartbeat})
	}
	h.clock = scheduler.New(scheduler.Config{
		Store: h.store, Deliver: h.pool.Deliver, Role: h.roleNow, Tell: h.tellChat,
		Zone: c.Zone(), Least: c.Cron.MinInterval, Most: func() int { return h.now.Load().Limits["person"].Jobs }, System: own, Texts: &h.texts.Scheduler, Log: h.Log,
	})
}

// roleNow says what from may do at a by now (R-S24).
func (h *house) roleNow(ctx context.Context, a chat.Address, from chat.Sender) (chat.Role, error) {
	role, err := h.hub.Role(ctx, a.Channel, from.ID)
	if err == nil && role != chat.Unknown && (a.Channel == "web" || a.Channel == "api") { // their keys are those of people of the web
		if may, err := h.web.May(ctx, from.ID); !may {
			return chat.Unknown, err
		}
	}
	return role, err
}

// tellChat says text at a, or to the owners if that is nowhere, once for each id.
func (h *house) tellChat(ctx context.Context, id string, a chat.Address, text string) error {
	if a == (chat.Address{}) {
		return h.hub.TellOwners(ctx, id, text)
	}
	return h.hub.Send(ctx, chat.Reply{ID: id, To: a, Text: text})
}

// hasJob says whether the scheduled job of that ID still exists, as far as anybody can tell.
func (h *house) hasJob(ctx context.Context, id string) bool {
	_, err := h.clock.Job(ctx, id)
	return !errors.Is(err, store.ErrNotFound)
}

// ended tells the clock how the run of a job came out.
func (h *house) ended(ctx context.Context, e agent.End) error {
	return h.clock.Ended(ctx, e.Message, scheduler.Ended{
		Outcome: scheduler.Outcome(e.Outcome), Text: e.Text, Sent: e.Sent, Tokens: e.Tokens, Cost: e.Cost, Tainted: e.Tainted,
	})
}

// fate notes what became of a reply that no person waits for: with reason "" the
// network has taken it. Owners are told of the first refusal, and not of those
// that follow when it is sent again (P26).
func (h *house) fate(ctx context.Context, r chat.Reply, tries int, reason string) error {
	if r.Run != "" { // before anybody is told, who may ask then
		if err := errors.Join(h.clock.NoteDelivery(ctx, r.Run, reason), h.pool.NoteDelivery(ctx, r.Run, reason)); err != nil {
			return err
		}
	}
	if reason == "" || tries > 0 {
		return nil
	}
	text := h.texts.Gateway.Owners.Undelivered.With(r.To.Session(), reason, chat.Clip(r.Text, 300, "…"))
	return h.hub.TellOwners(ctx, "undelivered:"+r.ID, text)
}

const (
	heartbeatID   = "heartbeat"
	heartbeatFile = "HEARTBEAT.md"
)

// heartbeat has the agent look after what HEARTBEAT.md lists. Without an open
// item in it no model is asked.
func (h *house) heartbeat(ctx context.Context, j scheduler.Job, r scheduler.Run) (scheduler.Ended, error) {
	h.sweep(ctx)
	text, err := h.files.Names().ReadFile(heartbeatFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return scheduler.Ended{}, err
	}
	if !hasOpenItem(string(text)) {
		return scheduler.Ended{Outcome: scheduler.Silent, Note: h.texts.Gateway.Heartbeat.NothingToDo.With(heartbeatFile)}, nil
	}
	s, err := h.ownerAt("")
	if err != nil {
		return scheduler.Ended{Outcome: scheduler.Silent, Note: h.texts.Gateway.Heartbeat.NoOwner}, nil
	}
	m := h.clock.Message(j, r)
	m.At = s.At
	m.From = s.From
	m.In = scheduler.Sessions + heartbeatID
	m.Text = toLookAfter(string(text))
	m.Errand = &chat.Errand{Job: heartbeatID, Model: h.now.Load().Heartbeat.Model, Quiet: true, Fresh: true}
	return scheduler.Ended{Outcome: scheduler.Running}, h.pool.Deliver(ctx, m)
}

// maxHeartbeat is how many bytes of HEARTBEAT.md the agent is shown each time.
const maxHeartbeat = 32 << 10

// toLookAfter is what the agent is told of the items in text.
func toLookAfter(text string) string {
	if len(text) > maxHeartbeat {
		text = strings.ToValidUTF8(text[:maxHeartbeat], "") + "\n(The rest of " + heartbeatFile + " is left out: it is too long.)"
	}
	return "Look after the open items of " + heartbeatFile + ", which are below: do what is due, and tick off in the file what is done for good. " +
		"Tell the person only what they should know now.\n\n" + text
}

// hasOpenItem says whether a list in text has an item that is not ticked off,
// outside of comments and code.
func hasOpenItem(text string) bool {
	code, comment := false, false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case comment || strings.HasPrefix(line, "<!--"):
			comment = !strings.Contains(line, "-->")
		case strings.HasPrefix(line, "```"):
			code = !code
		case code:
		case strings.HasPrefix(line, "- "), strings.HasPrefix(line, "* "), strings.HasPrefix(line, "+ "):
			item := strings.TrimSpace(line[2:])
			if item != "" && item != "[ ]" && !strings.HasPrefix(strings.ToLower(item), "[x]") {
				return true
			}
		}
	}
	return false
}
