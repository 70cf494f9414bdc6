package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/tools"
	"parley/tools/custom"
	"parley/tools/policy"
	"parley/web/toolpages"
	"parley/web/webtest"
)

// toolAdmin has the custom tool calc, which is evil, and a broken one beside it.
func (f *face) toolAdmin(t testing.TB) toolpages.Admin {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			panic(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			panic(err)
		}
	}
	quoted, _ := json.Marshal(evil)
	write("calc/definition.json", `{"id": "calc", "description": `+string(quoted)+`, "parameters": {"type": "object", "properties": {}}}`)
	write("calc/execution.py", "print(1)\n# "+evil)
	write("calc/return.json", `{"template": `+string(quoted)+`}`)
	write("calc/meta.json", `{"notes": `+string(quoted)+`}`)
	write("broken/definition.json", `{"id": "broken",}`)
	write("broken/execution.py", "")
	lib, err := custom.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lib.Close() })
	lib.Reserve([]string{"exec"})
	icon := "brain.svg"
	if _, err := lib.Save(custom.Draft{ID: "calc", Icon: &icon}, evil); err != nil {
		t.Fatal(err)
	}
	book := policy.NewBook(f.store, nil)
	book.Configure(policy.Offer{
		Models: []string{"large", evil},
		Sources: []tools.Source{tools.Rules{"custom": tools.Owners}.Permit(customTools{lib}, tools.Fixed{
			{ToolSpec: llm.ToolSpec{Name: "web_search"}, Hints: tools.Hints{Category: "web"}},
			{ToolSpec: llm.ToolSpec{Name: evil}, Hints: tools.Hints{Category: evil}},
		})[0], tools.Fixed{{ToolSpec: llm.ToolSpec{Name: "web_search"}, Hints: tools.Hints{Category: "web"}}}},
	})
	approval := chat.Approval{Chat: "telegram:-100/7", Session: evil, Effect: evil, By: evil}
	return toolpages.Admin{
		Policy:    book,
		Custom:    lib,
		CustomOff: func() bool { return false },
		Test: func(_ context.Context, who chat.Sender, c custom.Trial) (any, error) {
			if c.ID == "absent" {
				return nil, custom.ErrNotFound
			}
			return map[string]any{"arguments": c.Arguments, "output": evil, "return_code": 0}, nil
		},
		People: func(context.Context) ([]toolpages.Person, error) {
			return []toolpages.Person{{ID: "telegram:42", About: evil}, {ID: evil}}, nil
		},
		RoleOf: func(_ context.Context, at chat.Address, id string) (chat.Role, error) {
			return map[string]chat.Role{"telegram:1": chat.Owner, "telegram:42": chat.User}[at.Channel+":"+id], nil
		},
		Approvals: func(context.Context) ([]chat.Approval, error) { return []chat.Approval{approval}, nil },
		Revoke: func(_ context.Context, a chat.Approval) error {
			if a.Effect != approval.Effect {
				return store.ErrNotFound
			}
			f.note(&f.did, "revoke", a.Chat)
			return nil
		},
		Changes: func(_ context.Context, prefix string) ([]toolpages.Change, error) {
			at := time.Date(2026, 3, 1, 9, 30, 0, 0, time.UTC)
			return []toolpages.Change{{Time: at, Who: "owner", What: prefix + "role user: data off"}, {Time: at, Who: evil, What: prefix + evil}}, nil
		},
		Zone:  time.UTC,
		Audit: func(kind, who, what string) { f.note(&f.audited, kind, who, what) },
	}
}

// customTools offers the tools of a library by name only.
type customTools struct{ lib *custom.Library }

func (c customTools) Tools(context.Context, tools.Scope) (all []tools.Tool, err error) {
	for _, d := range c.lib.List().Tools {
		all = append(all, tools.Tool{ToolSpec: llm.ToolSpec{Name: d.ID}, Hints: tools.Hints{Category: d.Category}})
	}
	return all, nil
}

