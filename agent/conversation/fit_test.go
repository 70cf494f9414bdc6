package conversation

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
)

// talk returns a history of turns, each with the given rounds of one tool call.
func talk(turns, rounds, resultSize int) *History {
	h := &History{zone: time.UTC}
	seq := uint64(0)
	next := func(r Record) { seq++; h.Apply(seq, r) }
	for i := range turns {
		m := chat.Message{ID: fmt.Sprint("m", i), Text: fmt.Sprintf("question %d", i)}
		next(Record{Heard: &m})
		for j := range rounds {
			id := fmt.Sprintf("c%d.%d", i, j)
			next(Record{Said: &llm.Message{Role: llm.Assistant, Calls: []llm.ToolCall{{ID: id, Name: "read_file", Args: "{}"}}}})
			next(Record{Finished: &llm.Message{Role: llm.ToolRole, Call: id, Name: "read_file", Text: strings.Repeat("x", resultSize)}})
		}
		if i < turns-1 {
			next(Record{Said: &llm.Message{Role: llm.Assistant, Text: fmt.Sprintf("answer %d", i)}})
			next(Record{Ended: &End{Outcome: Answered}})
		}
	}
	return h
}

func all(string) bool { return true }

func TestFitLeavesAloneWhatFits(t *testing.T) {
	h := talk(5, 2, 100)
	before := fmt.Sprint(h.Messages(Request{}, nil, nil))
	h.view.Fit(h.Size(), all)
	if fmt.Sprint(h.Messages(Request{}, nil, nil)) != before {
		t.Error("a history that fits was changed")
	}
}

// TestFitShortensOldResultsFirst is D-045: the ten latest results stay whole.
func TestFitShortensOldResultsFirst(t *testing.T) {
	h := talk(14, 1, 4000)
	h.view.Fit(h.Size()-1000, all)
	whole, omitted := 0, 0
	for _, m := range h.Messages(Request{}, nil, nil) {
		switch {
		case m.Role != llm.ToolRole:
		case m.Text == "[read_file result omitted from context]":
			omitted++
		case len(m.Text) == 4000:
			whole++
		}
	}
	if whole != 10 || omitted != 4 {
		t.Errorf("%d whole and %d omitted, want 10 and 4", whole, omitted)
	}
}

// TestFitLeavesSomeResults: short results stay as they are (D-045), and so do
// those of tools that are never shortened (D-046), as long as all fits then.
func TestFitLeavesSomeResults(t *testing.T) {
	for _, c := range []struct {
		size int
		tool string
		want int // results left out
	}{{499, "read_file", 0}, {500, "read_file", 4}, {500, "message", 0}} {
		h := talk(14, 1, c.size)
		h.view.Fit(h.Size()-1, func(tool string) bool { return tool == c.tool })
		if got := strings.Count(fmt.Sprint(h.view.entries), "result omitted from context"); got != c.want {
			t.Errorf("%d characters of %s: %d results left out, want %d", c.size, c.tool, got, c.want)
		}
	}
}

// TestFitKeepsRoom: after a fit the beginning of the requests stays as it is
// for a good while, so that prompt caches hit.
func TestFitKeepsRoom(t *testing.T) {
	h := talk(40, 0, 0)
	limit := h.Size() - 10
	h.view.Fit(limit, all)
	if h.Size() > limit*7/10 {
		t.Fatalf("size %d after a fit to %d leaves no room", h.Size(), limit)
	}
	first := h.Messages(Request{}, nil, nil)[0].Text
	for h.Size()+40 < limit {
		h.Apply(1000, Record{Said: &llm.Message{Role: llm.Assistant, Text: "go on"}})
		h.view.Fit(limit, all)
		if h.Messages(Request{}, nil, nil)[0].Text != first {
			t.Fatal("the beginning changed while there was room")
		}
	}
}

// TestFitNeverPartsCallAndResult tries any size on any history: what comes out
// fits, is sound, and has the question that is to be answered.
func TestFitNeverPartsCallAndResult(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		h := talk(1+r.IntN(8), r.IntN(6), r.IntN(5000))
		question := h.view.entries[h.view.turnStart()].Text
		limit := 300 + r.IntN(6000)
		h.view.Fit(limit, all)
		ms := h.Messages(Request{}, nil, nil)
		if why := acceptable(ms); why != "" {
			t.Fatal(why)
		}
		for _, m := range ms {
			if m.Text == msgLostResult {
				t.Fatal("a call was parted from its result")
			}
		}
		if h.Size() > limit {
			t.Fatalf("size %d is over %d", h.Size(), limit)
		}
		if !strings.Contains(fmt.Sprint(ms), question) {
			t.Fatal("the question is gone")
		}
	}
}

// A result far larger than the window is cut itself: no turn goes for it, and
// nothing is summed up.
func TestFitCutsHugeResult(t *testing.T) {
	for _, size := range []int{20_000, 3 << 20} {
		h := talk(6, 1, 1000)
		at := len(h.view.entries) - 1
		for h.view.entries[at].Role != llm.ToolRole {
			at--
		}
		h.view.entries[at].Text = "begin" + strings.Repeat("é", size/2) + "end"
		const limit = 4000
		if old := h.Oldest(limit, all); len(old) != 0 {
			t.Errorf("%d entries are to be summed up", len(old))
		}
		for range 3 { // to cut once more changes nothing
			h.view.Fit(limit, all)
			h.view.cutResults(limit)
		}
		shown := fmt.Sprint(h.Messages(Request{}, nil, nil))
		for i := range 6 {
			if !strings.Contains(shown, fmt.Sprint("question ", i)) {
				t.Errorf("question %d is gone", i)
			}
		}
		got := h.view.entries[at].Text
		if h.Size() > limit || !strings.HasPrefix(got, "beginéé") || !strings.HasSuffix(got, "ééend") || strings.Count(got, msgCutResult) != 1 || len(got) < limit {
			t.Errorf("size %d, the result has %d bytes: %.60q", h.Size(), len(got), got)
		}
		if strings.Contains(shown, "omitted from context") {
			t.Error("other results went for it")
		}
	}
}

func TestFitSqueezesHugeMessage(t *testing.T) {
	h := &History{zone: time.UTC}
	h.Apply(1, Record{Heard: &chat.Message{ID: "1", Text: "begin" + strings.Repeat("é", 1<<20) + "end"}})
	h.view.Fit(1000, all)
	got := h.Messages(Request{}, nil, nil)[0].Text
	if h.Size() > 1000 || !strings.Contains(got, "begin") || !strings.HasSuffix(got, "end") {
		t.Errorf("size %d, text %.60q", h.Size(), got)
	}
}
