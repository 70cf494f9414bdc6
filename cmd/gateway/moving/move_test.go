package moving

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/imports"
)

// moved runs parley move on a folder with that config, whose place is given by its name. It returns what the config says
// then, and what is printed. HERE in the texts is where the folders are.
func moved(t *testing.T, dir, config, name string) (text, out string, err error) {
	t.Helper()
	old, to := filepath.Join(dir, "old"), filepath.Join(dir, "new")
	file := filepath.Join(dir, name)
	put := func(path, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	put(filepath.Join(old, "files", "note.txt"), "tea")
	put(file, strings.ReplaceAll(config, "HERE", dir))
	var b strings.Builder
	cmd := moveCommand(Config{Out: &b, Target: func() (imports.Target, error) {
		return imports.Target{DataDir: old, Workspace: filepath.Join(old, "files"), Config: file}, nil
	}})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{to})
	err = cmd.ExecuteContext(t.Context())
	if rest, inside := strings.CutPrefix(name, "old/"); inside && err == nil {
		file = filepath.Join(to, rest)
	}
	said, readErr := os.ReadFile(file)
	if readErr != nil {
		t.Fatal(readErr)
	}
	here := func(text string) string { return strings.ReplaceAll(text, dir, "HERE") }
	if err != nil {
		err = errors.New(here(err.Error()))
	}
	return here(string(said)), here(b.String()), err
}

