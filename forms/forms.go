// Package forms reads and checks the values that people fill in: those of a form, and those that
// are asked for one after another.
package forms

import (
	"math"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"parley/chat"
	"parley/lazyregexp"
	"parley/texts"
)

const (
	maxText  = 4000 // characters of a text
	maxExact = 1e15 // numbers below it are written with all their digits
)

// Check returns the value that f has if people fill in values, or what is wrong with them. The value
// is nil if the field is left out; otherwise it is a string, a bool, an int64, a float64, or the
// strings of several choices.
func Check(say *texts.Form, f chat.Field, values []string) (value any, problem string) {
	switch f.Kind {
	case chat.FieldChoices:
		return checkChoices(say, f, values)
	case chat.FieldYesNo, chat.FieldChoice:
		return checkChoice(say, f, values)
	}
	text := strings.TrimSpace(strings.Join(values, "\n"))
	switch {
	case text == "" && f.Required:
		return nil, say.Missing
	case text == "":
		return nil, ""
	case f.Kind == chat.FieldText:
		return checkText(say, f, text)
	}
	return checkNumber(say, f, text)
}

// CheckAll is [Check] for each of fields. The problems are nil if all values are right.
func CheckAll(say *texts.Form, fields []chat.Field, values [][]string) (checked []any, problems []string) {
	isWrong := false
	for i, f := range fields {
		var filled []string
		if i < len(values) {
			filled = values[i]
		}
		value, problem := Check(say, f, filled)
		checked = append(checked, value)
		problems = append(problems, problem)
		isWrong = isWrong || problem != ""
	}
	if !isWrong {
		return checked, nil
	}
	return nil, problems
}

func hasOption(f chat.Field, value string) bool {
	return slices.ContainsFunc(f.Options, func(o chat.Option) bool { return o.Value == value })
}

func checkChoice(say *texts.Form, f chat.Field, values []string) (any, string) {
	switch {
	case len(values) == 0 && f.Required:
		return nil, say.Missing
	case len(values) == 0:
		return nil, ""
	case len(values) > 1, !hasOption(f, values[0]):
		return nil, say.NotAChoice
	case f.Kind == chat.FieldYesNo:
		return values[0] == "true", ""
	}
	return values[0], ""
}

// checkChoices checks several choices. A field without any is left out, unless it is required, or has a preset,
// which would take its place.
func checkChoices(say *texts.Form, f chat.Field, values []string) (any, string) {
	chosen := []string{}
	for _, v := range values {
		if !hasOption(f, v) {
			return nil, say.NotAChoice
		}
		if !slices.Contains(chosen, v) {
			chosen = append(chosen, v)
		}
	}
	isTooFew := f.MinLength != nil && len(chosen) < *f.MinLength
	switch {
	case len(chosen) == 0 && !f.Required && (isTooFew || len(f.Preset) == 0):
		return nil, ""
	case isTooFew:
		return nil, say.MustBe.With(say.AtLeastOptions.With(*f.MinLength))
	case f.MaxLength != nil && len(chosen) > *f.MaxLength:
		return nil, say.MustBe.With(say.AtMostOptions.With(*f.MaxLength))
	}
	return chosen, ""
}

// Numbers with separators of thousands, which would be read as those of fractions.
var (
	grouped        = lazyregexp.New(`^[+-]?[1-9]\d{0,2}(,\d{3})+$`)
	groupedInteger = lazyregexp.New(`^[+-]?[1-9]\d{0,2}([.,]\d{3})+$`)
)

func checkNumber(say *texts.Form, f chat.Field, text string) (any, string) {
	if grouped.MatchString(text) || f.Kind == chat.FieldInteger && groupedInteger.MatchString(text) {
		return nil, say.Separators
	}
	n, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64)
	switch {
	case err != nil || math.IsNaN(n) || math.IsInf(n, 0):
		return nil, say.MustBe.With(numberHint(say, f))
	case f.Kind == chat.FieldInteger && (n != math.Trunc(n) || math.Abs(n) > 1<<53):
		return nil, say.MustBe.With(say.Integer)
	case f.Min != nil && n < *f.Min:
		return nil, say.MustBe.With(say.AtLeast.With(Number(*f.Min)))
	case f.Max != nil && n > *f.Max:
		return nil, say.MustBe.With(say.AtMost.With(Number(*f.Max)))
	case f.Kind == chat.FieldInteger:
		return int64(n), ""
	}
	return n, ""
}

