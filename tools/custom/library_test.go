package custom

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// library returns a Library in a new folder.
func library(t *testing.T) (*Library, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "custom_tools")
	l, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, dir
}

// put writes files of a tool as an editor would.
func put(t *testing.T, dir, folder string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		at := filepath.Join(dir, folder, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func ids(all Listing) (list []string) {
	for _, d := range all.Tools {
		list = append(list, d.ID)
	}
	return list
}

func small(id string) map[string]string {
	return map[string]string{fileDefinition: `{"id":"` + id + `"}`, fileCode: "print(1)\n"}
}

// TestLoading drops folders into the Library and takes files away (B-001, B-003, B-004, B-007, B-009,
// B-011, B-012, B-019, B-020, B-021).
func TestLoading(t *testing.T) {
	l, dir := library(t)
	if all := l.List(); len(all.Tools)+len(all.Faults) != 0 {
		t.Fatalf("an empty folder has %v", all)
	}
	put(t, dir, "zeta", small("zeta"))
	put(t, dir, "alpha", map[string]string{fileDefinition: `{}`, fileCode: "print(1)"})
	put(t, dir, "broken", map[string]string{fileDefinition: "{\n \"id\": \"broken\",\n}", fileCode: "print(1)"})
	put(t, dir, "half", map[string]string{fileDefinition: `{"id":"half"}`})
	put(t, dir, "zz_second", small("zeta"))
	put(t, dir, ".hidden", small("hidden"))
	all := l.List()
	if got := ids(all); !slices.Equal(got, []string{"alpha", "zeta"}) {
		t.Errorf("tools: %v", got)
	}
	var faults []string
	for _, f := range all.Faults {
		faults = append(faults, f.String())
	}
	want := []string{
		"broken/definition.json: no valid JSON in line 3: invalid character '}' looking for beginning of object key string",
		"half/execution.py: it is missing",
		`zz_second/definition.json: the tool in "zeta" has the id "zeta" already`,
	}
	if !slices.Equal(faults, want) {
		t.Errorf("faults:\n%s", strings.Join(faults, "\n"))
	}
	d, err := l.Get("alpha")
	if err != nil {
		t.Fatal(err)
	}
	d.Revision = ""
	got, _ := json.Marshal(d)
	const asLoaded = `{"id":"alpha","description":"Custom tool alpha","parameters":{"type":"object","properties":{}},` +
		`"required":[],"category":"custom","icon":"","timeout":30,"network":false,"workspace":"none","read_only":false,` +
		`"execution":{"type":"python","file":"execution.py"},"execution_code":"print(1)","return":null,"meta":null,` +
		`"invalid_id":false,"validation_error":"","warnings":[],"folder":"alpha","revision":""}`
	if string(got) != asLoaded {
		t.Errorf("loaded as\n%s", got)
	}
	if err := os.Remove(filepath.Join(dir, "alpha", fileCode)); err != nil {
		t.Fatal(err)
	}
	if got := ids(l.List()); !slices.Equal(got, []string{"zeta"}) {
		t.Errorf("tools after execution.py was removed: %v", got)
	}
	if _, err := l.Get("alpha"); !errors.Is(err, ErrNotFound) {
		t.Errorf("get a tool that is gone: %v", err)
	}
}

// TestHotReload edits files that have the same length and nearly the same time (B-012).
func TestHotReload(t *testing.T) {
	l, dir := library(t)
	put(t, dir, "a", small("a"))
	for _, code := range []string{"print(1)", "print(2)", "print(3)"} {
		put(t, dir, "a", map[string]string{fileCode: code})
		if d, err := l.Get("a"); err != nil || d.Code != code {
			t.Fatalf("%v: code %q where %q was written", err, d.Code, code)
		}
	}
	at := filepath.Join(dir, "a", fileCode)
	same := time.Now() // as a file system with a coarse clock has it
	for _, code := range []string{"print(5)", "print(6)"} {
		put(t, dir, "a", map[string]string{fileCode: code})
		if err := os.Chtimes(at, same, same); err != nil {
			t.Fatal(err)
		}
		if d, err := l.Get("a"); err != nil || d.Code != code {
			t.Fatalf("%v: code %q where %q was written", err, d.Code, code)
		}
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(at, old, old); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{fileDefinition} {
		if err := os.Chtimes(filepath.Join(dir, "a", name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	l.List()
	if !l.loaded["a"].settled {
		t.Error("files that were changed an hour ago are read each time")
	}
	put(t, dir, "a", map[string]string{fileCode: "print(4)"})
	if d, _ := l.Get("a"); d.Code != "print(4)" {
		t.Errorf("code %q after an edit", d.Code)
	}
}

// TestBadFiles loads what people and programs may leave behind (B-004, B-005, B-006, B-008, B-022,
// B-024, B-025, B-044).
func TestBadFiles(t *testing.T) {
	def := func(text string) map[string]string {
		return map[string]string{fileDefinition: text, fileCode: "print(1)"}
	}
	big := `{"id":"x","description":"` + strings.Repeat("x", 1<<20) + `"}`
	for _, c := range []struct {
		name   string
		files  map[string]string
		fault  string // "" if the tool is loaded
		warned string
	}{
		{"bom", def("\ufeff{\"id\":\"x\"}"), "", ""},
		{"utf16", def("\xff\xfe{\x00"), "definition.json: it is not UTF-8 text", ""},
		{"latin1 code", map[string]string{fileDefinition: `{"id":"x"}`, fileCode: "print('\xe9')"}, "execution.py: it is not UTF-8 text", ""},
		{"a megabyte", def(big), "definition.json: it is larger than 256 KiB", ""},
		{"list", def(`[1]`), "definition.json: it must hold a JSON object", ""},
		{"null", def(`null`), "definition.json: it must hold a JSON object", ""},
		{"empty", def(``), "definition.json: no valid JSON in line 1: unexpected end of JSON input", ""},
		{"half written", def("{\n\"id\": \"x"), "definition.json: no valid JSON in line 2: unexpected end of JSON input", ""},
		{"id is a number", def(`{"id":5}`), `definition.json: "id" must be a text`, ""},
		{"description is a list", def(`{"id":"x","description":[]}`), `definition.json: "description" must be a text`, ""},
		{"properties is a list", def(`{"id":"x","parameters":{"type":"object","properties":[]}}`), `definition.json: "parameters.properties" must be an object`, ""},
		{"property is a number", def(`{"id":"x","parameters":{"type":"object","properties":{"a":5}}}`), `definition.json: "parameters" is no JSON Schema`, ""},
		{"required is a text", def(`{"id":"x","parameters":{"type":"object","required":"a"}}`), `definition.json: "parameters.required" must be a list of texts`, ""},
		{"property of no type", def(`{"id":"x","parameters":{"type":"object","properties":{"a":{"type":"str"}}}}`), `definition.json: "parameters" is no JSON Schema`, ""},
		{"execution is a text", def(`{"id":"x","execution":"python"}`), `definition.json: "execution" must be an object`, ""},
		{"shell", def(`{"id":"x","execution":{"type":"bash"}}`), "definition.json: only Python can be executed", ""},
		{"parameters are an array", def(`{"id":"x","parameters":{"type":"array"}}`), "", `the type of "parameters" must be "object"`},
		{"parameters are a text", def(`{"id":"x","parameters":"a"}`), "", `the type of "parameters" must be "object"`},
		{"timeout is a text", def(`{"id":"x","timeout":"soon"}`), "", "the timeout must be a number of seconds: it is 30s"},
		{"timeout is negative", def(`{"id":"x","timeout":-1}`), "", "the timeout must be a number of seconds: it is 30s"},
		{"timeout is an hour", def(`{"id":"x","timeout":3600}`), "", "the timeout can be at most 10m0s"},
		{"timeout of the execution", def(`{"id":"x","execution":{"timeout":7},"timeout":9}`), "", ""},
		{"icon leads out", def(`{"id":"x","icon":".."}`), "", "an icon is the name of an SVG file"},
		{"icon in a folder", def(`{"id":"x","icon":"a/b.svg"}`), "", "an icon is the name of an SVG file"},
		{"a typing error", def(`{"id":"x","kategory":{}}`), "", `definition.json has an unknown key: "kategory"`},
		{"required is unknown", def(`{"id":"x","parameters":{"type":"object","required":["a"]}}`), "", `"a" is required, but not described`},
		{"deep", def(strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000)), "", "unknown key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, dir := library(t)
			put(t, dir, "x", c.files)
			put(t, dir, "good", small("good"))
			all := l.List()
			if !slices.Contains(ids(all), "good") {
				t.Error("the tool beside it is gone")
			}
			if c.fault != "" {
				if len(all.Faults) != 1 || !strings.HasPrefix(all.Faults[0].String(), "x/"+c.fault) {
					t.Errorf("faults: %v", all.Faults)
				}
				return
			}
			d, err := l.Get("x")
			if err != nil {
				t.Fatal(err, all.Faults)
			}
			if got := strings.Join(d.Warnings, "\n"); !strings.Contains(got, c.warned) || c.warned == "" && got != "" {
				t.Errorf("warnings: %s", got)
			}
			timeout := map[string]float64{"timeout is an hour": 600, "timeout of the execution": 7}[c.name]
			if d.Timeout != cmp.Or(timeout, 30) { // B-025
				t.Errorf("timeout %v", d.Timeout)
			}
			if strings.HasPrefix(c.name, "parameters are") && string(d.Parameters) != `{"type":"object","properties":{}}` { // B-022
				t.Errorf("parameters %s", d.Parameters)
			}
			if strings.Contains(c.warned, "icon") && d.Icon != "" {
				t.Errorf("icon %q", d.Icon)
			}
		})
	}
}

// TestFolderOfAnotherName: the id counts, and the author is told (B-009).
func TestFolderOfAnotherName(t *testing.T) {
	l, dir := library(t)
	put(t, dir, "folder", small("tool"))
	d, err := l.Get("tool")
	if want := []string{`the folder is called "folder", not like the tool`}; err != nil || !slices.Equal(d.Warnings, want) {
		t.Errorf("%v: warnings %q", err, d.Warnings)
	}
}

// TestOptionalFiles breaks the files that a tool need not have (B-005).
func TestOptionalFiles(t *testing.T) {
	l, dir := library(t)
	for _, text := range []string{"[]", "{", "\xff", strings.Repeat("x", 1<<20), "null"} {
		put(t, dir, "x", small("x"))
		put(t, dir, "x", map[string]string{fileReturn: text, fileMeta: text})
		d, err := l.Get("x")
		if err != nil {
			t.Fatalf("%.10q: %v", text, err)
		}
		if string(d.Return) != "null" || string(d.Meta) != "null" || len(d.Warnings) != 2 {
			t.Errorf("%.10q: return %s, meta %s, warnings %v", text, d.Return, d.Meta, d.Warnings)
		}
	}
	put(t, dir, "x", map[string]string{fileReturn: `{"truncate":200}`, fileMeta: `{"icon":"brain.svg","notes":"n"}`})
	if d, _ := l.Get("x"); string(d.Return) != `{"truncate":200}` || d.Icon != "brain.svg" {
		t.Errorf("return %s, icon %q", d.Return, d.Icon)
	}
	put(t, dir, "x", map[string]string{fileDefinition: `{"icon":"bot.svg"}`})
	if d, _ := l.Get("x"); d.Icon != "bot.svg" { // B-024
		t.Errorf("the icon of meta.json goes before that of definition.json: %q", d.Icon)
	}
}

// TestRequired wants the list in parameters to count, if there is one (B-023).
func TestRequired(t *testing.T) {
	for _, c := range []struct{ definition, want string }{
		{`{"parameters":{"type":"object","properties":{"a":{},"b":{}},"required":["a"]},"required":["b"]}`, "a"},
		{`{"parameters":{"type":"object","properties":{"a":{},"b":{}},"required":["a"]},"required":[]}`, "a"},
		{`{"parameters":{"type":"object","properties":{"a":{},"b":{}}},"required":["b"]}`, "b"},
		{`{"parameters":{"type":"object","properties":{"a":{},"b":{}}}}`, ""},
	} {
		d, err := parse("x", map[string]string{fileDefinition: c.definition, fileCode: ""})
		if err != nil {
			t.Fatal(err)
		}
		var schema struct{ Required []string }
		if err := json.Unmarshal(d.Parameters, &schema); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(d.Required, ","); got != c.want || strings.Join(schema.Required, ",") != c.want {
			t.Errorf("%s: required %q, for models %v", c.definition, got, schema.Required)
		}
	}
}

// TestBadIDs lists tools whose ids no provider would take, and tools that would replace others
// (B-008, B-010, R-S21).
func TestBadIDs(t *testing.T) {
	l, dir := library(t)
	l.Reserve([]string{"exec", "file_read"})
	put(t, dir, "1bad", map[string]string{fileDefinition: `{}`, fileCode: ""})
	put(t, dir, "spaces", small("a b"))
	put(t, dir, "dots", small("../x"))
	put(t, dir, "unicode", small("工具"))
	put(t, dir, "long", small(strings.Repeat("a", 65)))
	put(t, dir, "exec", small("exec"))
	put(t, dir, "mine", small("File_Read"))
	put(t, dir, "mcp_x", small("mcp_x"))
	put(t, dir, "Calc", small("Calc"))
	put(t, dir, "calc", small("calc"))
	all := l.List()
	for _, d := range all.Tools {
		if d.InvalidID != (d.ValidationError != "") || d.InvalidID == (d.ID == "Calc") {
			t.Errorf("%q: invalid %v, %q", d.ID, d.InvalidID, d.ValidationError)
		}
	}
	if len(all.Tools) != 6 {
		t.Errorf("listed: %v", ids(all))
	}
	var usable []string
	for _, d := range l.List().Usable() {
		usable = append(usable, d.ID)
	}
	if !slices.Equal(usable, []string{"Calc"}) {
		t.Errorf("usable: %v", usable)
	}
	reasons := map[string]string{}
	for _, f := range all.Faults {
		reasons[f.Folder] = f.Reason
	}
	for folder, want := range map[string]string{"exec": msgReserved, "mine": msgReserved, "mcp_x": msgReservedMCP} {
		if reasons[folder] != want {
			t.Errorf("%s: %q", folder, reasons[folder])
		}
	}
}

// TestLinks puts links into the folder of tools that lead out of it.
func TestLinks(t *testing.T) {
	l, dir := library(t)
	outside := t.TempDir()
	put(t, outside, "x", small("x"))
	if err := os.Symlink(filepath.Join(outside, "x"), filepath.Join(dir, "x")); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "y", small("y"))
	code := filepath.Join(dir, "y", fileCode)
	if err := errors.Join(os.Remove(code), os.Symlink("/etc/passwd", code)); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "z", small("z"))
	if err := errors.Join(os.Remove(filepath.Join(dir, "z", fileCode)), os.Mkdir(filepath.Join(dir, "z", fileCode), 0o700)); err != nil {
		t.Fatal(err)
	}
	all := l.List()
	if len(all.Tools) != 0 || len(all.Faults) != 3 {
		t.Errorf("tools %v, faults %v", ids(all), all.Faults)
	}
}

// draft returns a Draft from the body of a request.
func draft(t *testing.T, body string) (d Draft) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

const calcBody = `{"id":"calc","description":"计算 <两> 数","parameters":{"type":"object","properties":{"a":{"type":"number"}}},
	"required":["a"],"category":"custom","icon":"calculator.svg","timeout":15,"execution_code":"print({a})\n",
	"return":{"truncate":200},"meta":{"owner":"me"}}`

// TestSave creates and changes a tool as the admin API does (B-063, B-064, B-065, B-066, B-010).
func TestSave(t *testing.T) {
	l, dir := library(t)
	l.Reserve([]string{"exec"})
	d, err := l.Save(draft(t, calcBody), "web:root")
	if err != nil {
		t.Fatal(err)
	}
	if d.Timeout != 15 || d.Code != "print({a})\n" || !slices.Equal(d.Required, []string{"a"}) {
		t.Errorf("saved as %+v", d)
	}
	text, _ := os.ReadFile(filepath.Join(dir, "calc", fileDefinition))
	if !strings.HasPrefix(string(text), "{\n  \"id\": \"calc\",\n  \"description\": \"计算 <两> 数\",\n") {
		t.Errorf("definition.json is\n%s", text)
	}
	// An older program sends neither return nor network.
	put(t, dir, "calc", map[string]string{fileDefinition: `{"id":"calc","network":true,"x-mine":1}`})
	d, err = l.Save(draft(t, `{"id":"calc","description":"new","execution":{"code_template":"print(2)"},"return_config":{},"notes":"n"}`), "web:root")
	if err != nil {
		t.Fatal(err)
	}
	if string(d.Return) != "null" || !d.Network || d.Code != "print(2)" || !strings.Contains(string(d.Meta), `"notes": "n"`) {
		t.Errorf("changed to %+v", d)
	}
	if _, err := os.Stat(filepath.Join(dir, "calc", fileReturn)); !os.IsNotExist(err) {
		t.Errorf("return.json: %v", err)
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "calc", fileDefinition)); !strings.Contains(string(text), "x-mine") {
		t.Errorf("a key of the author is lost:\n%s", text)
	}
	if d, err = l.Save(draft(t, `{"id":"empty"}`), ""); err != nil || d.Code != "# add python code here\n" {
		t.Errorf("%v: code of a tool without code %q", err, d.Code)
	}
	for body, want := range map[string]string{
		`{}`:               "id is required",
		`{"id":"../x"}`:    msgInvalidID,
		`{"id":"a b"}`:     msgInvalidID,
		`{"id":"exec"}`:    msgReserved,
		`{"id":"EXEC"}`:    msgReserved,
		`{"id":"mcp_a_b"}`: msgReservedMCP,
		`{"id":"CALC"}`:    `there is a tool with the id "calc" already`,
		`{"id":"y","parameters":{"type":"object","properties":{"a":7}}}`: `"parameters" is no JSON Schema`,
		`{"id":"y","return":[1]}`:                                              "return.json: it must hold a JSON object",
		`{"id":"y","execution":{"type":"ruby"}}`:                               "only Python can be executed",
		`{"id":"y","execution_code":"` + strings.Repeat("#", maxFile+1) + `"}`: "execution.py: " + msgTooLarge,
	} {
		_, err := l.Save(draft(t, body), "")
		if refusal, ok := errors.AsType[*Refusal](err); !ok || !strings.Contains(refusal.Text, want) {
			t.Errorf("%.60s: %v", body, err)
		}
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(dir), "x")); !os.IsNotExist(err) {
		t.Errorf("a folder outside: %v", err)
	}
}