func draftWithCode(id, code, revision string) custom.Draft {
	return custom.Draft{ID: id, Code: &code, Revision: revision}
}

const customAPI = "/api/admin/custom-tools"

// B-068: who is not signed in gets 401, who is no owner 403, on every method; B's
// errors have a form of their own.
func TestB068OnlyOwners(t *testing.T) {
	f := newFace(t)
	boss, anna := f.owner(t), f.invited(t, "anna")
	key := decoded[struct{ Secret string }](t, f.want(t, 201, asking{method: "POST", path: "/api/keys", by: boss, body: `{}`})).Secret
	for _, path := range []string{
		customAPI, customAPI + "/file", customAPI + "/reload", customAPI + "/test", customAPI + "/versions", customAPI + "/nothing",
		"/api/admin/policy", "/api/admin/approvals", "/api/admin/", "/admin/policy", "/admin/custom-tools", "/admin/custom-tools/edit", "/admin/approvals",
	} {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			for by, want := range map[string]int{"": 401, anna: 403} {
				body := read(t, f.want(t, want, asking{method: method, path: path, by: by}))
				if strings.HasPrefix(path, "/api/") && !strings.HasPrefix(body, `{"error":"`) {
					t.Errorf("%s %s: %s", method, path, body)
				}
			}
			f.want(t, 403, asking{method: method, path: path, header: http.Header{"Authorization": {"Bearer " + key}}})
		}
	}
	f.want(t, 404, asking{method: "PUT", path: customAPI, by: boss})
	if len(f.did) > 0 {
		t.Errorf("they did %q", f.did)
	}
}

// R-S1, R-S5: what another site could send changes nothing.
func TestRS5ToolAdmin(t *testing.T) {
	f := newFace(t)
	boss := f.owner(t)
	saved := `{"id":"new","execution_code":"print(1)"}`
	f.want(t, 403, asking{method: "POST", path: customAPI, by: boss, body: saved, header: http.Header{"Origin": {"https://evil.example"}}})
	f.want(t, 403, asking{method: "POST", path: customAPI, by: boss, body: saved, header: http.Header{ownHeader: nil}})
	f.want(t, 403, asking{method: "POST", path: customAPI, by: boss, body: saved, host: "evil.example"})
	f.want(t, 415, asking{method: "POST", path: customAPI, by: boss, body: saved, header: http.Header{"Content-Type": {"text/plain"}}})
	f.want(t, 404, asking{method: "DELETE", path: customAPI + "?id=new", by: boss})
}

