package files

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"parley/llm"
	"parley/texts"
	"parley/tools"
)

// A-053 …: what the tools of the other system answer.
func TestOtherSystem(t *testing.T) {
	t.Parallel()
	d := writer(t, nil)
	d.put("src/main.py", "print('hä')\n")
	d.put("gbk.txt", "\xc4\xe3\xba\xc3")
	d.put("latin1.txt", "caf\xe9")
	d.put("utf16.txt", "\xff\xfea\x00\xac\x20")
	d.put("utf16be.txt", "\xfe\xff\x00a\x20\xac")
	d.put("a.go", "")
	d.put("b/c/d.go", "xx")
	d.put("b/e.txt", "")
	d.put("../work-evil/secret", "secret")
	d.put("~", "tilde")
	if err := os.Symlink("/etc", filepath.Join(d.w.Dir(), "etc")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("src/main.py", filepath.Join(d.w.Dir(), "link.py")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(d.w.Dir(), "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	const outside = `!Path is outside project directory: `
	for _, c := range []struct{ id, name, args, want string }{
		{"A-053", "file_read", `{"path":"src/main.py"}`, `{"content":"print('hä')\n","path":"src/main.py","size":12,"success":true}`},
		{"A-030", "file_read", `{"path":"` + d.w.Dir() + `/src/main.py"}`, `{"content":"print('hä')\n","path":"src/main.py","size":12,"success":true}`},
		{"A-053", "file_read", `{"path":"gbk.txt","encoding":"gbk"}`, `{"content":"你好","path":"gbk.txt","size":2,"success":true}`},
		{"A-053", "file_read", `{"path":"gbk.txt","encoding":"GB18030"}`, `{"content":"你好","path":"gbk.txt","size":2,"success":true}`},
		{"A-053", "file_read", `{"path":"latin1.txt","encoding":"latin-1"}`, `{"content":"café","path":"latin1.txt","size":4,"success":true}`},
		{"A-053", "file_read", `{"path":"utf16.txt","encoding":"utf-16"}`, `{"content":"a€","path":"utf16.txt","size":2,"success":true}`},
		{"A-053", "file_read", `{"path":"utf16be.txt","encoding":"UTF_16"}`, `{"content":"a€","path":"utf16be.txt","size":2,"success":true}`},
		{"A-053", "file_read", `{"path":"latin1.txt"}`, `!latin1.txt is not utf-8: try another encoding`},
		{"A-053", "file_read", `{"path":"latin1.txt","encoding":"klingon"}`, `!unknown encoding klingon: use utf-8, gbk, gb18030, latin-1 or utf-16`},
		{"A-053", "file_read", `{"path":"nope"}`, `!File not found: nope`},
		{"A-022", "file_read", `{"path":"src/main.py","project_id":"evil"}`, `!Invalid parameters for tool 'file_read': unexpected parameter project_id`},
		{"A-053", "file_read", `{"path":"src"}`, `!Path is not a file: src`},
		{"A-029", "file_read", `{"path":"../../../etc/passwd"}`, outside + `'../../../etc/passwd'`},
		{"A-029", "file_read", `{"path":"/etc/passwd"}`, outside + `'/etc/passwd'`},
		{"A-030", "file_read", `{"path":"etc/passwd"}`, outside + `'etc/passwd'`},
		{"A-030", "file_read", `{"path":"` + d.w.Dir() + `-evil/secret"}`, outside + `'` + d.w.Dir() + `-evil/secret'`},
		{"A-029", "file_write", `{"path":"../x","content":""}`, outside + `'../x'`},
		{"A-029", "file_delete", `{"path":"../work-evil/secret"}`, outside + `'../work-evil/secret'`},
		{"A-029", "file_exists", `{"path":"/etc"}`, outside + `'/etc'`},
		{"A-029", "file_mkdir", `{"path":"etc/x"}`, outside + `'etc/x'`},
		{"A-029", "file_list", `{"path":".."}`, outside + `'..'`},

		{"A-054", "file_write", `{"path":"new/x.txt","content":"hä"}`, `{"mode":"write","path":"new/x.txt","size":2,"success":true}`},
		{"A-054", "file_write", `{"path":"new/x.txt","content":"!","mode":"append"}`, `{"mode":"append","path":"new/x.txt","size":1,"success":true}`},
		{"A-054", "file_read", `{"path":"new/x.txt"}`, `{"content":"hä!","path":"new/x.txt","size":3,"success":true}`},
		{"A-054", "file_write", `{"path":"new/x.txt","content":"","mode":"prepend"}`, `!Invalid parameters for tool 'file_write': mode must be one of ["write","append"]`},
		{"A-054", "file_write", `{"path":"src","content":""}`, `!Path is not a file: src`},

		{"A-057", "file_exists", `{"path":"src/main.py"}`, `{"exists":true,"path":"src/main.py","size":13,"type":"file"}`},
		{"A-057", "file_exists", `{"path":"src"}`, `{"exists":true,"path":"src","type":"directory"}`},
		{"A-057", "file_exists", `{"path":"pipe"}`, `{"exists":true,"path":"pipe","type":"other"}`},
		{"A-057", "file_exists", `{"path":"nope"}`, `{"exists":false,"path":"nope"}`},
		{"A-057", "file_exists", `{"path":"a.go/below"}`, `!Not a directory on the way to a.go/below`},
		{"R-S18", "file_exists", `{"path":".parley/undo"}`, `!.parley/undo is not for this conversation`},

		{"A-056", "file_list", `{"path":"b"}`, `{"directories":[{"name":"c","path":"b/c"}],"files":[{"name":"e.txt","path":"b/e.txt","size":0}],"path":"b","success":true,"total_dirs":1,"total_files":1}`},
		{"A-056", "file_list", `{"pattern":"**/*.go"}`, `{"directories":[],"files":[{"name":"a.go","path":"a.go","size":0},{"name":"d.go","path":"b/c/d.go","size":2}],"path":".","success":true,"total_dirs":0,"total_files":2}`},
		{"A-056", "file_list", `{"path":"b","pattern":"*.txt"}`, `{"directories":[],"files":[{"name":"e.txt","path":"b/e.txt","size":0}],"path":"b","success":true,"total_dirs":0,"total_files":1}`},
		{"A-056", "file_list", `{"pattern":"../*"}`, outside + `'../*'`},
		{"A-056", "file_list", `{"pattern":"b/../../*"}`, outside + `'b/../../*'`},
		{"A-056", "file_list", `{"pattern":"/etc/*"}`, outside + `'/etc/*'`},
		{"A-056", "file_list", `{"pattern":"{..,x}/*"}`, `{"directories":[],"files":[],"path":".","success":true,"total_dirs":0,"total_files":0}`},
		{"A-056", "file_list", `{"path":"nope"}`, `!Directory not found: nope`},
		{"A-056", "file_list", `{"path":"a.go"}`, `!Path is not a directory: a.go`},

		{"A-058", "file_mkdir", `{"path":"x/y/z"}`, `{"created":true,"path":"x/y/z","success":true}`},
		{"A-058", "file_mkdir", `{"path":"x/y/z"}`, `{"created":false,"path":"x/y/z","success":true}`},
		{"A-058", "file_mkdir", `{"path":"a.go"}`, `!Path is not a directory: a.go`},
		{"A-058", "file_mkdir", `{"path":"a.go/x"}`, `!Not a directory on the way to a.go/x`},

		{"A-055", "file_delete", `{"path":"src/main.py"}`, `{"path":"src/main.py","success":true}`},
		{"A-055", "file_delete", `{"path":"src/main.py"}`, `!File not found: src/main.py`},
		{"A-055", "file_delete", `{"path":"src"}`, `!Path is not a file: src`},
		{"A-055", "file_delete", `{"path":"./~"}`, `{"path":"~","success":true}`},
		{"A-055", "file_delete", `{"path":"~"}`, `!Path is not a file: .`},
		{"D-053", "file_delete", `{"path":"pipe"}`, `!Path is not a file: pipe`},
	} {
		r := d.call("s", c.name, c.args)
		var got struct {
			Success bool
			Data    json.RawMessage
			Error   *string
		}
		if err := json.Unmarshal([]byte(r.Text), &got); err != nil {
			t.Fatalf("%s: %s(%s): %v: %q", c.id, c.name, c.args, err, r.Text)
		}
		if message, fails := strings.CutPrefix(c.want, "!"); fails {
			if !r.Failed || got.Success || got.Error == nil || *got.Error != message || string(got.Data) != "null" {
				t.Errorf("%s: %s(%s) = %s, want the failure %q", c.id, c.name, c.args, r.Text, message)
			}
		} else if r.Failed || !got.Success || string(got.Data) != c.want {
			t.Errorf("%s: %s(%s) = %s\nwant %s", c.id, c.name, c.args, r.Text, c.want)
		}
	}
}

// what is added to a file goes behind what it holds, in its encoding.
func TestAppend(t *testing.T) {
	t.Parallel()
	d := writer(t, nil)
	d.put("be.txt", "\xfe\xff\x00a")
	for _, c := range []struct{ name, encoding, content, want string }{
		{"new.txt", "utf-8", "ä", "ää"}, {"gbk.txt", "gbk", "你", "\xc4\xe3\xc4\xe3"}, {"latin1.txt", "latin-1", "ä", "\xe4\xe4"},
		{"le.txt", "utf-16", "ä", "\xff\xfe\xe4\x00\xe4\x00"}, {"be.txt", "utf-16", "ä", "\xfe\xff\x00a\x00\xe4\x00\xe4"},
	} {
		for range 2 {
			args := fmt.Sprintf(`{"path":%q,"content":%q,"mode":"append","encoding":%q}`, c.name, c.content, c.encoding)
			if r := d.call("s", "write_file", args); r.Text != "Successfully wrote 1 characters to "+c.name {
				t.Errorf("%s: %s", c.name, r.Text)
			}
		}
		d.holds(c.name, c.want)
	}
	r := d.call("s", "write_file", `{"path":"x.txt","content":"你","encoding":"latin-1"}`)
	if r.Text != "Error: write latin-1: encoding: rune not supported by encoding."+hint {
		t.Error(r.Text)
	}
	d.holds("x.txt", "-")
}

// without a workspace there is nothing to work in.
func TestNoProject(t *testing.T) {
	d := writer(t, nil)
	for name, args := range map[string]string{"file_read": "", "file_write": `,"content":""`, "file_delete": "", "file_exists": "", "file_mkdir": "", "file_list": ""} {
		r := d.kit.Call(t.Context(), tools.Call{ToolCall: llm.ToolCall{ID: "1", Name: name, Args: `{"path":"a"` + args + `}`}})
		if r.Text != `{"success":false,"data":null,"error":"project_id is required for file operations"}` {
			t.Errorf("%s: %s", name, r.Text)
		}
	}
}

// R-S18: protected files, under any name.
func TestProtectedFromChanges(t *testing.T) {
	d := writer(t, nil)
	store := filepath.Join(t.TempDir(), "store.db")
	if err := os.WriteFile(store, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.w.Protect(store); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(store, filepath.Join(d.w.Dir(), "hard")); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string]string{
		"edit_file": `{"path":"hard","old_text":"secret","new_text":""}`, "write_file": `{"path":"hard","content":"","mode":"append"}`,
		"file_write": `{"path":"hard","content":""}`, "file_delete": `{"path":"hard"}`, "file_read": `{"path":"hard"}`,
	} {
		if r := d.call("s", name, args); r.Code != tools.CodeDenied || !strings.Contains(r.Text, "hard is protected") || strings.Contains(r.Text, "secret") {
			t.Errorf("%s: %q, %s", name, r.Text, r.Code)
		}
	}
	d.holds("hard", "secret")
	if found, _ := filepath.Glob(filepath.Join(d.w.Dir(), undoDir, "*", "*")); len(found) > 0 {
		t.Errorf("kept for undo: %v", found)
	}
}

// R-S12: which calls are asked for once strangers have had a word in the turn.
func TestGuard(t *testing.T) {
	d := writer(t, func(name string) bool { return name == "AGENTS.md" })
	d.put("AGENTS.md", "")
	d.put("sub/x", "")
	for name, to := range map[string]string{"link.md": "AGENTS.md", "sub/up": ".."} {
		if err := os.Symlink(to, filepath.Join(d.w.Dir(), name)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]bool{
		"AGENTS.md": true, "./sub/../AGENTS.md": true, "~/AGENTS.md": true, d.w.Dir() + "/AGENTS.md": true, "link.md": true, "sub/up/AGENTS.md": true,
		"sub/AGENTS.md": false, "other.md": false, "../AGENTS.md": false, "": false,
	} {
		for _, name := range strings.Fields("edit_file write_file file_write notebook_edit file_delete file_mkdir") {
			c := tools.Call{Input: map[string]any{"path": path}, Scope: tools.Scope{Workspace: d.w}}
			if tool, _ := d.kit.Tool(name); tool.Guard == nil || tool.Guard(c) != want {
				t.Errorf("%s of %q: guarded is not %v", name, path, want)
			}
		}
	}
}

// C-051: an owner is asked before a file is deleted, and nobody else could say yes.
func TestDeleteIsDangerous(t *testing.T) {
	d := newDesk(t)
	d.put("a", "x")
	if r := d.call("s", "file_delete", `{"path":"a"}`); !r.Failed || r.Code != tools.CodeDenied {
		t.Errorf("nobody asked: %q", r.Text)
	}
	d.holds("a", "x")
}

// merge.md 2.6: what can be called and is not listed, and what answers in JSON.
func TestAliases(t *testing.T) {
	aliases := map[string]string{"file_read": "read_file", "file_write": "write_file", "file_list": "list_dir", "find_files": "glob"}
	for _, tool := range New(Rules{}) {
		if tool.AliasOf != aliases[tool.Name] {
			t.Errorf("%s is an alias of %q, want %q", tool.Name, tool.AliasOf, aliases[tool.Name])
		}
		if want := strings.HasPrefix(tool.Name, "file_"); tool.JSON != want {
			t.Errorf("%s.JSON = %v, want %v", tool.Name, tool.JSON, want)
		}
	}
}

// C-015: what the person sees while the arguments come in.
func TestPreview(t *testing.T) {
	for _, tool := range New(Rules{}) {
		const want = "a.md"
		if !slices.Contains([]string{"edit_file", "write_file", "file_delete", "file_mkdir"}, tool.Name) {
			continue
		}
		if got := tool.Preview(texts.English().Agent.Steps, map[string]any{"path": "a.md"}); got != want || tool.Preview(texts.English().Agent.Steps, nil) != "" || tool.Preview(texts.English().Agent.Steps, map[string]any{"path": 1}) != "" {
			t.Errorf("%s: %q, want %q", tool.Name, got, want)
		}
	}
}
