package subagents

import (
	"cmp"
	"fmt"
	"time"

	"parley/chat"
	"parley/tools"
)

// What models read.
const (
	msgNoResult = "The task is done, without any last words."
	msgReport   = "[Subagent '%s' %s]\n\nTask: %s\n\nResult: %s\n\n" +
		"Summarize this naturally for the person in 1–2 sentences. " +
		"Do not mention technical details such as subagents or their IDs."
)

// reportPrefix begins the IDs of reports.
const reportPrefix = "report/"

// message returns a message between c and its parent.
func message(c tools.Subagent, id, text string) chat.Message {
	return chat.Message{
		ID:      id,
		Account: "agent",
		At:      c.At,
		From:    c.From,
		Group:   c.Group,
		Text:    text,
		Tainted: c.Tainted,
		Sources: c.Sources,
	}
}

// TaskMessage returns the message that gives c its task. The account that pays
// for the run of a job pays for its subagents.
func TaskMessage(c tools.Subagent) chat.Message {
	m := message(c, c.ID, c.Task)
	m.Time = c.Began
	m.Origin = chat.FromParent
	m.In = SessionOf(c.ID)
	if o := c.Options; o != nil {
		m.Options = &chat.RunOptions{Job: o.Job, Name: o.Name, Run: o.Run, RetriedJob: o.RetriedJob}
	}
	return m
}

// reportMessage returns the message that tells c's parent how it ended. The turn
// that answers it speaks in the chat (D-092); of a quiet job only if there is
// something to say.
func reportMessage(c tools.Subagent) chat.Message {
	outcome := "failed"
	if c.State == tools.SubagentAnswered {
		outcome = "completed successfully"
	}
	text := fmt.Sprintf(msgReport, c.Label, outcome, c.Task, cmp.Or(c.Result, msgNoResult))
	m := message(c, reportPrefix+c.ID, text)
	m.Time = c.Ended
	m.Origin = chat.FromSubagent
	if c.Parent != c.At.Session() {
		m.In = c.Parent
	}
	if o := c.Options; o != nil {
		m.Options = &chat.RunOptions{
			Job: o.Job, Name: o.Name, Run: o.Run, Model: o.Model, Quiet: o.Quiet, RetriedJob: o.RetriedJob,
		}
	}
	return m
}

// lostRecord returns what m tells of a subagent whose record is damaged.
func lostRecord(id string, m chat.Message) tools.Subagent {
	return tools.Subagent{
		ID:      id,
		Label:   id,
		Task:    m.Text,
		Parent:  m.At.Session(),
		At:      m.At,
		From:    m.From,
		Group:   m.Group,
		Tainted: m.Tainted,
		Sources: m.Sources,
		Began:   m.Time,
		Ended:   time.Now(),
		State:   tools.SubagentFailed,
		Result:  "Its record is damaged.",
		Report:  true,
	}
}
