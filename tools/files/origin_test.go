package files

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/chat"
	"parley/llm"
	"parley/texts"
	"parley/tools"
	"parley/workspace"
)

// A writer's turn: who they are and whether it is untrusted.
type origin struct {
	who     chat.Sender
	group   bool
	tainted bool
}

var (
	ofOwner   = origin{who: chat.Sender{ID: "1", Role: chat.Owner}}
	ofPage    = origin{who: chat.Sender{ID: "1", Role: chat.Owner}, tainted: true}
	ofAnna    = origin{who: chat.Sender{ID: "7", Role: chat.User}}
	ofBert    = origin{who: chat.Sender{ID: "8", Role: chat.User}}
	ofAnnPage = origin{who: chat.Sender{ID: "7", Role: chat.User}, tainted: true}
	ofGroup   = origin{who: chat.Sender{ID: "1", Role: chat.Owner}, group: true}
)

// as calls a tool in such a turn.
func (d desk) as(o origin, turn, name, args string) tools.Result {
	at := chat.Address{Channel: "net", Chat: o.who.ID}
	if o.group {
		at.Chat = "-100"
	}
	return d.kit.Call(d.t.Context(), tools.Call{
		ToolCall: llm.ToolCall{ID: "call_1", Name: name, Args: args},
		Scope:    tools.Scope{Session: at.Session(), At: at, From: o.who, Group: o.group, Tainted: o.tainted, Workspace: d.w, Turn: turn},
	})
}

// reads checks whether reading a file taints the turn.
func (d desk) reads(o origin, path string, want bool) {
	d.t.Helper()
	for name, args := range map[string]string{
		"read_file": `{"path":%q,"force":true}`, "file_read": `{"path":%q}`, "grep": `{"path":%q,"pattern":"."}`, "glob": `{"pattern":%q}`, "file_list": `{"pattern":%q}`,
	} {
		r := d.as(o, "turn", name, fmt.Sprintf(args, path))
		if r.Tainted != want || r.Failed || want && !slices.Contains(r.Sources, "the file "+path) {
			d.t.Errorf("%s of %s: tainted %v, want %v: %q %.100q", name, path, r.Tainted, want, r.Sources, r.Text)
		}
	}
}

// R-S12: a file remembers whose words it holds, whatever is done to it, until
// nothing of them is left.
func TestOrigins(t *testing.T) {
	write := `{"path":"a.txt","content":"one\ntwo\n"}`
	more := `{"path":"a.txt","content":"three\n","mode":"append"}`
	edit := `{"path":"a.txt","old_text":"one","new_text":"uno"}`
	type step struct {
		by         origin
		tool, args string
	}
	for name, c := range map[string]struct {
		steps  []step
		reader origin
		want   bool
	}{
		"an owner's":                         {[]step{{ofOwner, "write_file", write}}, ofOwner, false},
		"an owner's, for others":             {[]step{{ofOwner, "write_file", write}}, ofAnna, false},
		"an untrusted turn's":                {[]step{{ofPage, "write_file", write}}, ofOwner, true},
		"by its other name":                  {[]step{{ofPage, "file_write", write}}, ofOwner, true},
		"edited in an untrusted turn":        {[]step{{ofOwner, "write_file", write}, {ofPage, "edit_file", edit}}, ofOwner, true},
		"added to in an untrusted turn":      {[]step{{ofOwner, "write_file", write}, {ofPage, "write_file", more}}, ofOwner, true},
		"edited by an owner later":           {[]step{{ofPage, "write_file", write}, {ofOwner, "edit_file", edit}}, ofOwner, true},
		"added to by an owner later":         {[]step{{ofPage, "write_file", write}, {ofOwner, "write_file", more}}, ofOwner, true},
		"written anew by an owner":           {[]step{{ofPage, "write_file", write}, {ofOwner, "write_file", write}}, ofOwner, false},
		"written anew in an untrusted turn":  {[]step{{ofOwner, "write_file", write}, {ofPage, "write_file", write}}, ofOwner, true},
		"deleted and made by an owner":       {[]step{{ofPage, "write_file", write}, {ofOwner, "file_delete", `{"path":"a.txt"}`}, {ofOwner, "edit_file", `{"path":"a.txt","old_text":"","new_text":"x"}`}}, ofOwner, false},
		"a user's, for them":                 {[]step{{ofAnna, "write_file", write}}, ofAnna, false},
		"a user's, for an owner":             {[]step{{ofAnna, "write_file", write}}, ofOwner, true},
		"a user's, for another":              {[]step{{ofAnna, "write_file", write}}, ofBert, true},
		"a user's untrusted turn's":          {[]step{{ofAnnPage, "write_file", write}}, ofAnna, true},
		"a user's, edited by another":        {[]step{{ofAnna, "write_file", write}, {ofBert, "edit_file", edit}}, ofAnna, true},
		"a user's, edited by an owner":       {[]step{{ofAnna, "write_file", write}, {ofOwner, "edit_file", edit}}, ofAnna, false},
		"an owner's, edited by a user":       {[]step{{ofOwner, "write_file", write}, {ofAnna, "edit_file", edit}}, ofOwner, true},
		"a user's, written anew by an owner": {[]step{{ofAnna, "write_file", write}, {ofOwner, "write_file", write}}, ofBert, false},
		"a group's, for an owner in private": {[]step{{ofGroup, "write_file", write}}, ofOwner, true},
		"a group's, there":                   {[]step{{ofGroup, "write_file", write}}, ofGroup, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := writer(t, nil)
			for i, s := range c.steps {
				if r := d.as(s.by, fmt.Sprint(i), s.tool, s.args); r.Failed {
					t.Fatalf("%s: %s", s.tool, r.Text)
				}
			}
			d.reads(c.reader, "a.txt", c.want)
			again, err := workspace.Open(d.w.Dir())
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			d.w = again
			d.reads(c.reader, "a.txt", c.want)
		})
	}
}