// TestTwoEditors has two people and an editor on disk change one tool. Nothing is lost (R-S21).
func TestTwoEditors(t *testing.T) {
	l, dir := library(t)
	first, err := l.Save(draft(t, `{"id":"a","execution_code":"print(1)"}`), "ann")
	if err != nil {
		t.Fatal(err)
	}
	mine := draft(t, `{"id":"a","execution_code":"print(2)"}`)
	mine.Revision = first.Revision
	theirs := draft(t, `{"id":"a","execution_code":"print(3)"}`)
	theirs.Revision = first.Revision
	if _, err := l.Save(mine, "ann"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Save(theirs, "bob"); !errors.Is(err, ErrConflict) {
		t.Errorf("the second editor: %v", err)
	}
	put(t, dir, "a", map[string]string{fileCode: "print(4)"})
	theirs.Revision = ""
	if _, err := l.Save(theirs, "bob"); err != nil {
		t.Fatal(err)
	}
	versions, err := l.Versions("a")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range versions {
		got = append(got, v.By+" "+v.files[fileCode])
	}
	want := []string{"bob print(3)", "an editor print(4)", "ann print(2)", "ann print(1)"}
	if !slices.Equal(got, want) {
		t.Errorf("versions: %q", got)
	}
	diff, err := l.Diff("a", 3)
	if err != nil || !strings.Contains(diff, "-print(4)") || !strings.Contains(diff, "+print(3)") {
		t.Errorf("%v: diff\n%s", err, diff)
	}
	d, err := l.Restore("a", 1, "ann")
	if err != nil || d.Code != "print(1)" || d.Revision != first.Revision {
		t.Errorf("%v: restored %q", err, d.Code)
	}
}

// TestDelete deletes tools and restores one (B-067).
func TestDelete(t *testing.T) {
	l, dir := library(t)
	if _, err := l.Save(draft(t, calcBody), "ann"); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Dir(dir), "x", small("x"))
	for _, id := range []string{"../x", "..", ".", "a/b", `a\b`, ".versions", ""} {
		if _, ok := errors.AsType[*Refusal](l.Delete(id, "ann")); !ok {
			t.Errorf("delete %q: no refusal", id)
		}
	}
	if err := l.Delete("nothing", "ann"); !errors.Is(err, ErrNotFound) {
		t.Errorf("delete a tool that is not there: %v", err)
	}
	put(t, dir, "calc", map[string]string{"notes.txt": "by the author"})
	if err := l.Delete("calc", "ann"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "calc")); !os.IsNotExist(err) {
		t.Errorf("the folder: %v", err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(dir), "x", fileCode)); err != nil {
		t.Error(err)
	}
	if gone, err := l.Deleted(); err != nil || !slices.Equal(gone, []string{"calc"}) {
		t.Errorf("%v: deleted %v", err, gone)
	}
	versions, err := l.Versions("calc")
	if err != nil || len(versions) != 2 || !versions[0].Deleted {
		t.Fatalf("%v: versions %+v", err, versions)
	}
	if _, err := l.Restore("calc", 2, "ann"); err == nil {
		t.Error("nothing was restored, and no error")
	}
	if d, err := l.Restore("calc", 1, "ann"); err != nil || d.Timeout != 15 {
		t.Errorf("%v: restored %+v", err, d)
	}
	put(t, dir, "broken", map[string]string{fileDefinition: "{"})
	if err := l.Delete("broken", "ann"); err != nil {
		t.Errorf("delete a broken tool: %v", err)
	}
}

