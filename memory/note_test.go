package memory

import (
	"slices"
	"strings"
	"testing"
	"time"

	"parley/llm"
	"parley/llm/llmtest"
	"parley/store"
	"parley/timetest"
	"parley/workspace"
)

func scripted(f func(llm.Request) llmtest.Answer) llm.Model { return &llmtest.Script{Else: f} }

// answers expects that.
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
	timetest.Test(t, func(t *testing.T) {
		a := newAttic(t)
		n, ctx := a.notes(), t.Context()
		a.answers("What should I remember? `/remember TEXT`")(n.Remember(ctx, "x:1", " \n", "k0"))
		a.answers("That is too long to remember; the limit is 2000 characters.")(n.Remember(ctx, "x:1", strings.Repeat("x", 2001), "k1"))
		for range 2 {
			a.answers("Noted.")(n.Remember(ctx, "x:1", "my dog\n## is Rex", "k2"))
		}
		a.want("x:1", memoryFile, "- noted 2000-01-01: my dog ## is Rex\n")
		a.write("x:1", memoryFile, "# Known\n\n- one")
		a.answers("Noted.")(n.Remember(ctx, "x:1", "tea", "k3"))
		a.want("x:1", memoryFile, "# Known\n\n- one\n- noted 2000-01-01: tea\n")
		a.write("x:1", memoryFile, strings.Repeat("x", maxFile))
		a.answers("My memory of you is full or cannot be read, so I noted nothing. `/forget WHAT` makes room.")(n.Remember(ctx, "x:1", "tea", "k4"))
		if all := a.consistent("x:1"); len(all) != 4 || all[1].By != "/remember" || all[1].Key != "k3" {
			t.Errorf("the log is %+v", all)
		}
	})
}

// /forget: lines and entries that hold the words go, and it says which.
func TestForgetting(t *testing.T) {
	a := newAttic(t)
	n, ctx := a.notes(), t.Context()
	a.answers("What should I forget? `/forget WHAT`, in at least 3 characters.")(n.Forget(ctx, "owner", " ab ", "k"))
	a.answers("Nothing in my memory contains that, so there is nothing to forget.")(n.Forget(ctx, "owner", "karl", "k"))
	memory := "# Known\n\n- KARL likes tea\n- Ann knows\n"
	a.write("owner", memoryFile, memory)
	a.write("owner", userFile, "- Name: Karl\n- Place:\n")
	a.write("owner", "memory/HEARD.md", "karl's page\n")
	a.write("owner", soulFile, "karl\n")
	a.past.say("owner", "karl said", "Ann said")
	a.past.say("x:1", "karl said")
	a.write("x:1", memoryFile, "karl\n")
	for i, entries := range []string{"1 part", "0 parts"} {
		a.answers("Forgotten: " + entries + " of past conversations, 3 lines.\n\n> - KARL likes tea\n> - Name: Karl\n> karl's page\n\n`/dream restore 2` brings that back.")(
			n.Forget(ctx, "owner", "Karl", "key"))
		if a.past.count("owner") != 1 || a.past.count("x:1") != 1 {
			t.Errorf("%d: the history is wrong", i)
		}
	}
	a.want("owner", memoryFile, "# Known\n\n- Ann knows\n")
	a.want("owner", heardFile, "")
	a.want("owner", userFile, "- Place:\n")
	a.want("owner", soulFile, "karl\n")
	a.want("x:1", memoryFile, "karl\n") // R-S14
	a.answers("Change 2 is undone; `/dream restore 3` takes that back.")(n.Restore(ctx, "owner", "2", "r"))
	a.want("owner", memoryFile, memory)
	a.past.say("owner", slices.Repeat([]string{"karl"}, 25)...)
	a.answers("28 lines and parts of conversations contain that. Be more specific, or `/forget all karl` if you mean them all.")(n.Forget(ctx, "owner", "karl", "k5"))
	if a.past.count("owner") != 26 {
		t.Error("entries are gone all the same")
	}
	if _, err := n.Forget(ctx, "owner", "all karl", "k6"); err != nil || a.past.count("owner") != 1 {
		t.Errorf("%v, %d are left", err, a.past.count("owner"))
	}
	a.write("owner", memoryFile, strings.Repeat("- Ann\n- Karl\n", 100_000)) // of which not all is said, nor copied for each line
	if text, err := n.Forget(ctx, "owner", "all karl", "k7"); err != nil || len(text) > 1000 || !strings.HasPrefix(text, "Forgotten: 0 parts of past conversations, 100000 lines.\n\n> - Karl\n") {
		t.Errorf("%v, %d bytes: %.100s", err, len(text), text)
	}
	a.consistent("owner")
}

// What /memory, /dream log and /dream restore say.
func TestTold(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		a := newAttic(t)
		n, ctx := a.notes(), t.Context()
		nothing := "I remember nothing about you yet. `/remember TEXT` notes something."
		a.answers(nothing)(n.Show(ctx, "x:1"))
		a.write("owner", userFile, workspace.First(userFile)) // nobody has filled in the form
		a.answers(nothing)(n.Show(ctx, "owner"))
		a.answers("My memory of you has not changed yet.")(n.Changes(ctx, "x:1", ""))
		a.past.say("x:1", "one", "!two")
		a.model = &llmtest.Script{Answers: []llmtest.Answer{
			calls(edits(memoryFile, "", "a ``` fence"), ends("a\nfence")), calls(edits(heardFile, "", "cats purr"), ends("x")),
			calls(ends("nothing")),
		}}
		a.dream("x:1")
		first := "\n- `1` 2000-01-01 00:00, dream, HEARD.md, MEMORY.md: a fence; heard from others"
		a.past.say("x:1", "three")
		a.answers("**MEMORY.md**\n\na ``` fence\n\n**HEARD.md**\n\ncats purr\n\nI remember 3 parts of past conversations (1 not processed yet).")(n.Show(ctx, "x:1"))
		a.dream("x:1")
		a.write("x:1", userFile, "- Ann\n")
		timetest.Sleep(time.Hour)
		list := "The last changes of my memory of you:\n\n- `2` 2000-01-01 01:00, edited, USER.md"
		a.answers(list + first + "\n\n" + n.say().HowToUndo)(n.Changes(ctx, "x:1", ""))
		a.answers(first + "\n\n````diff\n--- MEMORY.md\n+++ MEMORY.md\n@@ -0,0 +1 @@\n+a ``` fence\n--- HEARD.md\n+++ HEARD.md\n@@ -0,0 +1 @@\n+cats purr\n````")(n.Changes(ctx, "x:1", "1"))
		a.answers("There is no such change; `/dream log` lists them.")(n.Changes(ctx, "x:1", "7"))
		a.answers("There is no such change; `/dream log` lists them.")(n.Restore(ctx, "x:1", "7", ""))
		a.answers("Change 1 is undone; `/dream restore 3` takes that back.")(n.Restore(ctx, "x:1", "1", ""))
		a.answers("What that change wrote has been replaced since, so it cannot be undone.")(n.Restore(ctx, "x:1", "1", ""))
		if _, err := a.store.Bucket("memory changes").Put(ctx, key("x:1", 1), nil, store.Any); err != nil {
			t.Fatal(err)
		}
		a.answers("That change is damaged on disk.")(n.Restore(ctx, "x:1", "1", ""))
		a.answers("The last changes of my memory of you:\n\n- `3` 2000-01-01 01:00, restore 1, HEARD.md, MEMORY.md" + list[len("The last changes of my memory of you:\n"):] + "\n- `1` damaged on disk" + "\n\n" + n.say().HowToUndo)(n.Changes(ctx, "x:1", ""))
	})
}