func checkText(say *texts.Form, f chat.Field, text string) (any, string) {
	length := utf8.RuneCountInString(text)
	most := maxText
	if f.MaxLength != nil {
		most = min(*f.MaxLength, maxText)
	}
	switch {
	case !hasFormat(f.Format, text):
		return nil, say.MustBe.With(formatHint(say, f.Format))
	case length > most:
		return nil, say.MustBe.With(say.Shorter.With(most))
	case f.MinLength != nil && length < *f.MinLength:
		return nil, say.MustBe.With(say.Longer.With(*f.MinLength))
	}
	pattern, err := regexp.Compile(f.Pattern)
	if err != nil || pattern.MatchString(text) { // one that cannot be read is for the server to check
		return text, ""
	}
	return nil, say.WrongPattern
}

// hasFormat reports whether text has a format of JSON Schema. Those that are not known are for the
// server to check.
func hasFormat(format, text string) bool {
	switch format {
	case chat.FormatEmail:
		a, err := mail.ParseAddress(text)
		return err == nil && a.Address == text
	case chat.FormatAddress:
		u, err := url.Parse(text)
		return err == nil && u.Scheme != ""
	case chat.FormatDate:
		_, err := time.Parse(time.DateOnly, text)
		return err == nil
	case chat.FormatDateTime:
		_, err := time.Parse(time.RFC3339, text)
		return err == nil
	}
	return true
}

// Hint returns what a right value of f is, in words; "" if any text is right.
func Hint(say *texts.Form, f chat.Field) string {
	var hints []string
	least := say.Longer
	most := say.Shorter
	switch f.Kind {
	case chat.FieldChoices:
		least = say.AtLeastOptions
		most = say.AtMostOptions
	case chat.FieldInteger, chat.FieldNumber:
		hints = append(hints, numberHint(say, f))
	case chat.FieldText:
		if f.Format != "" {
			hints = append(hints, formatHint(say, f.Format))
		}
	}
	if f.Min != nil {
		hints = append(hints, say.AtLeast.With(Number(*f.Min)))
	}
	if f.Max != nil {
		hints = append(hints, say.AtMost.With(Number(*f.Max)))
	}
	if f.MinLength != nil && *f.MinLength > 0 {
		hints = append(hints, least.With(*f.MinLength))
	}
	if f.MaxLength != nil {
		hints = append(hints, most.With(*f.MaxLength))
	}
	return strings.Join(hints, ", ")
}

func numberHint(say *texts.Form, f chat.Field) string {
	if f.Kind == chat.FieldInteger {
		return say.Integer
	}
	return say.Number
}

func formatHint(say *texts.Form, format string) string {
	switch format {
	case chat.FormatEmail:
		return say.Email
	case chat.FormatAddress:
		return say.Address
	case chat.FormatDate:
		return say.Date
	case chat.FormatDateTime:
		return say.DateTime
	}
	return say.Format.With(format)
}

// Number writes n as people do, and as [Check] reads it.
func Number(n float64) string {
	if math.Abs(n) < maxExact {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return strconv.FormatFloat(n, 'g', -1, 64)
}

// Shown returns values of f as people know them: choices by their labels.
func Shown(f chat.Field, values []string) string {
	var shown []string
	for _, v := range values {
		i := slices.IndexFunc(f.Options, func(o chat.Option) bool { return o.Value == v })
		if i >= 0 {
			v = f.Options[i].Label
		}
		shown = append(shown, strings.TrimSpace(v))
	}
	return strings.Join(shown, ", ")
}

// Words returns the values of f that a person gives in words. Several choices have commas between
// them, and are also named by their numbers.
func Words(f chat.Field, text string) []string {
	text = strings.TrimSpace(text)
	switch f.Kind {
	case chat.FieldYesNo, chat.FieldChoice:
		return []string{optionOf(f, text)}
	case chat.FieldChoices:
		var values []string
		for name := range strings.SplitSeq(text, ",") {
			if name = strings.TrimSpace(name); name != "" {
				values = append(values, numberedOption(f, name))
			}
		}
		return values
	}
	return []string{text}
}

// optionOf returns the value of the option that a person names by its label or its value, or the name if
// there is none.
func optionOf(f chat.Field, name string) string {
	i := slices.IndexFunc(f.Options, func(o chat.Option) bool { return strings.EqualFold(o.Label, name) })
	if i < 0 {
		i = slices.IndexFunc(f.Options, func(o chat.Option) bool { return strings.EqualFold(o.Value, name) })
	}
	if i < 0 {
		return name
	}
	return f.Options[i].Value
}

// numberedOption is optionOf for options that are numbered.
func numberedOption(f chat.Field, name string) string {
	value := optionOf(f, name)
	n, err := strconv.Atoi(strings.TrimRight(name, ".)"))
	if !hasOption(f, value) && err == nil && n >= 1 && n <= len(f.Options) {
		return f.Options[n-1].Value
	}
	return value
}
