package memory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley/chat"
	"parley/llm"
	"parley/llm/llmtest"
	"parley/store"
)

// set makes a change by which a file says text.
func (a *attic) set(who chat.Person, name, text string) Change {
	a.t.Helper()
	c, err := a.edit(a.t.Context(), Change{Who: who, By: "dream"}, func(_ context.Context, _ *head, texts map[string]string) error {
		texts[name] = text
		return nil
	})
	if err != nil {
		a.t.Fatal(err)
	}
	return c
}

// keys counts what a bucket holds.
func keys(t *testing.T, b store.Bucket) (all []string) {
	t.Helper()
	for k, err := range b.Keys(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, k)
	}
	return all
}

// Point 5: the log tells what changed, also by hand; a diff shows it, and a
// restore undoes it and nothing else.
func TestVersions(t *testing.T) {
	a := newAttic(t)
	a.write("owner", memoryFile, "# A\n\n- one\n")
	a.set("owner", memoryFile, "# A\n\n- one\n- two\n")
	a.write("owner", memoryFile, "# A!\n\n- one\n- two\n")
	a.write("owner", soulFile, "kind\n")
	all := a.consistent("owner")
	if len(all) != 2 || all[0].By != "edited" || len(all[0].Files) != 2 {
		t.Fatalf("the log is %+v", all)
	}
	diff, c, err := a.Show(t.Context(), "owner", "1")
	if want := "--- MEMORY.md\n+++ MEMORY.md\n@@ -1,3 +1,4 @@\n # A\n \n - one\n+- two\n"; diff != want || c.ID != "1" || err != nil {
		t.Errorf("got %s, %+v, %v", diff, c, err)
	}
	r, err := a.Restore(t.Context(), "owner", "1", "")
	if err != nil || r.ID != "3" || r.By != "restore 1" {
		t.Errorf("%+v, %v", r, err)
	}
	a.want("owner", memoryFile, "# A!\n\n- one\n")
	if _, err := a.Restore(t.Context(), "owner", "1", ""); !errors.Is(err, ErrGone) {
		t.Errorf("undone twice: %v", err)
	}
	if _, err := a.Restore(t.Context(), "owner", "3", "k"); err != nil {
		t.Error(err)
	}
	a.want("owner", memoryFile, "# A!\n\n- one\n- two\n")
	if r, err = a.Restore(t.Context(), "owner", "3", "k"); err != nil || r.ID != "4" {
		t.Errorf("asked twice: %+v, %v", r, err)
	}
	a.set("owner", memoryFile, "# A!\n\n- one\n- zwei\n")
	if _, err := a.Restore(t.Context(), "owner", "4", ""); !errors.Is(err, ErrGone) {
		t.Errorf("undone although it is not there: %v", err)
	}
	if _, err := a.Restore(t.Context(), "owner", "2", ""); err != nil {
		t.Error(err)
	}
	a.want("owner", memoryFile, "# A\n\n- one\n- zwei\n")
	a.want("owner", soulFile, "")
	for _, id := range []string{"", "0", "-1", "99", "x", "1 ", "../1"} {
		if _, _, err := a.Show(t.Context(), "owner", id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("change %q: %v", id, err)
		}
	}
	if _, _, err := a.Show(t.Context(), "telegram:1", "1"); !errors.Is(err, store.ErrNotFound) { // R-S14
		t.Errorf("shown to another: %v", err)
	}
	a.set("owner", userFile, "Ann\n")
	a.write("owner", userFile, "") // by hand, as it was: the change is not made again
	a.consistent("owner")
	a.want("owner", userFile, "")
}

// What somebody edits between a crash and the next use is left as it is, and
// what the change would have made of it is in the log.
func TestEditedAfterCrash(t *testing.T) {
	a := newAttic(t)
	a.write("owner", memoryFile, "one\n")
	a.write("owner", userFile, "one\n")
	v := NewVersions(frail{a.disk.Names(), func(string) { runtime.Goexit() }}, a.mem, a.Versions.log)
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = v.edit(t.Context(), Change{Who: "owner", By: "dream"}, func(_ context.Context, _ *head, texts map[string]string) error {
			texts[memoryFile], texts[userFile] = "two\n", "two\n"
			return nil
		})
	})
	wg.Wait()
	a.want("owner", memoryFile, "one\n")
	a.write("owner", memoryFile, "mine\n")
	all := a.consistent("owner")
	a.want("owner", memoryFile, "mine\n")
	a.want("owner", userFile, "two\n")
	if len(all) != 2 || all[0].By != "edited" || all[0].Files[memoryFile] != (Edit{digest("two\n"), digest("mine\n")}) {
		t.Errorf("the log is %+v", all)
	}
}

