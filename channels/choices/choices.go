// Package choices puts the choices of a question into words, and understands people who choose in words: where
// there are no buttons, and where people type in spite of them.
package choices

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

const (
	maxAnswerRunes = 64  // of an answer that is quoted
	maxValueRunes  = 300 // of a value of a form that is quoted
)

// Plain returns what a person chose or wrote, without markup, as long as it may be where it is quoted.
func Plain(answer string) string { return safetext.WithoutMarkup(answer, maxAnswerRunes) }

// Outcome returns what is said of how a question ended: a line, and below it the values of a form.
func Outcome(say texts.Question, o *chat.Outcome) string {
	switch {
	case o.Answer == "":
		return "✗ *" + say.NoLongerAsked + "*"
	case o.By != "":
		return "✓ " + say.ByWhom.With(o.Answer, o.By) + o.Filled
	}
	return "✓ " + say.Answered.With(o.Answer) + o.Filled
}

// FilledIn lists the values of a form, each on a line of its own.
func FilledIn(fields []chat.Field, values [][]string) (list string) {
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

// ByInitial returns the index of the only one of choices that begins with
// letter, or -1.
func ByInitial(choices []string, letter string) int {
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

// Letters lists the letters that each name one of choices, such as "y, n or h", or
// returns "" if one of them does not.
func Letters(say texts.Question, choices []string) string {
	var letters []string
	for i, choice := range choices {
		letter := FirstLetter(choice)
		if ByInitial(choices, letter) != i {
			return ""
		}
		letters = append(letters, letter)
	}
	last := len(letters) - 1
	return say.Letters.With(strings.Join(letters[:last], ", "), letters[last])
}

// FirstLetter returns the first letter of a choice, in lower case.
func FirstLetter(choice string) string {
	r, _ := utf8.DecodeRuneInString(choice)
	return string(unicode.ToLower(r))
}

// Trim returns text without the blanks and full stops that people write around
// a choice.
func Trim(text string) string {
	text = strings.TrimSpace(text)
	if trimmed := strings.TrimSpace(strings.TrimRight(text, ".!")); trimmed != "" {
		return trimmed
	}
	return text
}
