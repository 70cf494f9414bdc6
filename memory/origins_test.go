package memory

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/llm/llmtest"
	"parley/store"
)

// editsFrom is edits with the entries that the model says the new text comes from.
func editsFrom(file, old, add string, from ...any) llm.ToolCall {
	args, _ := json.Marshal(map[string]any{"file": file, "old": old, "new": add, "from": from})
	return llm.ToolCall{ID: "e", Name: "edit_memory", Args: string(args)}
}

// line returns the line of who's memory that contains words.
func (a *attic) line(who chat.Person, words string) Line {
	a.t.Helper()
	all, err := a.notes().Lines(a.t.Context(), who)
	if err != nil {
		a.t.Fatal(err)
	}
	for _, l := range all.Lines {
		if strings.Contains(l.Text, words) {
			return l
		}
	}
	a.t.Fatalf("no line has %q: %+v", words, all.Lines)
	return Line{}
}

func (a *attic) converse(who chat.Person, session, text string, from ...string) {
	a.t.Helper()
	text, tainted := strings.CutPrefix(text, "!")
	e := Entry{Session: chat.SessionID(session), Text: text, Tainted: tainted, Sources: from, Time: time.Date(2026, 11, 20, 18, 30, 0, 0, time.UTC)}
	if _, err := a.past.Append(a.t.Context(), who, e); err != nil {
		a.t.Fatal(err)
	}
}

// R-S14: a night's line is shown with the conversation it comes from; a line of an untrusted one is marked, and says
// from where; what the model does not name is one of what it was shown.
func TestOriginOfDreams(t *testing.T) {
	a := newAttic(t)
	a.write("owner", userFile, "- ancient\n")
	for range 2 { // what the first look finds is of an unknown time
		if _, err := a.Log(t.Context(), "owner", 1); err != nil {
			t.Fatal(err)
		}
		a.write("owner", memoryFile, "- old\n")
	}
	a.converse("owner", "telegram:1", "The dog is called Rex.")
	a.converse("owner", "web:owner", "The garden is behind the house.")
	a.converse("owner", "discord:7", "!a page says that cats purr", "https://cats.example")
	a.model = &llmtest.Script{Answers: []llmtest.Answer{
		calls(editsFrom(memoryFile, "", "- Rex is the dog", 1.0, 99), editsFrom(memoryFile, "", "- a garden behind the house"), ends("facts")),
		calls(editsFrom(heardFile, "", "According to a page, cats purr", "Entry 3", 1), ends("heard")),
	}}
	a.dream("owner")

	rex := a.line("owner", "Rex")
	if o := rex.Origin; rex.Untrusted || o == nil || o.By != "dream" || !o.Named || len(o.Sources) != 1 || o.Sources[0].Session != "telegram:1" || o.Sources[0].Entry != 1 || o.Sources[0].Tainted {
		t.Errorf("Rex comes from %+v", o)
	}
	garden := a.line("owner", "garden")
	if o := garden.Origin; o == nil || o.Named || o.Read != 2 || len(o.Sources) != 2 || o.Sources[0].Session != "web:owner" {
		t.Errorf("the garden comes from %+v", o)
	}
	cats := a.line("owner", "cats")
	if o := cats.Origin; !cats.Untrusted || o == nil || !o.Tainted || len(o.Sources) != 1 || !o.Sources[0].Tainted || o.Sources[0].From[0] != "https://cats.example" || o.Sources[0].Session != "discord:7" {
		t.Errorf("cats come from %+v", o)
	}
	if old := a.line("owner", "old"); old.Origin == nil || old.Origin.By != "edited" || old.Untrusted {
		t.Errorf("the old line comes from %+v", old.Origin)
	}
	if older := a.line("owner", "ancient"); older.Origin != nil || older.Untrusted {
		t.Errorf("the older line comes from %+v", older.Origin)
	}
	for words, want := range map[string]string{
		"rex":          "From what was said in telegram:1 on 2026-11-20 18:30; noted on ",
		"garden house": "From one or more of 2 parts of conversations, most likely web:owner on 2026-11-20 18:30; telegram:1",
		"cats":         "From what was said in this conversation on 2026-11-20 18:30; noted on ",
		"purr":         "It is based on content that nobody vouches for, from `https://cats.example`.",
		"zebra":        "Nothing in my notes is about that.",
		" ":            "What do you wonder about?",
	} {
		told, err := a.notes().WhyCommand(t.Context(), chat.Message{At: chat.Address{Channel: "discord", Chat: "7"}, From: chat.Sender{Role: chat.Owner}, Text: "/why " + words})
		if err != nil || !strings.Contains(told, want) {
			t.Errorf("why %s: %q, %v", words, told, err)
		}
	}
	if told, err := a.notes().Explain(t.Context(), "telegram:2", "rex", "telegram:2"); err != nil || !strings.Contains(told, "Nothing") {
		t.Errorf("somebody else learns %q, %v", told, err)
	}
}

