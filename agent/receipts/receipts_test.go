package receipts_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/agent/conversation"
	"parley/agent/receipts"
	"parley/agent/timeline"
	"parley/chat"
	"parley/llm"
	"parley/store/mem"
	"parley/texts"
	"parley/tools"
)

func message(id string) chat.Message {
	return chat.Message{ID: id, At: chat.Address{Channel: "test", Chat: "1"}, Text: "say " + id}
}

func heard(id string) conversation.Record {
	m := message(id)
	return conversation.Record{Heard: &m}
}

func asked(calls ...string) conversation.Record {
	m := llm.Message{Role: llm.Assistant}
	for _, id := range calls {
		m.Calls = append(m.Calls, llm.ToolCall{ID: id, Name: "save", Args: "{}"})
	}
	return conversation.Record{Said: &m}
}

func started(id string) conversation.Record { return conversation.Record{Started: []string{id}} }

func finished(id string) conversation.Record {
	return conversation.Record{Finished: &llm.Message{Call: id, Name: "save", Text: "saved"}, Result: &tools.Result{}}
}

func suspended(id string, whole bool) conversation.Record {
	return conversation.Record{Suspended: &conversation.Suspension{Key: message(id).Key(), Whole: whole}}
}

func resumed(id string) conversation.Record {
	return conversation.Record{Resumed: message(id).Key()}
}

func ended(reply string) conversation.Record {
	return conversation.Record{Ended: &conversation.End{Reply: &chat.Reply{ID: reply, Text: "answer to " + reply}}}
}

// Several turns may be suspended at once, whole or for one of their messages, and go on in any order: what was called in
// each is told of its answer, by /why and by its steps.
func TestSuspendedTurns(t *testing.T) {
	sessions := conversation.NewSessions(mem.New(), slog.New(slog.DiscardHandler), time.UTC, texts.Speakers{})
	err := sessions.Append(t.Context(), "test:1",
		heard("1"), heard("1b"), asked("a"), started("a"), suspended("1", true),
		heard("2"), asked("b", "x"), started("b"), finished("b"), suspended("2", true),
		heard("3"), ended("3"),
		resumed("1b"), finished("a"), ended("1"),
		resumed("2"), asked("c"), started("c"), ended("2"),
		heard("4"), heard("5"), asked("d"), started("d"), finished("d"), suspended("4", false), suspended("6", false),
		asked("e"), finished("e"), ended("5"), resumed("6"),
		resumed("4"), ended("4"),
		heard("7"), asked("f"), finished("f"), conversation.Record{Branched: &conversation.Branch{From: 0}},
		heard("8"), ended("8"),
	)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"1": "a2", "2": "b2 x0 c1", "3": "", "4": "d2", "5": "d2 e2", "8": "",
	}
	seen := map[string]string{}
	for turn, err := range receipts.All(t.Context(), sessions, "test:1") {
		if err != nil {
			t.Fatal(err)
		}
		var calls []string
		for _, c := range turn.Calls {
			calls = append(calls, fmt.Sprint(c.ID, int(c.Outcome)))
		}
		seen[turn.Reply] = strings.Join(calls, " ")
		if turn.Asked != "say "+turn.Reply {
			t.Errorf("the answer to %s is said to answer %q", turn.Reply, turn.Asked)
		}
		english := texts.English()
		steps, err := timeline.Steps(t.Context(), sessions, &tools.Kit{}, &english.Agent, "test:1", turn.Reply)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range turn.Calls {
			state := chat.Done
			if c.Outcome < receipts.Done {
				state = chat.Interrupted
			}
			if len(steps) != len(turn.Calls) || steps[i].Call != c.ID || steps[i].State != state {
				t.Errorf("the steps to %s are %+v", turn.Reply, steps)
				break
			}
		}
	}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("calls of the answers: %v\nwant %v", seen, want)
	}
	all, err := receipts.InSight(t.Context(), sessions, "test:1", nil)
	if err != nil || len(all) != 1 || all[0].Reply != "8" {
		t.Errorf("in sight are %+v, %v", all, err)
	}
}

