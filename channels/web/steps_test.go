package web

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"parley/chat"
	"parley/store/mem"
)

// The steps to an answer that a tool has given stand above it, once, for everybody who reads along or comes later, however often
// the end of the turn is sent (P9). An answer to the question in it changes nothing about them, nor they about the question.
func TestStepsOfToolAnswer(t *testing.T) {
	kept := mem.New()
	h := open(t, kept)
	h.hear(nil)
	h.say("anna", firstID, "message-1", "go")
	b := h.watch("anna", firstID, "")
	at := h.address("anna", firstID)
	end := chat.Reply{ID: "re:web//anna/first.message-1", To: at, Steps: "🔧 read_file", Taken: &chat.StepCounts{All: 1}}
	said := chat.Reply{
		ID: "tool:web//anna/first.message-1#b", To: at, Text: "It is done.",
		Ask: &chat.Question{ID: "q1", Choices: []string{"Good", "Bad"}, Say: true},
	}
	for _, r := range []chat.Reply{
		{ID: "tool:web//anna/first.message-1#a", To: at, Text: "I begin."},
		said,
		{ID: "tool:web//anna/first.message-12#a", To: at, Text: "Of another turn."},
		end, end,
	} {
		if _, err := h.Send(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	check := func(es []renderedEntry) bool {
		return len(es) == 4 && es[1].Taken == nil && es[3].Taken == nil &&
			es[2].Text == said.Text && es[2].Ask != nil && es[2].Steps == end.Steps && es[2].StepsLabel == "1 step" && es[2].StepsOf == end.ID
	}
	until(t, "the steps are above the answer", func() bool { return check(b.entries()) })
	said.Ask = nil
	said.Outcome = &chat.Outcome{Choice: 0, Answer: "Good"}
	if err := h.Edit(t.Context(), "3", said); err != nil {
		t.Fatal(err)
	}
	until(t, "the question is answered", func() bool { es := b.entries(); return check(es) && es[2].Outcome != nil })

	again := open(t, kept)
	if _, err := again.Send(t.Context(), end); err != nil {
		t.Fatal(err)
	}
	b2 := again.watch("anna", firstID, "")
	until(t, "the steps are there", func() bool { return check(b2.entries()) })
	b2.leave()
	<-b2.over
	edits := slices.DeleteFunc(b2.all("message"), func(e got) bool { return !strings.Contains(e.data, `"edits":3`) })
	if len(edits) != 2 {
		t.Errorf("the answer was changed %d times, want once for its steps and once for what was chosen", len(edits))
	}
	page := again.must(http.StatusOK, "anna", "GET", "/c/first", nil)
	if strings.Count(page, `class="steps"`) != 1 || !strings.Contains(page, `data-reply="`+end.ID+`"`) {
		t.Errorf("the page is %s", page)
	}
}