// TestPathsMove: whatever in the config leads into the old folder leads into the new one after a move, however it is
// written, and that is said.
func TestPathsMove(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	if err := os.Symlink(filepath.Join(dir, "old"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	text, out, err := moved(t, dir, `{ // of "HERE/old"
  "dataDir": "HERE/old/", "workspace": "HERE/old/files", "a": "~/old/files", "b": "../old/files", "c": "HERE/link/files",
  "args": ["--dir=HERE/old/files:HERE/older", "x HERE/old y", "HERE/older", "HERE/oldest/old"], "d": "files", "e": "~/older", "f": "/etc",
  "key": "\u0048\"\\", "g": "${NO_SUCH_THING}/old"
}`, "old/config.json")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{ // of "HERE/new"
  "dataDir": "HERE/new", "workspace": "HERE/new/files", "a": "HERE/new/files", "b": "HERE/new/files", "c": "HERE/new/files",
  "args": ["--dir=HERE/new/files:HERE/older", "x HERE/new y", "HERE/older", "HERE/oldest/old"], "d": "files", "e": "~/older", "f": "/etc",
  "key": "\u0048\"\\", "g": "${NO_SUCH_THING}/old"
}`
	if text != want {
		t.Errorf("the config is\n%s, not\n%s", text, want)
	}
	if !strings.Contains(out, "\nchanged in HERE/new/config.json: HERE/old/files is now HERE/new/files\n") {
		t.Errorf("it says\n%s", out)
	}
	old, err := os.ReadFile(filepath.Join(dir, "old", "config.json"))
	if err != nil || !strings.Contains(string(old), dir+"/old/files") {
		t.Errorf("the old config is %s, %v", old, err)
	}
}

// TestWorkspaceBeside: a relative workspace beside the folder is the same one from the new place.
func TestWorkspaceBeside(t *testing.T) {
	for _, way := range []string{"../shared/files", "./../shared/files", "x/../../shared/files", "a b/../../shared/files"} {
		dir := t.TempDir()
		text, out, err := moved(t, dir, `{ "workspace" : "`+way+`" }`, "old/config.json")
		if want := `{ "workspace" : "HERE/shared/files" }`; err != nil || text != want {
			t.Errorf("the config is %s, not %s: %v", text, want, err)
		}
		if !strings.Contains(out, "config.json: "+way+" is now HERE/shared/files\n") {
			t.Errorf("it says\n%s", out)
		}
	}
}

// TestRelativePaths: a workspace and the arguments of MCP servers lead to the same after a move, however they are written
// and wherever they are relative to.
func TestRelativePaths(t *testing.T) {
	const servers = `{ // 5" { wide
 /* [ */ "tools": { "mcpServers": { "a": { "command": "x", `
	for name, c := range map[string]struct{ config, want, err string }{
		"a workspace that leads out and back": {`{ "workspace": "files/../../old/files" }`, `{ "workspace": "HERE/new/files" }`, ""},
		"a folder that leads out and back":    {`{ "dataDir": "x/../../old" }`, `{ "dataDir": "HERE/new" }`, ""},
		"a workspace above":                   {`{ "workspace": "./.." }`, `{ "workspace": "HERE" }`, ""},
		"a workspace above, in short":         {`{ "workspace": "x/../.." }`, `{ "workspace": "HERE" }`, ""},
		"a workspace that moves along":        {`{ "workspace": "x/../files" }`, `{ "workspace": "x/../files" }`, ""},
		"arguments that move along": {
			servers + `"args": ["--notes", "../shared", "--x=../../y", "./..", "../.."] } } } }`,
			servers + `"args": ["--notes", "../shared", "--x=../../y", "./..", "../.."] } } } }`, "",
		},
		"arguments that lead out and back": {
			servers + `"args": ["../../../old/x", "--y=../../../old/y"] } } } }`, servers + `"args": ["HERE/new/x", "--y=HERE/new/y"] } } } }`, "",
		},
		"arguments that lead out": {
			servers + `"args": ["../x", "../../../shared", "--y=../../../y"] } } } }`, "",
			"lead elsewhere from the new: ../../../shared, --y=../../../y\n",
		},
		"arguments relative to what stays": {
			servers + `"args": ["../../../shared"], "cwd": "/srv/app" } } } }`, servers + `"args": ["../../../shared"], "cwd": "/srv/app" } } } }`, "",
		},
		"arguments relative to what moves": {servers + `"args": ["../../x"], "cwd": "HERE/old/app" } } } }`, "", "lead elsewhere from the new: ../../x\n"},
	} {
		t.Run(name, func(t *testing.T) {
			text, _, err := moved(t, t.TempDir(), c.config, "old/config.json")
			switch {
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("%v", err)
			case c.err == "" && (err != nil || text != c.want):
				t.Errorf("the config is %s, not %s: %v", text, c.want, err)
			}
		})
	}
}

// TestPathsStay: where the old folder would go on to be used nothing is moved, and the error says why.
func TestPathsStay(t *testing.T) {
	t.Setenv("PLACE", "")
	for name, c := range map[string]struct{ config, file, want string }{
		"a config that stays": {
			`{ "dataDir": "HERE/old", "workspace": "HERE/old/files" }`, "mine.json",
			"HERE/mine.json, which stays, names HERE/old/files in the folder that would move",
		},
		"relative to a config that stays": {`{ "workspace": "../w/old/files" }`, "mine.json", ""},
		"a variable": {
			`{ "workspace": "${PLACE}/old/files" }`, "old/config.json",
			"HERE/old/config.json names ${PLACE}/old/files, which is HERE/old/files: it would go on to use the old folder",
		},
		"relative paths that lead out": {
			`{ "a": ["../shared/x", "./../y", "../old/z", "a/../../w", "${UP}/v"], "b": "../shared/x" }`, "old/config.json",
			"HERE/old/config.json has relative paths that lead out of the folder, and would lead elsewhere from the new: " +
				"../shared/x, ./../y, a/../../w, ${UP}/v\nwrite them from the root",
		},
		"a workspace by a variable": {`{ "workspace": "${UP}/w" }`, "old/config.json", "lead out of the folder, and would lead elsewhere from the new: ${UP}/w\n"},
		"what is no key of the folder": {
			`{ "tools": { "mcpServers": { "a": { "env": { "workspace": "../w" } } } } }`, "old/config.json", "would lead elsewhere from the new: ../w\n",
		},
		"comments": {
			`{ // "workspace": "../w", "a": "../x", "b": "${PLACE}/old/files"
}`, "old/config.json", "",
		},
		"comments of what stays": {`{ /* "a": "HERE/old/files" */ }`, "mine.json", ""},
		"what leads to the same": {`{ "dataDir": "../old", "a": "b/../c", "d": "up .. and ../down", "e": "/../x", "f": "https://a/../b" }`, "old/config.json", ""},
		"relative to what stays": {`{ "a": "../shared/x" }`, "mine.json", ""},
		"relative arguments":     {`{ "tools": { "mcpServers": { "a": { "args": ["../old/x", "../y"] } } } }`, "mine.json", ""},
		"a relative workspace": {
			`{ "workspace": "old/files" }`, "mine.json", "HERE/mine.json, which stays, names old/files in the folder that would move",
		},
		"only the data": {`{ "dataDir": "HERE/old" }`, "mine.json", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("PLACE", dir)
			t.Setenv("UP", "..")
			_, _, err := moved(t, dir, c.config, c.file)
			_, there := os.Stat(filepath.Join(dir, "new"))
			if c.want == "" {
				if err != nil || there != nil {
					t.Errorf("%v, %v", err, there)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || there == nil {
				t.Errorf("%v, %v", err, there)
			}
		})
	}
}