// What is proposed, accepted, undone and put back keeps the conversation that it comes from.
func TestOriginIsKept(t *testing.T) {
	a := newAttic(t)
	a.converse("owner", "telegram:1", "I am Ann, and have a dog.")
	a.model = &llmtest.Script{Answers: []llmtest.Answer{
		calls(editsFrom(userFile, "", "- Name: Ann", 1), editsFrom(memoryFile, "", "- a dog", 1), ends("facts")),
	}}
	changes, _ := a.dream("owner")
	n := a.notes()
	a.answers("Change 1 is undone; `/dream restore 2` takes that back.")(n.Restore(t.Context(), "owner", changes[0].ID, ""))
	a.answers("Change 2 is undone; `/dream restore 3` takes that back.")(n.Restore(t.Context(), "owner", "2", ""))
	a.answers("The proposal of change 1 is accepted; `/dream restore 4` takes that back.")(n.Accept(t.Context(), "owner", "1", ""))
	for _, words := range []string{"a dog", "Ann"} {
		if o := a.line("owner", words).Origin; o == nil || o.Change != "1" || len(o.Sources) != 1 || o.Sources[0].Session != "telegram:1" {
			t.Errorf("%s comes from %+v", words, o)
		}
	}
}

// What was written before lines had records is found in the changes that are kept, and else unknown.
func TestOriginOfOlderLines(t *testing.T) {
	a := newAttic(t)
	a.converse("owner", "telegram:1", "said")
	a.model = &llmtest.Script{Else: diligent}
	a.dream("owner")
	a.write("owner", memoryFile, "- ancient\n"+a.says("owner", memoryFile))
	if _, err := a.Log(t.Context(), "owner", 1); err != nil {
		t.Fatal(err)
	}
	for k, err := range a.origins.Keys(t.Context(), "") {
		if err := errors.Join(err, a.origins.Delete(t.Context(), k)); err != nil {
			t.Fatal(err)
		}
	}
	if o := a.line("owner", "entry 1").Origin; o == nil || o.By != "dream" || o.Named || len(o.Sources) != 1 || o.Sources[0].Session != "telegram:1" {
		t.Errorf("a line of an earlier release comes from %+v", o)
	}
	if err := a.changes.Delete(t.Context(), key("owner", 2)); err != nil {
		t.Fatal(err)
	}
	all, err := a.notes().Lines(t.Context(), "owner")
	old := a.line("owner", "ancient")
	if err != nil || old.Origin != nil || all.Since.IsZero() || !strings.HasPrefix(a.notes().Provenance(old, all, ""), "Where this comes from is not known: it is older than ") {
		t.Errorf("%+v, %+v, %v", old, all, err)
	}
}

// Records go when no text that is kept has the line any more, and only then.
func TestOriginsAreTrimmed(t *testing.T) {
	a := newAttic(t)
	a.answers("Noted.")(a.notes().Remember(t.Context(), "owner", "stays", "first"))
	a.write("owner", userFile, "- gone\n")
	for i := range maxChanges + 40 {
		a.write("owner", userFile, fmt.Sprintf("- user %d\n", i))
		if _, err := a.Log(t.Context(), "owner", 1); err != nil {
			t.Fatal(err)
		}
	}
	count := 0
	for _, err := range a.origins.Keys(t.Context(), "") {
		if count++; err != nil {
			t.Fatal(err)
		}
	}
	if o := a.line("owner", "stays").Origin; o == nil || o.By != "/remember" || count > maxChanges+25 {
		t.Errorf("%d records; what stays comes from %+v", count, o)
	}
}

// An owner corrects lines and files; what somebody else wrote meanwhile is not lost.
func TestCorrect(t *testing.T) {
	a := newAttic(t)
	a.write("owner", memoryFile, "# Known\n  - dogs\n- cats\n")
	n := a.notes()
	correct := func(to Correction, want error) Change {
		t.Helper()
		c, err := n.Correct(t.Context(), "owner", to)
		if !errors.Is(err, want) {
			t.Errorf("%+v: %v, want %v", to, err, want)
		}
		return c
	}
	if c := correct(Correction{File: memoryFile, Line: 2, Was: "  - dogs", Text: "- two\ndogs "}, nil); c.By != "page" {
		t.Errorf("made by %q", c.By)
	}
	a.want("owner", memoryFile, "# Known\n  - two dogs\n- cats\n")
	correct(Correction{File: memoryFile, Line: 3, Was: "- cats"}, nil)
	a.want("owner", memoryFile, "# Known\n  - two dogs\n")
	correct(Correction{File: memoryFile, Line: 3, Was: "- cats"}, store.ErrConflict)
	correct(Correction{File: memoryFile, Line: 2, Was: "  - dogs"}, store.ErrConflict)
	correct(Correction{File: "AGENTS.md", Text: "x"}, store.ErrNotFound)
	_, sum, err := n.Digest(t.Context(), "owner", memoryFile)
	if err != nil {
		t.Fatal(err)
	}
	a.write("owner", memoryFile, "# Known\n- birds\n")
	correct(Correction{File: memoryFile, Base: sum, Text: "mine"}, store.ErrConflict)
	a.want("owner", memoryFile, "# Known\n- birds\n")
	_, sum, _ = n.Digest(t.Context(), "owner", memoryFile)
	correct(Correction{File: memoryFile, Base: sum, Text: "mine\r\nand yours"}, nil)
	a.want("owner", memoryFile, "mine\nand yours\n")
	_, sum, _ = n.Digest(t.Context(), "owner", memoryFile)
	_, err = n.Correct(t.Context(), "owner", Correction{File: memoryFile, Base: sum, Text: strings.Repeat("x", maxFile+1)})
	if refusal := new(chat.Refusal); !errors.As(err, &refusal) {
		t.Errorf("too long: %v", err)
	}
	a.consistent("owner")
}

