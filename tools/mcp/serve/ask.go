package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"parley/chat"
)

type askInput struct {
	Message string `json:"message" jsonschema:"what to ask or to have done"`
	Session string `json:"session,omitempty" jsonschema:"name of the conversation to go on with; default: a new one"`
	Key     string `json:"key,omitempty" jsonschema:"your own; the same message is answered once under it"`
}

type askOutput struct {
	Answer       string `json:"answer"`
	Session      string `json:"session" jsonschema:"give it to go on with this conversation"`
	InputTokens  int    `json:"inputTokens"`
	OutputTokens int    `json:"outputTokens"`
}

type personInput struct {
	Question string   `json:"question" jsonschema:"what you need to know, in Markdown"`
	Choices  []string `json:"choices" jsonschema:"2 to 10 answers to choose from, a few words each"`
	Key      string   `json:"key,omitempty" jsonschema:"your own; the same question is asked once under it"`
}

type personOutput struct {
	Choice string `json:"choice" jsonschema:"the choice; empty if the person answered in their own words"`
	Text   string `json:"text" jsonschema:"those words"`
}

// ask implements ask_agent. Its turn is stopped if the call is given up.
func (a *api) ask(ctx context.Context, r request, in askInput) (askOutput, error) {
	stop := make(chan struct{})
	waiting, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer a.watch(ctx, r, in.Key, func(goesOn bool) {
		if goesOn {
			leave()
		} else {
			close(stop)
		}
	})()
	steps := make(chan chat.Step, 64)
	var reporting sync.WaitGroup
	reporting.Go(func() {
		for n := 1; ; n++ {
			select {
			case s := <-steps:
				r.report(ctx, n, stepText(s))
			case <-waiting.Done():
				return
			}
		}
	})
	answer, err := a.cfg.Ask(waiting, a.caller.who, a.caller.prefix, Question{
		Text: in.Message, Session: in.Session, Key: in.Key, Stop: stop,
		Step: func(s chat.Step) {
			select {
			case steps <- s:
			default: // whoever reads slowly misses steps, not the answer
			}
		},
	})
	leave()
	reporting.Wait()
	return askOutput{
		Answer:       answer.Text,
		Session:      answer.Session,
		InputTokens:  answer.Tokens.In,
		OutputTokens: answer.Tokens.Out,
	}, err
}

// stepText says what s does, in one line.
func stepText(s chat.Step) string {
	text := cmp.Or(s.Name, s.Tool)
	if s.Tip != "" {
		text += ": " + s.Tip
	}
	switch s.State {
	case chat.Failed:
		text += " (failed)"
	case chat.Refused, chat.Interrupted:
		text += fmt.Sprintf(" (%s)", s.State)
	}
	return chat.OneLine(text)
}

// askPerson implements ask_person.
func (a *api) askPerson(ctx context.Context, r request, in personInput) (out personOutput, err error) {
	own, err := a.own()
	if err != nil {
		return out, err
	}
	if own.At.Channel == "api" {
		return out, errors.New("no owner can be written to")
	}
	args := map[string]any{"question": in.Question, "choices": in.Choices}
	result, err := a.run(ctx, r, own, in.Key, "ask_user", args)
	if err != nil {
		return out, err
	}
	return out, remarshal(result.Data, &out)
}
