package shell

import (
	"path/filepath"
	"slices"
	"testing"

	"parley/chat"
	"parley/llm"
	"parley/tools"
	"parley/tools/sandbox"
	"parley/workspace"
)

// visitor is a call of a custom tool.
func (b *bench) visitor() tools.Call {
	return tools.Call{ToolCall: llm.ToolCall{ID: "v", Name: "mine", Args: "{}"}, Scope: b.scope}
}

func (b *bench) put(name string) workspace.Path {
	b.t.Helper()
	if err := b.w.Names().WriteFile(name, []byte("x")); err != nil {
		b.t.Fatal(err)
	}
	return must(b.w.Resolve(name))
}

// accessTo returns what a program may do with a file of the workspace.
func accessTo(b *bench, v sandbox.Visit, name string) sandbox.Access {
	innermost := sandbox.Folder{}
	for _, f := range v.Folders {
		if workspace.Within(filepath.Join(b.w.Dir(), name), f.Path) && len(f.Path) > len(innermost.Path) {
			innermost = f
		}
	}
	return innermost.Access
}

// R-S12, R-S16: a visitor sees what commands see, and changes work at most. Untrusted content outside work
// is hidden from it; if there is some in work, what it says is untrusted, too.
func TestVisit(t *testing.T) {
	b := newBench(t, nil, Settings{})
	b.put("notes/mine.txt")
	b.put("AGENTS.md")
	if err := b.w.SetOrigin(b.put("notes/theirs.txt"), ""); err != nil {
		t.Fatal(err)
	}
	for _, mayWrite := range []bool{false, true} {
		v := must(b.shell.Visit(t.Context(), b.visitor(), mayWrite, false))
		work := sandbox.ReadOnly
		if mayWrite {
			work = sandbox.ReadWrite
		}
		for name, want := range map[string]sandbox.Access{
			"notes/mine.txt": sandbox.ReadOnly, "AGENTS.md": sandbox.ReadOnly, "work/x.txt": work,
			"notes/theirs.txt": sandbox.Hidden, ".parley/origins": sandbox.Hidden, "people/telegram-9": sandbox.Hidden,
		} {
			if got := accessTo(b, v, name); got != want {
				t.Errorf("may write: %t: access to %s is %d, want %d", mayWrite, name, got, want)
			}
		}
		if len(v.Sources) > 0 || filepath.Base(v.Work) != sandbox.WorkDir {
			t.Errorf("in %s, it reads %q", v.Work, v.Sources)
		}
		v.End()
	}
	if err := b.w.SetOrigin(b.put("work/theirs.txt"), ""); err != nil {
		t.Fatal(err)
	}
	v := must(b.shell.Visit(t.Context(), b.visitor(), false, false))
	if v.End(); !slices.Equal(v.Sources, []string{"the file work/theirs.txt"}) {
		t.Errorf("it reads %q", v.Sources)
	}
}

// R-S12: what a visitor writes is untrusted content if it may have read some, or has the network, or an
// owner's turn had; while it is at work, everything in work is.
func TestVisitorsWriteUntrusted(t *testing.T) {
	for name, c := range map[string]struct {
		tainted, reach, reads, want bool
	}{
		"trusted":         {},
		"untrusted turn":  {tainted: true, want: true},
		"network":         {reach: true, want: true},
		"untrusted files": {reads: true, want: true},
	} {
		b := newBench(t, nil, Settings{})
		b.put("work/mine.txt")
		if c.reads {
			if err := b.w.SetOrigin(b.put("work/theirs.txt"), ""); err != nil {
				t.Fatal(err)
			}
		}
		settle()
		b.scope.Tainted = c.tainted
		v := must(b.shell.Visit(t.Context(), b.visitor(), true, c.reach))
		b.put("work/new.txt")
		b.scope.Tainted = false
		if got := b.isTainted("work/mine.txt"); got != c.want {
			t.Errorf("%s: meanwhile the rest of work is untrusted: %t", name, got)
		}
		v.End()
		if got := b.isTainted("work/new.txt"); got != c.want || b.isTainted("work/mine.txt") {
			t.Errorf("%s: what it wrote is untrusted: %t, and what was there: %t", name, got, b.isTainted("work/mine.txt"))
		}
	}
}

// A visitor of somebody without a workspace is refused.
func TestVisitWithoutWorkspace(t *testing.T) {
	b := newBench(t, nil, Settings{})
	c := tools.Call{Scope: tools.Scope{From: chat.Sender{Role: chat.Owner}}}
	if v, err := b.shell.Visit(t.Context(), c, false, false); err == nil {
		t.Errorf("%+v", v)
	}
}
