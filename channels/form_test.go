package channels_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"parley/channels/channeltest"
	"parley/chat"
)

// aForm asks the user 2 alone for a number and a colour.
func aForm() chat.Reply {
	least := 1.0
	r := reply("ask:1", "How many?")
	r.Ask = &chat.Question{ID: "q1", Choices: []string{"Send", "Decline"}, Whom: "2", Alone: true, Fields: []chat.Field{
		{Kind: chat.FieldInteger, Label: "Number", Required: true, Min: &least},
		{Kind: chat.FieldChoice, Label: "Colour", Options: []chat.Option{{Value: "r", Label: "Red"}, {Value: "b", Label: "Blue"}}},
		{Kind: chat.FieldText, Label: "Why"},
	}}
	return r
}

// fill is the press of the first button by that person, with values.
func fill(id string, values ...[]string) chat.Message {
	m := press(id, "q1", 0)
	m.Answer.Values = values
	return m
}

// R-S8: the values of a form count once, if they are right and from the person who was asked. What is wrong is
// told, and the form stays open, also over a kill. In the end its message shows what was sent.
func TestForm(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(channeltest.Forms)
		admit(t, h)
		a := ask(t, h, aForm())
		wrong := func(msg chat.Message, want ...string) {
			t.Helper()
			said, isWrong := errors.AsType[*chat.WrongValues](m.fake.Say(t.Context(), msg))
			if !isWrong || !reflect.DeepEqual(said.Problems, want) || a.answered() {
				t.Errorf("%v: %+v, want %q", msg.Answer.Values, said, want)
			}
		}
		wrong(fill("2"), "Please fill this in.", "", "")
		wrong(fill("2", []string{"0"}, []string{"Red"}, nil), "This must be at least 1.", "That is none of the choices.", "")
		say(t, m, fill("1", []string{"7"}, nil, nil)) // an owner
		say(t, m, by("2", "Send"))                    // words have no values
		if a.answered() {
			t.Fatalf("answered: %+v", a)
		}
		h.stop()
		h = m.start(channeltest.Forms)
		admit(t, h)
		wrong(fill("2", []string{"many"}, nil, nil), "This must be a whole number.", "", "") // before anybody asks again
		right := fill("2", []string{" 7 "}, []string{"b"}, []string{"a `tick`\nand more"})
		say(t, m, right)
		say(t, m, fill("2", []string{"8"}, nil, nil)) // too late
		a = ask(t, h, aForm())
		if !a.answered() || a.err != nil || a.Index != 0 || !reflect.DeepEqual(a.Values, right.Answer.Values) {
			t.Errorf("answered: %+v", a)
		}
		m.shows("How many?\n\n✓ **Send** — Anna\n\n- `Number`: `7`\n- `Colour`: `Blue`\n- `Why`: `a 'tick' and more`")
		h.stop()
	})
}

// A form can be declined without values.
func TestFormDeclined(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(channeltest.Forms)
		admit(t, h)
		a := ask(t, h, aForm())
		no := press("2", "q1", 1)
		no.Answer.Values = [][]string{{"7"}}
		say(t, m, no)
		if !a.answered() || a.Index != 1 || a.Values != nil {
			t.Errorf("answered: %+v", a)
		}
		h.stop()
	})
}

// Where no forms are shown, or none so long, nobody is asked for values that they could not send.
func TestNoForms(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(buttons)
		admit(t, h)
		if a := ask(t, h, aForm()); !a.answered() || a.err == nil || !strings.Contains(a.err.Error(), "shows no form of 3 fields") {
			t.Errorf("%+v", a)
		}
		h.stop()
		h = m.start(channeltest.Forms)
		at := reply("", "").To
		if qs := h.Questions(); !qs.ShowsForm(at, 3) || qs.ShowsForm(at, 4) || !qs.ShowsForm(at, 0) || qs.ShowsForm(chat.Address{Channel: "elsewhere"}, 1) {
			t.Error("it is not known who shows forms")
		}
		h.stop()
	})
}
