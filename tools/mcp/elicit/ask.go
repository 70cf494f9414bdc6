package elicit

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"parley/chat"
	"parley/forms"
)

const (
	maxMessage = 2000 // characters of what a server says
	maxLabel   = 100  // of a name, a label or a choice
	maxNote    = 300  // of what is said of one field
	maxTries   = 3    // of a person to answer one question
)

// head returns what is above the question: which server asks, for which tool, and what it says.
func (a *asking) head() string {
	say := a.inputs.config.Words.Elicit
	text := say.Asks.With(plain(a.server, maxLabel), plain(a.call.Name, maxLabel))
	if said := chat.QuoteLines(a.asked.Message, maxMessage); said != "" {
		text += "\n" + said
	}
	return text
}

// plain returns what a server says as one line that can stand in backticks.
func plain(text string, most int) string {
	return chat.Clip(chat.OneLine(strings.ReplaceAll(text, "`", "'")), most, "…")
}

// askFields asks for all fields in a form if the person's channel shows one, and else for one after
// another. It returns the values by name. Those that were asked for one after another the person sees all
// again before they are sent.
func (a *asking) askFields(ctx context.Context, fields []field) (map[string]any, error) {
	say := a.inputs.config.Words.Elicit
	if len(fields) == 0 {
		text := a.head() + "\n\n" + say.Warning
		return map[string]any{}, a.confirm(ctx, text, say.Agree)
	}
	isPressed := len(fields) == 1 && fields[0].hasChoices() // one press is less work than a form
	if !isPressed && a.inputs.config.ShowsForm(a.call.At, len(fields)) {
		return a.askForm(ctx, fields)
	}
	values := map[string]any{}
	summary := ""
	for n, f := range fields {
		text := say.More.With(plain(a.server, maxLabel), n+1, len(fields))
		if n == 0 {
			text = a.head() + "\n\n" + say.Warning
		}
		value, shown, err := a.askField(ctx, f, text)
		if err != nil {
			return nil, err
		}
		if value == nil {
			continue
		}
		values[f.name] = value
		summary += fmt.Sprintf("\n- `%s`: `%s`", f.ask.Label, plain(shown, maxNote))
	}
	if len(fields) == 1 {
		return values, nil
	}
	return values, a.confirm(ctx, say.Review.With(plain(a.server, maxLabel))+"\n"+summary, say.Send)
}

// askForm asks for all fields at once, and returns the values by name.
func (a *asking) askForm(ctx context.Context, fields []field) (map[string]any, error) {
	say := a.inputs.config.Words.Elicit
	text := a.head() + "\n\n" + say.Warning
	if slices.ContainsFunc(fields, field.looksSecret) {
		text += "\n\n" + say.LooksSecret
	}
	q := chat.Question{Choices: []string{say.Send, say.Decline, say.Cancel}}
	for _, f := range fields {
		q.Fields = append(q.Fields, f.ask)
	}
	for try := range maxTries { // wrong values do not get here, unless the rules have changed since
		answer, err := a.put(ctx, fmt.Sprintf("form %d", try), text, q)
		switch {
		case err != nil:
			return nil, err
		case answer.Index == 1:
			return nil, errRefused(actionDecline)
		case answer.Index != 0:
			return nil, errRefused(actionCancel)
		}
		checked, problems := forms.CheckAll(a.inputs.config.Words.Form, q.Fields, answer.Values)
		if problems != nil {
			continue
		}
		values := map[string]any{}
		for i, f := range fields {
			if checked[i] != nil {
				values[f.name] = checked[i]
			}
		}
		return values, nil
	}
	return nil, errRefused(actionDecline)
}

