package channels

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"parley/channels/admission"
	"parley/chat"
	"parley/texts"
)

// asking is which of the parts of a reply asks its question: the last with text.
func asking(parts []chat.Reply) int {
	for i := len(parts) - 1; i > 0; i-- {
		if parts[i].Text != "" {
			return i
		}
	}
	return 0
}

// buttons says whether the channel shows the choices of q as buttons.
func (l *line) buttons(q *chat.Question) bool {
	a, ok := l.Channel.(Asker)
	return ok && len(q.Choices) <= a.MaxChoices()
}

// initial is which of choices alone begins with text, which is one letter, or -1.
func initial(choices []string, text string) int {
	begins := func(c string) bool {
		c = strings.TrimLeftFunc(c, func(r rune) bool { return !unicode.IsLetter(r) })
		_, size := utf8.DecodeRuneInString(c)
		return size > 0 && strings.EqualFold(c[:size], text)
	}
	i := slices.IndexFunc(choices, begins)
	if i >= 0 && slices.ContainsFunc(choices[i+1:], begins) {
		return -1
	}
	return i
}

// initials lists the letters that each name one of choices, as "y, n or h", or
// is "" if they do not.
func initials(say texts.Question, choices []string) string {
	var letters []string
	for i, c := range choices {
		letter := first(c)
		if initial(choices, letter) != i {
			return ""
		}
		letters = append(letters, letter)
	}
	last := len(letters) - 1
	return say.Letters.With(strings.Join(letters[:last], ", "), letters[last])
}

// bare is text without what people write around a choice.
func bare(text string) string {
	text = strings.TrimSpace(text)
	if cut := strings.TrimSpace(strings.TrimRight(text, ".!")); cut != "" {
		return cut
	}
	return text
}

// worded is r with its choices in its text, for a channel that has no buttons for them.
func (l *line) worded(r chat.Reply) chat.Reply {
	if r.Ask == nil || l.buttons(r.Ask) {
		return r
	}
	q := r.Ask
	if r.Ask = nil; len(q.Choices) == 0 {
		return r
	}
	r.Text += "\n\n"
	for i, c := range q.Choices {
		r.Text += fmt.Sprintf("%d. %s\n", i+1, c)
	}
	r.Text += "\n" + l.howToAnswer(q)
	return r
}

// howToAnswer tells how the choices of q, which are numbered, can be answered:
// by letters if it is about yes or no.
func (l *line) howToAnswer(q *chat.Question) string {
	say, letters := l.hub.cfg.Texts.Question, ""
	if initial(q.Choices, first(say.Yes)) == 0 && initial(q.Choices, first(say.No)) == 1 {
		letters = initials(say, q.Choices)
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

// first returns the first letter of a choice, in lower case.
func first(choice string) string {
	r, _ := utf8.DecodeRuneInString(choice)
	return string(unicode.ToLower(r))
}

// closing returns the last message of q's reply as it is when q is over.
func (l *line) closing(q question) (chat.Reply, error) {
	r := q.Reply
	r.Ask = nil
	parts, err := l.parts(r)
	if err != nil || len(parts) == 0 {
		return r, err
	}
	r.Text += "\n\n" + l.outcome(q.Choice)
	if all, err := l.parts(r); err == nil && len(all) == len(parts) {
		parts = all
	}
	return parts[asking(parts)], nil
}

// outcome is the line that tells how a question ended, withdrawn if c is nil.
func (l *line) outcome(c *Choice) string {
	say := l.hub.cfg.Texts.Question
	if c == nil {
		return "✗ *" + say.NoLongerAsked + "*"
	}
	text := plainly(c.Text, maxName)
	if by := admission.SafeName(c.By.Name); by != "" {
		return "✓ " + say.ByWhom.With(text, by)
	}
	return "✓ " + say.Answered.With(text)
}

// offered stores the question that r asks if its choices are buttons by which
// people say something. It is stored before they can be pressed.
func (l *line) offered(ctx context.Context, r chat.Reply) error {
	if r.Ask == nil || !r.Ask.Say || !l.buttons(r.Ask) {
		return nil
	}
	if !questionID.MatchString(r.Ask.ID) || len(r.Ask.Choices) == 0 {
		return errors.New("a question needs an id of letters and digits, and choices")
	}
	_, err := l.hub.open(ctx, r)
	return err
}

// heed has the house hear what was chosen of q by the press m, and then ends q.
// The choice was stored before, and the house knows the message by its ID: q is
// heard once, however often buttons are pressed.
func (l *line) heed(ctx context.Context, q question, m chat.Message, deliver chat.Deliver) error {
	m.ID, m.At, m.From, m.Text, m.Answer = "press:"+q.Reply.Ask.ID, q.Reply.To, q.Choice.By, q.Choice.Text, nil
	m.Chosen = true
	m.Quote = &chat.Quote{ID: q.Reply.ID, From: "you", Text: q.Reply.Text}
	if err := l.pass(ctx, m, deliver); err != nil {
		return err
	}
	_, err := l.hub.settle(ctx, func(now *question) bool {
		found := now.Reply.Ask.ID == q.Reply.Ask.ID
		if found && !now.over() {
			now.receipt, now.Ended = q.receipt, time.Now()
		}
		return found
	})
	return err
}
