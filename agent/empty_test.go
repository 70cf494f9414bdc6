package agent_test

import (
	"context"
	"strings"
	"testing"

	"parley/chat"
	"parley/llm"
	"parley/tools"
)

// TestEmptyAnswer: a model that answers nothing is asked again once, and then
// the person is told so, whatever the nothing is made of.
func TestEmptyAnswer(t *testing.T) {
	const (
		nothing = "The model answered nothing, although I asked it twice. Please try again, or put it in other words."
		noRoom  = "The model used up the length of its answer before it said anything. Please try again, or ask for less at a time."
	)
	empty := words("")
	for name, c := range map[string]struct {
		answers []llm.Message
		want    string
		asked   int
	}{
		"nothing":            {[]llm.Message{empty, empty}, nothing, 2},
		"and then an answer": {[]llm.Message{empty, words("well")}, "well", 2},
		"only blanks":        {[]llm.Message{words(" \n\t"), words("\n\n")}, nothing, 2},
		"only reasoning":     {[]llm.Message{{Reasoning: "hm", Finish: llm.Stopped}, {Reasoning: "hm", Finish: llm.Stopped}}, nothing, 2},
		"cut":                {[]llm.Message{{Finish: llm.Length}, {Reasoning: "hm", Finish: llm.Length}}, noRoom, 2},
		"filtered":           {[]llm.Message{{Finish: llm.Filtered}}, "The model's provider filtered this answer out. Please put it in other words.", 1},
		"filtered midway":    {[]llm.Message{{Text: "Once upon", Finish: llm.Filtered}}, "Once upon\n\n(The model's provider filtered out the rest of this answer.)", 1},
		"after a tool":       {[]llm.Message{calls(call("1", "look")), empty, empty}, nothing, 3},
		"after a tool, then": {[]llm.Message{calls(call("1", "look")), empty, words("seen")}, "seen", 3},
		"after words":        {[]llm.Message{{Text: "I look.", Calls: []llm.ToolCall{call("1", "look")}}, empty, empty}, "I look.\n\n(After that the model answered nothing, although I asked it twice.)", 3},
		"after it was told":  {[]llm.Message{calls(call("1", "tell")), empty}, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, &house{model: script(c.answers...), tools: []tools.Tool{
				tool("look", func(context.Context) (string, error) { return "sun", nil }),
				giving("tell", tools.Hints{Category: "message"}, tools.Result{Text: "said", Told: "news"}),
			}}, func(h *house) {
				h.say("1", "hi")
				h.want(c.want)
				if len(h.asks) != c.asked {
					t.Errorf("asked %d times, want %d", len(h.asks), c.asked)
				}
			})
		})
	}
}

// TestEmptyAnswerOfErrand: a quiet job whose model answers nothing has failed,
// which is not the same as that there is nothing to say.
func TestEmptyAnswerOfErrand(t *testing.T) {
	play(t, &house{model: script(words(""), words(""))}, func(h *house) {
		h.deliver(errand("1", "look", chat.RunOptions{Job: "j", Quiet: true}))
		h.want()
		if got := strings.Join(h.transcript("test:1"), "\n"); !strings.Contains(got, "failed") {
			t.Errorf("the transcript is %s", got)
		}
	})
}
