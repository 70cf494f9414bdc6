package channels

import (
	"fmt"

	"parley/channels/choices"
	"parley/chat"
)

// hasButtons reports whether the channel shows the choices of q as buttons.
func (rr *renderer) hasButtons(q *chat.Question) bool {
	asker, ok := rr.channel.(Asker)
	return ok && len(q.Choices) <= asker.MaxChoices()
}

// withChoices returns r with its choices in its text, if the channel has no buttons
// for them.
func (rr *renderer) withChoices(r chat.Reply) chat.Reply {
	if r.Ask == nil || rr.hasButtons(r.Ask) {
		return r
	}
	q := r.Ask
	_, showsHints := rr.channel.(HintShower)
	if !showsHints {
		r.Ask = nil
	}
	if len(q.Choices) == 0 {
		return r
	}
	r.Text += "\n\n"
	for i, choice := range q.Choices {
		r.Text += fmt.Sprintf("%d. %s\n", i+1, choice)
	}
	if r.Hint = rr.howToAnswer(q); !showsHints || !q.Say {
		r.Text += "\n" + r.Hint
		r.Hint = ""
	}
	return r
}

// howToAnswer says how to answer q, whose choices are numbered. A question about yes
// or no can be answered with letters, too.
func (rr *renderer) howToAnswer(q *chat.Question) string {
	say := rr.texts.Question
	letters := ""
	isYesOrNo := choices.ByInitial(q.Choices, choices.FirstLetter(say.Yes)) == 0 &&
		choices.ByInitial(q.Choices, choices.FirstLetter(say.No)) == 1
	if isYesOrNo {
		letters = choices.Letters(say, q.Choices)
	}
	switch {
	case letters == "" && q.Free:
		return say.ByNumberOrWords
	case letters == "":
		return say.ByNumber
	case q.Free:
		return say.ByLetterOrWords.With(letters)
	}
	return say.ByLetter.With(letters)
}

// closingPart returns the message that asks q, as it is once q is over.
func (rr *renderer) closingPart(q question) (chat.Reply, error) {
	r := q.Reply
	r.Ask = nil
	r.Outcome = q.outcome()
	parts, err := rr.parts(r)
	if err != nil || len(parts) == 0 {
		return r, err
	}
	r.Text += "\n\n" + choices.Outcome(rr.texts.Question, r.Outcome)
	closed, err := rr.parts(r)
	if err != nil || len(closed) != len(parts) { // the outcome does not fit
		closed = parts
	}
	return closed[askingPart(closed)], nil
}
