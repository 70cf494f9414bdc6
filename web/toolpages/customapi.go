package toolpages

import (
	"encoding/json"
	"net/http"
	"strconv"

	"parley/chat"
	"parley/response"
	"parley/tools/custom"
	"parley/web/layout"
)

// customRoutes returns the routes of custom tools.
func (a *Admin) customRoutes() []layout.Route {
	const api = "/api/admin/custom-tools"
	return []layout.Route{
		{Pattern: "GET " + api, Handle: a.listCustom},
		{Pattern: "POST " + api, Handle: a.saveCustom},
		{Pattern: "DELETE " + api, Handle: a.deleteCustom},
		{Pattern: "GET " + api + "/file", Handle: a.readFile},
		{Pattern: "POST " + api + "/file", Handle: a.writeFile},
		{Pattern: "POST " + api + "/reload", Handle: a.reload},
		{Pattern: "POST " + api + "/test", Handle: a.testCustom},
		{Pattern: "GET " + api + "/versions", Handle: a.listVersions},
		{Pattern: "GET " + api + "/diff", Handle: a.diffVersion},
		{Pattern: "POST " + api + "/restore", Handle: a.restoreVersion},
		{Pattern: "GET /admin/custom-tools", Handle: a.customPage},
		{Pattern: "GET /admin/custom-tools/edit", Handle: a.editPage},
		{Pattern: "POST /admin/custom-tools/edit", Handle: a.saveForm},
		{Pattern: "POST /admin/custom-tools/test", Handle: a.testForm},
		{Pattern: "GET /admin/custom-tools/diff", Handle: a.diffPage},
	}
}

// listCustom answers with all custom tools, also those that are not offered, and
// with what is wrong with the others (B-004, B-062).
func (a *Admin) listCustom(w http.ResponseWriter, _ *http.Request, _ chat.Sender) error {
	all := a.Custom.List()
	response.JSON(w, http.StatusOK, map[string]any{
		"success": true,
		"data":    append([]custom.Definition{}, all.Tools...),
		"errors":  append([]custom.Fault{}, all.Faults...),
	})
	return nil
}

// saveCustom creates or changes a custom tool (B-063).
func (a *Admin) saveCustom(w http.ResponseWriter, r *http.Request, who chat.Sender) error {
	var draft custom.Draft
	if err := readLenient(w, r, &draft); err != nil {
		return err
	}
	d, err := a.save(draft, who)
	if err != nil {
		return err
	}
	return answer(w, d)
}

func (a *Admin) save(draft custom.Draft, who chat.Sender) (custom.Definition, error) {
	d, err := a.Custom.Save(draft, who.ID)
	if err != nil {
		return d, explain(err)
	}
	a.Audit("config", who.ID, "custom tool saved: "+d.ID)
	return d, nil
}

// idOf returns the id that r names in its query or, if it has none there, in its
// body (B-067).
func idOf(w http.ResponseWriter, r *http.Request) (string, error) {
	if id := r.URL.Query().Get("id"); id != "" {
		return id, nil
	}
	var ask struct {
		ID string `json:"id"`
	}
	if r.ContentLength != 0 {
		if err := readLenient(w, r, &ask); err != nil {
			return "", err
		}
	}
	if ask.ID == "" {
		return "", response.BadRequest("id is required") // B-066
	}
	return ask.ID, nil
}

// deleteCustom removes a custom tool, also from the policy (B-067).
func (a *Admin) deleteCustom(w http.ResponseWriter, r *http.Request, who chat.Sender) error {
	id, err := idOf(w, r)
	if err != nil {
		return err
	}
	if err := a.Custom.Delete(id, who.ID); err != nil {
		return explain(err)
	}
	a.Audit("config", who.ID, "custom tool deleted: "+id)
	if err := a.Policy.Forget(r.Context(), id); err != nil {
		return err
	}
	return answer(w, map[string]string{"deleted": id})
}

// A file is one of the four files of a custom tool.
type file struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Content string `json:"content"`
}

// readFile answers with one file of a tool, also of a broken one (B-069).
func (a *Admin) readFile(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	f := file{ID: r.URL.Query().Get("id"), Name: r.URL.Query().Get("name")}
	var err error
	if f.Content, err = a.Custom.ReadFile(f.ID, f.Name); err != nil {
		return explain(err)
	}
	return answer(w, f)
}

// writeFile replaces one file of a tool, also of a broken one (B-069).
func (a *Admin) writeFile(w http.ResponseWriter, r *http.Request, who chat.Sender) error {
	f := file{ID: r.URL.Query().Get("id"), Name: r.URL.Query().Get("name")}
	if err := readLenient(w, r, &f); err != nil {
		return err
	}
	if err := a.Custom.WriteFile(f.ID, f.Name, f.Content, who.ID); err != nil {
		return explain(err)
	}
	a.Audit("config", who.ID, "custom tool file saved: "+f.ID+" "+f.Name)
	return answer(w, f)
}

// reload says what there is. Files are looked at whenever tools are listed, so that
// nothing else is to be done (B-012, B-069).
func (a *Admin) reload(w http.ResponseWriter, _ *http.Request, _ chat.Sender) error {
	all := a.Custom.List()
	return answer(w, map[string]any{
		"count":  len(all.Tools),
		"errors": append([]custom.Fault{}, all.Faults...),
	})
}

// testCustom runs a custom tool, as a call of it would (B-018).
func (a *Admin) testCustom(w http.ResponseWriter, r *http.Request, who chat.Sender) error {
	var t custom.Trial
	if err := readLenient(w, r, &t); err != nil {
		return err
	}
	return a.test(w, r, who, t)
}

func (a *Admin) test(w http.ResponseWriter, r *http.Request, who chat.Sender, t custom.Trial) error {
	if t.ID == "" && t.Draft == nil {
		return response.BadRequest("id is required")
	}
	if len(t.Arguments) == 0 {
		t.Arguments = json.RawMessage("{}")
	}
	report, err := a.Test(r.Context(), who, t)
	if err != nil {
		return explain(err)
	}
	a.Audit("tool", who.ID, "custom tool tested: "+t.ID)
	return answer(w, report)
}

func (a *Admin) listVersions(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	all, err := a.Custom.Versions(r.URL.Query().Get("id"))
	if err != nil {
		return explain(err)
	}
	return answer(w, append([]custom.Version{}, all...))
}

func (a *Admin) diffVersion(w http.ResponseWriter, r *http.Request, _ chat.Sender) error {
	diff, err := a.diff(r)
	if err != nil {
		return err
	}
	return answer(w, map[string]string{"diff": diff})
}

func (a *Admin) diff(r *http.Request) (string, error) {
	n, err := strconv.Atoi(r.URL.Query().Get("version"))
	if err != nil {
		return "", response.BadRequest("version must be a number")
	}
	diff, err := a.Custom.Diff(r.URL.Query().Get("id"), n)
	return diff, explain(err)
}

// restoreVersion makes a version of a tool the current one.
func (a *Admin) restoreVersion(w http.ResponseWriter, r *http.Request, who chat.Sender) error {
	var ask struct {
		ID      string `json:"id"`
		Version int    `json:"version"`
	}
	if err := response.ReadJSON(w, r, maxBody, &ask); err != nil {
		return err
	}
	d, err := a.Custom.Restore(ask.ID, ask.Version, who.ID)
	if err != nil {
		return explain(err)
	}
	a.Audit("config", who.ID, "custom tool restored: "+ask.ID+" version "+strconv.Itoa(ask.Version))
	return answer(w, d)
}
