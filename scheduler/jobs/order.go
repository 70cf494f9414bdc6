// Package jobs is what people, models and programs do with scheduled jobs: what
// can be asked, who may ask it, and how jobs read in lists and histories.
package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/scheduler"
)

// A Change is what to set of a job. What is left out stays as it is, or has its
// default in a new job.
type Change struct {
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
}

// The actions of an [Order].
const (
	Add     = "add"
	List    = "list"
	Remove  = "remove"
	Enable  = "enable"
	Disable = "disable"
	Run     = "run"
	Edit    = "edit"
	History = "history"
)

// An Order is what to do about a job.
type Order struct {
	Action string `json:"action" jsonschema:"what to do" limit:"enum=add|list|remove|enable|disable|run|edit|history"`
	ID     string `json:"job_id,omitempty" jsonschema:"the job, as list shows it"`
	Change
	Force bool `json:"force,omitempty" jsonschema:"run a job that is switched off, this once"`
}

// An Asker is who asks for something, and where.
type Asker struct {
	At    chat.Address
	Group bool // others read along
	From  chat.Sender
}

// Whose returns the person whose memory and limits count.
func (a Asker) Whose() chat.Person { return chat.Whose(a.At, a.From, a.Group) }

// MayChange reports whether a may see and change j (D-098). Owners may in
// private; in a group, where others read along, only jobs that were made there.
// Others may if they made it: a job runs with the rights of who made it (R-S24).
func (a Asker) MayChange(j scheduler.Job) bool {
	if a.From.Role == chat.Owner && !a.Group {
		return true
	}
	return !j.System && j.Whose() == a.Whose() && (a.From.Role == chat.Owner || j.By.ID == a.From.ID)
}

// changeable returns those of jobs that a may change.
func (a Asker) changeable(jobs []scheduler.Job) []scheduler.Job {
	return slices.DeleteFunc(jobs, func(j scheduler.Job) bool { return !a.MayChange(j) })
}

// Find returns the ID of the job that ref means: its ID, or its name in any
// case. If no job is meant it returns ref. A name that several jobs have is an
// error.
func Find(jobs []scheduler.Job, ref string) (id string, err error) {
	var ids []string
	for _, j := range jobs {
		if j.ID == ref {
			return ref, nil
		}
		if strings.EqualFold(chat.OneLine(j.Name), chat.OneLine(ref)) {
			ids = append(ids, j.ID)
		}
	}
	switch len(ids) {
	case 0:
		return ref, nil
	case 1:
		return ids[0], nil
	}
	return "", fmt.Errorf("several jobs are named %s: %s; name one by its ID",
		chat.OneLine(ref), strings.Join(ids, ", "))
}

// apply makes j what c says. The scheduler checks the result.
func (m *Manager) apply(ctx context.Context, j *scheduler.Job, c Change) error {
	if err := m.setSchedule(j, c); err != nil {
		return err
	}
	if c.Isolated != nil {
		j.Isolated = *c.Isolated
	}
	if c.Quiet != nil {
		j.Quiet = *c.Quiet
	}
	if c.Message != "" {
		j.Text = c.Message
		j.Tool = ""
		j.Args = ""
	}
	j.Name = cmp.Or(c.Name, j.Name)
	j.Missed = cmp.Or(scheduler.Missed(c.Missed), j.Missed)
	if j.Missed == "once" {
		j.Missed = scheduler.Once
	}
	return errors.Join(m.setModel(j, c.Model), m.setTool(ctx, j, c))
}

func (m *Manager) setSchedule(j *scheduler.Job, c Change) (err error) {
	if c.Every != 0 || c.Cron != "" || c.At != "" {
		every := time.Duration(min(max(c.Every, -1), math.MaxInt32)) * time.Second
		j.Schedule = scheduler.Schedule{Every: every, Cron: c.Cron}
	}
	if c.At != "" {
		if j.Schedule.At, err = scheduler.ParseAt(c.At, m.Zone); err != nil {
			return err
		}
	}
	j.Schedule.Zone = cmp.Or(c.Zone, j.Schedule.Zone)
	return nil
}

// setModel has the model of that name answer j.
func (m *Manager) setModel(j *scheduler.Job, name string) error {
	switch names := m.Models(); {
	case name == "":
	case name == "default":
		j.Model = ""
	case !slices.Contains(names, name):
		return fmt.Errorf("there is no model '%s'; there are %s", name, strings.Join(names, ", "))
	default:
		j.Model = name
	}
	return nil
}

// setTool has j call the tool of c, if the person whose job it is could make
// that call.
func (m *Manager) setTool(ctx context.Context, j *scheduler.Job, c Change) error {
	if c.Tool == "" && len(c.Args) == 0 {
		return nil
	}
	if c.Tool != "" {
		j.Tool = c.Tool
		j.Args = "{}"
	}
	if len(c.Args) > 0 {
		args, err := json.Marshal(c.Args)
		if err != nil {
			return err
		}
		j.Args = string(args)
	}
	if j.Tool == "" {
		return nil
	}
	name, err := m.CheckTool(ctx, *j)
	j.Tool = name
	return err
}