// The steps of an answer have what /why says of its calls: who approved each, its receipt, and whether that stands for
// what is stored.
func TestReceiptsOfSteps(t *testing.T) {
	by := finished("a")
	by.Result.By = "Ann `the first`"
	by.Result.Time = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	forged := finished("b")
	forged.Result.Receipt = "0123456789abcdef"
	sessions := conversation.NewSessions(mem.New(), slog.New(slog.DiscardHandler), time.UTC, texts.Speakers{})
	err := sessions.Append(t.Context(), "test:1",
		heard("1"), asked("a", "b"), by, forged, asked("c"), finished("c"), conversation.Record{RolledBack: "nothing"},
		asked("d", "e"), started("d"), ended("1"), conversation.Record{Ended: &conversation.End{}})
	if err != nil {
		t.Fatal(err)
	}
	english := texts.English()
	steps, err := timeline.Steps(t.Context(), sessions, &tools.Kit{}, &english.Agent, "test:1", "1")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range steps {
		got = append(got, fmt.Sprintf("%s %s: %+v", s.Call, s.State, *s.Receipt))
	}
	want := []string{
		"a success: {Digest: By:Ann `the first` Note: Altered:false}",
		"b success: {Digest:0123456789abcdef By: Note:its stored result is not the one that the receipt stands for Altered:true}",
		"c success: {Digest: By: Note:found nothing of use, so I asked in other words Altered:false}",
		"d interrupted: {Digest: By: Note:interrupted; it may have taken effect Altered:false}",
		"e interrupted: {Digest: By: Note:not made Altered:false}",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the steps say\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	why := receipts.Why{Sessions: sessions, Texts: english.Agent.Why, Zone: time.UTC}
	m := message("2")
	m.Text = "/why"
	told, err := why.Answer(t.Context(), m)
	for _, want := range []string{
		"1. `save`: done, 03:04:05, approved by Ann 'the first'\n2. `save`: its stored result is not the one that the receipt " +
			"stands for, receipt `0123456789abcdef`\n3. `save`: done, found nothing of use, so I asked in other words\n" +
			"4. `save`: interrupted; it may have taken effect\n5. `save`: not made\n",
	} {
		if err != nil || !strings.Contains(told, want) {
			t.Errorf("/why tells %q, %v", told, err)
		}
	}
	if none, err := timeline.Steps(t.Context(), sessions, &tools.Kit{}, &english.Agent, "test:1", ""); len(none) > 0 || err != nil {
		t.Errorf("the steps of no reply are %v, %v", none, err)
	}
}

// What the model said before it made calls stands among the steps where it was said, also before the call that was the answer, which
// is none.
func TestRemarks(t *testing.T) {
	saying := func(text string, ids ...string) conversation.Record {
		r := asked(ids...)
		r.Said.Text = text
		return r
	}
	spoke := finished("c")
	spoke.Told = "Here it is."
	completed := finished("d")
	completed.Result.End = "All done."
	completing := saying("I end.", "d")
	completing.Said.Calls[0].Name = "attempt_completion"
	sessions := conversation.NewSessions(mem.New(), slog.New(slog.DiscardHandler), time.UTC, texts.Speakers{})
	err := sessions.Append(t.Context(), "test:1",
		heard("1"), saying("I look first.", "a", "b"), finished("a"), finished("b"), saying("I tell you.", "c"), spoke, completing, completed, ended("1"))
	if err != nil {
		t.Fatal(err)
	}
	english := texts.English()
	steps, err := timeline.Steps(t.Context(), sessions, &tools.Kit{}, &english.Agent, "test:1", "1")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	ids := map[string]bool{}
	for _, s := range steps {
		got = append(got, s.Tool+s.Words)
		ids[s.Call] = true
	}
	if want := []string{"I look first.", "save", "save", "I tell you.", "I end."}; !slices.Equal(got, want) || len(ids) != len(want) {
		t.Errorf("the steps are %q with %d IDs, want %q", got, len(ids), want)
	}
}
