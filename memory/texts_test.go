package memory

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"parley/chat"
	"parley/llm"
	"parley/llm/llmtest"
	"parley/store"
	"parley/texts/textstest"
)

// TestAllFromCatalogue asks what is remembered, and changes it, in a language of
// full-width letters: nobody is told a word that is not in the catalogue.
func TestAllFromCatalogue(t *testing.T) {
	a := newAttic(t)
	n, who := a.notes(), chat.Person("x:1")
	n.Texts = &textstest.Wide().Memory
	data := regexp.MustCompile("(?s)```.*```|`[^`]*`|/[a-z]+|\\b(restore [0-9]+|MEMORY\\.md|USER\\.md|noted|tea[0-9]*|wine)\\b")
	ctx := t.Context()
	say := func(text string, err error) {
		t.Helper()
		if rest := textstest.Foreign(text, data); rest != "" || text == "" || err != nil {
			t.Errorf("%q is not in the catalogue, of\n%s\n%v", rest, text, err)
		}
	}
	with := func(do func(ctx context.Context, who chat.Person, what, key string) (string, error), what, key string) {
		t.Helper()
		say(do(ctx, who, what, key))
	}
	say(n.Changes(ctx, who, ""))
	with(n.Remember, "", "1")
	with(n.Remember, strings.Repeat("x", 2001), "2")
	with(n.Remember, "tea", "3")
	say(n.Show(ctx, who))
	with(n.Forget, "a", "4")
	with(n.Forget, "wine", "5")
	with(n.Forget, "tea", "6")
	say(n.Changes(ctx, who, ""))
	say(n.Changes(ctx, who, "1"))
	say(n.Changes(ctx, who, "99"))
	with(n.Restore, "1", "7")
	with(n.Restore, "2", "8")
	with(n.Accept, "1", "9")
	say(n.answer(store.ErrDamaged, ""))
	say(n.answer(nil, n.list([]Change{{ID: "1"}, {ID: "2", Asks: map[string]Edit{userFile: {}}}})))
	d := a.dreamer()
	d.Texts = n.Texts
	d.Model = func(chat.Person) llm.Model {
		return &llmtest.Script{Else: func(llm.Request) llmtest.Answer {
			return calls(edits(userFile, "", "tea"), edits(heardFile, "", "tea"), ends(""))
		}}
	}
	dreams := func(said string) {
		t.Helper()
		a.past.say(who, said)
		if _, _, err := d.DreamAll(ctx); err != nil {
			t.Error(err)
		}
		all, err := n.Versions.Log(ctx, who, 1)
		if err != nil || len(all) != 1 || all[0].By != "dream" {
			t.Fatal(all, err)
		}
		say(all[0].Why, nil)
	}
	dreams("tea")
	dreams("!tea")
	d.Model = func(chat.Person) llm.Model {
		return &llmtest.Script{Else: func(llm.Request) llmtest.Answer { return llmtest.Fail(llm.BadRequest) }}
	}
	a.past.say(who, "tea")
	for range maxFails - 1 {
		if _, _, err := d.Dream(ctx, who); err == nil {
			t.Error("the model did not fail")
		}
	}
	dreams("tea")
	a.write(who, memoryFile, strings.Repeat("tea\n", 25))
	with(n.Forget, "tea", "10")
	a.write(who, memoryFile, strings.Repeat("x", maxFile))
	with(n.Remember, "tea", "11")
}
