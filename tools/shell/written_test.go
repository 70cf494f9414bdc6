package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/tools"
	"parley/tools/sandbox"
	"parley/tools/sandbox/none"
	"parley/tools/shell/changes"
	"parley/workspace"
)

// isTainted reports whether to read a file in a trusted turn makes it untrusted.
func (b *bench) isTainted(name string) bool {
	b.t.Helper()
	r := b.call("read_file", map[string]any{"path": name, "force": true})
	if r.Failed {
		b.t.Fatalf("%s: %s", name, r.Text)
	}
	return r.Tainted
}

// settle waits until what was written counts as older than the next command.
func settle() { time.Sleep(2 * changes.ClockTick) } // of files, whose times nobody can set

// R-S12: however many files a command writes in an untrusted turn, all of them are untrusted content: a
// folder stands for what is in it, and for what comes later. What was there before is not.
func TestManyFilesAreMarked(t *testing.T) {
	b := newBench(t, nil, Settings{})
	b.says("mkdir -p mine/sub; echo a > mine/sub/a.txt; echo b > b.txt", "")
	settle()
	b.scope.Tainted = true
	b.says("mkdir -p repo/src && cd repo && for i in $(seq 400); do echo $i > src/$i.txt; done; echo x > x.txt; echo x > ../mine/x.txt; cd", "")
	b.scope.Tainted = false
	if n := len(must(workspace.OriginsOf(b.w).All())); n > 10 {
		t.Errorf("%d records", n)
	}
	b.shell.EndConversation(b.scope.Session)
	if err := b.w.Names().WriteFile("work/repo/src/later.txt", []byte("later")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		"work/repo/src/1.txt": true, "work/repo/src/400.txt": true, "work/repo/x.txt": true,
		"work/repo/src/later.txt": true, "work/mine/x.txt": true,
		"work/mine/sub/a.txt": false, "work/b.txt": false,
	} {
		if got := b.isTainted(name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	for command, want := range map[string]bool{
		"cat repo/src/399.txt": true, "cd repo/src; cat 7.txt; cd": true, "cat mine/sub/a.txt": false, "ls": true, // work is named
	} {
		if r := b.run(command); r.Tainted != want {
			t.Errorf("%s: %v, from %q", command, r.Tainted, r.Sources)
		}
	}
}

// R-S12: a file that no record can name makes the folder that it is in untrusted.
func TestStrangeNamesAreMarked(t *testing.T) {
	long := strings.Repeat("long", 50)
	for name, write := range map[string]string{
		"no UTF-8":  `printf obey > $'caf\xe9.txt'`,
		"in such":   `mkdir $'d\xe9'; printf obey > $'d\xe9/x.txt'`,
		"new line":  `printf obey > $'new\nline.txt'`,
		"too deep":  `for i in $(seq 25); do mkdir ` + long + `; cd ` + long + `; done; printf obey > x.txt; cd ~`,
		"last file": `for i in $(seq 19); do mkdir ` + long + `; cd ` + long + `; done; printf obey > ` + long + long[:50] + `; cd ~`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil, Settings{})
			b.says("mkdir -p odd mine; echo mine > mine/a.txt", "")
			settle()
			b.scope.Tainted = true
			b.run("cd odd; " + write)
			b.scope.Tainted = false
			b.shell.EndConversation(b.scope.Session)
			if r := b.run("cat odd/*"); !r.Tainted {
				t.Errorf("%q is trusted", r.Text)
			}
			if r := b.run("cat mine/a.txt"); b.isTainted("work/mine/a.txt") {
				t.Errorf("all is untrusted: %q", r.Sources)
			}
		})
	}
}

// What is moved in an untrusted turn stays what it is, also in a folder.
func TestMovedFolderIsMarked(t *testing.T) {
	b := newBench(t, nil, Settings{})
	b.scope.Tainted = true
	b.says("mkdir -p theirs/deep; echo obey > theirs/deep/a.txt", "")
	settle()
	b.says("mv theirs moved; touch moved/new.txt moved/deep/new.txt", "")
	b.scope.Tainted = false
	if !b.isTainted("work/moved/deep/a.txt") {
		t.Error("a folder with another name is trusted")
	}
}

