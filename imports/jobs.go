package imports

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/scheduler"
)

// A found job is one as the other scheduler kept it.
type foundJob struct {
	id, name, text string
	schedule       value // kind, expr, tz, everyMs, at, atMs
	channel, to    string
	off, isolated  bool
	from           string
}

// addJob takes over a scheduled job.
func (r *reading) addJob(f foundJob) {
	what := "job " + line(cmp.Or(f.name, f.text, f.id))
	schedule, err := toSchedule(f.schedule)
	switch {
	case err != nil:
	case !schedule.At.IsZero() && !schedule.At.After(r.now):
		err = fmt.Errorf("its time is over: %s", schedule.At.Format(time.DateTime))
	case strings.TrimSpace(f.text) == "":
		err = errors.New("it has no message")
	}
	if err != nil {
		r.left(what, f.from, line(err.Error()))
		return
	}
	j := Job{From: f.from, Job: scheduler.Job{
		ID:       fmt.Sprintf("%s-%.6x", r.System, sha256.Sum256([]byte(f.id))),
		Name:     line(f.name),
		Schedule: schedule,
		Text:     f.text,
		Isolated: f.isolated,
		Off:      f.off,
	}}
	why := r.address(&j.Job, f.channel, f.to)
	if why != "" {
		r.left(what, f.from, why)
		return
	}
	told := strings.TrimPrefix(f.channel+":"+f.to, ":")
	if at := string(j.At.Session()); told != at && told != strings.Replace(at, ":@", ":", 1) {
		j.Change = "it is told in " + at
	}
	r.Jobs = append(r.Jobs, j)
}

// address says where j is told, and who its author is: somebody who may talk, with whose rights it
// runs. Without a chat that is known, it is whoever else alone may talk.
func (r *reading) address(j *scheduler.Job, channel, to string) (why string) {
	to = strings.TrimPrefix(strings.TrimPrefix(to, "user:"), channel+":")
	to, isGroup := strings.CutPrefix(to, "channel:")
	c := r.Settings.Channels[channel]
	unnamed := slices.Contains(strings.Fields("last cli web webui pico console"), channel)
	switch {
	case c != nil && slices.Contains(c.Allow, to):
		r.setAuthor(j, channel, to)
	case c != nil && to != "" && len(c.Allow) == 1 && (isGroup || strings.HasPrefix(to, "-") || channel == "discord"):
		r.setAuthor(j, channel, c.Allow[0])
		j.At = chat.Address{Channel: channel, Chat: to}
		j.Group = true
	case c != nil && to != "":
		return "nobody who may talk is known to have made it in " + line(channel+":"+to)
	case c == nil && channel != "" && !unnamed:
		return "there is no channel " + line(channel) + " here"
	default:
		only := r.onlyPerson()
		if only == "" {
			return "it names no chat, and several or no people may talk: make it anew with parley cron add --to"
		}
		channel, id, _ := cutLast(only)
		r.setAuthor(j, channel, id)
	}
	return ""
}

// setAuthor makes j a job of that person's private chat.
func (r *reading) setAuthor(j *scheduler.Job, channel, id string) {
	j.By = chat.Sender{ID: id, Role: chat.User}
	if slices.Contains(r.Settings.Owners, channel+":"+id) {
		j.By.Role = chat.Owner
	}
	j.At = chat.Address{Channel: channel, Chat: id}
	if kind, _, _ := strings.Cut(channel, ":"); kind == "discord" {
		j.At.Chat = "@" + id // whose private chat Discord has under another number
	}
}

// onlyPerson returns the one person who may talk, as in owners of config.json: the owner that is
// named, or whoever else is alone.
func (r *reading) onlyPerson() string {
	if len(r.Settings.Owners) == 1 {
		return r.Settings.Owners[0]
	}
	all := r.people()
	if len(all) != 1 {
		return ""
	}
	return all[0]
}

// people returns those who may talk, as in owners of config.json, sorted.
func (r *reading) people() (all []string) {
	for name, c := range r.Settings.Channels {
		for _, id := range c.Allow {
			all = append(all, name+":"+id)
		}
	}
	slices.Sort(all)
	return all
}

// cutLast cuts a text at its last colon.
func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndex(s, ":")
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// toSchedule returns a schedule that all three systems write in nearly the same way.
func toSchedule(v value) (s scheduler.Schedule, err error) {
	switch kind := v.get("kind").text(); kind {
	case "every":
		s.Every = time.Duration(v.get("everyMs|every_ms").int()) * time.Millisecond
		if s.Every <= 0 {
			err = errors.New("it has no interval")
		}
	case "at":
		if ms := v.get("atMs|at_ms").int(); ms > 0 {
			s.At = time.UnixMilli(ms).UTC()
			break
		}
		s.At, err = time.Parse(time.RFC3339, v.get("at").text())
	case "cron":
		s.Cron = strings.Join(strings.Fields(v.get("expr").text()), " ")
		s.Zone = v.get("tz").text()
		if rest, ok := strings.CutPrefix(s.Cron, "0 "); ok && strings.Count(s.Cron, " ") == 5 {
			s.Cron = rest // of six fields the first are seconds
		}
		if n := strings.Count(s.Cron, " "); n != 4 && !strings.HasPrefix(s.Cron, "@") {
			err = fmt.Errorf("its schedule %q has no five fields", s.Cron)
		}
	default:
		err = fmt.Errorf("there are no schedules of the kind %q here", kind)
	}
	return s, err
}
