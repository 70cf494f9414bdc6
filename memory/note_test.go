package memory

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/llm"
	"parley/llm/llmtest"
	"parley/store"
)

type (
	llmRequest = llm.Request
	llmAnswer  = llmtest.Answer
)

func scripted(f func(llm.Request) llmtest.Answer) llm.Model { return &llmtest.Script{Else: f} }

// say expects an answer.
func (a *attic) answers(want string) func(string, error) {
	return func(got string, err error) {
		a.t.Helper()
		if got != want || err != nil {
			a.t.Errorf("got %q, %v\nwant %q", got, err, want)
		}
	}
}

// /remember: a dated line, once for each message that asks.
func TestRemember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAttic(t)
		n, ctx := a.notes(), t.Context()
		a.answers("What am I to remember? `/remember TEXT`")(n.Remember(ctx, "x:1", " \n", "k0"))
		a.answers("That is too long to remember: 2000 characters are the most.")(n.Remember(ctx, "x:1", strings.Repeat("x", 2001), "k1"))
		for range 2 {
			a.answers("Noted.")(n.Remember(ctx, "x:1", "my dog\n## is Rex", "k2"))
		}
		a.want("x:1", memoryFile, "## Noted\n\n- 2000-01-01: my dog ## is Rex\n")
		a.write("x:1", memoryFile, "# Known\n\n- one\n\n## noted\n- old\n\n\n## Other\n- two\n\n"+heardTitle+"\n> page\n")
		a.answers("Noted.")(n.Remember(ctx, "x:1", "tea", "k3"))
		a.want("x:1", memoryFile, "# Known\n\n- one\n\n## noted\n- old\n- 2000-01-01: tea\n\n\n## Other\n- two\n\n"+heardTitle+"\n\n> page\n")
		a.write("x:1", memoryFile, strings.Repeat("x", maxFile))
		a.answers("My memory of you is full, so I noted nothing: `/forget` something first.")(n.Remember(ctx, "x:1", "tea", "k4"))
		if all := a.consistent("x:1"); len(all) != 4 || all[1].By != "/remember" || all[1].Key != "k3" || all[1].Why != "tea" {
			t.Errorf("the log is %+v", all)
		}
	})
}

// /forget: lines and entries that hold the words go, and it says which.
func TestForgetting(t *testing.T) {
	a := newAttic(t)
	n, ctx := a.notes(), t.Context()
	a.answers("What am I to forget? `/forget WHAT`, in at least 3 characters.")(n.Forget(ctx, "owner", " ab ", "k"))
	a.answers("I know nothing of that.")(n.Forget(ctx, "owner", "karl", "k"))
	memory := "## Noted\n\n- KARL likes tea\n- Ann knows\n\n" + heardTitle + "\n\n> karl's page\n"
	a.write("owner", memoryFile, memory)
	a.write("owner", userFile, "- Name: Karl\n- Place:\n")
	a.write("owner", soulFile, "karl\n")
	a.past.say("owner", "karl said", "Ann said")
	a.past.say("x:1", "karl said")
	a.write("x:1", memoryFile, "karl\n")
	for i, entries := range []string{"1 part", "0 parts"} {
		a.answers("Forgotten: 3 lines and "+entries+" of past conversations.\n- KARL likes tea\n- karl's page\n- Name: Karl\n\n`/dream restore 2` brings the lines back.")(
			n.Forget(ctx, "owner", "Karl", "key"))
		if len(a.past["owner"]) != 1 || len(a.past["x:1"]) != 1 {
			t.Errorf("%d: the history is %+v", i, a.past)
		}
	}
	a.want("owner", memoryFile, "## Noted\n\n- Ann knows\n\n"+heardTitle+"\n\n")
	a.want("owner", userFile, "- Place:\n")
	a.want("owner", soulFile, "karl\n")
	a.want("x:1", memoryFile, "karl\n") // R-S14
	a.answers("Change 2 is undone; `/dream restore 3` takes that back.")(n.Restore(ctx, "owner", "2", "r"))
	a.want("owner", memoryFile, memory)
	for i := range 25 {
		a.past.say("owner", fmt.Sprint("karl ", i))
	}
	a.answers("3 lines and 25 parts of past conversations hold that. Say it in more words, or `/forget all karl` if you mean them all.")(n.Forget(ctx, "owner", "karl", "k5"))
	if len(a.past["owner"]) != 26 {
		t.Error("entries are gone all the same")
	}
	if _, err := n.Forget(ctx, "owner", "all karl", "k6"); err != nil || len(a.past["owner"]) != 1 {
		t.Errorf("%v, %+v", err, a.past["owner"])
	}
	a.consistent("owner")
}

