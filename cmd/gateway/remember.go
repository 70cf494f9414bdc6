package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"parley/agent"
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

// A mind is all that is known beyond the conversation under way.
type mind struct {
	*memory.History
	notes  *memory.Notes
	skills *skills.Library
	pages  keptFiles
}

// keptFiles are the files of the workspace that each request is made of: they are
// read again only when they have changed.
type keptFiles struct {
	memory.Reader
	dir workspace.Names
}

// ReadDir returns what is in a folder.
func (p keptFiles) ReadDir(name string) ([]fs.DirEntry, error) { return p.dir.ReadDir(name) }

// openMind makes h.mind of the workspace and the store.
func (h *house) openMind() {
	zone := h.Config.Zone()
	past, versions := memory.NewHistory(h.files, h.Log), memory.NewVersions(h.files.Names(), h.store, h.Log)
	kept := keptFiles{memory.Keep(h.files.Names()), h.files.Names()}
	h.mind = mind{
		History: past, pages: kept,
		notes: &memory.Notes{Versions: versions, Past: past, Zone: zone, Texts: &h.texts.Memory},
		skills: skills.New(kept,
			func(bin string) bool { _, err := exec.LookPath(bin); return err == nil },
			func(name string) bool { _, set := os.LookupEnv(name); return set }),
	}
	h.mind.skills.Texts = &h.texts.Memory.Skills
}

// Summarise makes a mind the agent's Archive.
func (m mind) Summarise(ctx context.Context, model llm.Model, earlier, said string) (string, llm.Usage, error) {
	return memory.Summarise(ctx, model, earlier, said)
}

// dreaming is the model that thinks about what who said, at their expense, which
// is added to took.
func (h *house) dreaming(who chat.Person, took *scheduler.Ended) llm.Model {
	name := h.now.Load().DreamModel()
	model := h.pool.Model(name)
	return llm.ModelFunc(func(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Message, error) {
		if err := h.pool.Allow(ctx, who, "", jobs.DreamID); err != nil {
			return llm.Message{}, err
		}
		answer, err := model.Generate(ctx, req, stream)
		took.Cost += h.pool.Charge(ctx, who, "", jobs.DreamID, cmp.Or(answer.Model, name), answer.Usage)
		took.Tokens += answer.Usage.In + answer.Usage.Out
		return answer, err
	})
}

const silence = 15 * time.Minute // after which what was said may be summed up

// dream sums up what was said since the last one and goes over everybody's memory.
func (h *house) dream(ctx context.Context, _ scheduler.Job, r scheduler.Run) (scheduler.Ended, error) {
	silent := silence
	if r.Key != "" { // somebody wants it now, with what was said a moment ago
		silent = 0
	}
	t, left := h.pool.Digest(ctx, silent) // what there is can be dreamt all the same
	took := scheduler.Ended{Tokens: t.Tokens, Cost: t.Cost}
	dreamer := memory.Dreamer{
		Past: h.mind.History, Versions: h.mind.notes.Versions, Zone: h.Config.Zone(),
		Model: func(who chat.Person) llm.Model { return h.dreaming(who, &took) },
		Texts: &h.texts.Memory, Ask: h.proposeChange,
	}
	read, changes, err := dreamer.DreamAll(ctx)
	took.Note = dreamNote(h.texts.Gateway.Dream, t.Parts, read, changes)
	h.sweep(ctx)
	return took, errors.Join(left, err)
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
func (h *house) proposeChange(ctx context.Context, c memory.Change) {
	if c.Who != chat.TheOwner {
		return
	}
	say := h.texts.Gateway.Dream
	names := slices.Sorted(maps.Keys(c.Asks))
	which := names[len(names)-1]
	if first := names[:len(names)-1]; len(first) > 0 {
		which = say.And.With(strings.Join(first, ", "), which)
	}
	text := say.Proposed.With(which, c.ID)
	if err := h.hub.TellOwners(ctx, "dream asks "+c.ID, text); err != nil {
		h.Log.Warn("owners not told of a proposed change of memory", "change", c.ID, "err", err)
	}
}

// sweep forgets the sessions of isolated jobs that are there no more, once what
// they began is done.
func (h *house) sweep(ctx context.Context) {
	talks, err := h.pool.Talks(ctx, scheduler.Sessions)
	for _, t := range talks {
		if _, e := h.clock.Job(ctx, strings.TrimPrefix(string(t.Session), scheduler.Sessions)); !errors.Is(e, store.ErrNotFound) {
			continue
		}
		resting, e := h.pool.Resting(ctx, t.Session)
		if e == nil && resting {
			e = h.forgetSession(ctx, t.Session)
		}
		err = errors.Join(err, e)
	}
	if err != nil {
		h.Log.Error("sessions of jobs that are gone not forgotten", "err", err)
	}
}

// recall looks things up for the tool memory_search.
func (h *house) recall(ctx context.Context, who chat.Person, words string, most int) (found []recall.Found, err error) {
	hits, err := h.mind.Search(ctx, who, words, most)
	for _, hit := range hits {
		found = append(found, recall.Found(hit))
		found[len(found)-1].Time = hit.Time.In(h.Config.Zone())
	}
	return found, err
}

// memoryCommands are what people can do with what is known of them.
func (h *house) memoryCommands() []agent.Command {
	notes, help := h.mind.notes, h.texts.Gateway.Commands
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
				return h.texts.Gateway.Dream.Usage, nil
			}
			return h.dreamNow(ctx, m)
		}},
		{Name: "skills", Help: help.Skills, Do: func(ctx context.Context, m chat.Message) (string, error) {
			kit, err := (*h.kit.Load())(ctx, tools.Scope{Session: m.Session(), At: m.At, From: m.From, Group: m.Group, Model: h.now.Load().Agent.Model})
			if err != nil {
				return "", err
			}
			return h.mind.skills.List(has(kit), h.hasModel), nil
		}},
	}
}

// dreamNow has the dream begin before its time. It is the whole house's.
func (h *house) dreamNow(ctx context.Context, m chat.Message) (string, error) {
	say := h.texts.Gateway.Dream
	if m.From.Role != chat.Owner {
		return say.NotOwner, nil
	}
	if h.Config.Dream.Cron == "" {
		return say.Off, nil
	}
	err := h.clock.Fire(ctx, jobs.DreamID, m.Key(), true)
	if why := scheduler.Say(h.texts.Scheduler.Refusals, err); why != "" {
		return h.texts.Gateway.Commands.NotDone.With(why), nil
	}
	return say.Begun, err
}

// prompt makes the instructions of the agent.
func (h *house) prompt() memory.Prompt {
	return memory.Prompt{Files: h.mind.pages, Zone: h.Config.Zone(), Skills: h.skills}
}

// skills tells the agent what it has learnt to do.
func (h *house) skills() string { return h.mind.skills.Prompt(has(h.offered.Load())) }

// has says which tools are in kit.
func has(kit *tools.Kit) func(name string) bool {
	return func(name string) bool { _, ok := kit.Tool(name); return ok }
}
