package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/llm/llmtest"
	"parley/memory"
	"parley/scheduler"
	"parley/scheduler/jobs"
)

var factForm = regexp.MustCompile(`fact: ([^.\n]+)\.`)

// facts are those that were said by what r tells, a bullet each.
func facts(r llmtest.Request) (all []string) {
	_, said, _ := strings.Cut(r.Last(), "What was said")
	for _, m := range factForm.FindAllStringSubmatch(said, -1) {
		if f := "- " + m[1]; !slices.Contains(all, f) {
			all = append(all, f)
		}
	}
	return all
}

// sums says whether r asks to sum up, and dreams whether it is a dream's.
func sums(r llmtest.Request) bool {
	return strings.HasPrefix(r.Messages[0].Content, "You keep the memory of an assistant.")
}

func dreams(r llmtest.Request) bool {
	return strings.HasPrefix(r.Messages[0].Content, "You keep the long-term memory of an assistant.")
}

// mindful is a model that keeps of what was said, when it sums up and when it
// dreams, what is called a fact.
func mindful(ctx context.Context, r llmtest.Request) llmtest.Reply {
	switch {
	case sums(r):
		text := strings.Join(facts(r), ".\n") // so that dreams find them, too
		if text != "" {
			return llmtest.Reply{Text: strings.ReplaceAll(text+".", "- ", "- fact: ")}
		}
		return llmtest.Reply{Text: "(nothing)"}
	case dreams(r) && len(results(r)) > 0:
		return llmtest.Reply{Calls: call("done", `{"why": "facts were told"}`)}
	case dreams(r):
		reply := llmtest.Reply{}
		for i, f := range facts(r) {
			args, _ := json.Marshal(map[string]string{"file": "MEMORY.md", "old": "", "new": f})
			reply.Calls = append(reply.Calls, llm.ToolCall{ID: fmt.Sprint("e", i), Name: "edit_memory", Args: string(args)})
		}
		if len(reply.Calls) == 0 {
			return llmtest.Reply{Calls: call("done", `{"why": ""}`)}
		}
		return reply
	}
	return errand(ctx, r)
}

// memory is what the agent has noted of who.
func (w *testGateway) memory(who chat.Person) string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.dir, "workspace", who.Folder(), "MEMORY.md"))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return string(b)
}

// them is who somebody is that talks at Telegram and is no owner.
func them(id int64) chat.Person { return chat.Person(fmt.Sprint("telegram:", id)) }

// TestRS14WhatIsKnown: what a person has noted is in the instructions of their
// requests and in what they find, and in nobody else's, until they have it
// forgotten (R-S14).
func TestRS14WhatIsKnown(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, errand)
	w.start()
	s, other := w.telegramSpot(), w.at(asker)
	own := map[*spot]string{s: "Vermeer", other: "Albatross"}
	s.asks("/remember The safe is behind the Vermeer", "Noted.")
	other.asks("/remember\nMy boat is called Albatross", "Noted.")
	for one, mine := range own {
		theirs := own[s]
		if one == s {
			theirs = own[other]
		}
		one.asks("hello "+mine, "heard hello "+mine)
		if rules := w.lastAsked().Messages[0].Content; !strings.Contains(rules, mine) || strings.Contains(rules, theirs) {
			t.Errorf("the instructions for %s know %s: %v, and %s: %v", one.session, mine, strings.Contains(rules, mine), theirs, strings.Contains(rules, theirs))
		}
		if text := one.asks("/memory", mine).text; strings.Contains(text, theirs) {
			t.Errorf("/memory at %s: %s", one.session, text)
		}
		one.asks(`call memory_search {"query": "safe boat Vermeer Albatross"}`, "the tools say: 1. ")
		if found := strings.Join(results(w.lastAsked()), ""); !strings.Contains(found, mine) || strings.Contains(found, theirs) {
			t.Errorf("%s finds %q", one.session, found)
		}
	}
	for _, name := range []string{"MEMORY.md", them(asker).Folder() + "/MEMORY.md"} {
		one := map[bool]*spot{true: other, false: s}[name == "MEMORY.md"]
		one.asks(fmt.Sprintf(`call read_file {"path": %q}`, name), "the tools say: ")
		if got := strings.Join(results(w.lastAsked()), ""); strings.Contains(got, "Vermeer") || strings.Contains(got, "Albatross") {
			t.Errorf("%s reads %s: %q", one.session, name, got)
		}
	}
	s.asks("/forget vermeer", "Forgotten: 0 parts of past conversations, 1 line.")
	s.asks("hello again", "heard hello again")
	if rules := w.lastAsked().Messages[0].Content; strings.Contains(rules, "Vermeer") || strings.Contains(w.memory(chat.TheOwner), "Vermeer") {
		t.Error("it is not forgotten")
	}
	other.asks("/memory", "Albatross")
}