// What /memory, /dream and /dream log say.
func TestTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAttic(t)
		n, ctx := a.notes(), t.Context()
		a.answers("I have noted nothing yet. I remember 0 parts of past conversations; 0 of them I have not thought over.")(n.Show(ctx, "x:1"))
		a.answers("Nothing has changed in my memory of you yet.")(n.Changes(ctx, "x:1", ""))
		a.past.say("x:1", "one", "!two")
		a.model = &llmtest.Script{Answers: []llmtest.Answer{
			calls(edits(memoryFile, "", "a ``` fence"), ends("a\nfence")), calls(edits(memoryFile, "", "cats purr"), ends("x")),
			calls(ends("nothing")),
		}}
		changes, read := a.dream("x:1")
		a.answers("I thought over 2 parts of past conversations.\n\n- `1` a fence; heard from others (MEMORY.md)\n\n`/dream log ID` shows a change, `/dream restore ID` undoes it.")(Dreamt(changes, read), nil)
		a.past.say("x:1", "three")
		a.answers("**MEMORY.md**\n\na ``` fence\n\n"+heardTitle+"\n\n> cats purr\n\nI remember 3 parts of past conversations; 1 of them I have not thought over. The last dream was on 2000-01-01 00:00.")(n.Show(ctx, "x:1"))
		changes, read = a.dream("x:1")
		a.answers("I thought over 1 part of past conversations; nothing had to be changed.")(Dreamt(changes, read), nil)
		changes, read = a.dream("x:1")
		a.answers("Nothing new was said since the last dream.")(Dreamt(changes, read), nil)
		a.write("x:1", userFile, "- Ann\n")
		time.Sleep(time.Hour)
		list := "- `2` 2000-01-01 01:00, edited: USER.md\n- `1` %s\n\n`/dream log ID` shows a change, `/dream restore ID` undoes it."
		a.answers(fmt.Sprintf(list, "2000-01-01 00:00, dream: a fence; heard from others (MEMORY.md)"))(n.Changes(ctx, "x:1", ""))
		a.answers("`1` 2000-01-01 00:00, dream: a fence; heard from others (MEMORY.md)\n\n````diff\n--- MEMORY.md\n+++ MEMORY.md\n@@ -0,0 +1,5 @@\n+a ``` fence\n+\n+"+heardTitle+"\n+\n+> cats purr\n````")(n.Changes(ctx, "x:1", "1"))
		a.answers(`There is no change "7", or what it changed is not kept any more. `+"`/dream log` lists them.")(n.Changes(ctx, "x:1", "7"))
		a.answers(`There is no change "7", or what it changed is not kept any more. `+"`/dream log` lists them.")(n.Restore(ctx, "x:1", "7", ""))
		a.answers("Change 1 is undone; `/dream restore 3` takes that back.")(n.Restore(ctx, "x:1", "1", ""))
		a.answers("Change 1 cannot be undone: what it wrote is not there any more.")(n.Restore(ctx, "x:1", "1", ""))
		if _, err := a.changes().Put(ctx, key("x:1", 1), nil, store.Any); err != nil {
			t.Fatal(err)
		}
		a.answers("Change 1 is damaged on disk.")(n.Restore(ctx, "x:1", "1", ""))
		a.answers(fmt.Sprintf("- `3` 2000-01-01 01:00, restore 1: MEMORY.md\n"+list, "is damaged on disk"))(n.Changes(ctx, "x:1", ""))
	})
}
