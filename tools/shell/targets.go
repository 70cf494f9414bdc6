package shell

import (
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"parley/workspace"
)

// redirect reads where something is written.
func (r *reader) redirect(redirect *syntax.Redirect) {
	if redirect.Word == nil {
		return
	}
	r.inside(redirect.Word)
	switch redirect.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrInOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
	case syntax.DplOut:
		if isDuplicate(redirect) {
			return
		}
	default:
		return
	}
	if fields, known := r.fields(redirect.Word); known {
		for _, name := range fields {
			r.writes(name)
		}
	}
}

// writes judges a file that a command writes to or removes.
func (r *reader) writes(name string) {
	if isUnknown(name) || name == "" || isHarmlessDevice(name) {
		return
	}
	at, known := r.resolve(name)
	switch {
	case !known:
	case workspace.Within(at, "/dev"):
		r.refuse(refusedDangerous, name)
	case workspace.Within(at, r.place.work),
		isTemporary(at) && !workspace.Within(at, r.workspace()) && !workspace.Within(r.place.work, at):
	case isState(at, r.workspace()):
		r.refuse(refusedState, name)
	case strings.Contains("/"+name+"/", "/../"):
		r.refuse(refusedTraversal, name)
	default:
		r.refuse(refusedOutside, name)
	}
}

func isHarmlessDevice(name string) bool {
	return slices.Contains([]string{"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero"}, name) ||
		workspace.Within(name, "/dev/fd") || workspace.Within(name, "/dev/shm")
}

func isTemporary(at string) bool {
	return workspace.Within(at, "/tmp") || workspace.Within(at, "/var/tmp")
}

func (r *reader) workspace() string { return filepath.Dir(r.place.work) }

// isState reports whether a file is one of those that Parley goes by or keeps itself (D-074).
func isState(at, root string) bool {
	if !workspace.Within(at, root) {
		return false
	}
	name, _ := filepath.Rel(root, at)
	first, _, _ := strings.Cut(filepath.ToSlash(name), "/")
	switch strings.ToLower(first) {
	case ".parley", "memory", "skills", "agents", "custom_tools", "history.jsonl", ".dream_cursor":
		return true
	}
	return strings.HasSuffix(strings.ToLower(first), ".md") && first == name
}

// resolve returns the path that name means.
func (r *reader) resolve(name string) (at string, known bool) {
	if !filepath.IsAbs(name) {
		if r.lostDir {
			return "", false
		}
		name = filepath.Join(r.place.dir, name)
	}
	return filepath.Clean(name), true
}

// deletes judges what a command removes, with everything below it.
func (r *reader) deletes(operands []string, recursive bool) {
	for _, name := range operands {
		if isUnknown(name) {
			if recursive {
				r.ask(askOperand)
			}
			continue
		}
		at, known := r.resolve(name)
		switch {
		case !known && recursive:
			r.ask(askOperand)
		case !known:
		case recursive && (at == r.place.work || filepath.Dir(at) == r.place.work && isWild(filepath.Base(at))):
			r.ask(askEverything)
		default:
			r.writes(name)
		}
	}
}

// isWild reports whether a pattern matches every name.
func isWild(pattern string) bool {
	return strings.Trim(pattern, "*?.[]!{},") == "" && strings.Contains(pattern, "*")
}