// TestSummingUp: a conversation that is longer than the model can take goes on
// with what it was about in fewer words, over a crash too, and what was said is
// found later, by who said it (point 4, R-S14).
func TestSummingUp(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, mindful)
	w.model["contextWindow"] = 9000
	w.start()
	s, other := w.telegramSpot(), w.at(asker)
	const fact = "fact: the tide turns at noon."
	s.asks(fact, "heard "+fact)
	summed := func() bool {
		for _, r := range w.asked() {
			if sums(r) {
				return true
			}
		}
		return false
	}
	n := 0
	for ; !summed() && n < 30; n++ {
		s.asks(fmt.Sprintf("Verse %d. %s", n, strings.Repeat("Row, row, row your boat. ", 80)), fmt.Sprintf("heard Verse %d.", n))
	}
	if n == 30 {
		t.Fatal("nothing was summed up")
	}
	w.idle() // else the last verse may be answered together with what comes next
	w.kill()
	w.start()
	s.asks("hello", "heard hello")
	told := w.lastAsked().Messages[1:]
	if want := "[What was said before, summed up by you:]\n- " + fact; !strings.HasPrefix(told[0].Content, want) || told[0].Role != "user" {
		t.Errorf("the conversation begins with %+v, want %q", told[0], want)
	}
	if len(told) > 2*n || strings.Contains(fmt.Sprint(told), "Verse 0.") {
		t.Errorf("there are %d messages after %d verses", len(told), n)
	}
	s.asks("/new", "A new conversation.")
	s.asks(`call memory_search {"query": "tide noon"}`, "the tools say: 1. ")
	if found := strings.Join(results(w.lastAsked()), ""); !strings.Contains(found, ", history, telegram:7001\n> - "+fact) {
		t.Errorf("it finds %q", found)
	}
	other.asks(`call memory_search {"query": "tide noon"}`, "Nothing in memory has any of the words of")
	if why := w.llm.Refused(); len(why) > 0 {
		t.Errorf("the provider refused: %q", why)
	}
}

// dreamt waits until a dream that was begun has ended, and returns how.
func (w *testGateway) dreamt() scheduler.Run {
	w.t.Helper()
	j := w.job(jobs.DreamID, "over", func(j scheduler.Job) bool {
		return len(j.Runs) > 0 && j.Runs[len(j.Runs)-1].Seconds > 0
	})
	return j.Runs[len(j.Runs)-1]
}