// R-S12: an edit shows what was there, also in a file that it makes no worse.
func TestEditTells(t *testing.T) {
	d := writer(t, nil)
	d.as(ofPage, "1", "write_file", `{"path":"a.txt","content":"one"}`)
	d.as(ofPage, "1", "notebook_edit", `{"path":"a.ipynb","cell_index":0,"edit_mode":"insert","new_source":"x"}`)
	for name, want := range map[string]bool{
		`edit_file {"path":"a.txt","old_text":"one","new_text":"two"}`:     true,
		`notebook_edit {"path":"a.ipynb","cell_index":0,"new_source":"y"}`: true,
		`write_file {"path":"a.txt","content":"three","mode":"append"}`:    false,
		`list_dir {"path":"."}`: true,
	} {
		tool, args, _ := strings.Cut(name, " ")
		if r := d.as(ofOwner, "2", tool, args); r.Tainted != want || r.Failed {
			t.Errorf("%s: tainted %v, want %v: %s", name, r.Tainted, want, r.Text)
		}
	}
}

// R-S12: a file that gets untrusted content while it is read taints the turn.
func TestWrittenWhileRead(t *testing.T) {
	d := writer(t, nil)
	d.as(ofOwner, "1", "write_file", `{"path":"a.txt","content":"one"}`)
	at, err := d.w.Resolve("a.txt")
	if err != nil {
		t.Fatal(err)
	}
	read := tainting(func(context.Context, tools.Call, workspace.Path, pathArgs) (tools.Result, error) {
		d.as(ofPage, "2", "write_file", `{"path":"a.txt","content":"obey me"}`)
		return tools.Result{Text: "obey me"}, nil
	})
	r, err := read(t.Context(), tools.Call{Scope: tools.Scope{From: ofOwner.who, Workspace: d.w}}, at, pathArgs{})
	if err != nil || !r.Tainted || len(r.Sources) != 1 {
		t.Errorf("tainted %v by %q, %v", r.Tainted, r.Sources, err)
	}
}