// confirm asks whether the person agrees. Yes and no count, too: what is said is a whole answer.
func (a *asking) confirm(ctx context.Context, text, agree string) error {
	say := a.inputs.config.Words.Elicit
	wrong := ""
	for try := range maxTries {
		q := chat.Question{Choices: []string{agree, say.Decline}, Free: true}
		answer, err := a.put(ctx, fmt.Sprintf("confirm %d", try), wrong+text, q)
		words := trim(answer.Text)
		switch {
		case err != nil:
			return err
		case answer.Index == 0, isWordOrLetter(words, say.Yes):
			return nil
		case answer.Index == 1, isWordOrLetter(words, say.No):
			return errRefused(actionDecline)
		}
		if action := a.refusal(words); action != "" {
			return errRefused(action)
		}
		wrong = "**" + say.Neither.With(agree, say.Decline) + "**\n\n"
	}
	return errRefused(actionDecline)
}

// trim returns what a person wrote without the marks around it.
func trim(words string) string { return strings.Trim(strings.TrimSpace(words), ".!“”\"") }

// isWordOrLetter reports whether a person wrote word, or the first letter of it.
func isWordOrLetter(words, word string) bool {
	_, size := utf8.DecodeRuneInString(word)
	return strings.EqualFold(words, word) || strings.EqualFold(words, word[:size])
}

// refusal returns the action if a person refuses in these words, and otherwise "".
func (a *asking) refusal(words string) string {
	words = trim(words)
	switch say := a.inputs.config.Words.Elicit; {
	case strings.EqualFold(words, say.Decline):
		return actionDecline
	case strings.EqualFold(words, say.Cancel):
		return actionCancel
	}
	return ""
}

// askField asks for the value of f, again if an answer is not right. It returns nil if the person leaves
// it out.
func (a *asking) askField(ctx context.Context, f field, above string) (value any, shown string, err error) {
	say := a.inputs.config.Words.Elicit
	text := above + "\n\n" + f.describe(say)
	wrong := ""
	for try := range maxTries {
		q := chat.Question{Choices: f.choices(say), Free: true}
		answer, err := a.put(ctx, fmt.Sprintf("%s %d", f.name, try), wrong+text, q)
		if err != nil {
			return nil, "", err
		}
		words := answer.Text
		if answer.Index >= 0 {
			words = q.Choices[answer.Index]
		}
		if action := a.refusal(words); action != "" {
			return nil, "", errRefused(action)
		}
		if f.canBeSkipped() && strings.EqualFold(strings.TrimSpace(words), say.Skip) {
			value, _ := forms.Check(a.inputs.config.Words.Form, f.ask, f.ask.Preset) // it was checked before
			return value, forms.Shown(f.ask, f.ask.Preset), nil
		}
		values := forms.Words(f.ask, words)
		value, problem := forms.Check(a.inputs.config.Words.Form, f.ask, values)
		if problem == "" {
			return value, forms.Shown(f.ask, values), nil
		}
		wrong = "**" + problem + "**\n\n"
	}
	return nil, "", errRefused(actionDecline)
}

// showAddress asks the person to open a page of the server, and whether they will. Parley does not open it
// (R-S13): what is there, and whether the server was told, is between the two of them.
func (a *asking) showAddress(ctx context.Context, log *slog.Logger) error {
	say := a.inputs.config.Words.Elicit
	u, err := url.Parse(a.asked.URL)
	switch {
	case err != nil, u.Scheme != "https" && u.Scheme != "http", u.Host == "", len(a.asked.URL) > maxMessage,
		strings.ContainsAny(a.asked.URL, " `<>\"\\"), chat.OneLine(a.asked.URL) != a.asked.URL:
		log.Warn("question of an MCP server declined: its address is not one of the web")
		return errRefused(actionDecline)
	case u.User != nil || !isASCII(u.Host): // it would look like another host
		log.Warn("question of an MCP server declined: its address would look like another one", "host", u.Host)
		return errRefused(actionDecline)
	}
	text := a.head() + "\n\n" + say.Open.With(u.Host, "<"+u.String()+">")
	return a.confirm(ctx, text, say.Opened)
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r > 0x7e || r <= ' ' })
}