// The last changes are kept, with all texts that they or others need, and nothing else.
func TestTrim(t *testing.T) {
	a := newAttic(t)
	a.set("x:2", memoryFile, "shared 0\n")
	a.write("x:1", userFile, "long ago\n")
	for i := range maxChanges + 20 {
		a.set("x:1", memoryFile, fmt.Sprintf("shared %d\n", i%130))
	}
	all := a.consistent("x:1")
	if len(all) != maxChanges || all[0].ID != "220" || all[len(all)-1].ID != "21" {
		t.Errorf("%d changes are kept, up to %s", len(all), all[0].ID)
	}
	a.consistent("x:2")
	if n := len(keys(t, a.store.Bucket("memory changes"))); n > maxChanges+20+1 {
		t.Errorf("%d changes are in the store", n)
	}
	for i := range maxChanges {
		a.set("x:1", memoryFile, fmt.Sprintf("own %d\n", i))
	}
	if n := len(keys(t, a.texts)); n != maxChanges+3 {
		t.Errorf("%d texts are in the store", n)
	}
	a.write("x:1", userFile, "today\n")
	a.consistent("x:1")
}

// P21: what is damaged affects only itself.
func TestDamaged(t *testing.T) {
	bad := func(t *testing.T, b store.Bucket, key string) {
		t.Helper()
		if _, err := b.Put(t.Context(), key, []byte("{"), store.Any); err != nil {
			t.Fatal(err)
		}
	}
	fill := func(t *testing.T) (*attic, []Change) {
		a := newAttic(t)
		var all []Change
		for i := range 3 {
			all = append(all, a.set("owner", memoryFile, strings.Repeat("- line\n", i+1)))
		}
		return a, all
	}
	t.Run("change", func(t *testing.T) {
		a, _ := fill(t)
		bad(t, a.store.Bucket("memory changes"), key("owner", 2))
		all, err := a.Log(t.Context(), "owner", 10)
		if err != nil || len(all) != 3 || all[1].ID != "2" || all[1].By != "" {
			t.Errorf("the log is %+v, %v", all, err)
		}
		if _, err := a.Restore(t.Context(), "owner", "2", ""); !errors.Is(err, store.ErrDamaged) {
			t.Error(err)
		}
		a.set("owner", memoryFile, "new\n")
	})
	t.Run("text", func(t *testing.T) {
		a, all := fill(t)
		bad(t, a.texts, prefix("owner")+all[1].Files[memoryFile].After)
		for _, id := range []string{"2", "3"} {
			if _, _, err := a.Show(t.Context(), "owner", id); !errors.Is(err, store.ErrDamaged) {
				t.Errorf("%s: %v", id, err)
			}
		}
		if _, _, err := a.Show(t.Context(), "owner", "1"); err != nil {
			t.Error(err)
		}
		a.set("owner", memoryFile, "- line\n- line\n") // written anew
		a.consistent("owner")
	})
	t.Run("head", func(t *testing.T) {
		a, _ := fill(t)
		a.past.say("owner", "one", "two")
		a.model = scripted(diligent)
		a.dream("owner")
		a.set("owner", userFile, "x\n")
		a.set("owner", userFile, "")
		bad(t, a.store.Bucket("memory heads"), "owner")
		a.write("owner", userFile, "by hand\n")
		a.past.say("owner", "three")
		if changes, n := a.dream("owner"); n != 1 || len(changes) != 1 || changes[0].From != 2 {
			t.Errorf("read %d, made %+v", n, changes)
		}
		a.want("owner", memoryFile, "- line\n- line\n- line\n- entry 1\n- entry 2\n- entry 3\n")
		if all := a.consistent("owner"); all[0].ID != "8" {
			t.Errorf("the last change is %+v", all[0])
		}
	})
	t.Run("other's", func(t *testing.T) { // R-S14
		a, _ := fill(t)
		val, _, err := a.heads.Get(t.Context(), "owner")
		if err == nil {
			_, err = a.heads.Put(t.Context(), "x:1", val, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		if all := a.consistent("x:1"); len(all) != 0 {
			t.Errorf("the log of another is %+v", all)
		}
	})
}

// A file that cannot be read or written stays as it is, and the others go on.
func TestOddMemory(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(path string) error{
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"link":   func(path string) error { return os.Symlink(outside, path) },
		"huge":   func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<40)) },
		"closed": func(path string) error { return os.WriteFile(path, []byte("mine\n"), 0o400) },
	} {
		t.Run(name, func(t *testing.T) {
			a := newAttic(t)
			if err := make(filepath.Join(a.disk.Dir(), soulFile)); err != nil {
				t.Fatal(err)
			}
			a.past.say("owner", "hello")
			a.model = scripted(func(r llm.Request) llmtest.Answer {
				return calls(edits(soulFile, "", "evil"), edits(memoryFile, "", "- tea"), ends("tea"))
			})
			a.dream("owner")
			a.want("owner", memoryFile, "- tea\n")
			if name == "closed" {
				a.want("owner", soulFile, "mine\n")
			}
			if text, err := os.ReadFile(outside); string(text) != "theirs" || err != nil {
				t.Errorf("what the link leads to is %q, %v", text, err)
			}
			if all, err := a.Log(t.Context(), "owner", 9); err != nil || len(all) == 0 {
				t.Errorf("%+v, %v", all, err)
			}
		})
	}
}

