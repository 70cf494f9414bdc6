package elicit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley/chat"
	"parley/forms"
	"parley/lazyregexp"
	"parley/secrets"
	"parley/texts"
)

// How much a server may ask at once.
const (
	maxSchema  = 32 << 10 // bytes
	maxFields  = 20
	maxOptions = 50
)

// A field is one of the values that a server wants.
type field struct {
	name string
	ask  chat.Field
}

// A property is what the schema says of a value.
type property struct {
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Default     json.RawMessage `json:"default"`

	Enum      []string `json:"enum"`
	EnumNames []string `json:"enumNames"`
	OneOf     []titled `json:"oneOf"`

	MinLength *int     `json:"minLength"`
	MaxLength *int     `json:"maxLength"`
	Format    string   `json:"format"`
	Pattern   string   `json:"pattern"`
	Minimum   *float64 `json:"minimum"`
	Maximum   *float64 `json:"maximum"`

	Items *struct {
		Type  string   `json:"type"`
		Enum  []string `json:"enum"`
		AnyOf []titled `json:"anyOf"`
	} `json:"items"`
	MinItems *int `json:"minItems"`
	MaxItems *int `json:"maxItems"`

	// A schema with one of these is refused: only flat ones are allowed.
	Properties json.RawMessage `json:"properties"`
}

type titled struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// fieldsOf returns the fields that a schema asks for: those that are required first, each part by name.
func fieldsOf(words Words, schema any) ([]field, error) {
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	if len(text) > maxSchema {
		return nil, fmt.Errorf("its schema has %d bytes", len(text))
	}
	if bytes.Equal(text, []byte("null")) {
		return nil, nil
	}
	var of struct {
		Type       string              `json:"type"`
		Properties map[string]property `json:"properties"`
		Required   []string            `json:"required"`
	}
	if err := json.Unmarshal(text, &of); err != nil {
		return nil, fmt.Errorf("its schema is not a flat one: %w", err)
	}
	if of.Type != "object" {
		return nil, errors.New("its schema is not one of an object")
	}
	if len(of.Properties) > maxFields {
		return nil, fmt.Errorf("it asks for %d values", len(of.Properties))
	}
	var all []field
	for name, p := range of.Properties {
		f, err := p.chatField(words, cmp.Or(p.Title, name), slices.Contains(of.Required, name))
		if err != nil {
			return nil, fmt.Errorf("the field %q: %w", chat.Clip(name, maxLabel, "…"), err)
		}
		all = append(all, field{name, f})
	}
	rank := func(f field) int {
		if f.ask.Required {
			return 0
		}
		return 1
	}
	slices.SortFunc(all, func(a, b field) int { return cmp.Or(rank(a)-rank(b), strings.Compare(a.name, b.name)) })
	return all, nil
}

var formatName = lazyregexp.New(`^[a-z-]{1,40}$`)

// chatField returns what people are asked for the property, or why they cannot be asked for it.
func (p property) chatField(words Words, label string, isRequired bool) (chat.Field, error) {
	f := chat.Field{
		Label:     cmp.Or(plain(label, maxLabel), "–"),
		Note:      plain(p.Description, maxNote),
		Required:  isRequired,
		Pattern:   p.Pattern,
		Min:       p.Minimum,
		Max:       p.Maximum,
		MinLength: p.MinLength,
		MaxLength: p.MaxLength,
	}
	if formatName.MatchString(p.Format) {
		f.Format = p.Format
	}
	if p.Properties != nil {
		return f, errors.New("it is nested")
	}
	var err error
	if f.Options, err = p.options(words.Elicit); err != nil {
		return f, err
	}
	switch {
	case p.Type == "array":
		f.Kind = chat.FieldChoices
		f.MinLength = p.MinItems
		f.MaxLength = p.MaxItems
	case p.Type == "boolean":
		f.Kind = chat.FieldYesNo
	case p.Type == "integer":
		f.Kind = chat.FieldInteger
	case p.Type == "number":
		f.Kind = chat.FieldNumber
	case p.Type != "string":
		return f, fmt.Errorf("its type is %q", chat.Clip(p.Type, maxLabel, "…"))
	case len(f.Options) > 0:
		f.Kind = chat.FieldChoice
	default:
		f.Kind = chat.FieldText
	}
	f.Hint = forms.Hint(words.Form, f)
	preset, err := p.preset()
	if err != nil {
		return f, err
	}
	if value, problem := forms.Check(words.Form, f, preset); problem == "" && value != nil { // else it would be refused
		f.Preset = preset
	}
	return f, nil
}