// TestFiles reads and writes the four files of a tool and no others (B-069).
func TestFiles(t *testing.T) {
	l, dir := library(t)
	put(t, dir, "a", map[string]string{fileDefinition: `{"id":"a",}`, fileCode: "print(1)"})
	if text, err := l.ReadFile("a", fileDefinition); err != nil || text != `{"id":"a",}` {
		t.Errorf("%v: %q", err, text)
	}
	if err := l.WriteFile("a", fileDefinition, `{"id":"a"}`, "ann"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Get("a"); err != nil {
		t.Errorf("after it was mended: %v", err)
	}
	if text, err := l.ReadFile("a", fileMeta); err != nil || text != "" {
		t.Errorf("%v: %q", err, text)
	}
	for _, name := range []string{"../b", "notes.txt", "", "definition.json/.."} {
		if _, ok := errors.AsType[*Refusal](l.WriteFile("a", name, "x", "ann")); !ok {
			t.Errorf("%q was written", name)
		}
		if _, err := l.ReadFile("a", name); err == nil {
			t.Errorf("%q was read", name)
		}
	}
	if versions, _ := l.Versions("a"); len(versions) != 2 {
		t.Errorf("%d versions", len(versions))
	}
}

// TestRecover ends changes after which the process died before all files were written.
func TestRecover(t *testing.T) {
	l, dir := library(t)
	if _, err := l.Save(draft(t, calcBody), "ann"); err != nil {
		t.Fatal(err)
	}
	before := l.load("calc").files
	changed := map[string]string{fileDefinition: before[fileDefinition], fileCode: "print(9)"}
	if err := l.keep("calc", Version{Number: 2, files: changed}); err != nil {
		t.Fatal(err)
	}
	put(t, dir, pendingDir, map[string]string{"calc": "2"})
	put(t, dir, "calc", map[string]string{fileCode: "print(9)"}) // return.json and meta.json are still there
	again, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if d, err := again.Get("calc"); err != nil || d.Revision != revision(changed) {
		t.Errorf("%v: after recovery %+v", err, d)
	}
	if entries, _ := os.ReadDir(filepath.Join(dir, pendingDir)); len(entries) != 0 {
		t.Error("the change is still pending")
	}
}

// TestVersionsAreFew keeps the latest versions only.
func TestVersionsAreFew(t *testing.T) {
	l, _ := library(t)
	for i := range maxVersions + 3 {
		if _, err := l.Save(draft(t, `{"id":"a","execution_code":"print(`+strings.Repeat("1", i+1)+`)"}`), "ann"); err != nil {
			t.Fatal(err)
		}
	}
	versions, err := l.Versions("a")
	if err != nil || len(versions) != maxVersions || versions[0].Number != maxVersions+3 {
		t.Errorf("%v: %d versions, the latest %d", err, len(versions), versions[0].Number)
	}
}
