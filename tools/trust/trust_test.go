package trust

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"parley/chat"
	"parley/texts"
	"parley/tools"
	"parley/workspace"
)

// A desk is a workspace, whose files /trust is about.
type desk struct {
	manager
	t     *testing.T
	busy  bool
	noted []string // in the audit log
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	w, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	d := &desk{t: t}
	note := func(kind, who, what string) { d.noted = append(d.noted, kind+" "+who+" "+what) }
	d.manager = manager{files: w, shell: d, audit: note, texts: texts.English().Tools.Trust}
	return d
}

// WhileNoneWrites implements Shell.
func (d *desk) WhileNoneWrites(_ context.Context, do func() error) (bool, error) {
	if d.busy {
		return false, nil
	}
	return true, do()
}

// put writes a file whose content has that author; "" is an untrusted one.
func (d *desk) put(name, author string) {
	d.t.Helper()
	p := d.path(name)
	if err := d.files.Names().WriteFile(name, []byte("x")); err != nil {
		d.t.Fatal(err)
	}
	if err := d.files.SetOrigin(p, author); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) path(name string) workspace.Path {
	d.t.Helper()
	p, err := d.files.Resolve(name)
	if err != nil {
		d.t.Fatal(err)
	}
	return p
}

var owner = chat.Sender{ID: "7", Role: chat.Owner}

func (d *desk) say(text string, by chat.Sender, inGroup bool) string {
	d.t.Helper()
	at := chat.Address{Channel: "telegram", Chat: "7"}
	answer, err := d.answer(d.t.Context(), chat.Message{ID: "1", At: at, From: by, Group: inGroup, Text: text})
	if err != nil {
		d.t.Fatal(err)
	}
	return answer
}

// isUntrusted reports whether to read a file makes a turn of the owner untrusted.
func (d *desk) isUntrusted(name string) bool {
	d.t.Helper()
	return tools.Untrusted(tools.Scope{From: owner, Workspace: d.files}, d.path(name))
}

// R-S12: an owner sees what counts as untrusted, and decides what does no more: a file, a folder with all
// that is in it, or all. What is not named stays as it is.
func TestTrust(t *testing.T) {
	d := newDesk(t)
	if got := d.say("/trust", owner, false); got != d.texts.None {
		t.Errorf("with no file: %q", got)
	}
	d.put("work/a.txt", "")
	d.put("work/ab.txt", "")
	d.put("work/repo/x.txt", "telegram:9")
	d.put("work/mine.txt", string(chat.TheOwner))
	if err := workspace.OriginsOf(d.files).SetBelow(d.path("work/repo"), ""); err != nil {
		t.Fatal(err)
	}
	want := "\n`work/repo/` and everything in it\n`work/a.txt`\n`work/ab.txt`\n`work/repo/x.txt`\n"
	if got := d.say("/trust", owner, false); !strings.Contains(got, want) || strings.Contains(got, "mine") {
		t.Errorf("the list is %q", got)
	}
	if got := d.say("/trust work/repo/y.txt", owner, false); !strings.Contains(got, "is in `work/repo/`") || !d.isUntrusted("work/repo/y.txt") {
		t.Errorf("a file in the folder: %q", got)
	}
	if got := d.say("/trust `work/a.txt`", owner, false); !strings.Contains(got, "`work/a.txt` counts as trusted.") {
		t.Errorf("a file: %q", got)
	}
	for name, want := range map[string]bool{"work/a.txt": false, "work/ab.txt": true, "work/repo/x.txt": true, "work/repo/new.txt": true} {
		if d.isUntrusted(name) != want {
			t.Errorf("%s: untrusted: %t", name, !want)
		}
	}
	if got := d.say("/trust ./work/repo/", owner, false); !strings.Contains(got, "`work/repo` counts as trusted, with 2 files") {
		t.Errorf("a folder: %q", got)
	}
	if d.isUntrusted("work/repo/x.txt") || d.isUntrusted("work/repo/new.txt") || !d.isUntrusted("work/ab.txt") {
		t.Error("not just the folder is trusted now")
	}
	d.say("/trust all", owner, false)
	if d.isUntrusted("work/ab.txt") || len(d.noted) != 3 || d.noted[0] != "approval telegram:7 trusts the file work/a.txt: 1 records" {
		t.Errorf("after all: %q", d.noted)
	}
}

// R-S12: nobody but an owner decides that, in a chat where nobody else reads the names; and not while a
// command may write.
func TestWhoMayTrust(t *testing.T) {
	d := newDesk(t)
	d.put("work/a.txt", "")
	guest := chat.Sender{ID: "8", Role: chat.User}
	for _, text := range []string{"/trust", "/trust work/a.txt", "/trust all"} {
		if got := d.say(text, guest, false); got != d.texts.OnlyOwners {
			t.Errorf("%s by a guest: %q", text, got)
		}
		if got := d.say(text, owner, true); got != d.texts.OnlyOwners {
			t.Errorf("%s in a group: %q", text, got)
		}
	}
	d.busy = true
	if got := d.say("/trust all", owner, false); got != d.texts.Busy {
		t.Errorf("while a command writes: %q", got)
	}
	for _, name := range []string{"../x", "/etc/passwd", "nothing.txt", "a\x00b"} {
		if got := d.say("/trust "+name, owner, false); !strings.Contains(got, "is not marked") {
			t.Errorf("%q: %q", name, got)
		}
	}
	if !d.isUntrusted("work/a.txt") || len(d.noted) > 0 {
		t.Errorf("it is trusted, %q", d.noted)
	}
}

// A long list is cut, and says so.
func TestLongList(t *testing.T) {
	d := newDesk(t)
	for i := range maxListed + 5 {
		d.put(fmt.Sprintf("work/%d.txt", i), "")
	}
	if got := d.say("/trust", owner, false); !strings.Contains(got, "and 5 more") || strings.Count(got, "\n`") != maxListed {
		t.Errorf("%q", got)
	}
}
