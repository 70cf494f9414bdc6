package jobs

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"parley/chat"
	"parley/scheduler"
	"parley/texts"
)

// HeartbeatID is the ID of the job of a Heartbeat.
const HeartbeatID = "heartbeat"

const heartbeatFile = "HEARTBEAT.md" // in the workspace

// A Heartbeat has the agent look after the open items of HEARTBEAT.md at regular times.
type Heartbeat struct {
	Read      func(name string) ([]byte, error) // reads a file of the workspace
	Owner     func() (Asker, error)             // whom the agent works for
	Model     func() string                     // the name of the model; "" for the chat's
	Scheduler func() *scheduler.Scheduler
	Deliver   chat.Deliver
	Texts     texts.Heartbeat
}

// Run is one run of the job. Without an open item no model is asked.
func (h Heartbeat) Run(ctx context.Context, j scheduler.Job, r scheduler.Run) (scheduler.Ended, error) {
	text, err := h.Read(heartbeatFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return scheduler.Ended{}, err
	}
	if !HasOpenItem(string(text)) {
		note := h.Texts.NothingToDo.With(heartbeatFile)
		return scheduler.Ended{Outcome: scheduler.Silent, Note: note}, nil
	}
	owner, err := h.Owner()
	if err != nil {
		return scheduler.Ended{Outcome: scheduler.Silent, Note: h.Texts.NoOwner}, nil
	}
	m := h.Scheduler().Message(j, r)
	m.At = owner.At
	m.From = owner.From
	m.In = scheduler.Sessions + HeartbeatID
	m.Text = HeartbeatText(heartbeatFile, string(text))
	m.Options = &chat.RunOptions{Job: HeartbeatID, Model: h.Model(), Quiet: true, Fresh: true}
	return scheduler.Ended{Outcome: scheduler.Running}, h.Deliver(ctx, m)
}

// maxHeartbeat is how much of the list the agent is shown, in bytes.
const maxHeartbeat = 32 << 10

// HeartbeatText returns the message that makes the agent work on the open items in
// text, which is the content of file.
func HeartbeatText(file, text string) string {
	if len(text) > maxHeartbeat {
		text = strings.ToValidUTF8(text[:maxHeartbeat], "")
		text += "\n(The rest of " + file + " is left out: it is too long.)"
	}
	return "Look after the open items of " + file + ", which are below: " +
		"do what is due, and tick off in the file what is done for good. " +
		"Tell the person only what they should know now.\n\n" + text
}

// HasOpenItem reports whether text has a list item that is not ticked off. Comments
// and code are ignored.
func HasOpenItem(text string) bool {
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
