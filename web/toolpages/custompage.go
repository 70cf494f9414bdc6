package toolpages

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/chat"
	"parley/response"
	"parley/tools/custom"
	"parley/web/layout"
)

const customTitle = "Custom tools"

// page serves one of the pages of custom tools.
func page(w http.ResponseWriter, title string, content g.Group) error {
	return response.Page(w, http.StatusOK, layout.Page("/admin/custom-tools", title, content))
}

// link returns the address of a page of custom tools.
func link(name, id string, more ...string) string {
	query := url.Values{"id": {id}}
	for i := 0; i+1 < len(more); i += 2 {
		query.Set(more[i], more[i+1])
	}
	return "/admin/custom-tools/" + name + "?" + query.Encode()
}

// customPage lists the custom tools, and why others are missing.
func (a *Admin) customPage(w http.ResponseWriter, _ *http.Request, _ chat.Sender) error {
	all := a.Custom.List()
	deleted, err := a.Custom.Deleted()
	if err != nil {
		return err
	}
	rows := g.Map(all.Tools, func(d custom.Definition) g.Node {
		state := layout.Coloured("good", "offered")
		if d.InvalidID {
			state = layout.Coloured("bad", d.ValidationError)
		} else if len(d.Warnings) > 0 {
			state = g.Text(strings.Join(d.Warnings, "; "))
		}
		name := cmp.Or(d.ID, d.Folder)
		return h.Tr(
			layout.RowHead(icon(d.Icon), h.A(h.Href(link("edit", name)), g.Text(name))),
			layout.TextCell(layout.Excerpt(d.Description),
				h.Br(), h.Small(g.Text("Group "+d.Category+", "), state)),
		)
	})
	columns := []string{"Tool", "Description"}
	return page(w, customTitle, g.Group{
		h.P(g.Text("Small Python programs that the agent can call. Only owners see and call them.")),
		h.P(
			h.A(h.Class("button"), h.Href("/admin/custom-tools/edit"), g.Text("New tool")),
			g.Text(" "),
			layout.PostButton("/api/admin/custom-tools/reload", "Reload", ""),
		),
		layout.LabelledTable(customTitle, columns, "There are none yet.", rows),
		faults(all.Faults),
		removed(deleted),
	})
}

func icon(name string) g.Node {
	if at := iconPath(name); at != "" {
		return h.Img(h.Class("icon"), h.Src(at), h.Alt(""))
	}
	return nil
}

// faults lists the folders that hold no tool that can be used, with the reasons.
func faults(all []custom.Fault) g.Node {
	if len(all) == 0 {
		return nil
	}
	rows := g.Map(all, func(f custom.Fault) g.Node {
		return h.Tr(
			layout.RowHead(h.A(h.Href(link("edit", f.Folder)), g.Text(f.Folder))),
			layout.TextCell("", layout.Coloured("bad", f.Reason), g.If(f.File != "", h.Small(g.Text(" ("+f.File+")")))),
		)
	})
	return g.Group{
		layout.Heading("faults", "Not offered"),
		layout.Table("faults", []string{"Folder", "Reason"}, "", rows),
	}
}

// removed lists the tools that were deleted and can be restored.
func removed(ids []string) g.Node {
	if len(ids) == 0 {
		return nil
	}
	rows := g.Map(ids, func(id string) g.Node {
		return h.Tr(layout.RowHead(h.A(h.Href(link("edit", id)), g.Text(id))))
	})
	return g.Group{layout.Heading("deleted", "Deleted"), layout.Table("deleted", []string{"Tool"}, "", rows)}
}

// editPage serves the editor of the tool that the query names, or of a new one.
func (a *Admin) editPage(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	id := r.URL.Query().Get("id")
	if id == "" {
		return page(w, "New tool", a.editor(newTool()))
	}
	versions, err := a.Custom.Versions(id)
	if err != nil {
		return explain(err)
	}
	d, err := a.Custom.Get(id)
	if err != nil {
		return a.repairPage(w, id, versions, err)
	}
	return page(w, id, append(a.editor(d), a.versionTable(id, versions)))
}