// R-S12: while a command of an untrusted turn is at work, it is not known what it has written: everything
// in work counts. Afterwards only what it wrote does.
func TestWorkIsUntrustedMeanwhile(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	var b *bench
	b = newBench(t, runnerFunc(func(ctx context.Context, s sandbox.Spec) (sandbox.Outcome, error) {
		if !slices.ContainsFunc(s.Args, func(a string) bool { return strings.Contains(a, "slow") }) {
			return none.Runner{}.Run(ctx, s)
		}
		err := os.WriteFile(filepath.Join(b.w.Dir(), "work", "theirs.txt"), []byte("obey"), 0o600)
		close(begun)
		<-goOn
		return sandbox.Outcome{End: sandbox.Exited}, err
	}), Settings{})
	b.says("echo mine > mine.txt", "")
	settle()
	done := make(chan struct{})
	b.scope.Tainted = true
	kit, scope := b.kit, b.scope
	go func() {
		defer close(done)
		kit.Call(t.Context(), toolCall(scope, "exec", `{"command":"slow"}`))
	}()
	<-begun
	b.scope.Tainted = false
	for _, name := range []string{"work/theirs.txt", "work/mine.txt"} {
		if !b.isTainted(name) {
			t.Errorf("%s is trusted while a command may write it", name)
		}
	}
	close(goOn)
	<-done
	if !b.isTainted("work/theirs.txt") || b.isTainted("work/mine.txt") {
		t.Errorf("afterwards: %+v", must(workspace.OriginsOf(b.w).All()))
	}
}

