package configpages

import (
	"net/http"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/chat"
	"parley/response"
	"parley/web/layout"
)

// page shows the file, or an earlier text of it, to edit.
func (p *Pages) page(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	s, err := p.state()
	if err != nil {
		return err
	}
	text := s.Text.Text
	notes := g.Group{}
	if !s.Found {
		text = p.First
		notes = append(notes, note("There is no config file yet: Parley runs with defaults. This is what a first one "+
			"says. Saving it creates "+s.File+"."))
	}
	earlier := r.URL.Query().Get("version")
	if earlier != "" {
		if text, err = p.File.Version(earlier); err != nil {
			return err
		}
		notes = append(notes, note("This is an earlier text. Review it, and save it to have it back. Secrets were not "+
			"kept with it: those that the file still has come back, and the review says where one must be "+
			"written again."))
	}
	if s.Locked != "" {
		notes = append(notes, h.Div(h.Class("alert"), h.P(g.Text("It cannot be changed here: "+s.Locked+"."))))
	}
	if s.Secrets > 0 {
		notes = append(notes, note("The file has secrets in it. They are shown as •••• with their last characters: "+
			"one that you leave as it is stays, and one that you write over is replaced. Better write ${NAME} "+
			"there, and give Parley the value in its environment."))
	}
	return layout.Frame{
		Path:    pagePath,
		Title:   "Config",
		Lead:    "The file that says how Parley runs, with the checks of a start before anything is saved.",
		Assets:  []string{"config.css", "config.js"},
		Content: g.Group{notes, p.editor(s, text, earlier != ""), p.history(s.Versions)},
	}.Write(w)
}

func note(text string) g.Node { return h.Div(h.Class("card note"), h.P(g.Text(text))) }

// editor shows text to edit, and has places for what config.js shows.
func (p *Pages) editor(s state, text string, changed bool) g.Node {
	return response.ScriptForm(h.ID("editor"), h.Data("base", s.Sum), g.If(changed, h.Data("changed", "yes")),
		h.Label(h.For("text"), g.Text(s.File)),
		h.Div(h.Class("sheet-of-text"),
			h.Pre(h.ID("numbers"), h.Aria("hidden", "true")),
			h.Textarea(h.ID("text"), h.Class("code"), g.Attr("wrap", "off"), g.Attr("spellcheck", "false"),
				h.AutoComplete("off"), g.Attr("autocapitalize", "off"), g.If(s.Locked != "", h.ReadOnly()),
				g.Text(text)),
		),
		h.Div(h.Class("actions"),
			h.Button(h.Class("main"), h.ID("review"), g.If(s.Locked != "", h.Disabled()), g.Text("Review changes")),
			h.Small(h.ID("cursor"), h.Aria("live", "off")),
		),
		h.Section(h.ID("outcome"), h.Class("card"), h.Hidden(""), h.TabIndex("-1"), h.Aria("labelledby", "verdict"),
			h.H2(h.ID("verdict")),
			h.Ul(h.ID("faults"), h.Class("list"), h.Aria("label", "What is wrong")),
			h.Div(h.ID("effects")),
			h.Pre(h.ID("diff"), h.Class("diff code"), h.TabIndex("0"), h.Aria("label", "What would change")),
			h.Div(h.Class("actions"), h.Button(h.Type("button"), h.ID("save"), h.Class("main"), g.Text("Save"))),
		),
	)
}

// history lists the earlier texts.
func (p *Pages) history(all []Version) g.Node {
	if len(all) == 0 {
		return nil
	}
	rows := g.Map(all, func(v Version) g.Node {
		return h.Li(h.A(h.Href(pagePath+"?version="+v.ID), g.Text("As it was until "+p.formatTime(v.Time))))
	})
	return h.Section(h.Class("card"),
		h.H2(g.Text("Earlier texts")),
		h.P(g.Text("What was replaced on this page. Open one to see how it differs, and to have it back.")),
		h.Ul(h.Class("versions"), rows),
	)
}

// formatTime returns t for people.
func (p *Pages) formatTime(t time.Time) string {
	zone := p.Zone
	if zone == nil {
		zone = time.Local
	}
	return t.In(zone).Format("2006-01-02 15:04:05")
}
