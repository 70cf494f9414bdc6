// Package cron has the tool with which the agent manages scheduled jobs.
package cron

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/scheduler/jobs"
	"parley/texts"
	"parley/tools"
	"parley/when"
)

const description = "Schedule work: reminders, recurring tasks, watching something. When a job is due, you get its " +
	"message in this chat, and your answer is sent.\n" +
	"- add needs message and one of at (once), cron_expr and every_seconds; the others need job_id, which list " +
	"shows.\n" +
	"- isolated: without this chat's history. quiet: say nothing if there is no news. Use both to watch something.\n" +
	"- tool with args, in place of message, is called without a model, and its result sent.\n" +
	"- edit changes only what you give."

// A Manager carries out orders. Adding a job with the same ID again changes
// nothing, nor does running one under the same key, which is that of the call.
type Manager func(ctx context.Context, a jobs.Asker, key string, o jobs.Order) (jobs.Answer, error)

// New returns the tool. Jobs are made in chats, and not by jobs or subagents
// (D-097). In an untrusted turn, an owner must approve changes (R-S24).
func New(do Manager) tools.Tool {
	t := tools.New("cron", description, func(ctx context.Context, c tools.Call, o jobs.Order) (tools.Result, error) {
		switch {
		case (c.Origin == chat.FromSchedule || c.Depth > 0) &&
			slices.Contains([]string{jobs.Add, jobs.Edit, jobs.Enable, jobs.Run}, o.Action):
			return tools.Failf(tools.CodeDenied, "cannot schedule new jobs from within a cron job execution"), nil
		case c.At.Channel == "api" && o.Action == jobs.Add:
			return tools.Failf(tools.CodeDenied, "scheduled cron jobs must be created from a chat session"), nil
		case o.Action == jobs.Add:
			o.ID = fmt.Sprintf("%.4x", sha256.Sum256([]byte(c.Key())))
		case o.Action != jobs.List && o.ID == "":
			return tools.Failf(tools.CodeInvalid, "job_id is required for %s", o.Action), nil
		}
		answer, err := do(ctx, jobs.Asker{At: c.At, Group: c.Group, From: c.From}, c.Key(), o)
		result := tools.Result{Text: answer.Text, Data: answer.Jobs, Shown: answer.Shown, Tainted: answer.Foreign}
		return result, err
	})
	t.Category = "cron"
	t.Use = tools.Basic
	t.Repeatable = true
	t.Guard = func(c tools.Call) bool {
		return c.Tainted && c.Input["action"] != "list" && c.Input["action"] != "history"
	}
	t.Effect = func(c tools.Call) string { return fmt.Sprintf("%v scheduled jobs", c.Input["action"]) }
	t.Preview = preview
	t.Ask = asking
	t.Aliases = map[string]string{
		"command": "action", "id": "job_id", "job": "job_id", "title": "name", "text": "message",
		"prompt": "message", "task": "message",
		"expr": "cron_expr", "cron": "cron_expr", "schedule": "cron_expr", "expression": "cron_expr",
		"seconds": "every_seconds", "every": "every_seconds", "interval": "every_seconds",
		"interval_seconds": "every_seconds",
		"timezone":         "tz", "zone": "tz", "time_zone": "tz", "time": "at", "datetime": "at", "when": "at",
		"silent": "quiet", "arguments": "args", "tool_name": "tool",
	}
	return t
}

// asking says what c would change.
func asking(say texts.Asks, c tools.Call) tools.Sentence {
	text := func(name string) string {
		s, _ := c.Input[name].(string)
		return s
	}
	job := tools.Named(text("job_id"))
	switch text("action") {
	case jobs.Edit:
		return tools.Asking(say.EditJob, job)
	case jobs.Remove:
		return tools.Asking(say.RemoveJob, job)
	case jobs.Enable:
		return tools.Asking(say.EnableJob, job)
	case jobs.Disable:
		return tools.Asking(say.DisableJob, job)
	case jobs.Run:
		return tools.Asking(say.RunJob, job)
	case jobs.Add:
		if name := text("name"); name != "" {
			return tools.Asking(say.AddJob, tools.Named(name))
		}
		return tools.Asking(say.AddJob, tools.Quoted(cmp.Or(text("message"), text("tool"))))
	}
	return tools.Sentence{}
}

// preview names the job that is to be made, and when it is to run if that is the same everywhere: "“Good morning”
// every weekday at 9:00". Of other actions it returns the words that the model uses: "remove 1a2b3c4d".
func preview(say texts.Steps, partial map[string]any) string {
	text := func(name string) string {
		s, _ := partial[name].(string)
		return chat.Clip(chat.OneLine(s), 40, "…")
	}
	if text("action") != jobs.Add {
		return strings.TrimSpace(text("action") + " " + text("job_id"))
	}
	name := cmp.Or(text("name"), text("message"))
	seconds, _ := partial["every_seconds"].(int64)
	span := time.Duration(min(max(seconds, 0), math.MaxInt32)) * time.Second
	switch how := (when.Schedule{Every: span, Cron: text("cron_expr")}); {
	case name == "":
		return ""
	case how.Every > 0 || how.Cron != "":
		return say.Job.Recurs.With(name, when.Words(how))
	}
	return say.Job.Named.With(name)
}