// B-004, B-062, B-063, B-067: the life of a custom tool.
func TestB062CustomTools(t *testing.T) {
	f := newFace(t)
	boss := f.owner(t)
	type tool map[string]any
	type listing struct {
		Success bool
		Data    []tool
		Errors  []custom.Fault
	}
	list := func() listing { return decoded[listing](t, f.want(t, 200, asking{path: customAPI, by: boss})) }
	body := `{"id":"text_len","description":"Counts","parameters":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]},` +
		`"category":"custom","icon":"calculator.svg","timeout":5,"execution_code":"print(len({text}))","return":{"truncate":200},"meta":{"owner":"Ada"},"unknown":1}`
	made := decoded[struct {
		Success bool
		Data    tool
	}](t, f.want(t, 200, asking{method: "POST", path: customAPI, by: boss, body: body}))
	if !made.Success || made.Data["id"] != "text_len" || made.Data["revision"] == "" {
		t.Errorf("made %v", made)
	}
	all := list()
	if !all.Success || len(all.Data) != 2 || len(all.Errors) != 1 || all.Errors[0].File != "definition.json" || all.Errors[0].Reason == "" {
		t.Fatalf("listed %+v", all)
	}
	for _, key := range []string{"id", "description", "parameters", "required", "category", "icon", "execution", "execution_code", "return", "meta", "invalid_id", "validation_error"} {
		if _, has := all.Data[1][key]; !has {
			t.Errorf("a tool has no %s", key)
		}
	}
	back, _ := json.Marshal(all.Data[1]) // what was read can be sent back
	f.want(t, 200, asking{method: "POST", path: customAPI, by: boss, body: string(back)})
	f.want(t, 200, asking{method: "POST", path: customAPI, by: boss, body: `{"id":"text_len","description":"Counts words","revision":""}`})
	for body, want := range map[string]string{
		`{}`:                         "id is required",
		`{"id":"1bad"}`:              "a tool id begins with a letter",
		`{"id":"../x"}`:              "a tool id begins with a letter",
		`{"id":"exec"}`:              "a custom tool cannot have the name of a built-in tool", // B-010
		`{"id":7}`:                   "unexpected JSON: id must be text",
		`{`:                          "unexpected JSON",
		`{"id":"x","parameters":[}]`: "unexpected JSON",
	} {
		if got := read(t, f.want(t, 400, asking{method: "POST", path: customAPI, by: boss, body: body})); !strings.Contains(got, `{"error":"`+want) || !strings.Contains(got, `"success":false`) {
			t.Errorf("%s: %s", body, got)
		}
	}
	conflict := read(t, f.want(t, 409, asking{method: "POST", path: customAPI, by: boss, body: string(back)}))
	if !strings.Contains(conflict, "changed by somebody else") || !strings.Contains(conflict, "nothing was saved") {
		t.Errorf("conflict: %s", conflict)
	}
	f.want(t, 400, asking{method: "DELETE", path: customAPI, by: boss})
	f.want(t, 404, asking{method: "DELETE", path: customAPI + "?id=absent", by: boss})
	f.want(t, 400, asking{method: "DELETE", path: customAPI + "?id=../../x", by: boss})
	f.want(t, 400, asking{method: "DELETE", path: customAPI + "?id=..%2F..%2Fx", by: boss})
	f.want(t, 200, asking{method: "POST", path: "/api/admin/policy", by: boss, body: `{"target_type":"role","target_value":"owner","config":{"category_overrides":{"net":{"tools":["text_len","web_search"]}}}}`})
	gone := read(t, f.want(t, 200, asking{method: "DELETE", path: customAPI, by: boss, body: `{"id":"text_len"}`}))
	if gone != `{"data":{"deleted":"text_len"},"success":true}`+"\n" || len(list().Data) != 1 {
		t.Errorf("deleting: %s", gone)
	}
	if now := read(t, f.want(t, 200, asking{path: "/api/admin/policy", by: boss})); strings.Contains(now, "text_len") || !strings.Contains(now, `"tools":["web_search"]`) {
		t.Errorf("the policy after that: %s", now)
	}
	versions := decoded[struct{ Data []custom.Version }](t, f.want(t, 200, asking{path: customAPI + "/versions?id=text_len", by: boss})).Data
	if len(versions) < 2 {
		t.Fatalf("versions %+v", versions)
	}
	first := versions[len(versions)-1].Number
	f.want(t, 200, asking{path: fmt.Sprintf("%s/diff?id=text_len&version=%d", customAPI, first), by: boss})
	f.want(t, 200, asking{method: "POST", path: customAPI + "/restore", by: boss, body: fmt.Sprintf(`{"id":"text_len","version":%d}`, first)})
	if all := list(); len(all.Data) != 2 || all.Data[1]["description"] != "Counts" {
		t.Errorf("restored %v", all.Data)
	}
	for _, note := range []string{"config owner custom tool saved: text_len", "config owner custom tool deleted: text_len", fmt.Sprintf("config owner custom tool restored: text_len version %d", first)} {
		if !slices.Contains(f.audited, note) {
			t.Errorf("the audit log lacks %q: %q", note, f.audited)
		}
	}
}

