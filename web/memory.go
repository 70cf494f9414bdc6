package web

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/chat"
	"parley/memory"
	"parley/store"
	"parley/web/layout"
)

// personMemory lists the changes of a person's long-term memory.
type personMemory struct {
	Who     chat.Person     `json:"who"`
	Changes []memory.Change `json:"changes"` // newest first; in the list of people only the last
}

// memories are all people who have a memory.
type memories struct {
	People []personMemory `json:"people"`
}

// changed is one change with its unified diff.
type changed struct {
	memory.Change
	Diff string `json:"diff"`
}

// lines returns the lines of the diff, each in the colour of its kind.
func (c changed) lines() (all g.Group) {
	kinds := map[string]string{"+": "add", "-": "cut", "@": "at"}
	for name := range c.Files {
		kinds["--- "+name+"\n"] = "at"
		kinds["+++ "+name+"\n"] = "at"
	}
	for line := range strings.Lines(c.Diff) {
		all = append(all, layout.Coloured(cmp.Or(kinds[line], kinds[line[:1]], "same"), line))
	}
	return all
}

func (a *admin) memory(r *http.Request) (memories, error) {
	people, err := a.cfg.Gateway.Notes.People(r.Context())
	if err != nil {
		return memories{}, err
	}
	all := make([]personMemory, len(people))
	for i, who := range people {
		if all[i], err = a.personMemory(r.Context(), who, 1); err != nil {
			return memories{}, err
		}
	}
	return memories{all}, nil
}

// changesPath returns the address of the page of changes of that person's memory.
func changesPath(who chat.Person) string { return "/owner/memory/changes?" + aboutPerson(who) }

// aboutPerson returns the query that personOf reads.
func aboutPerson(who chat.Person) string { return "who=" + url.QueryEscape(string(who)) }

func (a *admin) personMemory(ctx context.Context, who chat.Person, most int) (personMemory, error) {
	all, err := a.cfg.Gateway.Notes.Versions.Log(ctx, who, most)
	return personMemory{who, append([]memory.Change{}, all...)}, err
}

// personOf returns the person that r names, or the owner if it names none. The error
// is store.ErrNotFound if the person has no memory.
func (a *admin) personOf(r *http.Request) (chat.Person, error) {
	who := cmp.Or(chat.Person(r.URL.Query().Get("who")), chat.TheOwner)
	people, err := a.cfg.Gateway.Notes.People(r.Context())
	if err != nil {
		return who, err
	}
	if !slices.Contains(people, who) {
		return who, store.ErrNotFound
	}
	return who, nil
}

const maxChanges = 200 // of a person's memory; no more are kept

func (a *admin) changes(r *http.Request) (personMemory, error) {
	who, err := a.personOf(r)
	if err != nil {
		return personMemory{}, err
	}
	return a.personMemory(r.Context(), who, maxChanges)
}

func (p pages) changes(m personMemory) g.Group {
	rows := g.Map(m.Changes, p.changeRow)
	columns := []string{"Change", "Time", "By", "Files", "Why"}
	return g.Group{
		h.P(h.Class("text"),
			g.Text("Of "),
			h.B(g.Text(string(m.Who))),
			g.Text(", the latest first. "),
			h.A(h.Href("/owner/memory"), g.Text("All people")),
		),
		layout.LabelledTable("Changes, the latest first", columns, "There are none.", rows),
	}
}

// untrustedNote marks changes that contain untrusted content.
var untrustedNote = g.Group{g.Text(" "), h.Small(g.Text("(contains untrusted content)"))}

func (p pages) changeRow(c memory.Change) g.Node {
	if c.By == "" {
		return h.Tr(
			layout.RowHead(g.Text(c.ID)),
			h.Td(h.ColSpan("4"), h.Class("bad"), g.Text("damaged on disk")),
		)
	}
	at := layout.Path("owner", "memory", "changes", c.ID) + "?" + aboutPerson(c.Who)
	files := strings.Join(slices.Sorted(maps.Keys(c.Files)), " ")
	return h.Tr(
		layout.RowHead(h.A(h.Href(at), g.Text(c.ID))),
		h.Td(h.Class("times"), g.Text(p.formatTime(c.Time))),
		layout.Cell(c.By),
		layout.Cell(files),
		layout.TextCell(c.Why, g.If(c.Tainted, untrustedNote)),
	)
}

func (a *admin) changed(r *http.Request) (changed, error) {
	who, err := a.personOf(r)
	if err != nil {
		return changed{}, err
	}
	diff, c, err := a.cfg.Gateway.Notes.Versions.Show(r.Context(), who, r.PathValue("id"))
	return changed{c, diff}, err
}

func (p pages) changed(c changed) g.Group {
	made := ", " + p.formatTime(c.Time) + ", by " + c.By
	if c.Tainted {
		made += "; contains untrusted content"
	}
	page := g.Group{
		h.P(h.Class("text"),
			g.Text("Change "+c.ID+" of "),
			h.A(h.Href(changesPath(c.Who)), g.Text(string(c.Who))),
			g.Text(made),
		),
		g.If(c.Why != "", h.P(h.Class("text"), g.Text(c.Why))),
	}
	if c.Diff == "" {
		return append(page, h.P(g.Text("It changed no file.")))
	}
	change := layout.Path("api", "memory", "changes", c.ID)
	if len(c.Asks) > 0 {
		page = append(page, h.P(
			g.Text("It proposes a change, which is made when you accept it: "),
			layout.PostButton(change+"/accept?"+aboutPerson(c.Who), "Accept the proposal", ""),
		))
	}
	restore := change + "/restore?" + aboutPerson(c.Who)
	return append(page,
		h.Pre(h.Class("diff"), h.TabIndex("0"), h.Aria("label", "What it changed"), c.lines()),
		h.P(h.Button(
			h.Data("post", restore),
			layout.Confirmation("Undo change "+c.ID+"? What came after it stays."),
			h.Data("then", changesPath(c.Who)),
			g.Text("Undo"),
		)),
	)
}

func (a *admin) restore(_ http.ResponseWriter, r *http.Request) (any, string, error) {
	who, err := a.personOf(r)
	if err != nil {
		return nil, "", err
	}
	c, err := a.cfg.Gateway.Notes.Versions.Restore(r.Context(), who, r.PathValue("id"), "")
	return c, c.By + ": " + string(who), err
}
