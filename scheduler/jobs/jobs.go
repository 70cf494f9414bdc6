package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/scheduler"
	"parley/store"
	"parley/texts"
)

// A Manager carries out orders. All methods may be called concurrently.
type Manager struct {
	Scheduler *scheduler.Scheduler
	Zone      *time.Location // for times that people write and read
	Texts     *texts.Catalogue
	Models    func() []string // names of the models that jobs can use
	// CheckTool returns the full name of the tool that j is to call, or why the job's
	// owner may not make that call.
	CheckTool func(ctx context.Context, j scheduler.Job) (name string, err error)
	Audit     func(kind, who, what string)
}

// An Answer is the result of an order.
type Answer struct {
	Text    string
	Foreign bool            // Text may quote people other than the asker, or untrusted content
	Jobs    []scheduler.Job // those that a list has, or the one that was added, for programs
	Shown   string          // what people see of the step; "": Text

	about scheduler.Job // what was done is about; the zero Job for a list
}

// Add adds a job for a, in a's chat. If a job with this ID exists already, Add
// returns that job (see [scheduler.Scheduler.Add]).
func (m *Manager) Add(ctx context.Context, a Asker, id string, c Change) (scheduler.Job, error) {
	j := scheduler.Job{ID: id, At: a.At, Group: a.Group, By: a.From}
	if err := m.apply(ctx, &j, c); err != nil {
		return j, err
	}
	return m.Scheduler.Add(ctx, j)
}

// Edit changes the job with this ID, and switches it on or off if enabled is set. If
// to is set, it must be the session that gets the job's answers, which cannot change.
func (m *Manager) Edit(ctx context.Context, id, to string, c Change, enabled *bool) (scheduler.Job, error) {
	return m.Scheduler.Edit(ctx, id, func(j *scheduler.Job) error {
		if at := string(j.At.Session()); to != "" && to != at {
			return fmt.Errorf("to is %s for good: make another job", at)
		}
		if enabled != nil {
			j.Off = !*enabled
		}
		return m.apply(ctx, j, c)
	})
}

// Order carries out o for a, and answers in English, for models. The key identifies
// the call: repeating an order under the same key runs nothing again.
func (m *Manager) Order(ctx context.Context, a Asker, key string, o Order) (Answer, error) {
	answer, err := m.do(ctx, a, key, o, English(m.Zone))
	if err != nil {
		return answer, err
	}
	answer.Shown = m.tip(o.Action, answer.about, time.Now())
	return answer, nil
}

func (m *Manager) do(ctx context.Context, a Asker, key string, o Order, say Texts) (Answer, error) {
	switch o.Action {
	case Add:
		j, err := m.Add(ctx, a, o.ID, o.Change)
		return Answer{Text: say.texts.Created.With(j.Name, j.ID), Jobs: []scheduler.Job{j}, about: j}, err
	case List:
		all, err := m.Scheduler.Jobs(ctx)
		all = a.changeable(all)
		foreign := slices.ContainsFunc(all, func(j scheduler.Job) bool { return isForeign(j, a.Whose()) })
		return Answer{Text: say.List(all, a.At), Foreign: foreign, Jobs: all}, err
	}
	answer, err := m.doToJob(ctx, a, key, o, say)
	if errors.Is(err, store.ErrNotFound) {
		return Answer{Text: say.texts.NotFound.With(o.ID)}, nil
	}
	if errors.Is(err, scheduler.ErrProtected) {
		return Answer{Text: say.protected(o.Action, o.ID)}, nil
	}
	return answer, err
}

// doToJob carries out o on an existing job.
func (m *Manager) doToJob(ctx context.Context, a Asker, key string, o Order, say Texts) (Answer, error) {
	j, err := m.find(ctx, a, o.ID)
	if err != nil {
		return Answer{}, err
	}
	switch o.Action {
	case Remove:
		return Answer{Text: say.texts.Removed.With(j.ID), about: j}, m.Scheduler.Remove(ctx, j.ID)
	case Run:
		return Answer{Text: say.texts.RunsNow.With(j.ID), about: j}, m.Scheduler.Fire(ctx, j.ID, key, o.Force)
	case History:
		return Answer{Text: say.History(j), Foreign: isForeign(j, a.Whose())}, nil
	}
	var enabled *bool
	if o.Action == Enable || o.Action == Disable {
		on := o.Action == Enable
		enabled = &on
	}
	_, err = m.Edit(ctx, j.ID, "", o.Change, enabled)
	return Answer{Text: say.changed(o.Action, j.ID), about: j}, err
}

// find returns the job that ref refers to, if a may change it. A damaged record is
// returned as an empty job, which owners can remove.
func (m *Manager) find(ctx context.Context, a Asker, ref string) (scheduler.Job, error) {
	all, err := m.Scheduler.Jobs(ctx)
	if err != nil {
		return scheduler.Job{}, err
	}
	id, err := Find(a.changeable(all), ref)
	if err != nil {
		return scheduler.Job{}, err
	}
	j, err := m.Scheduler.Job(ctx, id)
	switch {
	case errors.Is(err, store.ErrDamaged):
		j = scheduler.Job{ID: id}
	case err != nil:
		return scheduler.Job{}, err
	}
	if !a.MayChange(j) {
		return scheduler.Job{}, store.ErrNotFound
	}
	return j, nil
}

// isForeign reports whether a text about j may quote people other than who, or
// untrusted content.
func isForeign(j scheduler.Job, who chat.Person) bool {
	untrusted := func(r scheduler.Run) bool { return r.Tainted }
	return !j.System && j.Whose() != who || slices.ContainsFunc(j.Runs, untrusted)
}

// verbs maps the verbs of the slash command /cron to actions.
var verbs = map[string]string{
	"list": List, "history": History, "run": Run, "remove": Remove, "on": Enable, "off": Disable,
}

// Command answers the slash command /cron.
func (m *Manager) Command(ctx context.Context, msg chat.Message) (string, error) {
	say := Texts{texts: m.Texts.Gateway.Jobs, zone: m.Zone}
	o, ok := parseCommand(msg.Text)
	if !ok {
		return say.texts.Usage, nil
	}
	a := Asker{At: msg.At, Group: msg.Group, From: msg.From}
	answer, err := m.do(ctx, a, msg.Key(), o, say)
	if why := scheduler.Say(m.Texts.Scheduler.Refusals, err); why != "" {
		return m.Texts.Gateway.Commands.NotDone.With(why), nil
	}
	if o.Action != List && o.Action != History {
		m.Audit("cron", msg.At.Channel+":"+msg.From.ID, answer.Text)
	}
	return answer.Text, err
}

// parseCommand reads "/cron [VERB [JOB [force]]]".
func parseCommand(text string) (o Order, ok bool) {
	words := strings.Fields(text)[1:]
	if len(words) == 0 {
		return Order{Action: List}, true
	}
	o.Action = verbs[strings.ToLower(words[0])]
	if n := len(words); o.Action == Run && n > 2 && words[n-1] == "force" {
		o.Force = true
		words = words[:n-1]
	}
	o.ID = strings.Join(words[1:], " ")
	takesJob := o.Action != List
	return o, o.Action != "" && takesJob == (o.ID != "")
}

// IsUserError reports whether err is caused by the order itself, and not by a failure
// of the scheduler or its store.
func IsUserError(err error) bool {
	if err == nil {
		return false
	}
	for _, other := range []error{
		store.ErrNotFound, scheduler.ErrProtected, store.ErrFull, store.ErrDamaged, store.ErrClosed,
		context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, other) {
			return false
		}
	}
	return true
}