// B-069: the four files, and no others, also of a tool that is broken.
func TestB069Files(t *testing.T) {
	f := newFace(t)
	boss := f.owner(t)
	at := customAPI + "/file?id=broken&name=definition.json"
	if got := read(t, f.want(t, 200, asking{path: at, by: boss})); !strings.Contains(got, `"content":"{\"id\": \"broken\",}"`) {
		t.Errorf("read %s", got)
	}
	f.want(t, 200, asking{method: "POST", path: at, by: boss, body: `{"content":"{\"id\":\"broken\"}"}`})
	reloaded := read(t, f.want(t, 200, asking{method: "POST", path: customAPI + "/reload", by: boss}))
	if reloaded != `{"data":{"count":2,"errors":[]},"success":true}`+"\n" {
		t.Errorf("reload: %s", reloaded)
	}
	for _, query := range []string{"id=calc&name=other.txt", "id=calc&name=../x", "id=../calc&name=meta.json", "id=calc&name="} {
		f.want(t, 400, asking{path: customAPI + "/file?" + query, by: boss})
		f.want(t, 400, asking{method: "POST", path: customAPI + "/file?" + query, by: boss, body: `{"content":"{}"}`})
	}
	f.want(t, 404, asking{path: customAPI + "/file?id=absent&name=meta.json", by: boss})
}

// B-018: a test run, by id or of a draft.
func TestB018Test(t *testing.T) {
	f := newFace(t)
	boss := f.owner(t)
	got := read(t, f.want(t, 200, asking{method: "POST", path: customAPI + "/test", by: boss, body: `{"id":"calc","arguments":{"a":1}}`}))
	if !strings.Contains(got, `"arguments":{"a":1}`) || !strings.Contains(got, `"success":true`) {
		t.Errorf("test: %s", got)
	}
	if !slices.Contains(f.audited, "tool owner custom tool tested: calc") {
		t.Errorf("the audit log has %q", f.audited)
	}
	f.want(t, 400, asking{method: "POST", path: customAPI + "/test", by: boss, body: `{}`})
	f.want(t, 404, asking{method: "POST", path: customAPI + "/test", by: boss, body: `{"id":"absent"}`})
	f.want(t, 200, asking{method: "POST", path: "/admin/custom-tools/test", by: boss, body: `{"id":"calc","parameters":"{}","arguments":"{}"}`})
	for body, want := range map[string]string{
		`{"id":"calc","parameters":"{]","arguments":"{}"}`: "parameters is not JSON",
		`{"id":"calc","parameters":"{}","arguments":"{]"}`: "the arguments are not JSON",
	} {
		if got := read(t, f.want(t, 400, asking{method: "POST", path: "/admin/custom-tools/test", by: boss, body: body})); !strings.Contains(got, want) {
			t.Errorf("%s: %s", body, got)
		}
	}
}

