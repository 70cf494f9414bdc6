package cards

import (
	"slices"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/chat"
	"parley/forms"
)

// maxLineLength is how many characters a text may have that is written in a single line.
const maxLineLength = 100

// A formField is a field of a form on the page. Parts of it have an ID that begins with id.
type formField struct {
	chat.Field
	id string
}

// node returns the field with its label, what is said of it, and room for what is wrong with it.
func (f formField) node() g.Node {
	label := g.Group{
		g.Text(f.Label),
		g.If(!f.Required, h.Small(g.Text(" (optional)"))),
	}
	note := h.P(h.Class("note"), h.ID(f.id+"-note"), g.Text(f.Note),
		g.If(f.Note != "" && f.Hint != "", h.Br()), g.If(f.Hint != "", h.Span(h.Class("hint"), g.Text(f.Hint))))
	if f.Note+f.Hint == "" {
		note = nil
	}
	wrong := h.P(h.Class("wrong bad"), h.ID(f.id+"-wrong"), g.Attr("hidden"))
	switch f.Kind {
	case chat.FieldYesNo, chat.FieldChoices:
		role := "group"
		if f.Kind == chat.FieldYesNo {
			role = "radiogroup"
		}
		return h.FieldSet(h.Class("field"), h.Role(role), h.Data("field", ""), f.description(),
			h.Legend(label), note, h.Div(h.Class("options"), f.options()), wrong)
	}
	return h.Div(h.Class("field"), h.Data("field", ""),
		h.Label(h.For(f.id), label), note, f.control(), wrong)
}

// description says which texts belong to the field: its note, and what is wrong.
func (f formField) description() g.Node {
	ids := f.id + "-wrong"
	if f.Note+f.Hint != "" {
		ids = f.id + "-note " + ids
	}
	return h.Aria("describedby", ids)
}

// options returns the options of the field as radio buttons or check boxes.
func (f formField) options() (all g.Group) {
	kind := "checkbox"
	if f.Kind == chat.FieldYesNo {
		kind = "radio"
	}
	add := func(value, label string, isChosen bool, more ...g.Node) {
		all = append(all, h.Label(h.Class("option"),
			h.Input(h.Type(kind), h.Name(f.id), h.Value(value), g.If(isChosen, h.Checked()), g.Group(more)),
			h.Span(g.Text(label))))
	}
	for _, o := range f.Options {
		add(o.Value, o.Label, slices.Contains(f.Preset, o.Value))
	}
	if f.Kind == chat.FieldYesNo && !f.Required {
		add("", "No answer", f.Preset == nil, h.Data("none", ""))
	}
	return all
}

// control returns the one control of the field.
func (f formField) control() g.Node {
	common := g.Group{h.ID(f.id), h.Name(f.id), f.description(), g.If(f.Required, h.Required()), h.AutoComplete("off")}
	value := forms.Shown(f.Field, f.Preset)
	if f.Kind == chat.FieldChoice {
		none := "No answer"
		if f.Required {
			none = "Please choose"
		}
		list := g.Group{h.Option(h.Value(""), h.Data("none", ""), g.Text(none))}
		for _, o := range f.Options {
			isChosen := slices.Contains(f.Preset, o.Value)
			list = append(list, h.Option(h.Value(o.Value), g.If(isChosen, h.Selected()), g.Text(o.Label)))
		}
		return h.Select(common, list)
	}
	if f.isLong() {
		return h.Textarea(common, h.Rows("1"), g.Text(value))
	}
	if f.Format == chat.FormatDateTime { // the script turns a moment into a local time, and back
		return h.Input(common, h.Type("datetime-local"), g.If(value != "", h.Data("moment", value)))
	}
	return h.Input(common, f.inputType(), h.Value(value))
}

// isLong reports whether the field is for a text that may have several lines.
func (f formField) isLong() bool {
	return f.Kind == chat.FieldText && f.Format == "" && (f.MaxLength == nil || *f.MaxLength > maxLineLength)
}

// inputType says what is to be typed, for the keyboard or the calendar that browsers show.
func (f formField) inputType() g.Node {
	limit := func(name string, n *float64) g.Node {
		return g.Iff(n != nil, func() g.Node { return g.Attr(name, forms.Number(*n)) })
	}
	switch {
	case f.Kind == chat.FieldInteger:
		return g.Group{h.Type("number"), h.Step("1"), limit("min", f.Min), limit("max", f.Max)}
	case f.Kind == chat.FieldNumber:
		return g.Group{h.Type("number"), h.Step("any"), limit("min", f.Min), limit("max", f.Max)}
	case f.Format == chat.FormatEmail:
		return h.Type("email")
	case f.Format == chat.FormatAddress:
		return h.Type("url")
	case f.Format == chat.FormatDate:
		return h.Type("date")
	}
	return h.Type("text")
}
