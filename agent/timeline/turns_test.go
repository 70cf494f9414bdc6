package timeline_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"parley/agent/conversation"
	"parley/agent/timeline"
	"parley/chat"
	"parley/llm"
	"parley/store/mem"
	"parley/texts"
	"parley/tools"
)

type pool struct{ sessions *conversation.Sessions }

func (p pool) Sessions() *conversation.Sessions                 { return p.sessions }
func (p pool) Tools(context.Context, chat.SessionID) *tools.Kit { return &tools.Kit{} }

func message(id string) chat.Message {
	return chat.Message{ID: id, At: chat.Address{Channel: "test", Chat: "1"}, Text: id}
}

func heard(id string) conversation.Record {
	m := message(id)
	return conversation.Record{Heard: &m}
}

func said(text string, calls ...string) conversation.Record {
	m := llm.Message{Role: llm.Assistant, Text: text, Usage: llm.Usage{In: 1}}
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

func resumed(id string) conversation.Record { return conversation.Record{Resumed: message(id).Key()} }

var ended = conversation.Record{Ended: &conversation.End{Outcome: conversation.Answered}}

// Several turns may be suspended at once, whole or for one of their messages, and go on in any order: each answer stands
// under what it answers, with what was called for it, and what was used is counted once.
func TestTurnsSuspended(t *testing.T) {
	for name, c := range map[string]struct {
		records []conversation.Record
		want    string
	}{
		"an outage": {
			[]conversation.Record{
				heard("A"), suspended("A", true), heard("B"), suspended("B", true),
				resumed("A"), said("to A"), ended, resumed("B"), said("to B"), ended,
			},
			"A, to A = 1\nB, to B = 1",
		},
		"in another order, for another of the messages": {
			[]conversation.Record{
				heard("A"), heard("A2"), said("", "a"), started("a"), suspended("A", true),
				heard("B"), suspended("B", true), heard("C"), said("to C"), ended,
				resumed("B"), said("to B"), ended, resumed("A2"), finished("a"), said("to A"), ended,
			},
			"C, to C = 1\nB, to B = 1\nA, A2, a success, to A = 2",
		},
		"they wait": {
			[]conversation.Record{
				heard("A"), said("", "a"), started("a"), suspended("A", true), heard("B"), suspended("B", true),
				suspended("B", true), resumed("X"), heard("C"),
			},
			"C = 0 open\nA, a doing = 1 open\nB = 0 open",
		},
		"what is rolled back after it": {
			[]conversation.Record{
				heard("A"), said("", "a"), finished("a"), said("", "b"), finished("b"), suspended("A", true),
				resumed("A"), {RolledBack: "nothing"}, said("to A"), ended,
			},
			"A, a success, b success retried, to A = 3",
		},
		"for one message": {
			[]conversation.Record{
				heard("A"), heard("B"), said("", "a", "b"), started("a"), finished("a"), started("b"),
				suspended("A", false), suspended("D", false), said("", "c"), finished("c"), said("to B"), ended,
				resumed("D"), heard("D"), said("to D"), ended,
				resumed("A"), finished("b"), said("to A"), ended,
			},
			"B, a success, b interrupted, c success, to B = 3\nD, to D = 1\nA, a success, b success, to A = 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			sessions := conversation.NewSessions(mem.New(), slog.New(slog.DiscardHandler), time.UTC, texts.Speakers{})
			reader := timeline.Reader{
				Pool: pool{sessions}, Texts: texts.English().Agent.Steps,
				Price: func(string, llm.Usage) (float64, bool) { return 0, true },
			}
			if err := sessions.Append(t.Context(), "test:1", c.records...); err != nil {
				t.Fatal(err)
			}
			all, err := reader.Turns(t.Context(), "test:1")
			if err != nil {
				t.Fatal(err)
			}
			if got := show(all); got != c.want {
				t.Errorf("the turns are\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// show returns the turns, each on a line.
func show(all []chat.Turn) string {
	var lines []string
	for _, turn := range all {
		var parts []string
		for _, p := range turn.Parts {
			part := p.Entry.Text
			switch {
			case p.Step != nil && p.Retried:
				part = fmt.Sprint(p.Step.Call, " ", p.Step.State, " retried")
			case p.Step != nil:
				part = fmt.Sprint(p.Step.Call, " ", p.Step.State)
			case part == "":
				part = string(p.Entry.Kind)
			}
			parts = append(parts, part)
		}
		line := fmt.Sprint(strings.Join(parts, ", "), " = ", turn.Read)
		if turn.Open {
			line += " open"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
