// Package jobs lets people, models and programs manage scheduled jobs: the orders
// they can give, who may give them, and the texts of lists and histories.
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
	"parley/when"
)

// A Change has new values for the fields of a job. An empty field keeps its value,
// or gets its default in a new job.
type Change struct {
	Name     string         `json:"name,omitempty"`
	Message  string         `json:"message,omitempty" jsonschema:"with all you need to know then"`
	Every    int            `json:"every_seconds,omitempty"`
	Cron     string         `json:"cron_expr,omitempty" jsonschema:"every weekday at 9: 0 9 * * 1-5"`
	Zone     string         `json:"tz,omitempty" jsonschema:"of cron_expr, such as Europe/Berlin"`
	At       string         `json:"at,omitempty" jsonschema:"YYYY-MM-DDTHH:MM:SS in the usual time zone"`
	Isolated *bool          `json:"isolated,omitempty"`
	Quiet    *bool          `json:"quiet,omitempty"`
	Model    string         `json:"model,omitempty"`
	Missed   string         `json:"missed,omitempty" jsonschema:"after downtime: once or skip"`
	Tool     string         `json:"tool,omitempty"`
	Args     map[string]any `json:"args,omitempty"`
}

// SetWhen sets when the job is due, in plain words. The error says what is not
// understood.
func (c *Change) SetWhen(words string, now time.Time) error {
	if c.Every != 0 || c.Cron != "" || c.At != "" {
		return errors.New("only one of when, every_seconds, cron_expr, and at can be used")
	}
	s, err := when.Parse(words, now)
	c.Every = int(s.Every / time.Second)
	c.Cron = s.Cron
	c.At = s.At
	return err
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

// An Order asks for one action on scheduled jobs.
type Order struct {
	Action string `json:"action" limit:"enum=add|list|remove|enable|disable|run|edit|history"`
	ID     string `json:"job_id,omitempty"`
	Change
	Force bool `json:"force,omitempty"`
}

// An Asker is the person who gives an order, and the chat they give it in.
type Asker struct {
	At    chat.Address
	Group bool // other people read the chat
	From  chat.Sender
}

// Whose returns the person whose memory and limits count.
func (a Asker) Whose() chat.Person { return chat.Whose(a.At, a.From, a.Group) }

// MayChange reports whether a may see and change j (D-098). In a private chat,
// owners may see and change all jobs; in a group, where other people read along, only
// those made there. Other people may change the jobs they made: a job runs with its
// author's rights (R-S24).
func (a Asker) MayChange(j scheduler.Job) bool {
	if a.From.Role == chat.Owner && !a.Group {
		return true
	}
	return !j.System && j.Whose() == a.Whose() && (a.From.Role == chat.Owner || j.By.ID == a.From.ID)
}

// changeable returns the jobs that a may change.
func (a Asker) changeable(jobs []scheduler.Job) []scheduler.Job {
	return slices.DeleteFunc(jobs, func(j scheduler.Job) bool { return !a.MayChange(j) })
}

// Find returns the ID of the job that ref refers to by ID or, in any letter case, by
// name. If there is none, it returns ref. A name that several jobs share is an error.
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

// apply sets the fields of j that c has values for. The scheduler checks the result.
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

// setModel makes the model with this name answer j.
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

// setTool makes j call the tool of c, if the job's owner may make that call.
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
