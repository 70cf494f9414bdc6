package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"parley/agent"
	"parley/agent/budget"
	"parley/chat"
	"parley/llm"
	"parley/memory"
	"parley/memory/skills"
	"parley/scheduler"
	"parley/scheduler/jobs"
	"parley/store"
	"parley/texts"
	"parley/tools"
	"parley/tools/recall"
	"parley/workspace"
)

// A knowledge is what the agent knows beyond the conversation at hand: the
// history of summaries, long memory and skills.
type knowledge struct {
	app     *gateway
	history *memory.History
	notes   *memory.Notes
	skills  *skills.Library
	files   keptFiles
}

// keptFiles are the files of the workspace that each request is made of: they are
// read again only when they have changed.
type keptFiles struct {
	memory.Reader
	dir workspace.Names
}

// ReadDir returns what is in a folder.
func (p keptFiles) ReadDir(name string) ([]fs.DirEntry, error) { return p.dir.ReadDir(name) }

// openKnowledge opens what the workspace and the store hold of it.
func (g *gateway) openKnowledge() {
	names := g.files.Names()
	history := memory.NewHistory(g.files, g.Log)
	versions := memory.NewVersions(names, g.store, g.Log)
	kept := keptFiles{memory.Cached(names), names}
	hasProgram := func(name string) bool {
		_, err := exec.LookPath(name)
		return err == nil
	}
	hasVariable := func(name string) bool {
		_, set := os.LookupEnv(name)
		return set
	}
	g.knowledge = knowledge{
		app:     g,
		history: history,
		notes:   &memory.Notes{Versions: versions, Past: history, Zone: g.Config.Zone(), Texts: &g.texts.Memory},
		skills:  skills.New(kept, hasProgram, hasVariable),
		files:   kept,
	}
	g.knowledge.skills.Texts = &g.texts.Memory.Skills
}

// Summarise implements [summary.Archive].
func (k knowledge) Summarise(ctx context.Context, model llm.Model, earlier, said string) (string, llm.Usage, error) {
	return memory.Summarise(ctx, model, earlier, said)
}

// Append implements [summary.Archive].
func (k knowledge) Append(ctx context.Context, who chat.Person, e memory.Entry) (memory.Entry, error) {
	return k.history.Append(ctx, who, e)
}

// dreamModel is the model that thinks about what who said in a run of the dream, at
// their expense.
func (k knowledge) dreamModel(who chat.Person, run string) llm.Model {
	spender := budget.Spender{Person: who, Job: jobs.DreamID, Run: run}
	name := k.app.now.Load().DreamModel()
	model := k.app.pool.Model(name)
	return llm.ModelFunc(func(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Message, error) {
		if err := k.app.pool.Budget().Allow(ctx, spender); err != nil {
			return llm.Message{}, err
		}
		answer, err := model.Generate(ctx, req, stream)
		k.app.pool.Budget().Charge(ctx, spender, 1, cmp.Or(answer.Model, name), answer.Usage)
		return answer, err
	})
}

const silence = 15 * time.Minute // after which what was said may be summed up

// dream sums up what was said since the last one and goes over everybody's memory.
func (k knowledge) dream(ctx context.Context, _ scheduler.Job, r scheduler.Run) (scheduler.Ended, error) {
	silent := silence
	if r.Key != "" { // somebody wants it now, with what was said a moment ago
		silent = 0
	}
	run := fmt.Sprintf("%s/%d", jobs.DreamID, r.N)
	summed, left := k.app.pool.Digest(ctx, jobs.DreamID, run, silent) // what there is can be dreamt all the same
	dreamer := memory.Dreamer{
		Past: k.history, Versions: k.notes.Versions, Zone: k.app.Config.Zone(),
		Model: func(who chat.Person) llm.Model { return k.dreamModel(who, run) },
		Texts: &k.app.texts.Memory, Ask: k.proposeChange,
	}
	read, changes, err := dreamer.DreamAll(ctx)
	tokens, cost := k.app.pool.Budget().RunUsage(ctx, run)
	k.sweep(ctx)
	note := dreamNote(k.app.texts.Gateway.Dream, summed, read, changes)
	return scheduler.Ended{Note: note, Tokens: tokens, Cost: cost}, errors.Join(left, err)
}

// dreamNote says what came of a dream: how many parts of conversations it summed
// up and read, and how many changes of memory it made.
func dreamNote(say texts.Dream, summed, read, changes int) string {
	note := say.Note.With(say.Parts.Of(read), say.Changes.Of(changes))
	if summed > 0 {
		note = say.Summed.With(summed, note)
	}
	return note
}

