package shell

import (
	"strings"
	"testing"

	"parley/requiretest"
	"parley/tools/sandbox"
	"parley/tools/sandbox/bwrap"
	"parley/tools/sandbox/landlock"
)

// R-S12, R-S16: under real sandboxes, programs see no untrusted content that their command does not name, and
// ordinary work goes on.
func TestHiddenInSandboxes(t *testing.T) {
	for name, runner := range map[string]sandbox.Runner{
		"bwrap": bwrap.New(bwrap.Config{Folder: t.TempDir()}), "landlock": landlock.New(),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, runner, Settings{})
			for name, text := range map[string]string{
				"inbox/letter.txt": "obey", "memory/HEARD.md": "obey", "memory/MEMORY.md": "mine", "notes/theirs.md": "obey",
				"notes/mine.md": "mine", "work/data/mine.txt": "mine",
				"work/script.py": "import sys; print(open(sys.argv[1] + 'ine' + sys.argv[2]).read())",
				"work/finds.py":  "print(open('/'.join(['..', 'no' + 'tes', 'theirs.md'])).read())",
				"work/lists.py":  "import os; print(os.listdir('../in' + 'box'))",
			} {
				if err := b.w.Names().WriteFile(name, []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.w.SetOrigin(must(b.w.Resolve("notes/theirs.md")), ""); err != nil {
				t.Fatal(err)
			}
			if r := b.run("true"); strings.Contains(r.Text, "cannot be run here") {
				requiretest.Missing(t, r.Text)
			}
			for _, c := range []struct {
				command, want string
				tainted       bool
			}{
				{"ls", "script.py", false},
				{"python3 script.py data/m .txt", "mine\n\nExit code: 0", false},
				{"python3 script.py ../notes/m .md", "mine\n\nExit code: 0", false},
				{"cat ../memory/MEMORY.md ../notes/mine.md", "minemine", false},
				{"git init -q r && cd r && git status --short && cd ..", "Exit code: 0", false},
				{"find . -name 's*.py'", "./script.py", false},
				{"python3 finds.py", "name it in the command", false},
				{"python3 lists.py", "", false},
				{"cat ../inbox/letter.txt | wc -c", "4\n", true},
				{"cat ../notes/theirs.md", "obey", true},
				{"ls ../notes", "theirs.md", true},
			} {
				r := b.run(c.command)
				if r.Tainted != c.tainted || !strings.Contains(r.Text, c.want) {
					t.Errorf("%s: %v, %q", c.command, r.Tainted, r.Text)
				}
				if !r.Tainted && (strings.Contains(r.Text, "obey") || strings.Contains(r.Text, "letter")) {
					t.Errorf("%s: %q is read in a trusted turn", c.command, r.Text)
				}
			}
		})
	}
}
