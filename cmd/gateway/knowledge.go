package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"parley/agent"
	"parley/agent/budget"
	"parley/chat"
	"parley/llm"
	"parley/memory"
	"parley/memory/skills"
	"parley/scheduler"
	"parley/scheduler/jobs"
	"parley/tools"
	"parley/tools/recall"
	"parley/tools/trust"
)

// A knowledge is what the agent knows beyond the conversation at hand: the
// history of summaries, long memory and skills.
type knowledge struct {
	app     *gateway
	history *memory.History
	notes   *memory.Notes
	skills  *skills.Library
	files   *memory.Cache // those of the workspace that each request is made of
}

// openKnowledge opens what the workspace and the store hold of it.
func (g *gateway) openKnowledge() {
	names := g.files.Names()
	history := memory.NewHistory(g.files, g.Log)
	versions := memory.NewVersions(names, g.store, g.Log)
	kept := memory.Cached(names)
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

// dreamSilence is how long a conversation must have been silent to be summed up.
const dreamSilence = 15 * time.Minute

// dream sums up what was said since the last one and goes over everybody's memory.
func (k knowledge) dream(ctx context.Context, _ scheduler.Job, r scheduler.Run) (scheduler.Ended, error) {
	silence := dreamSilence
	if r.Key != "" { // somebody wants it now, with what was said a moment ago
		silence = 0
	}
	run := fmt.Sprintf("%s/%d", jobs.DreamID, r.N)
	summed, left := k.app.pool.Digest(ctx, jobs.DreamID, run, silence) // the dream reads what there is all the same
	book := k.app.pool.Budget()
	dreamer := memory.Dreamer{
		Past:     k.history,
		Versions: k.notes.Versions,
		Zone:     k.app.Config.Zone(),
		Model: func(who chat.Person) llm.Model {
			name := k.app.now.Load().DreamModel()
			return book.Meter(budget.Spender{Person: who, Job: jobs.DreamID, Run: run}, name, k.app.pool.Model(name))
		},
		Texts: &k.app.texts.Memory,
		Ask:   k.proposeChange,
	}
	read, changes, err := dreamer.DreamAll(ctx)
	tokens, cost := book.RunUsage(ctx, run)
	upkeepOf(k.app).ForgetJobs(ctx)
	note := memory.DreamNote(k.app.texts.Gateway.Dream, summed, read, changes)
	return scheduler.Ended{Note: note, Tokens: tokens, Cost: cost}, errors.Join(left, err)
}

// proposeChange asks owners about what a dream would change of who the agent is or
// whom it works for. Others see it in /dream log.
func (k knowledge) proposeChange(ctx context.Context, c memory.Change) {
	if c.Who != chat.TheOwner {
		return
	}
	text := memory.ProposalNotice(k.app.texts.Gateway.Dream, c)
	if err := k.app.hub.TellOwners(ctx, "dream asks "+c.ID, text); err != nil {
		k.app.Log.Warn("owners not told of a proposed change of memory", "change", c.ID, "err", err)
	}
}

// recall looks things up for the tool memory_search.
func (k knowledge) recall(ctx context.Context, who chat.Person, words string, most int) ([]recall.Found, error) {
	var found []recall.Found
	hits, err := k.history.Search(ctx, who, words, most)
	for _, hit := range hits {
		found = append(found, recall.Found(hit))
		found[len(found)-1].Time = hit.Time.In(k.app.Config.Zone())
	}
	return found, err
}

// commands are what people can do with what is known of them.
func (k knowledge) commands() []agent.Command {
	help := k.app.texts.Gateway.Commands
	dream := func(ctx context.Context, m chat.Message) (string, error) {
		return k.notes.DreamCommand(ctx, m, k.app.texts.Gateway.Dream.Usage, k.dreamNow)
	}
	trustFiles := trust.Command(k.app.files, k.app.shell, k.app.auditLog.Add, k.app.texts)
	return []agent.Command{
		{Name: "memory", Help: help.Memory, Do: k.notes.MemoryCommand},
		{Name: "remember", Help: help.Remember, Do: k.notes.RememberCommand},
		{Name: "forget", Help: help.Forget, Do: k.notes.ForgetCommand},
		{Name: "dream", Help: help.Dream, Do: dream},
		{Name: "skills", Help: help.Skills, Do: k.listSkills},
		{Name: "trust", Help: help.Trust, When: agent.InOrder, Do: trustFiles},
	}
}

// listSkills answers the slash command /skills.
func (k knowledge) listSkills(ctx context.Context, m chat.Message) (string, error) {
	model := k.app.now.Load().Agent.Model
	scope := tools.Scope{Session: m.Session(), At: m.At, From: m.From, Group: m.Group, Model: model}
	kit, err := (*k.app.kit.Load())(ctx, scope)
	if err != nil {
		return "", err
	}
	return k.skills.List(kit.Has, k.app.hasModel), nil
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
