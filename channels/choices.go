package channels

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/channels/safetext"
	"parley/chat"
	"parley/forms"
	"parley/texts"
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
	r.Ask = nil
	if len(q.Choices) == 0 {
		return r
	}
	r.Text += "\n\n"
	for i, choice := range q.Choices {
		r.Text += fmt.Sprintf("%d. %s\n", i+1, choice)
	}
	r.Text += "\n" + rr.howToAnswer(q)
	return r
}

// howToAnswer says how to answer q, whose choices are numbered. A question about yes
// or no can be answered with letters, too.
func (rr *renderer) howToAnswer(q *chat.Question) string {
	say := rr.texts.Question
	letters := ""
	isYesOrNo := choiceByInitial(q.Choices, firstLetter(say.Yes)) == 0 &&
		choiceByInitial(q.Choices, firstLetter(say.No)) == 1
	if isYesOrNo {
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

// closingPart returns the message that asks q, as it is once q is over.
func (rr *renderer) closingPart(q question) (chat.Reply, error) {
	r := q.Reply
	r.Ask = nil
	parts, err := rr.parts(r)
	if err != nil || len(parts) == 0 {
		return r, err
	}
	r.Text += "\n\n" + rr.outcome(q.Choice)
	if q.Choice != nil {
		r.Text += filledIn(q.Reply.Ask.Fields, q.Choice.Values)
	}
	closed, err := rr.parts(r)
	if err != nil || len(closed) != len(parts) { // the outcome does not fit
		closed = parts
	}
	return closed[askingPart(closed)], nil
}

// outcome returns the line that says how a question ended; c is nil if it was
// withdrawn.
func (rr *renderer) outcome(c *Choice) string {
	say := rr.texts.Question
	if c == nil {
		return "✗ *" + say.NoLongerAsked + "*"
	}
	text := safetext.WithoutMarkup(c.Text, maxAnswerRunes)
	if by := safetext.PersonName(c.By.Name); by != "" {
		return "✓ " + say.ByWhom.With(text, by)
	}
	return "✓ " + say.Answered.With(text)
}

// filledIn lists the values of a form, each on a line of its own.
func filledIn(fields []chat.Field, values [][]string) (list string) {
	plain := func(text string) string { return strings.ReplaceAll(chat.OneLine(text), "`", "'") }
	for i, f := range fields {
		if i >= len(values) {
			break
		}
		if shown := plain(forms.Shown(f, values[i])); shown != "" {
			list += fmt.Sprintf("\n- `%s`: `%s`", plain(f.Label), chat.Shorten(shown, maxValueRunes))
		}
	}
	if list == "" {
		return ""
	}
	return "\n" + list
}

// choiceByInitial returns the index of the only one of choices that begins with
// letter, or -1.
func choiceByInitial(choices []string, letter string) int {
	begins := func(choice string) bool {
		choice = strings.TrimLeftFunc(choice, func(r rune) bool { return !unicode.IsLetter(r) })
		_, size := utf8.DecodeRuneInString(choice)
		return size > 0 && strings.EqualFold(choice[:size], letter)
	}
	i := slices.IndexFunc(choices, begins)
	if i >= 0 && slices.ContainsFunc(choices[i+1:], begins) {
		return -1
	}
	return i
}

// initials lists the letters that each name one of choices, such as "y, n or h", or
// returns "" if one of them does not.
func initials(say texts.Question, choices []string) string {
	var letters []string
	for i, choice := range choices {
		letter := firstLetter(choice)
		if choiceByInitial(choices, letter) != i {
			return ""
		}
		letters = append(letters, letter)
	}
	last := len(letters) - 1
	return say.Letters.With(strings.Join(letters[:last], ", "), letters[last])
}

// firstLetter returns the first letter of a choice, in lower case.
func firstLetter(choice string) string {
	r, _ := utf8.DecodeRuneInString(choice)
	return string(unicode.ToLower(r))
}

// trimChoice returns text without the blanks and full stops that people write around
// a choice.
func trimChoice(text string) string {
	text = strings.TrimSpace(text)
	if trimmed := strings.TrimSpace(strings.TrimRight(text, ".!")); trimmed != "" {
		return trimmed
	}
	return text
}
