package message

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/chat"
	"parley/tools"
)

type question struct {
	Question string   `json:"question" jsonschema:"in Markdown" limit:"min=1"`
	Choices  []string `json:"choices" jsonschema:"a few words each" limit:"min=2 max=10"`
}

const askDescription = "Ask the person a question and wait for the answer: one of the choices, or words of their own."

// answerTimeout is how long a person may take to answer, counted from the last
// start.
const answerTimeout = 24 * time.Hour

// Ask asks the person at r.To the question r.Ask and waits for their answer: the
// index of a choice, or -1 and a text of their own. Asking the same question
// again, as after a restart, continues to wait for the same answer.
type Ask func(ctx context.Context, r chat.Reply) (index int, text string, by chat.Sender, err error)

// NewAsk returns the tool that asks people. withdraw takes back a question, by its
// ID, that nobody waits for any more; it may be nil.
func NewAsk(ask Ask, withdraw func(ctx context.Context, id string) error) tools.Tool {
	t := tools.New(
		"ask_user",
		askDescription,
		func(ctx context.Context, c tools.Call, in question) (tools.Result, error) {
			if wrong := unclear(in.Choices); wrong != "" {
				return tools.Failf(tools.CodeInvalid, "%s: nobody was asked", wrong), nil
			}
			waiting, cancel := context.WithTimeout(ctx, answerTimeout)
			defer cancel()
			q := &chat.Question{ID: questionID(c), Choices: in.Choices, Whom: c.From.ID, Asker: c.Asker(), Free: true}
			index, text, by, err := ask(waiting,
				chat.Reply{ID: "ask:" + c.Key(), To: c.At, For: c.Whose(), Group: c.Group, Text: in.Question, Ask: q})
			if err == nil {
				chosen := Answered{Text: text}
				if index >= 0 && index < len(in.Choices) {
					chosen.Choice = in.Choices[index]
				}
				return tools.Result{Text: answered(in.Choices, index, text, by), Data: chosen}, nil
			}
			if waiting.Err() != nil && withdraw != nil && !errors.Is(context.Cause(ctx), tools.ErrClosing) {
				err = errors.Join(err, withdraw(context.WithoutCancel(ctx), q.ID))
			}
			if waiting.Err() != nil && ctx.Err() == nil {
				return tools.Failf(tools.CodeTimeout,
					"nobody answered within %v: go on without an answer, or say what you wait for", answerTimeout), nil
			}
			return tools.Result{}, fmt.Errorf("ask at %s: %w", c.At.Session(), err)
		},
	)
	t.Category = "message"
	t.Exclusive = true
	t.Repeatable = true
	t.Timeout = -1
	t.Aliases = map[string]string{"text": "question", "message": "question", "options": "choices", "answers": "choices"}
	return t
}

// Answered is the answer to a question, for programs: one of the choices, or a text.
type Answered struct {
	Choice string
	Text   string
}

// questionID returns the ID of the question of c, always the same.
func questionID(c tools.Call) string { return fmt.Sprintf("%.8x", sha256.Sum256([]byte(c.Key()))) }

// unclear says why a person could not choose one of choices, or returns "".
func unclear(choices []string) string {
	seen := map[string]int{}
	for i, c := range choices {
		c = strings.ToLower(chat.OneLine(c))
		if c == "" {
			return fmt.Sprintf("choice %d is empty", i+1)
		}
		if seen[c] > 0 {
			return fmt.Sprintf("choices %d and %d are the same", seen[c], i+1)
		}
		seen[c] = i + 1
	}
	return ""
}

// answered tells the model the person's answer. Their name is for display only.
func answered(choices []string, index int, text string, by chat.Sender) string {
	who := cmp.Or(chat.OneLine(by.Name), "The person")
	if index >= 0 && index < len(choices) {
		return fmt.Sprintf("%s chose %q", who, choices[index])
	}
	return fmt.Sprintf("%s answered in their own words: %s", who, text)
}
