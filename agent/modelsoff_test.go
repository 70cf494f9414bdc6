package agent_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"parley/agent"
	"parley/llm"
	"parley/tools"
)

// B-071: a model that is switched off for somebody is not listed, cannot be chosen,
// and does not answer, also where it was chosen before or is the default. If all are
// off, all may be used: somebody has to answer.
func TestB071ModelsOff(t *testing.T) {
	var off []string
	var trouble error
	h := &house{model: script()}
	says := func(text string) agent.Model {
		answer := func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) { return words(text), nil }
		return agent.Model{Model: llm.ModelFunc(answer), Window: 10_000, MaxTokens: 100}
	}
	h.set = func(s *agent.Settings) {
		s.Models = map[string]agent.Model{"main": says("I am main"), "other": says("I am other")}
		s.ModelsOff = func(context.Context, tools.Scope) ([]string, error) { return off, trouble }
	}
	play(t, h, func(h *house) {
		h.say("1", "/model other")
		h.want("From the next answer on this conversation uses other.")
		h.say("2", "hi")
		h.want("I am other")
		off = []string{"other"}
		h.say("3", "hi")
		h.want("I am main")
		h.say("4", "/model")
		h.want("This conversation uses main. There are: main. Choose with /model NAME.")
		h.say("5", "/model other")
		h.want("There is no model of that name. There are: main.")
		off = []string{"main"}
		h.say("6", "hi")
		h.want("I am other")
		off = []string{"main", "other"}
		h.say("7", "hi")
		h.want("I am other") // as it was chosen
		off, trouble = nil, errors.New("the store does not answer")
		h.say("8", "/model")
		synctest.Wait()
		if len(h.sent) == 0 || h.sent[len(h.sent)-1] == "" {
			t.Errorf("sent %q", h.sent)
		}
	})
}
