// Package cron is the tool by which the agent puts work on the clock.
package cron

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"parley/chat"
	"parley/texts"
	"parley/tools"
)

const description = "Put work on the clock: reminders, recurring tasks, watching something. When its time comes you are told `message` in this chat, and what you answer is sent here.\n" +
	"- add needs message and one of every_seconds, cron_expr and at. A single reminder is at, \"every weekday at 9\" is cron_expr \"0 9 * * 1-5\".\n" +
	"- To watch something and speak only when there is news, set isolated and quiet.\n" +
	"- A fixed call that needs no thinking is tool with args instead of message: its result is sent as it is.\n" +
	"- list shows the jobs with their ids; remove, enable, disable, run, edit and history need job_id. edit changes only what you give."

// An Order is what is to be done about a job. What is left out is as usual, or stays as it is.
type Order struct {
	Action   string         `json:"action" jsonschema:"what to do" limit:"enum=add|list|remove|enable|disable|run|edit|history"`
	ID       string         `json:"job_id,omitempty" jsonschema:"the job, as list shows it"`
	Name     string         `json:"name,omitempty" jsonschema:"a few words for the list of jobs"`
	Message  string         `json:"message,omitempty" jsonschema:"what you are to do each time, with all you need to know then"`
	Every    int            `json:"every_seconds,omitempty" jsonschema:"seconds from one time to the next, counted from now"`
	Cron     string         `json:"cron_expr,omitempty" jsonschema:"five fields such as '0 9 * * 1-5', or @daily and the like"`
	Zone     string         `json:"tz,omitempty" jsonschema:"time zone of cron_expr, such as Europe/Berlin, if not the usual one"`
	At       string         `json:"at,omitempty" jsonschema:"once, at YYYY-MM-DDTHH:MM:SS in the usual time zone"`
	Isolated *bool          `json:"isolated,omitempty" jsonschema:"each time begins afresh, without what was said in this chat"`
	Quiet    *bool          `json:"quiet,omitempty" jsonschema:"nothing is sent when there is nothing to say"`
	Model    string         `json:"model,omitempty" jsonschema:"name of the model that answers; 'default' is that of the chat"`
	Missed   string         `json:"missed,omitempty" jsonschema:"if its time passes while the computer is off: once (as usual) catches up with the last time, skip does not"`
	Tool     string         `json:"tool,omitempty" jsonschema:"a tool that is called each time, without a model"`
	Args     map[string]any `json:"args,omitempty" jsonschema:"the arguments of tool"`
	Force    bool           `json:"force,omitempty" jsonschema:"run a job that is switched off, this once"`
}

// A Clock does what an Order says, for the person in s and in their chat, and
// returns what they read. To add under the same ID again changes nothing, nor to
// run under the same key, which is that of the call or message.
type Clock func(ctx context.Context, s tools.Scope, key string, o Order) (tools.Result, error)

// New returns the tool. Jobs are made in chats, and not by jobs or helpers
// (D-097); in an untrusted turn an owner is asked first (R-S24).
func New(do Clock) tools.Tool {
	t := tools.New("cron", description, func(ctx context.Context, c tools.Call, o Order) (tools.Result, error) {
		switch {
		case (c.Origin == chat.FromSchedule || c.Depth > 0) && slices.Contains([]string{"add", "edit", "enable", "run"}, o.Action):
			return tools.Failf(tools.CodeDenied, "cannot schedule new jobs from within a cron job execution"), nil
		case c.At.Channel == "api" && o.Action == "add":
			return tools.Failf(tools.CodeDenied, "scheduled cron jobs must be created from a chat session"), nil
		case o.Action == "add":
			o.ID = fmt.Sprintf("%.4x", sha256.Sum256([]byte(c.Key())))
		case o.Action != "list" && o.ID == "":
			return tools.Failf(tools.CodeInvalid, "job_id is required for %s", o.Action), nil
		}
		return do(ctx, c.Scope, c.Key(), o)
	})
	t.Category, t.Repeatable = "cron", true
	t.Guard = func(c tools.Call) bool {
		return c.Tainted && c.Input["action"] != "list" && c.Input["action"] != "history"
	}
	t.Effect = func(c tools.Call) string { return fmt.Sprintf("%v scheduled jobs", c.Input["action"]) }
	t.Preview = preview
	t.Aliases = map[string]string{
		"command": "action", "id": "job_id", "job": "job_id", "title": "name", "text": "message", "prompt": "message", "task": "message",
		"expr": "cron_expr", "cron": "cron_expr", "schedule": "cron_expr", "expression": "cron_expr",
		"seconds": "every_seconds", "every": "every_seconds", "interval": "every_seconds", "interval_seconds": "every_seconds",
		"timezone": "tz", "zone": "tz", "time_zone": "tz", "time": "at", "datetime": "at", "when": "at",
		"silent": "quiet", "arguments": "args", "tool_name": "tool",
	}
	return t
}

// preview is what of which job: "add 0 9 * * 1-5: Good morning", "add every 60 s", "remove 1a2b3c4d".
func preview(say texts.Steps, partial map[string]any) string {
	var words []string
	for _, name := range []string{"action", "job_id", "every_seconds", "cron_expr", "at"} {
		v := partial[name]
		switch {
		case v == nil || v == "":
		case name == "every_seconds":
			words = append(words, say.EverySeconds.With(v))
		default:
			words = append(words, fmt.Sprint(v))
		}
	}
	message, _ := partial["message"].(string)
	message = strings.Join(strings.Fields(message), " ")
	if r := []rune(message); len(r) > 40 {
		message = string(r[:40]) + "…"
	}
	return strings.TrimSuffix(strings.Join(words, " ")+": "+message, ": ")
}
