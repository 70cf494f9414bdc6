package forms_test

import (
	"reflect"
	"strings"
	"testing"

	"parley/chat"
	"parley/forms"
	"parley/texts"
)

func is[T any](v T) *T { return &v }

var colours = []chat.Option{{Value: "r", Label: "Red"}, {Value: "g", Label: "r"}, {Value: "", Label: "None"}}

// Value by value what a form accepts, and what is said of the others.
func TestCheck(t *testing.T) {
	t.Parallel()
	yesNo := []chat.Option{{Value: "true", Label: "Yes"}, {Value: "false", Label: "No"}}
	text := chat.Field{Kind: chat.FieldText, Required: true, MinLength: is(2), MaxLength: is(4)}
	number := chat.Field{Kind: chat.FieldNumber, Min: is(0.5), Max: is(1e6)}
	several := chat.Field{Kind: chat.FieldChoices, Options: colours, MinLength: is(1), MaxLength: is(2), Required: true}
	optional := chat.Field{Kind: chat.FieldChoices, Options: colours}
	const separators = "Please write this without thousands separators, such as 1000."
	preset := chat.Field{Kind: chat.FieldChoices, Options: colours, Preset: []string{"r"}}
	for _, c := range []struct {
		field   chat.Field
		values  []string
		value   any
		problem string
	}{
		{text, nil, nil, "Please fill this in."},
		{text, []string{" "}, nil, "Please fill this in."},
		{text, []string{"é"}, nil, "This must be at least 2 characters long."},
		{text, []string{"ééééé"}, nil, "This must be at most 4 characters long."},
		{text, []string{" éé "}, "éé", ""},
		{chat.Field{Kind: chat.FieldText}, nil, nil, ""},
		{chat.Field{Kind: chat.FieldText}, []string{strings.Repeat("x", 4001)}, nil, "This must be at most 4000 characters long."},
		{chat.Field{Kind: chat.FieldText, Pattern: "^a"}, []string{"b"}, nil, "This does not have the right form."},
		{chat.Field{Kind: chat.FieldText, Pattern: "(?=a)"}, []string{"b"}, "b", ""},
		{chat.Field{Kind: chat.FieldText, Format: "email"}, []string{"Ada <a@example.com>"}, nil, "This must be an e-mail address such as name@example.com."},
		{chat.Field{Kind: chat.FieldText, Format: "uri"}, []string{"example.com"}, nil, "This must be an address such as https://example.com."},
		{chat.Field{Kind: chat.FieldText, Format: "date"}, []string{"2026-02-30"}, nil, "This must be a date such as 2026-11-23."},
		{chat.Field{Kind: chat.FieldText, Format: "date-time"}, []string{"2026-11-23T10:00:00+01:00"}, "2026-11-23T10:00:00+01:00", ""},
		{chat.Field{Kind: chat.FieldText, Format: "date-time"}, []string{"2026-11-23"}, nil, "This must be a date and time such as 2026-11-23T18:30:00Z."},
		{number, []string{"2,5"}, 2.5, ""},
		{number, []string{"0.4"}, nil, "This must be at least 0.5."},
		{number, []string{"1000001"}, nil, "This must be at most 1000000."},
		{number, []string{"NaN"}, nil, "This must be a number."},
		{chat.Field{Kind: chat.FieldInteger}, []string{"2.5"}, nil, "This must be a whole number."},
		{chat.Field{Kind: chat.FieldInteger}, []string{"1e300"}, nil, "This must be a whole number."},
		{chat.Field{Kind: chat.FieldInteger}, []string{"-7"}, int64(-7), ""},
		{chat.Field{Kind: chat.FieldInteger}, []string{"1,000"}, nil, separators},
		{chat.Field{Kind: chat.FieldInteger}, []string{"1.000"}, nil, separators},
		{number, []string{"-12,000,000"}, nil, separators},
		{number, []string{"0,750"}, 0.75, ""},
		{number, []string{"1.250"}, 1.25, ""},
		{chat.Field{Kind: chat.FieldYesNo, Options: yesNo}, []string{"false"}, false, ""},
		{chat.Field{Kind: chat.FieldYesNo, Options: yesNo}, nil, nil, ""},
		{chat.Field{Kind: chat.FieldYesNo, Options: yesNo, Required: true}, nil, nil, "Please fill this in."},
		{chat.Field{Kind: chat.FieldYesNo, Options: yesNo}, []string{"perhaps"}, nil, "That is none of the choices."},
		{chat.Field{Kind: chat.FieldChoice, Options: colours}, []string{"r"}, "r", ""},
		{chat.Field{Kind: chat.FieldChoice, Options: colours}, []string{""}, "", ""},
		{chat.Field{Kind: chat.FieldChoice, Options: colours}, []string{"Red"}, nil, "That is none of the choices."},
		{chat.Field{Kind: chat.FieldChoice, Options: colours}, []string{"r", "g"}, nil, "That is none of the choices."},
		{several, nil, nil, "This must be at least 1 of the choices."},
		{several, []string{"r", "g", ""}, nil, "This must be at most 2 of the choices."},
		{several, []string{"r", "r", "g"}, []string{"r", "g"}, ""},
		{several, []string{"x"}, nil, "That is none of the choices."},
		{optional, nil, nil, ""},
		{preset, nil, []string{}, ""},
	} {
		value, problem := forms.Check(&texts.English().Channels.Form, c.field, c.values)
		if !reflect.DeepEqual(value, c.value) || problem != c.problem {
			t.Errorf("%+v of %+v is %#v %q, want %#v %q", c.values, c.field, value, problem, c.value, c.problem)
		}
	}
}

// A person names options by their labels first, and several by numbers, too. A form names them by their values.
func TestWords(t *testing.T) {
	t.Parallel()
	choice := chat.Field{Kind: chat.FieldChoice, Options: colours}
	several := chat.Field{Kind: chat.FieldChoices, Options: colours}
	for words, want := range map[string][]string{"red": {"r"}, "r": {"g"}, " G ": {"g"}, "1": {"1"}} {
		if got := forms.Words(choice, words); !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %q, not %q", words, got, want)
		}
	}
	if got := forms.Words(several, "1, 2., none,,9"); !reflect.DeepEqual(got, []string{"r", "g", "", "9"}) {
		t.Errorf("several are %q", got)
	}
	if got := forms.Shown(several, []string{"r", "g", "x"}); got != "Red, r, x" {
		t.Errorf("they are shown as %q", got)
	}
}
