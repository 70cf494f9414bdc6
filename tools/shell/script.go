package shell

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley/lazyregexp"
	"parley/tools/sandbox"
	"parley/workspace"
)

const (
	maxEnvBytes   = 64 << 10 // of the variables that are kept of a session
	maxStateBytes = 1 << 20  // of what a command says of its variables
	maxDirBytes   = 4096
)

// statePrefix begins the names of the files in which commands leave their state.
const statePrefix = ".shell-"

// A script is a command, and how it tells where it ended up.
type script struct {
	args []string
	file string // in which it leaves its folder and variables; "" if it does not
}

// newScript returns the script of a command that works in the folder work. If it is to leave its
// state, it does so when its shell exits, in whatever way.
func newScript(command, work string, leaveState bool) script {
	shell := []string{"sh", "-c"}
	for _, bash := range []string{"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"} {
		if _, err := os.Stat(bash); err == nil {
			shell = []string{bash, "--noprofile", "--norc", "-c"}
			break
		}
	}
	if !leaveState {
		return script{args: append(shell, command)}
	}
	var nonce [6]byte
	_, _ = rand.Read(nonce[:]) // it never fails
	file := filepath.Join(work, statePrefix+hex.EncodeToString(nonce[:]))
	leave := `{ printf '%s\0' "$(pwd -P)" && env -0; } > ` + quote(file) + ` 2>/dev/null`
	return script{args: append(shell, "trap "+quote(leave)+" EXIT; "+command), file: file}
}

// quote returns text as one word of a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// leftState reads and removes the state that a command has left. given are the variables that it
// was started with by the tool itself.
func (s script) leftState(w *workspace.Workspace, before state, given map[string]string) (state, bool) {
	if s.file == "" {
		return before, false
	}
	at, err := inWork(w, filepath.Base(s.file))
	if err != nil {
		return before, false
	}
	defer func() { _ = w.Remove(at) }() // else it is a small file too many
	info, err := w.Stat(at)
	if err != nil || info.Size() > maxStateBytes {
		return before, false
	}
	text, err := w.ReadFile(at)
	if err != nil {
		return before, false
	}
	parts := strings.Split(string(text), "\x00")
	if len(parts) < 2 || !filepath.IsAbs(parts[0]) || len(parts[0]) > maxDirBytes {
		return before, false
	}
	return state{Dir: parts[0], Env: changedVariables(parts[1:], given)}, true
}

// discard removes the state that a command has left, and that nobody reads: it has the values of all
// variables.
func (s script) discard(w *workspace.Workspace) {
	if s.file == "" {
		return
	}
	at, err := inWork(w, filepath.Base(s.file))
	if err != nil {
		return
	}
	_ = w.Remove(at) // mostly there is none
}

// inWork returns the file of that name in the folder of programs. A link in its place is an error: a
// program could have made it.
func inWork(w *workspace.Workspace, name string) (workspace.Path, error) {
	name = filepath.Join(sandbox.WorkDir, name)
	at, err := w.Resolve(name)
	if err != nil {
		return at, err
	}
	if shown := w.View().Shown(at); shown != name {
		return at, fmt.Errorf("%s is a link to %s", name, shown)
	}
	return at, nil
}

// isOwnVariable matches the variables that shells and sandboxes set themselves.
var isOwnVariable = lazyregexp.New(`(?i)^(_|pwd|oldpwd|shlvl|tmpdir|tmp|temp|bash_.*|.*_proxy)$`)

var isVariable = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// changedVariables returns those of vars, NAME=value each, that are not as every command has them.
// If they are too many, the longest are left out.
func changedVariables(vars []string, given map[string]string) map[string]string {
	changed := map[string]string{}
	size := 0
	slices.SortFunc(vars, func(a, b string) int { return len(a) - len(b) })
	for _, v := range vars {
		name, value, _ := strings.Cut(v, "=")
		old, isGiven := given[name]
		if !isVariable.MatchString(name) || isOwnVariable.MatchString(name) || isGiven && old == value {
			continue
		}
		if size += len(v); size > maxEnvBytes {
			break
		}
		changed[name] = value
	}
	return changed
}

// environment returns the variables that every command has. They have git obey no repository in which a
// folder without .git is one: a cloned one can hold such a folder, and its settings name programs.
func environment(set Settings, work string) map[string]string {
	all := sandbox.BaseEnv()
	all["GIT_CONFIG_COUNT"] = "1"
	all["GIT_CONFIG_KEY_0"] = "safe.bareRepository"
	all["GIT_CONFIG_VALUE_0"] = "explicit"
	maps.Copy(all, set.Env)
	all["HOME"] = work
	return all
}

// gitIdentity is what commits say of their author, unless somebody writes something else there.
const gitIdentity = "[user]\n\tname = Parley\n\temail = parley@localhost\n"

const gitConfig = ".gitconfig" // in the home of programs

// isSeeded reports whether a file has what seedHome writes, and nothing else.
func isSeeded(w *workspace.Workspace, at workspace.Path) bool {
	text, err := w.ReadFile(at)
	return err == nil && string(text) == gitIdentity
}

// seedHome writes what programs expect in their home, unless it is there. Without it, commands work
// but for commits.
func seedHome(w *workspace.Workspace) {
	at, err := inWork(w, gitConfig)
	if err != nil {
		return
	}
	if _, err := w.Stat(at); errors.Is(err, fs.ErrNotExist) {
		_ = w.WriteFile(at, []byte(gitIdentity))
	}
}

// saveState keeps where a command of a session ended up.
func (s *Shell) saveState(ctx context.Context, session string, st state) error {
	return s.states.Set(context.WithoutCancel(ctx), session, st)
}