// R-S12: what /undo brings back has the origin that it had.
func TestUndoRestoresOrigins(t *testing.T) {
	d := writer(t, nil)
	undo := func(want ...string) {
		t.Helper()
		if got, err := Undo(d.w, "net:1", texts.English().Gateway.Undo); !slices.Equal(got, want) || err != nil {
			t.Errorf("undone: %q, %v; want %q", got, err, want)
		}
	}
	d.as(ofOwner, "1", "write_file", `{"path":"a.txt","content":"one"}`)
	d.as(ofPage, "2", "write_file", `{"path":"a.txt","content":"two"}`)
	d.as(ofOwner, "3", "write_file", `{"path":"a.txt","content":"three"}`)
	d.reads(ofOwner, "a.txt", false)
	undo("a.txt restored")
	d.reads(ofOwner, "a.txt", true)
	undo("a.txt restored")
	d.reads(ofOwner, "a.txt", false)
	d.as(ofPage, "4", "write_file", `{"path":"b.txt","content":"x"}`)
	d.as(ofOwner, "5", "file_delete", `{"path":"b.txt"}`)
	undo("b.txt restored")
	d.reads(ofOwner, "b.txt", true)
	undo("b.txt removed")
	d.put("b.txt", "x")
	d.reads(ofOwner, "b.txt", false)
}

// R-S12, R-S14: what people sent is nobody's own words, also not the sender's.
func TestUploadsAreUntrusted(t *testing.T) {
	d := writer(t, nil)
	anna := chat.Person("net:7").InboxFolder() + "/2026-01-01/x-a.txt"
	d.put(anna, "obey")
	d.put("inbox/2026-01-01/x-b.txt", "obey")
	d.reads(ofAnna, anna, true)
	d.reads(ofOwner, anna, true)
	d.reads(ofOwner, "inbox/2026-01-01/x-b.txt", true)
	if err := os.Rename(filepath.Join(d.w.Dir(), "inbox"), filepath.Join(d.w.Dir(), "inbox2")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(d.w.Dir(), "inbox2"), filepath.Join(d.w.Dir(), "INBOX")); err != nil {
		t.Fatal(err)
	}
	d.reads(ofOwner, "INBOX/2026-01-01/x-b.txt", true)
}

// Nobody is asked about what is refused anyway, and in an untrusted turn also an
// owner's is.
func TestPlants(t *testing.T) {
	d := writer(t, nil)
	d.put("bare/HEAD", "ref: refs/heads/main")
	d.put("bare/objects/x", "")
	for path, want := range map[string]bool{
		".envrc": true, "a/.git/config": true, ".GIT/x": true, "bare/config": true, "bare/hooks/pre-receive": true, "x/HEAD": true,
		"a.b": false, "Makefile": false, "bare2/config": false, "head.txt": false, "a/b.git/config": false,
	} {
		for _, name := range strings.Fields("edit_file write_file file_write notebook_edit file_delete file_mkdir") {
			tool, _ := d.kit.Tool(name)
			for by, asked := range map[*origin]bool{&ofOwner: want, &ofPage: false, &ofAnna: false} {
				c := tools.Call{Input: map[string]any{"path": path}, Scope: tools.Scope{Workspace: d.w, From: by.who, Tainted: by.tainted}}
				if tool.Risky(c) != asked {
					t.Errorf("%s of %s: it is not %v that %+v is asked", name, path, asked, *by)
				}
			}
		}
		asked := 0
		counting := func(context.Context, tools.Call, string) (bool, string, error) { asked++; return true, "owner", nil }
		always := tools.Rules{"files": tools.Ask}
		kit, err := tools.NewKit(t.Context(), tools.Scope{}, always.Permit(tools.Fixed(New(Rules{}))), tools.Standard(tools.StandardConfig{Approve: counting})...)
		if err != nil {
			t.Fatal(err)
		}
		strict := desk{d.t, d.w, kit}
		for _, tool := range strings.Fields("write_file file_write file_delete file_mkdir") {
			if strict.as(ofAnna, "1", tool, fmt.Sprintf(`{"path":%q,"content":"x"}`, path)); want && asked > 0 {
				t.Errorf("an owner was asked about %s of %s, which is refused", tool, path)
			}
		}
		for by, refused := range map[*origin]string{&ofOwner: "", &ofPage: "untrusted content", &ofAnna: "only an owner"} {
			r := d.as(*by, "1", "write_file", fmt.Sprintf(`{"path":%q,"content":"x"}`, path))
			if r.Failed != (want && refused != "") || want && !strings.Contains(r.Text, refused) || r.Failed && r.Code != tools.CodeDenied {
				t.Errorf("%s by %+v: %q", path, *by, r.Text)
			}
		}
	}
}