// TestDream: after a talk the agent thinks it over: its memory of each person
// changes, they see what changed and why, and can undo it; then it is not dreamt
// again (point 5, R-S14).
func TestDream(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, mindful)
	w.start()
	s, other := w.telegramSpot(), w.at(asker)
	s.asks("fact: the boat is called Albatross.", "heard fact")
	other.asks("fact: the cat is called Vermeer.", "heard fact")
	before := w.memory(chat.TheOwner)
	other.asks("/dream", "Only owners can start a dream ahead of schedule.")
	s.asks("/dream", "I am going over my memory.")
	if r := w.dreamt(); r.Outcome != scheduler.Done || r.Tokens != 6*15 || r.Note != "2 summed up; 2 new parts of conversations, 2 changes" {
		t.Errorf("the dream came out as %s, with %d tokens: %s", r.Outcome, r.Tokens, r.Note)
	}
	after, theirs := w.memory(chat.TheOwner), w.memory(them(asker))
	if !strings.Contains(after, "- the boat is called Albatross\n") || strings.Contains(after, "Vermeer") || !strings.Contains(theirs, "- the cat is called Vermeer\n") || strings.Contains(theirs, "Albatross") {
		t.Errorf("the owner's memory is %q, the other's %q", after, theirs)
	}
	log := s.asks("/dream log", "The last changes of my memory of you:").text
	id := regexp.MustCompile(`• (\d+) 20\d\d-\d\d-\d\d \d\d:\d\d, dream, MEMORY\.md: facts were told\n`).FindStringSubmatch(log)
	if id == nil || strings.Contains(log, "cat") {
		t.Fatalf("the log is %s", log)
	}
	if diff := s.asks("/dream log "+id[1], "+- the boat is called Albatross").text; strings.Contains(diff, "Vermeer") {
		t.Errorf("the change is %s", diff)
	}
	s.asks("hello", "heard hello")
	if rules := w.lastAsked().Messages[0].Content; !strings.Contains(rules, "> - the boat is called Albatross") || strings.Contains(rules, "Vermeer") {
		t.Errorf("the instructions: %s", rules)
	}
	s.asks("/dream restore "+id[1], "Change "+id[1]+" is undone; ")
	if now := w.memory(chat.TheOwner); now != before {
		t.Errorf("the memory is %q, and was %q", now, before)
	}
	s.asks("/dream restore "+id[1], "What that change wrote has been replaced since, so it cannot be undone.")
	s.asks("/dream", "I am going over my memory.")
	w.job(jobs.DreamID, "over", func(j scheduler.Job) bool { return len(j.Runs) == 2 && j.Runs[1].Seconds > 0 })
	if now := w.memory(chat.TheOwner); now != before {
		t.Errorf("it was dreamt again: %q", now)
	}
}

// TestDreamKilled: a dream that is killed, while the model thinks and while its
// change is made, is dreamt again from there, and each thing once (point 5).
func TestDreamKilled(t *testing.T) {
	t.Parallel()
	const all = 45 // 20 make a change
	var w *testGateway
	var rounds atomic.Int32
	died := make(chan int, 9)
	strike := func(n int32) {
		_ = w.proc.cmd.Process.Kill() // it runs: nobody else kills it
		died <- int(n)
	}
	w = newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		reply := mindful(ctx, r)
		if !dreams(r) {
			return reply
		}
		switch n := rounds.Add(1); n {
		case 1, 5: // it thinks, of the first 20 and of the next
			strike(n)
		case 3, 7: // all is thought
			last := len(reply.Calls[0].Args)/8 + 3
			reply.After = func(chunk int) {
				if chunk >= last && n > 0 {
					time.Sleep(time.Duration(n) * time.Millisecond) // somewhere in what comes of it
					strike(n)
					n = 0
				}
			}
		}
		return reply
	})
	var lines strings.Builder
	for i := range all {
		b, err := json.Marshal(memory.Entry{
			Cursor: int64(i + 1), Time: time.Now().Add(-time.Hour), Who: chat.TheOwner, Session: "telegram:7001", Key: fmt.Sprint("k", i),
			Text: fmt.Sprintf("fact: number %d counts.", i),
		})
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(b, '\n'))
	}
	w.file("memory/history.jsonl", lines.String())
	w.start()
	s := w.telegramSpot()
	for over := false; !over; {
		s.asks("/dream", "I am going over my memory.")
		over = w.wakes(died)
	}
	now := w.memory(chat.TheOwner)
	for i := range all {
		if n := strings.Count(now, fmt.Sprintf("- number %d counts\n", i)); n != 1 {
			t.Errorf("number %d stands there %d times", i, n)
		}
	}
	if log := s.asks("/dream log", "The last changes").text; strings.Count(log, ", dream, MEMORY.md: facts were told") != 3 {
		t.Errorf("the log is %s", log)
	}
	t.Logf("%d requests, %d lives", rounds.Load(), w.starts)
}

// wakes waits for the end of a dream, and says whether it came before that of the
// program, which is started again.
func (w *testGateway) wakes(died <-chan int) bool {
	for late := time.Now().Add(waitTime); time.Now().Before(late); soon(w.t.Context()) {
		select {
		case <-died:
			w.start()
			return false
		default:
		}
		for _, j := range w.jobs() {
			if j.ID == jobs.DreamID && hasEnded(scheduler.Done)(j) {
				return true
			}
		}
	}
	w.t.Fatal("the dream does not end")
	return false
}