// B-015, B-016, B-071, B-074: the policy.
func TestB071Policy(t *testing.T) {
	f := newFace(t)
	boss, anna := f.owner(t), f.invited(t, "anna")
	type category struct {
		Label   string
		Tools   []string
		Enabled bool
		Locked  bool
	}
	type whole struct {
		Success  bool
		Data     policy.Policy
		Defaults struct {
			Categories  map[string]category
			Models      []string
			UIBlockKeys []string `json:"ui_block_keys"`
		}
	}
	now := decoded[whole](t, f.want(t, 200, asking{path: "/api/admin/policy", by: boss}))
	if c := now.Defaults.Categories["custom"]; !now.Success || c.Label != "Custom tools" || !slices.Equal(c.Tools, []string{"calc"}) || len(now.Defaults.Models) != 2 || len(now.Defaults.UIBlockKeys) == 0 {
		t.Errorf("defaults %+v", now.Defaults)
	}
	set := func(status int, body string) string {
		return read(t, f.want(t, status, asking{method: "POST", path: "/api/admin/policy", by: boss, body: body}))
	}
	set(200, `{"target_type":"global","target_value":"","config":{"category_overrides":{"net":{"tools":["calc","web_search"]}},"remove_categories":[],"forced_category_states":{"net":false},"disabled_models":["large"],"ui_blocks":{"block_upload":true}}}`)
	set(200, `{"target_type":"invite","target_value":"anna","config":{"forced_category_states":{"net":true}}}`)
	now = decoded[whole](t, f.want(t, 200, asking{path: "/api/admin/policy", by: boss}))
	if net := now.Data.Global.ForcedCategoryStates["net"]; net == nil || *net || len(now.Data.Invites) != 1 {
		t.Errorf("stored %+v", now.Data)
	}
	for body, want := range map[string]string{
		`{"target_type":"planet","target_value":"x","config":{}}`:       "invalid target_type",
		`{"target_type":"user","target_value":"","config":{}}`:          "target_value is empty",
		`{"target_type":"global","config":{"forced":{}}}`:               "unexpected JSON",
		`{"target_type":"global","config":{"ui_blocks":{"x":true}}}`:    "there is no ui_blocks key",
		`{"target_type":"global","config":{"remove_categories":"web"}}`: "unexpected JSON",
	} {
		if got := set(400, body); !strings.Contains(got, want) || !strings.Contains(got, `"success":false`) {
			t.Errorf("%s: %s", body, got)
		}
	}
	type effective struct {
		Success bool
		Data    struct {
			Categories     map[string]category
			DisabledModels []string        `json:"disabled_models"`
			UIBlocks       map[string]bool `json:"ui_blocks"`
		}
	}
	of := func(by string) effective {
		return decoded[effective](t, f.want(t, 200, asking{path: "/api/effective-policy", by: by}))
	}
	if e := of(anna); !e.Data.Categories["net"].Enabled || slices.Contains(e.Data.Categories["net"].Tools, "calc") || !e.Data.UIBlocks["block_upload"] {
		t.Errorf("for anna: %+v", e)
	}
	if _, told := of(anna).Data.Categories["custom"]; told {
		t.Error("anna is told of custom tools")
	}
	if e := of(boss); e.Data.Categories["net"].Enabled || !e.Data.Categories["net"].Locked || !slices.Equal(e.Data.DisabledModels, []string{"large"}) {
		t.Errorf("for the owner: %+v", e)
	}
	f.want(t, 401, asking{path: "/api/effective-policy"})
	if !slices.Contains(f.audited, "config owner policy for invite anna: net on") {
		t.Errorf("audited %q", f.audited)
	}
}