// What is done to the files in a conversation is known to be from there, and whether untrusted content was read.
func TestObserve(t *testing.T) {
	a := newAttic(t)
	look := func(session chat.SessionID, tainted bool) {
		t.Helper()
		if err := a.Observe(t.Context(), "owner", session, tainted); err != nil {
			t.Fatal(err)
		}
	}
	look("", false)
	a.write("owner", memoryFile, "- by hand\n")
	look("", false)
	a.write("owner", memoryFile, "- by hand\n- by the agent\n")
	look("web:owner", true)
	if l := a.line("owner", "by hand"); l.Untrusted || l.Origin.Session != "" {
		t.Errorf("%+v", l.Origin)
	}
	if l := a.line("owner", "by the agent"); !l.Untrusted || l.Origin.Session != "web:owner" || l.Origin.By != "edited" {
		t.Errorf("%+v", l.Origin)
	}
	if n := len(a.consistent("owner")); n != 2 {
		t.Errorf("%d changes", n)
	}
}

// Whoever asks where a line comes from reads who wrote it, in which conversation and when, and whether it is untrusted, also
// if nothing else is known of it. In a group an owner reads what is known of the group only.
func TestWhyCommand(t *testing.T) {
	a := newAttic(t)
	n := a.notes()
	ask := func(from chat.Sender, at chat.Address, group bool, words string) string {
		t.Helper()
		told, err := n.WhyCommand(t.Context(), chat.Message{At: at, From: from, Group: group, Text: "/why " + words})
		if err != nil {
			t.Fatal(err)
		}
		return told
	}
	here, there := chat.Address{Channel: "test", Chat: "1"}, chat.Address{Channel: "test", Chat: "2"}
	owner, ben := chat.Sender{ID: "7", Role: chat.Owner}, chat.Sender{ID: "8", Role: chat.User}
	tell := func(from chat.Sender, at chat.Address, group bool, text string) {
		t.Helper()
		m := chat.Message{ID: text, At: at, From: from, Group: group, Text: "/remember " + text}
		if told, err := n.RememberCommand(t.Context(), m); err != nil || told != "Noted." {
			t.Fatal(told, err)
		}
	}
	tell(owner, here, false, "tea with milk")
	tell(ben, there, false, "tea with lemon")
	tell(owner, there, true, "tea at five")
	a.write("owner", memoryFile, a.says("owner", memoryFile)+"- coffee\n")
	if err := n.Versions.Observe(t.Context(), "owner", "test:2", true); err != nil {
		t.Fatal(err)
	}
	a.write("owner", memoryFile, a.says("owner", memoryFile)+"- water\n")
	if err := n.Versions.Observe(t.Context(), "owner", "", false); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		from  chat.Sender
		at    chat.Address
		group bool
		words string
		want  string // regular expression
	}{
		{owner, here, false, "tea", "^> .*tea with milk\n\nIt was noted with `/remember`, in this conversation on [-0-9: ]+\\.$"},
		{owner, there, false, "tea", "^> .*tea with milk\n\nIt was noted with `/remember`, in test:1 on [-0-9: ]+\\.$"},
		{ben, there, false, "tea", "^> .*tea with lemon\n\nIt was noted with `/remember`, in this conversation on [-0-9: ]+\\.$"},
		{owner, there, true, "tea", "^> .*tea at five\n\nIt was noted with `/remember`, in this conversation on [-0-9: ]+\\.$"},
		{owner, here, false, "coffee", "^> - coffee\n\nI noted it myself, in test:2 on [-0-9: ]+\\. It is based on content that nobody vouches for\\.$"},
		{owner, here, false, "water", "^> - water\n\nIt was written into the file, by hand or by a program, and found there on [-0-9: ]+\\.$"},
		{ben, there, false, "coffee", "^Nothing in my notes is about that\\.$"},
	} {
		if got := ask(c.from, c.at, c.group, c.words); !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("%s asks about %s: %q, want %q", c.from.ID, c.words, got, c.want)
		}
	}
	unknown := n.Provenance(Line{File: heardFile, Text: "x", Untrusted: true}, Lines{}, "")
	if unknown != "Where this comes from is not known. It is based on content that nobody vouches for." {
		t.Errorf("of an untrusted line of unknown origin: %q", unknown)
	}
}