// proposeChange asks owners about what a dream would change of who the agent is or
// whom it works for. Others see it in /dream log.
func (k knowledge) proposeChange(ctx context.Context, c memory.Change) {
	if c.Who != chat.TheOwner {
		return
	}
	say := k.app.texts.Gateway.Dream
	names := slices.Sorted(maps.Keys(c.Asks))
	which := names[len(names)-1]
	if first := names[:len(names)-1]; len(first) > 0 {
		which = say.And.With(strings.Join(first, ", "), which)
	}
	text := say.Proposed.With(which, c.ID)
	if err := k.app.hub.TellOwners(ctx, "dream asks "+c.ID, text); err != nil {
		k.app.Log.Warn("owners not told of a proposed change of memory", "change", c.ID, "err", err)
	}
}

// sweep forgets the sessions of isolated jobs that are there no more, once what
// they began is done.
func (k knowledge) sweep(ctx context.Context) {
	talks, err := k.app.pool.Sessions().Talks(ctx, scheduler.Sessions)
	for _, t := range talks {
		if _, e := k.app.scheduler.Job(ctx, strings.TrimPrefix(string(t.Session), scheduler.Sessions)); !errors.Is(e, store.ErrNotFound) {
			continue
		}
		resting, e := k.app.pool.Resting(ctx, t.Session)
		if e == nil && resting {
			e = k.app.forgetSession(ctx, t.Session)
		}
		err = errors.Join(err, e)
	}
	if err != nil {
		k.app.Log.Error("sessions of jobs that are gone not forgotten", "err", err)
	}
}

// recall looks things up for the tool memory_search.
func (k knowledge) recall(ctx context.Context, who chat.Person, words string, most int) (found []recall.Found, err error) {
	hits, err := k.history.Search(ctx, who, words, most)
	for _, hit := range hits {
		found = append(found, recall.Found(hit))
		found[len(found)-1].Time = hit.Time.In(k.app.Config.Zone())
	}
	return found, err
}

// commands are what people can do with what is known of them.
func (k knowledge) commands() []agent.Command {
	notes, help := k.notes, k.app.texts.Gateway.Commands
	whose := func(m chat.Message) chat.Person { return chat.Whose(m.At, m.From, m.Group) }
	rest := func(m chat.Message) string {
		_, rest := chat.Word(m.Text)
		return rest
	}
	return []agent.Command{
		{Name: "memory", Help: help.Memory, Do: func(ctx context.Context, m chat.Message) (string, error) {
			return notes.Show(ctx, whose(m))
		}},
		{Name: "remember", Help: help.Remember, Do: func(ctx context.Context, m chat.Message) (string, error) {
			return notes.Remember(ctx, whose(m), rest(m), m.Key())
		}},
		{Name: "forget", Help: help.Forget, Do: func(ctx context.Context, m chat.Message) (string, error) {
			return notes.Forget(ctx, whose(m), rest(m), m.Key())
		}},
		{Name: "dream", Help: help.Dream, Do: func(ctx context.Context, m chat.Message) (string, error) {
			word, id := chat.Word(rest(m))
			switch {
			case word == "log":
				return notes.Changes(ctx, whose(m), id)
			case word == "restore" && id != "":
				return notes.Restore(ctx, whose(m), id, m.Key())
			case word == "accept" && id != "":
				return notes.Accept(ctx, whose(m), id, m.Key())
			case word != "":
				return k.app.texts.Gateway.Dream.Usage, nil
			}
			return k.dreamNow(ctx, m)
		}},
		{Name: "skills", Help: help.Skills, Do: func(ctx context.Context, m chat.Message) (string, error) {
			kit, err := (*k.app.kit.Load())(ctx, tools.Scope{Session: m.Session(), At: m.At, From: m.From, Group: m.Group, Model: k.app.now.Load().Agent.Model})
			if err != nil {
				return "", err
			}
			return k.skills.List(kit.Has, k.app.hasModel), nil
		}},
	}
}

// dreamNow starts the dream before its time. It covers everybody's memory, so
// only owners may.
func (k knowledge) dreamNow(ctx context.Context, m chat.Message) (string, error) {
	say := k.app.texts.Gateway.Dream
	if m.From.Role != chat.Owner {
		return say.NotOwner, nil
	}
	if k.app.Config.Dream.Cron == "" {
		return say.Off, nil
	}
	err := k.app.scheduler.Fire(ctx, jobs.DreamID, m.Key(), true)
	if why := scheduler.Say(k.app.texts.Scheduler.Refusals, err); why != "" {
		return k.app.texts.Gateway.Commands.NotDone.With(why), nil
	}
	return say.Begun, err
}

// prompt makes the instructions of the agent.
func (k knowledge) prompt() memory.Prompt {
	return memory.Prompt{Files: k.files, Zone: k.app.Config.Zone(), Skills: k.skillsPrompt}
}

// skillsPrompt tells the agent what it has learnt to do.
func (k knowledge) skillsPrompt() string { return k.skills.Prompt(k.app.offered.Load().Has) }