// B-070: the page of the policy changes what it shows and leaves the rest.
func TestB070PolicyForm(t *testing.T) {
	f := newFace(t)
	boss := f.owner(t)
	book := f.cfg.Gateway.ToolAdmin.Policy
	target := policy.Target{Type: policy.Role, Value: "owner"}
	before := policy.Config{
		CategoryOverrides: map[string]policy.Override{"later": {Tools: []string{"of a server that is away"}}},
		UIBlocks:          map[string]bool{"block_steps": false},
		DisabledModels:    []string{"gone"},
	}
	if _, _, err := book.Set(t.Context(), target, before); err != nil {
		t.Fatal(err)
	}
	page := read(t, f.want(t, 200, asking{path: "/admin/policy?type=role&value=owner", by: boss}))
	for _, id := range []string{"calc", "web_search", "custom", "later"} {
		if !strings.Contains(page, id) {
			t.Errorf("the page lacks %s", id)
		}
	}
	_, at, _ := strings.Cut(page, `name="updated_at" value="`)
	at, _, _ = strings.Cut(at, `"`)
	form := map[string]string{
		"type": "role", "value": "owner", "updated_at": at, "state:custom": "off", "silent:custom": "on", "state:web": "removed",
		"tool:calc": "net", "tool:web_search": "web", "model:large": "on", "block:block_upload": "on",
	}
	save := func(status int) {
		t.Helper()
		body, _ := json.Marshal(form)
		f.want(t, status, asking{method: "POST", path: "/admin/policy", by: boss, body: string(body)})
	}
	save(200)
	got, err := book.Of(t.Context(), target)
	want := `{"category_overrides":{"custom":{"silent_when_disabled":true},"later":{"tools":["of a server that is away"]},"net":{"tools":["calc"]}},` +
		`"remove_categories":["web"],"forced_category_states":{"custom":false},"disabled_models":["gone","large"],"ui_blocks":{"block_steps":false,"block_upload":true}`
	if text, _ := json.Marshal(got); err != nil || !strings.HasPrefix(string(text), want) {
		t.Errorf("stored %s\n  want %s %v", text, want, err)
	}
	save(409) // it was read before it was saved
	form["overwrite"], form["tool:calc"], form["state:custom"] = "yes", "custom", "lifted"
	save(200)
	got, _ = book.Of(t.Context(), target)
	if state, known := got.ForcedCategoryStates["custom"]; !known || state != nil || len(got.CategoryOverrides["net"].Tools) > 0 {
		t.Errorf("after moving back %+v", got)
	}
	form["updated_at"], form["overwrite"], form["state:custom"], form["label:custom"] = "", "yes", "open off", " My own "
	save(200)
	got, _ = book.Of(t.Context(), target)
	custom := got.CategoryOverrides["custom"]
	if _, forced := got.ForcedCategoryStates["custom"]; forced || custom.DefaultEnabled == nil || *custom.DefaultEnabled || custom.Label == nil || *custom.Label != "My own" {
		t.Errorf("with a default and a name: %+v", got)
	}
	save(200) // what is as it was stays
	again, _ := book.Of(t.Context(), target)
	again.UpdatedAt = got.UpdatedAt
	if !reflect.DeepEqual(got, again) {
		t.Errorf("saved again %+v, was %+v", again, got)
	}
	form["state:custom"], form["label:custom"] = "", ""
	save(200)
	if got, _ = book.Of(t.Context(), target); got.CategoryOverrides["custom"].DefaultEnabled != nil || got.CategoryOverrides["custom"].Label != nil {
		t.Errorf("without them: %+v", got)
	}
	f.want(t, 400, asking{path: "/admin/policy?type=planet", by: boss})
	f.want(t, 400, asking{path: "/admin/policy?type=user", by: boss})
}

// The editor creates a tool, refuses what somebody else has changed, and saves it
// anyway if asked.
func TestCustomToolForm(t *testing.T) {
	f := newFace(t)
	boss := f.owner(t)
	save := func(status int, form map[string]string) string {
		t.Helper()
		body, _ := json.Marshal(form)
		return read(t, f.want(t, status, asking{method: "POST", path: "/admin/custom-tools/edit", by: boss, body: string(body)}))
	}
	form := map[string]string{"id": "echo", "description": "Echoes", "parameters": "", "category": "custom", "timeout": "5", "execution_code": "print(1)\r\n", "return": "", "meta": `{"a":1}`, "revision": ""}
	if got := save(200, form); !strings.Contains(got, `"then":"/admin/custom-tools/edit?id=echo"`) {
		t.Errorf("saved: %s", got)
	}
	lib := f.cfg.Gateway.ToolAdmin.Custom
	d, err := lib.Get("echo")
	if err != nil || d.Code != "print(1)\n" || d.Timeout != 5 || string(d.Meta) == "null" || d.ReadOnly {
		t.Errorf("stored %+v, %v", d, err)
	}
	if got := save(409, form); !strings.Contains(got, "there is a tool called echo already") {
		t.Errorf("the same id again: %s", got)
	}
	form["revision"], form["description"] = d.Revision, "Mine"
	if _, err := lib.Save(custom.Draft{ID: "echo", Code: new("print(2)\n")}, "other"); err != nil {
		t.Fatal(err)
	}
	if got := save(409, form); !strings.Contains(got, "changed by somebody else") {
		t.Errorf("conflict: %s", got)
	}
	form["overwrite"] = "yes"
	save(200, form)
	form["meta"] = "{"
	if got := save(400, form); !strings.Contains(got, "meta is not JSON") {
		t.Errorf("bad notes: %s", got)
	}
	page := read(t, f.want(t, 200, asking{path: "/admin/custom-tools/edit?id=echo", by: boss}))
	if !strings.Contains(page, "Version 1") || !strings.Contains(page, "print(1)") {
		t.Errorf("the editor: %s", page)
	}
	if page := read(t, f.want(t, 200, asking{path: "/admin/custom-tools/edit?id=broken", by: boss})); !strings.Contains(page, "definition.json") || !strings.Contains(page, "Save execution.py") {
		t.Errorf("the broken one: %s", page)
	}
	if err := lib.Delete("echo", "owner"); err != nil {
		t.Fatal(err)
	}
	if page := read(t, f.want(t, 200, asking{path: "/admin/custom-tools/edit?id=echo", by: boss})); !strings.Contains(page, "was deleted") || !strings.Contains(page, "Version 1") {
		t.Errorf("the deleted one: %s", page)
	}
	if page := read(t, f.want(t, 200, asking{path: "/admin/custom-tools", by: boss})); !strings.Contains(page, "Deleted") || !strings.Contains(page, "echo") {
		t.Errorf("the list: %s", page)
	}
	f.want(t, 404, asking{path: "/admin/custom-tools/edit?id=absent", by: boss})
	f.want(t, 400, asking{path: "/admin/custom-tools/edit?id=../x", by: boss})
}