// Property: after any changes, edits by hand and restores, the log leads to
// what the files say, and each diff can be shown.
func TestAnyVersions(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a := newAttic(t)
		text := rapid.Custom(func(r *rapid.T) string {
			lines := rapid.SliceOfN(rapid.SampledFrom([]string{"- a\n", "- b\n", "# C\n", "\n", "> d\n", "e"}), 0, 6).Draw(r, "lines")
			return strings.Join(lines, "")
		})
		name := rapid.SampledFrom(names("owner"))
		for i := range rapid.IntRange(1, 12).Draw(r, "steps") {
			before := map[string]string{}
			for _, n := range names("owner") {
				before[n] = a.says("owner", n)
			}
			switch rapid.IntRange(0, 3).Draw(r, "what") {
			case 0:
				a.write("owner", name.Draw(r, "file"), text.Draw(r, "text"))
			case 1:
				a.set("owner", name.Draw(r, "file"), text.Draw(r, "text"))
			case 2:
				if _, err := a.notes().Remember(t.Context(), "owner", "x", fmt.Sprint(i)); err != nil {
					r.Fatal(err)
				}
			case 3:
				id := fmt.Sprint(rapid.IntRange(1, i+2).Draw(r, "id"))
				c, err := a.Restore(t.Context(), "owner", id, "")
				if errors.Is(err, store.ErrNotFound) || errors.Is(err, ErrGone) {
					break
				}
				if err != nil {
					r.Fatal(err)
				}
				if _, err := a.Restore(t.Context(), "owner", c.ID, ""); err != nil {
					r.Fatal(err)
				}
				now := map[string]string{}
				for _, n := range names("owner") {
					now[n] = a.says("owner", n)
				}
				if !maps.Equal(before, now) {
					r.Fatalf("a restore undone makes %q of %q", now, before)
				}
			}
			a.consistent("owner")
		}
		for _, c := range a.consistent("owner") {
			if diff, _, err := a.Show(t.Context(), "owner", c.ID); err != nil || diff == "" {
				r.Fatalf("diff of %+v: %q, %v", c, diff, err)
			}
		}
	})
}

// With a real history, and all at the same time: nothing is lost or made twice.
func TestAtOnce(t *testing.T) {
	a := newAttic(t)
	h := a.past.History
	var wg sync.WaitGroup
	for _, who := range []chat.Person{"owner", "telegram:1"} {
		for i := range 30 {
			if _, err := h.Append(t.Context(), who, Entry{Time: time.Now(), Who: who, Session: "telegram:1", Key: fmt.Sprint(i), Text: "said"}); err != nil {
				t.Fatal(err)
			}
		}
		n := &Notes{Versions: a.Versions, Past: h, Zone: time.UTC}
		d := a.dreamer()
		d.Past, d.Model = h, func(chat.Person) llm.Model { return scripted(diligent) }
		for i := range 5 {
			wg.Go(func() {
				for { // notes may be in the way of every try
					if _, _, err := d.Dream(t.Context(), who); err == nil {
						return
					} else if !errors.Is(err, errEdited) {
						t.Error(err)
						return
					}
				}
			})
			wg.Go(func() {
				if _, err := n.Remember(t.Context(), who, fmt.Sprintf("note %d.", i), fmt.Sprint("k", i)); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	people, err := (&Notes{Versions: a.Versions, Past: h}).People(t.Context())
	if err != nil || !slices.Equal(people, []chat.Person{"owner", "telegram:1"}) {
		t.Errorf("there are %q, %v", people, err)
	}
	for _, who := range people {
		text := a.says(who, memoryFile)
		for i := range 30 {
			if strings.Count(text, fmt.Sprintf("- entry %d\n", i+1)) != 1 || i < 5 && strings.Count(text, fmt.Sprintf("note %d.", i)) != 1 {
				t.Fatalf("%d is lost or doubled in\n%s", i, text)
			}
		}
		a.consistent(who)
	}
}