// options returns the options of a choice, with labels that are safe and different.
func (p property) options(say *texts.Elicit) (all []chat.Option, err error) {
	titles := p.OneOf
	values := p.Enum
	switch p.Type {
	case "boolean":
		return []chat.Option{{Value: "true", Label: say.Yes}, {Value: "false", Label: say.No}}, nil
	case "integer", "number":
		return nil, nil
	case "array":
		if p.Items == nil {
			return nil, errors.New("it says nothing of its items")
		}
		titles = p.Items.AnyOf
		values = p.Items.Enum
	}
	for n, value := range values {
		o := chat.Option{Value: value, Label: value}
		if n < len(p.EnumNames) {
			o.Label = p.EnumNames[n]
		}
		all = append(all, o)
	}
	for _, t := range titles {
		all = append(all, chat.Option{Value: t.Const, Label: cmp.Or(t.Title, t.Const)})
	}
	switch {
	case len(all) > maxOptions:
		return nil, fmt.Errorf("it has %d choices", len(all))
	case p.Type == "array" && len(all) == 0:
		return nil, errors.New("it is a list of anything")
	}
	seen := map[string]bool{}
	for n := range all {
		o := &all[n]
		o.Label = cmp.Or(plain(o.Label, maxLabel), plain(o.Value, maxLabel), "–")
		if seen[strings.ToLower(o.Label)] {
			o.Label += fmt.Sprintf(" (%d)", n+1)
		}
		seen[strings.ToLower(o.Label)] = true
	}
	return all, nil
}

// preset returns the default of the property as people would fill it in; nil if it has none.
func (p property) preset() ([]string, error) {
	if len(p.Default) == 0 || bytes.Equal(p.Default, []byte("null")) {
		return nil, nil
	}
	var err error
	var values []string
	switch p.Type {
	case "string":
		values = make([]string, 1)
		err = json.Unmarshal(p.Default, &values[0])
	case "boolean":
		var is bool
		err = json.Unmarshal(p.Default, &is)
		values = []string{strconv.FormatBool(is)}
	case "array":
		err = json.Unmarshal(p.Default, &values)
	default:
		var n float64
		err = json.Unmarshal(p.Default, &n)
		values = []string{forms.Number(n)}
	}
	if err != nil {
		return nil, errors.New("its default is of another type")
	}
	return values, nil
}

// looksSecret reports whether f seems to be for a secret.
func (f field) looksSecret() bool { return secrets.IsAsked(f.name + " " + f.ask.Label) }

// describe returns the question for f, in Markdown.
func (f field) describe(say *texts.Elicit) string {
	text := "**" + say.Value + "** `" + f.ask.Label + "`"
	if f.ask.Note != "" {
		text += "\n`" + f.ask.Note + "`"
	}
	if f.looksSecret() {
		text += "\n\n" + say.LooksSecret
	}
	var hints []string
	if f.ask.Kind == chat.FieldChoices {
		for n, o := range f.ask.Options {
			text += fmt.Sprintf("\n%d. `%s`", n+1, o.Label)
		}
		hints = append(hints, say.Several)
	}
	if f.ask.Hint != "" {
		hints = append(hints, f.ask.Hint)
	}
	if len(hints) > 0 {
		text += "\n" + strings.Join(hints, ", ")
	}
	shown := plain(forms.Shown(f.ask, f.ask.Preset), maxNote)
	switch {
	case shown != "":
		text += "\n\n" + say.HowToSkipDefault.With(shown)
	case f.canBeSkipped():
		text += "\n\n" + say.HowToSkip
	}
	if !f.hasChoices() {
		text += "\n\n" + say.HowToDecline
	}
	return text
}

// hasChoices reports whether f is asked for with buttons. A text or a number has none: where choices
// are numbered, a number would be one of them.
func (f field) hasChoices() bool {
	return f.ask.Kind == chat.FieldYesNo || f.ask.Kind == chat.FieldChoice
}

// choices returns the buttons for f.
func (f field) choices(say *texts.Elicit) (all []string) {
	if !f.hasChoices() {
		return nil
	}
	for _, o := range f.ask.Options {
		all = append(all, o.Label)
	}
	if f.canBeSkipped() {
		all = append(all, say.Skip)
	}
	return append(all, say.Decline)
}

// canBeSkipped reports whether a person need not answer: f is left out then, or has its default.
func (f field) canBeSkipped() bool { return !f.ask.Required || f.ask.Preset != nil }