// B-074: owners see what holds in the end for whom a policy is, with all that is said for others, and
// choose among the people who talk to Parley.
func TestPolicyInTheEnd(t *testing.T) {
	f := newFace(t)
	boss := f.owner(t)
	book := f.cfg.Gateway.ToolAdmin.Policy
	set := func(kind policy.TargetType, value, group string, on bool) {
		t.Helper()
		c := policy.Config{ForcedCategoryStates: map[string]*bool{group: &on}}
		if _, _, err := book.Set(t.Context(), policy.Target{Type: kind, Value: value}, c); err != nil {
			t.Fatal(err)
		}
	}
	set(policy.Global, "", "web", false)
	set(policy.User, "telegram:42", "web", true)
	set(policy.Channel, "discord", "web", true)
	set(policy.Invite, "anna", "web", true)
	set(policy.Role, "owner", "custom", false)
	for _, c := range []struct{ query, who, web, custom string }{
		{"", "somebody who is no owner", "off", ""},
		{"?type=role&value=user", "somebody who is no owner", "off", ""},
		{"?type=role&value=owner", "an owner", "off", "off"},
		{"?type=user&value=owner", "an owner", "off", "off"},
		{"?type=user&value=telegram:42", "42, at telegram", "on", ""},
		{"?type=user&value=telegram:1", "1, an owner, at telegram", "off", "off"},
		{"?type=user&value=telegram:-100", "-100, at telegram", "off", ""},
		{"?type=user&value=nobody", "somebody who is no owner", "off", ""},
		{"?type=invite&value=anna", "anna, at web", "on", ""},
		{"?type=channel&value=discord", "somebody who is no owner, at discord", "on", ""},
	} {
		page := read(t, f.want(t, 200, asking{path: "/admin/policy" + c.query, by: boss}))
		_, result, _ := strings.Cut(page, `<h2 id="result">What holds in the end for `+c.who+`</h2>`)
		state := func(group string) string {
			_, row, _ := strings.Cut(result, `<th scope="row">`+group+`</th><td><span class="`)
			_, row, _ = strings.Cut(row, ">")
			word, _, _ := strings.Cut(row, "<")
			return word
		}
		if got := [2]string{state("web"), state("custom")}; got != [2]string{c.web, c.custom} {
			t.Errorf("%s: %q in %s", c.query, got, result)
		}
		if !strings.Contains(page, `<option value="telegram:42">`) {
			t.Errorf("%s: nobody is offered", c.query)
		}
	}
}