// repairPage serves the page of a tool that, because of why, cannot be edited as
// others: it is broken or was deleted.
func (a *Admin) repairPage(w http.ResponseWriter, id string, versions []custom.Version, why error) error {
	var content g.Group
	for _, f := range a.Custom.List().Faults {
		if f.Folder == id {
			content = append(content, h.P(h.Class("bad"), g.Text(cmp.Or(f.File, "The folder")+": "+f.Reason)))
		}
	}
	if len(content) == 0 && len(versions) == 0 {
		return explain(why)
	}
	if len(content) > 0 {
		content = append(content, a.rawFiles(id)...)
	} else {
		content = g.Group{h.P(g.Text("This tool was deleted. An earlier version can be restored."))}
	}
	return page(w, id, append(content, a.versionTable(id, versions)))
}

// newTool returns what the editor of a new tool begins with.
func newTool() custom.Definition {
	return custom.Definition{
		Parameters: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`),
		Category:   "custom",
		Timeout:    30,
		Code:       "print(len({text}))\n",
	}
}

// editor returns the form of a tool, and the one that tests what is in it.
func (a *Admin) editor(d custom.Definition) g.Group {
	isNew := d.Revision == ""
	problems := g.Map(d.Warnings, func(text string) g.Node { return h.Li(g.Text(text)) })
	if d.InvalidID {
		problems = append(problems, h.Li(g.Text(d.ValidationError)))
	}
	idField := input("id", d.ID, h.Required(), h.MaxLength("64"), g.Attr("autocapitalize", "off"),
		g.If(!isNew, h.ReadOnly()))
	return g.Group{
		h.P(h.A(h.Href("/admin/custom-tools"), g.Text("All custom tools"))),
		g.If(len(problems) > 0, h.Ul(h.Class("bad"), problems)),
		response.ScriptForm(h.ID("editor"), h.Class("sheet"), h.Data("post", "/admin/custom-tools/edit"),
			h.Input(h.Type("hidden"), h.Name("revision"), h.Value(d.Revision)),
			field("id", "ID", idField, "Letters, digits, _ and -; the model calls the tool by it."),
			field("description", "Description for the model", area("description", 2, d.Description), ""),
			field("parameters", "Parameters", area("parameters", 4, pretty(d.Parameters), h.Class("code")),
				"A JSON Schema of type object."),
			h.Div(h.Class("row"),
				field("category", "Group", input("category", d.Category), ""),
				field("icon", "Icon", iconChoice(d.Icon), ""),
				field("timeout", "Timeout, seconds", input("timeout", strconv.FormatFloat(d.Timeout, 'g', -1, 64),
					h.Type("number"), h.Min("0.1"), h.Max("600"), h.Step("any")), ""),
			),
			field("workspace", "Workspace", workspaceChoice(d.Workspace),
				"What its program sees of the agent's files."),
			checkbox("network", "needs the network", d.Network),
			checkbox("read_only", "changes nothing, so that results may be reused", d.ReadOnly),
			field("execution_code", "Python code", area("execution_code", 8, d.Code, h.Class("code")),
				"{name} stands for an argument. Braces of Python are doubled: {{ and }}."),
			field("return", "What becomes of the output", area("return", 3, pretty(d.Return), h.Class("code")),
				`JSON such as {"truncate": 200, "template": "Result: {output}"}; empty for none.`),
			field("meta", "Notes", area("meta", 3, pretty(d.Meta), h.Class("code")),
				`JSON such as {"owner": "Ada"}; empty for none.`),
			h.P(saveButtons(), g.If(!isNew, deleteTool(d.ID))),
		),
		trial(),
	}
}

func deleteTool(id string) g.Node {
	return h.Button(h.Type("button"), h.Data("delete", "/api/admin/custom-tools?id="+url.QueryEscape(id)),
		h.Data("then", "/admin/custom-tools"), layout.Confirmation("Delete "+id+"?"), g.Text("Delete"))
}

// saveButtons returns the button that saves a form, and one that is shown when
// somebody else saved first.
func saveButtons() g.Node {
	return g.Group{
		h.Button(h.Class("main"), g.Text("Save")),
		g.Text(" "),
		h.Button(h.Name("overwrite"), h.Value("yes"), h.Hidden(""), h.Data("conflict", ""), g.Text("Save anyway")),
		g.Text(" "),
	}
}

func input(id, value string, attributes ...g.Node) g.Node {
	return h.Input(h.ID(id), h.Name(id), h.Value(value), h.AutoComplete("off"), g.Group(attributes))
}

// field returns a labelled field of the form, with a hint.
func field(id, label string, input g.Node, hint string) g.Node {
	return h.Div(h.Class("field"), h.Label(h.For(id), g.Text(label)), input, g.If(hint != "", h.Small(g.Text(hint))))
}

// area returns a field for text, of as many rows as it needs, and at least so many.
func area(id string, rows int, text string, attributes ...g.Node) g.Node {
	rows = max(rows, min(strings.Count(text, "\n")+1, 30))
	return h.Textarea(h.ID(id), h.Name(id), h.Rows(strconv.Itoa(rows)), g.Attr("spellcheck", "false"),
		h.AutoComplete("off"), g.Group(attributes), g.Text("\n"+text))
}

func iconChoice(now string) g.Node {
	options := append([]string{""}, iconNames()...)
	return h.Select(h.ID("icon"), h.Name("icon"),
		g.If(now != "" && iconPath(now) == "", h.Option(h.Value(now), h.Selected(), g.Text(now))),
		g.Map(options, func(name string) g.Node {
			label := cmp.Or(strings.TrimSuffix(name, ".svg"), "none")
			return h.Option(h.Value(name), g.If(name == now, h.Selected()), g.Text(label))
		}))
}

func workspaceChoice(now string) g.Node {
	option := func(value, label string) g.Node {
		return h.Option(h.Value(value), g.If(value == now, h.Selected()), g.Text(label))
	}
	return h.Select(h.ID("workspace"), h.Name("workspace"),
		option(custom.WorkspaceNone, "nothing"),
		option(custom.WorkspaceRead, "reads it, starts in work"),
		option(custom.WorkspaceWrite, "reads it, starts in work and changes that"),
	)
}

// pretty returns JSON for an editor; null is "".
func pretty(raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return string(raw)
	}
	return b.String()
}

// trial returns the form that runs what is in the editor, and where the result is
// shown.
func trial() g.Node {
	out := func(key, label string) g.Node {
		return h.Div(h.Dt(g.Text(label)), h.Dd(h.Data("out", key)))
	}
	text := func(key, label string) g.Node {
		return h.Div(h.H3(g.Text(label)), h.Pre(h.Data("out", key), h.TabIndex("0"), h.Aria("label", label)))
	}
	return g.Group{
		layout.Heading("test", "Test"),
		response.ScriptForm(h.Class("sheet"), h.Data("post", "/admin/custom-tools/test"), h.Data("with", "editor"),
			h.Data("show", "outcome"),
			field("arguments", "Arguments", area("arguments", 2, "{}", h.Class("code")),
				"JSON, as the model would send it."),
			h.P(h.Button(g.Text("Run")), g.Text(" "), h.Small(g.Text("It runs what is in the editor, saved or not."))),
		),
		h.Section(h.ID("outcome"), h.Aria("label", "Result of the test"), h.Hidden(""),
			h.Dl(
				out("status", "Status"),
				out("return_code", "Return code"),
				out("elapsed_ms", "Time, ms"),
				out("truncated", "Cut"),
			),
			text("output", "Output"),
			text("text", "What the model reads"),
			text("arguments", "Arguments as they were used"),
			text("code_rendered", "Code as it was run"),
		),
	}
}

// rawFiles returns an editor for each file of a broken tool.
func (a *Admin) rawFiles(id string) (forms g.Group) {
	for _, name := range []string{"definition.json", "execution.py", "return.json", "meta.json"} {
		text, err := a.Custom.ReadFile(id, name)
		note := ""
		if err != nil {
			note = "It cannot be shown: " + err.Error()
		}
		forms = append(forms, response.ScriptForm(h.Class("sheet"), h.Data("post", "/api/admin/custom-tools/file"),
			h.Input(h.Type("hidden"), h.Name("id"), h.Value(id)),
			h.Input(h.Type("hidden"), h.Name("name"), h.Value(name)),
			h.Div(h.Class("field"),
				h.Label(h.For(name), g.Text(name)),
				h.Textarea(h.ID(name), h.Name("content"), h.Rows("8"), h.Class("code"), g.Attr("spellcheck", "false"),
					g.Text("\n"+text)),
				g.If(note != "", h.Small(h.Class("bad"), g.Text(note))),
			),
			h.P(h.Button(g.Text("Save "+name))),
		))
	}
	return forms
}

func (a *Admin) versionTable(id string, versions []custom.Version) g.Node {
	if len(versions) == 0 {
		return nil
	}
	rows := g.Map(versions, func(v custom.Version) g.Node {
		n := strconv.Itoa(v.Number)
		what := "saved"
		if v.Deleted {
			what = "deleted"
		}
		return h.Tr(
			layout.RowHead(h.A(h.Href(link("diff", id, "version", n)), g.Text("Version "+n))),
			h.Td(h.Class("times"), g.Text(a.formatTime(v.Time))),
			layout.Cell(v.By),
			layout.Cell(what),
		)
	})
	return g.Group{
		layout.Heading("versions", "Versions"),
		layout.Table("versions", []string{"Version", "Time", "By", "What"}, "", rows),
	}
}

// diffPage shows what restoring a version would change.
func (a *Admin) diffPage(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	diff, err := a.diff(r)
	if err != nil {
		return err
	}
	id, version := r.URL.Query().Get("id"), r.URL.Query().Get("version")
	number, _ := strconv.Atoi(version) // diff has read it
	body, _ := json.Marshal(map[string]any{"id": id, "version": number})
	back := h.P(h.A(h.Href(link("edit", id)), g.Text("Back to "+id)))
	if diff == "" {
		return page(w, id, g.Group{back, h.P(g.Text("Version " + version + " is the same as the tool now."))})
	}
	return page(w, id, g.Group{
		back,
		h.P(g.Text("From version " + version + " to the tool now:")),
		layout.Diff("Differences", diff),
		h.P(h.Button(h.Data("post", "/api/admin/custom-tools/restore"), h.Data("body", string(body)),
			h.Data("then", link("edit", id)),
			layout.Confirmation("Restore version "+version+"? The present one is kept as a version."),
			g.Text("Restore version "+version))),
	})
}

// draftOf returns what the editor holds, as its form sends it.
func draftOf(form map[string]string) (d custom.Draft, err error) {
	raw := func(name, empty string) json.RawMessage {
		text := strings.TrimSpace(cmp.Or(strings.TrimSpace(form[name]), empty))
		var v any
		if wrong := json.Unmarshal([]byte(text), &v); wrong != nil {
			err = response.BadRequest(name + " is not JSON: " + strings.TrimPrefix(wrong.Error(), "json: "))
		}
		return json.RawMessage(text)
	}
	boolean := func(name string) json.RawMessage {
		return json.RawMessage(strconv.FormatBool(form[name] != ""))
	}
	text := func(name string) *string { return new(strings.ReplaceAll(form[name], "\r\n", "\n")) }
	d = custom.Draft{
		ID:          strings.TrimSpace(form["id"]),
		Description: text("description"),
		Parameters:  raw("parameters", "{}"),
		Category:    text("category"),
		Icon:        text("icon"),
		Timeout:     raw("timeout", "null"),
		Network:     boolean("network"),
		Workspace:   text("workspace"),
		ReadOnly:    boolean("read_only"),
		Code:        text("execution_code"),
		Return:      raw("return", "null"),
		Meta:        raw("meta", "null"),
	}
	if form["overwrite"] == "" {
		d.Revision = form["revision"]
	}
	return d, err
}

// readForm returns the draft in the editor's form, and its other fields.
func readForm(w http.ResponseWriter, r *http.Request) (custom.Draft, map[string]string, error) {
	var form map[string]string
	if err := response.ReadJSON(w, r, maxBody, &form); err != nil {
		return custom.Draft{}, nil, err
	}
	d, err := draftOf(form)
	return d, form, err
}

// saveForm saves what is in the editor.
func (a *Admin) saveForm(w http.ResponseWriter, r *http.Request, who chat.Sender) error {
	draft, form, err := readForm(w, r)
	if err != nil {
		return err
	}
	_, absent := a.Custom.Get(draft.ID)
	isNew := form["revision"] == "" && form["overwrite"] == ""
	if isNew && !errors.Is(absent, custom.ErrNotFound) && !isRefusal(absent) {
		return response.Problem{Status: http.StatusConflict, Text: "there is a tool called " + draft.ID + " already"}
	}
	d, err := a.save(draft, who)
	if err != nil {
		return err
	}
	response.JSON(w, http.StatusOK, map[string]any{"success": true, "data": d, "then": link("edit", d.ID)})
	return nil
}

// testForm runs what is in the editor.
func (a *Admin) testForm(w http.ResponseWriter, r *http.Request, who chat.Sender) error {
	draft, form, err := readForm(w, r)
	if err != nil {
		return err
	}
	arguments := strings.TrimSpace(cmp.Or(form["arguments"], "{}"))
	if !json.Valid([]byte(arguments)) {
		return response.BadRequest("the arguments are not JSON")
	}
	return a.test(w, r, who, custom.Trial{ID: draft.ID, Draft: &draft, Arguments: json.RawMessage(arguments)})
}