// P6: what a command wrote before Parley was killed is marked by the next start, and until then all of work
// is untrusted.
func TestMarksAfterKill(t *testing.T) {
	b := newBench(t, nil, Settings{})
	b.says("echo mine > mine.txt; mkdir -p old/deep; echo obey > old/deep/a.txt", "")
	if err := b.w.SetOrigin(must(b.w.Resolve("work/old/deep/a.txt")), ""); err != nil {
		t.Fatal(err)
	}
	settle()
	c := toolCall(b.scope, "exec", "{}")
	if _, err := b.shell.beginWriting(t.Context(), c); err != nil { // nobody ends it
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.w.Dir(), "work", "theirs.txt"), []byte("obey"), 0o600); err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(b.w.Dir(), "work")
	if err := os.Rename(work+"/old", work+"/new"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(work+"/new/more.txt", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if !b.isTainted("work/mine.txt") {
		t.Error("work is trusted before the next start has looked at it")
	}
	next := New(Config{
		Store: b.store, Runner: none.Runner{}, Deliver: b.deliver,
		Files: func() *workspace.Workspace { return b.w },
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	next.Run(ctx) // that is quickly over
	if !b.isTainted("work/new/deep/a.txt") {
		t.Error("what was in a folder that the command moved is trusted")
	}
	if !b.isTainted("work/theirs.txt") || b.isTainted("work/mine.txt") {
		t.Errorf("%+v", must(workspace.OriginsOf(b.w).All()))
	}
}

// R-S12: a program of a trusted turn finds no untrusted content that the command does not name: what is
// outside of work is hidden from it, and all in work counts as named.
func TestScriptsReadNothingUntrusted(t *testing.T) {
	exit := 0
	b := newBench(t, runnerFunc(func(_ context.Context, s sandbox.Spec) (sandbox.Outcome, error) {
		fmt.Fprintln(s.Stderr, "FileNotFoundError: ../inbox/letter.txt")
		return sandbox.Outcome{End: sandbox.Exited, Exit: exit}, nil
	}), Settings{})
	for _, name := range []string{"inbox/letter.txt", "memory/HEARD.md", "notes.md", "work/sub/mine.txt", "work/other/x.txt"} {
		if err := b.w.Names().WriteFile(name, []byte("text")); err != nil {
			t.Fatal(err)
		}
	}
	mark := func(name string) {
		if err := b.w.SetOrigin(must(b.w.Resolve(name)), ""); err != nil {
			t.Fatal(err)
		}
	}
	mark("notes.md")
	settle()
	isHidden := func(name string) bool {
		return spot{folders: b.lastSpec().Folders}.hides(filepath.Join(b.w.Dir(), name))
	}
	for _, c := range []struct {
		command string
		tainted bool // or what is not in work is hidden
	}{
		{"python3 report.py", false},
		{"ls", false},
		{"cat ../inbox/letter.txt", true},
		{"python3 report.py ../inbox", true},
		{"cat ../notes.md", true},
		{"cp ../memory/HEARD.md .", true},
		{"cd .. && ls", false},
	} {
		r := b.run(c.command)
		if r.Tainted != c.tainted && c.command != "cd .. && ls" {
			t.Errorf("%s: %v, from %q", c.command, r.Tainted, r.Sources)
		}
		for _, name := range []string{"inbox/letter.txt", "memory/HEARD.md", "notes.md"} {
			if isHidden(name) == r.Tainted {
				t.Errorf("%s: %s is hidden: %v, in an untrusted turn: %v", c.command, name, isHidden(name), r.Tainted)
			}
		}
		b.shell.EndConversation(b.scope.Session)
	}
	if r := b.run("python3 report.py"); strings.Contains(r.Text, "name it in the command") {
		t.Errorf("%q", r.Text)
	}
	exit = 1
	if r := b.run("python3 report.py"); !strings.Contains(r.Text, "inbox holds untrusted content") {
		t.Errorf("%q", r.Text)
	}

	mark("work/other/x.txt")
	for command, want := range map[string]bool{"cat mine.txt": false, "python3 report.py": true} {
		r := b.call("exec", map[string]any{"command": command, "working_dir": "sub"})
		if r.Tainted != want {
			t.Errorf("%s: %v, from %q", command, r.Tainted, r.Sources)
		}
	}
	mark("work/.gitconfig")
	r := b.call("exec", map[string]any{"command": "git status", "working_dir": "sub"})
	if !r.Tainted {
		t.Error("what programs obey in their home is trusted")
	}
	b.scope.Tainted = true
	if b.run("ls"); isHidden("inbox/letter.txt") {
		t.Error("it is hidden in an untrusted turn")
	}
}

// R-S12: a command that reads more than is below the folders that it names is known to.
func TestFoldersThatCommandsName(t *testing.T) {
	b := newBench(t, nil, Settings{})
	b.says("mkdir -p clean mine/deep theirs; echo obey > theirs/a.txt; git init -q repo; mkdir repo/src; echo a > repo/src/a.txt", "")
	for _, name := range []string{"work/theirs/a.txt", "work/repo/.git/HEAD"} {
		if err := b.w.SetOrigin(must(b.w.Resolve(name)), ""); err != nil {
			t.Fatal(err)
		}
	}
	settle()
	for command, want := range map[string]bool{
		"cat ../mine/x; ls":                             false,
		"cd ../mine && ls":                              false,
		"cat ../repo/src/a.txt":                         false,
		"cd ../mine; git diff --no-index main..topic x": false,
		"cd deep && ls && cd ..":                        false,
		"cd ../mine; ls; cd ../theirs":                  false, // from there, nothing is read
		"cd ../theirs && cat a.txt":                     true,
		"cd ../mine/deep; cat ../../theirs/a.txt":       true, // that is nowhere, seen from where it begins
		"cd; cat theirs/a.txt":                          true,
		"cd $X; cat theirs/a.txt":                       true,
		"cd ../mine; cd ..; cat theirs/a.txt":           true,
		"X=..; cat $X/../theirs/a.txt":                  true,
		"cat $(echo ..)/../work/theirs/a.txt":           true,
		"cd ../repo/src && git log":                     true,
		"cat ../theirs/a.txt":                           true,
	} {
		r := b.call("exec", map[string]any{"command": command, "working_dir": "clean"})
		if r.Tainted != want {
			t.Errorf("%s: %v, from %q", command, r.Tainted, r.Sources)
		}
		b.shell.EndConversation(b.scope.Session)
	}
}

// More files with untrusted content than can be hidden one by one do not make every command untrusted.
func TestManyFilesAreHidden(t *testing.T) {
	b := newBench(t, nil, Settings{})
	for i := range 2 * maxHidden {
		name := fmt.Sprintf("notes/%d.md", i)
		if err := b.w.Names().WriteFile(name, []byte("obey")); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			continue // that one is trusted
		}
		if err := b.w.SetOrigin(must(b.w.Resolve(name)), ""); err != nil {
			t.Fatal(err)
		}
	}
	if r := b.run("ls"); r.Tainted || len(r.Sources) > 0 {
		t.Errorf("untrusted, from %q", r.Sources)
	}
	if (spot{folders: b.lastSpec().Folders}).hides(filepath.Join(b.w.Dir(), "work")) {
		t.Error("work is hidden")
	}
	for _, name := range []string{"notes/1.md", "notes/199.md"} {
		if !(spot{folders: b.lastSpec().Folders}).hides(filepath.Join(b.w.Dir(), name)) {
			t.Errorf("%s is seen", name)
		}
	}
	if r := b.run("cat ../notes/0.md"); !strings.Contains(r.Text, "obey") {
		t.Errorf("what the command names is hidden: %q", r.Text)
	}
}

// toolCall returns a call of a tool.
func toolCall(scope tools.Scope, name, args string) tools.Call {
	c := tools.Call{Scope: scope}
	c.ID = "one"
	c.Name = name
	c.Args = args
	return c
}

// R-S12: a command that may reach hosts, and goes on by itself, may write what comes from there at any
// time: everything in work is untrusted from its start, and not only once it is known what it reached.
func TestWorkIsUntrustedWhileHostsMayBeReached(t *testing.T) {
	for _, c := range []struct {
		name  string
		hosts []string
		args  map[string]any
		want  bool
	}{
		{"in the background", []string{"pypi.org"}, map[string]any{"command": "slow", "background": true}, true},
		{"in the background, without hosts", nil, map[string]any{"command": "slow", "background": true}, false},
		{"waited for, with the internet", []string{"pypi.org"}, map[string]any{"command": "slow", "network": true}, true},
		{"waited for", []string{"pypi.org"}, map[string]any{"command": "slow"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			begun, goOn := make(chan struct{}), make(chan struct{})
			b := newBench(t, confiner{runnerFunc(func(ctx context.Context, s sandbox.Spec) (sandbox.Outcome, error) {
				close(begun)
				<-goOn
				return sandbox.Outcome{End: sandbox.Exited}, nil
			})}, Settings{Network: c.hosts})
			if err := b.w.Names().WriteFile("work/mine.txt", []byte("mine")); err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			kit, call := b.kit, toolCall(b.scope, "exec", string(must(json.Marshal(c.args))))
			go func() {
				defer close(done)
				kit.Call(t.Context(), call)
			}()
			<-begun
			if got := b.isTainted("work/mine.txt"); got != c.want {
				t.Errorf("while it runs, what is in work counts as untrusted: %t, want %t", got, c.want)
			}
			close(goOn)
			<-done
			b.shell.EndConversation(b.scope.Session)
		})
	}
}

// R-S12: while a command may write untrusted content, nothing is trusted again; before and after, it is.
func TestWhileNoneWrites(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	b := newBench(t, runnerFunc(func(context.Context, sandbox.Spec) (sandbox.Outcome, error) {
		close(begun)
		<-goOn
		return sandbox.Outcome{End: sandbox.Exited}, nil
	}), Settings{})
	may := func() bool {
		called := false
		done, err := b.shell.WhileNoneWrites(t.Context(), func() error { called = true; return nil })
		if err != nil || done != called {
			t.Errorf("%v, and it was called: %t", err, called)
		}
		return done
	}
	before := may()
	b.scope.Tainted = true
	kit, call := b.kit, toolCall(b.scope, "exec", `{"command":"slow"}`)
	done := make(chan struct{})
	go func() {
		defer close(done)
		kit.Call(t.Context(), call)
	}()
	<-begun
	during := may()
	close(goOn)
	<-done
	if after := may(); !before || during || !after {
		t.Errorf("before, during and after: %t, %t, %t", before, during, after)
	}
}

// R-S12: a command that names each file which it reads does not count as one that reads the folder that it
// runs in. One that lists it, or whose text does not say what it reads, does.
func TestPlainCommandsReadWhatTheyName(t *testing.T) {
	b := newBench(t, nil, Settings{})
	b.says("mkdir -p theirs mine; echo obey > theirs/a.txt; echo mine > mine/a.txt; ln -s theirs/a.txt link; ln -s theirs folder", "")
	if err := b.w.SetOrigin(must(b.w.Resolve("work/theirs/a.txt")), ""); err != nil {
		t.Fatal(err)
	}
	settle()
	check := func(command string, want bool) {
		t.Helper()
		r := b.run(command)
		if r.Tainted != want {
			t.Errorf("%s: untrusted: %t, from %q: %s", command, r.Tainted, r.Sources, r.Text)
		}
		b.shell.EndConversation(b.scope.Session)
	}
	for _, command := range []string{
		"date; pwd; true",
		"hostname; sleep 0; id -u",
		"cat mine/a.txt",
		"cat 'mine/a.txt' | head -n 1",
		"mkdir -p new && touch new/a.txt",
		"echo hello > mine/b.txt",
		"cp mine/a.txt mine/c.txt",
		"cat < mine/a.txt && rm -f mine/c.txt",
	} {
		check(command, false)
	}
	for _, command := range []string{
		"cat theirs/a.txt",
		"cat mine/../theirs/a.txt",
		"cat < theirs/a.txt",
		"cat link",
		"cat folder/a.txt",
		"mv theirs/a.txt x && mv x theirs/a.txt",
		"ls",
		"cat */a.txt",
		"cat the?rs/a.txt",
		"cat {theirs,mine}/a.txt",
		`cat the\irs/a.txt`,
		`cat $'\x74heirs/a.txt'`,
		`cat "the"irs/a.txt`,
		"cat ~/theirs/a.txt",
		`X=theirs; cat "$X/a.txt"`,
		"cat $(echo theirs)/a.txt",
		"cat <(cat theirs/a.txt)",
		"cp -rL . /tmp/x",
		"cp -rL mine /tmp/x",
		"date -ftheirs/a.txt",
		"cat() { command cat theirs/a.txt; }; cat mine/a.txt",
		"cd theirs; cat a.txt; cd",
		"(cat mine/a.txt)", // no more than needed
		"eval cat mine/a.txt",
		"cat mine/a.txt; python3 -c 1",
	} {
		check(command, true)
	}
	if r := b.call("exec", map[string]any{"command": "export PATH=/home:$PATH", "working_dir": "mine"}); r.Tainted {
		t.Errorf("%q", r.Sources)
	}
	if r := b.run("date"); !r.Tainted {
		t.Error("with a PATH of its own, what a program is counts as known")
	}
}