// B-061, B-024: the icons are served as pictures, and nothing else is.
func TestB061Icons(t *testing.T) {
	f := newFace(t)
	boss := f.owner(t)
	for _, name := range []string{"brain", "terminal", "bot", "calculator"} {
		r := f.want(t, 200, asking{path: "/static/icons/" + name + ".svg", by: boss})
		if body := read(t, r); r.Header.Get("Content-Type") != "image/svg+xml" || !strings.HasPrefix(body, "<svg ") || len(body) > 1024 {
			t.Errorf("%s: %s %s", name, r.Header.Get("Content-Type"), body)
		}
	}
	for _, name := range []string{"none.svg", "..%2Ficons.go", "brain.svg%00", "%2e%2e"} {
		f.want(t, 404, asking{path: "/static/icons/" + name, by: boss})
	}
	f.want(t, 401, asking{path: "/static/icons/brain.svg"})
}

// An approval is shown and can be taken back.
func TestApprovalsPage(t *testing.T) {
	f := newFace(t)
	boss := f.owner(t)
	all := decoded[struct{ Data []chat.Approval }](t, f.want(t, 200, asking{path: "/api/admin/approvals", by: boss})).Data
	body, _ := json.Marshal(all[0])
	f.want(t, 200, asking{method: "POST", path: "/api/admin/approvals/revoke", by: boss, body: string(body)})
	f.want(t, 404, asking{method: "POST", path: "/api/admin/approvals/revoke", by: boss, body: `{"effect":"other"}`})
	if !slices.Equal(f.did, []string{"revoke telegram:-100/7"}) || !slices.Contains(f.audited, "approval owner revoked in telegram:-100/7: "+evil) {
		t.Errorf("did %q, audited %q", f.did, f.audited)
	}
}

// R-S27: the page of the policy shows its last changes: when, by whom and what.
func TestPolicyHistory(t *testing.T) {
	f := newFace(t)
	page := read(t, f.want(t, 200, asking{path: "/admin/policy?type=role&value=owner", by: f.owner(t)}))
	_, history, _ := strings.Cut(page, `<h2 id="history">Last changes</h2>`)
	for _, want := range []string{"2026-03-01 09:30", "<td>owner</td>", "role user: data off"} {
		if !strings.Contains(history, want) || strings.Contains(history, "policy for") {
			t.Errorf("no %q in %s", want, history)
		}
	}
}

// R-S5: what stands in tools, policies and approvals is text on the pages.
func TestRS5ToolPages(t *testing.T) {
	f := newFace(t)
	boss := f.owner(t)
	f.want(t, 200, asking{method: "POST", path: customAPI + "/file?id=calc&name=execution.py", by: boss, body: `{"content":"print(2)"}`})
	set, _ := json.Marshal(map[string]any{"target_type": "user", "target_value": evil, "config": map[string]any{"remove_categories": []string{evil}}})
	f.want(t, 200, asking{method: "POST", path: "/api/admin/policy", by: boss, body: string(set)})
	for path, shows := range map[string]string{
		"/admin/policy": evil, "/admin/policy?type=user&value=%3Cimg+src%3Dx+onerror%3D%22alert%281%29%22%3E": evil,
		"/admin/custom-tools": evil, "/admin/custom-tools/edit?id=calc": evil, "/admin/custom-tools/edit?id=broken": "broken",
		"/admin/custom-tools/diff?id=calc&version=1": evil, "/admin/approvals": evil, "/admin/custom-tools/edit": "text",
	} {
		page := read(t, f.want(t, 200, asking{path: path, by: boss, header: http.Header{"Accept": {"text/html"}}}))
		if faults := webtest.Active(page); len(faults) > 0 {
			t.Errorf("%s: %q", path, faults)
		}
		if !webtest.Shows(page, shows) {
			t.Errorf("%s does not show %q: %s", path, shows, page)
		}
	}
}
