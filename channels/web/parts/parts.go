// Package parts has the parts of the chat page that are the same in every conversation.
package parts

import (
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/channels/greeting"
	"parley/response"
)

// Icon returns one of the symbols of the page.
func Icon(name string) g.Node {
	return h.SVG(h.Aria("hidden", "true"), g.El("use", h.Href("#i-"+name)))
}

// IconButton returns a button that shows an icon and that screen readers call label.
func IconButton(id, iconName, label string, attributes ...g.Node) g.Node {
	return h.Button(h.Type("button"), h.Class("plain"), h.ID(id), h.Aria("label", label),
		g.Group(attributes), Icon(iconName))
}

// Suggestions returns buttons that each say something to the agent.
func Suggestions() g.Node {
	return h.Div(h.ID("try"), h.Role("group"), h.Aria("label", "Things to try"),
		g.Map(greeting.Suggestions(), func(text string) g.Node {
			return h.Button(h.Type("button"), g.Text(text))
		}))
}

// ThemeSwitch returns the choice of colours. The script of the page keeps what is chosen in the browser.
func ThemeSwitch() g.Node {
	option := func(value, name, sign string) g.Node {
		return h.Label(h.Title(name),
			h.Input(h.Type("radio"), h.Name("theme"), h.Value(value), g.If(value == "", h.Checked())),
			Icon(sign), h.Span(h.Class("unseen"), g.Text(name)))
	}
	return h.FieldSet(h.ID("theme"),
		h.Legend(g.Text("Colours")),
		option("", "As the system has them", "auto"),
		option("light", "Light", "sun"),
		option("dark", "Dark", "moon"),
	)
}

// DeleteDialog returns the question before a conversation is deleted.
func DeleteDialog() g.Node {
	return h.Dialog(h.ID("sure"), h.Aria("labelledby", "asked"),
		response.ScriptForm(
			h.H2(h.ID("asked"), g.Text("Delete this conversation?")),
			h.P(g.Text("All its messages are deleted. This cannot be undone.")),
			h.Div(h.Class("bar"),
				h.Button(h.Value("no"), h.AutoFocus(), g.Text("Keep it")),
				h.Button(h.Value("yes"), h.Class("bad"), g.Text("Delete")),
			),
		),
	)
}
