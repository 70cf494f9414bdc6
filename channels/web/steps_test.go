package web

import (
	"encoding/json"
	"fmt"
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

// A tool's answer answers what the end of its turn does, with words before it, without, and where no steps are shown: its place
// is above what was said later, what it answers is not delivered again, and the person can ask for another answer.
func TestToolAnswerIsAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		end  chat.Reply
		text string
	}{
		"with words":    {chat.Reply{Text: "I look first.", Before: true, Steps: "🔧 read_file", Taken: &chat.StepCounts{All: 1}}, "I look first.\n\nIt is done."},
		"without words": {chat.Reply{Before: true, Taken: &chat.StepCounts{}}, "It is done."},
		"without steps": {chat.Reply{Before: true}, "It is done."},
		"with a file that is gone": {
			chat.Reply{Before: true, Files: []chat.File{{Path: "gone.txt", Name: "gone.txt"}}},
			"(The file `gone.txt` no longer exists.)\n\nIt is done.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, mem.New())
			heard, _ := h.hear(nil)
			for _, id := range []string{"message-1", "message-2", "message-3"} {
				h.say("anna", firstID, id, "go")
			}
			at := h.address("anna", firstID)
			end := c.end
			end.ID, end.To = "re:web//anna/first.message-1", at
			end.Quote, end.Also = "first.message-1", []string{"first.message-2"}
			for _, r := range []chat.Reply{{ID: "tool:web//anna/first.message-1#a", To: at, Text: "It is done."}, end, end} {
				if _, err := h.Send(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			b := h.watch("anna", firstID, "")
			until(t, "the answer answers both messages", func() bool {
				es := b.entries()
				return len(es) == 4 && es[3].Text == c.text && es[3].Replies == "message-1" && slices.Equal(es[3].Also, []string{"message-2"})
			})
			if n := len(b.all("message")); n != 5 {
				t.Errorf("there are %d events, want one for each entry and one for the answer's change", n)
			}
			var page struct{ Entries []renderedEntry }
			if err := json.Unmarshal([]byte(h.must(http.StatusOK, "anna", "GET", "/c/first/before?seq=99", nil)), &page); err != nil {
				t.Fatal(err)
			}
			var order []string
			for _, e := range page.Entries {
				order = append(order, fmt.Sprint(e.Seq, e.Answered))
			}
			if want := []string{"1 true", "2 true", "4 false", "3 false"}; !slices.Equal(order, want) {
				t.Errorf("the page shows %q, want %q", order, want)
			}
			h.say("anna", firstID, "message-2", "go")
			h.must(http.StatusAccepted, "anna", "POST", "/c/first/messages", words{"id": "message-4", "text": "", "again": 4})
			all := heard()
			last := all[len(all)-1]
			if last.Text != "/regenerate" || last.Branch == nil || !slices.Equal(last.Branch.After, []string{"first.message-1", "first.message-2"}) {
				t.Errorf("the agent is asked %q, %+v", last.Text, last.Branch)
			}
			if len(all) != 4 {
				t.Errorf("the agent heard %d messages, want 4", len(all))
			}
		})
	}
}
