package moving

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"parley/lazyregexp"
)

// paths finds the paths into a folder that is to be moved in the text of a config.
type paths struct {
	config   string   // the file, relative to which paths are
	from, to string   // from without symbolic links
	names    []string // that from has
}

func newPaths(config, from, to string) (p paths, err error) {
	p = paths{config: config, to: to, names: []string{from}}
	if p.from, err = filepath.EvalSymlinks(from); err != nil {
		return p, err
	}
	if p.from != from {
		p.names = append(p.names, p.from)
	}
	return p, nil
}

var (
	jsonText = lazyregexp.New(`"(?:[^"\\\n]|\\.)*"`)
	// relativeUp matches relative paths that go up, but neither addresses nor prose.
	relativeUp = lazyregexp.New(`^(?:[^/~:\n][^:\n]{0,200}/)?\.\./`)
)

// rewrite returns the text of a config with the new places of what is moved, and what it has changed in words. A
// relative workspace outside the folder is named by its whole path, as it would be another one from there. The error
// names paths that only the environment leads to, and relative ones that lead out of the folder. What is in comments is
// never an error.
func (p paths) rewrite(text string) (_ string, changes []string, err error) {
	var b strings.Builder
	var leaving []string
	values := places(text)
	folders := p.folders(text, values)
	end := 0
	for _, m := range jsonText.FindAllStringIndex(text, -1) {
		b.WriteString(text[end:m[0]])
		end = m[1]
		quoted := text[m[0]:m[1]]
		var was string
		if json.Unmarshal([]byte(quoted), &was) != nil {
			b.WriteString(quoted)
			continue
		}
		keys, isValue := values[m[0]]
		key, folder := keyOf(keys), folders[m[0]]
		is, _ := p.follow(was, key, folder)
		expanded := os.Expand(was, keepPlain)
		switch then, leaves := p.follow(expanded, key, folder); {
		case is != was, !isValue:
		case then != expanded:
			err = fmt.Errorf("%s names %s, which is %s: it would go on to use the old folder\n"+
				"write it without a variable, and move again", p.config, was, expanded)
		case !leaves || key == dataDir:
		case key == "workspace" && expanded == was:
			is = filepath.Join(filepath.Dir(p.config), was)
		case !slices.Contains(leaving, was):
			leaving = append(leaving, was)
		}
		if is == was {
			b.WriteString(quoted)
			continue
		}
		if change := was + " is now " + is; !slices.Contains(changes, change) {
			changes = append(changes, change)
		}
		out, _ := json.Marshal(is) // a text can be encoded
		b.Write(out)
	}
	if err != nil {
		return "", nil, err
	}
	if len(leaving) > 0 {
		const why = "%s has relative paths that lead out of the folder, and would lead elsewhere from the new: %s\n" +
			"write them from the root, and move again"
		return "", nil, fmt.Errorf(why, p.config, strings.Join(leaving, ", "))
	}
	return b.String() + text[end:], changes, nil
}

// follow returns what text, a value of the config, is to be after the move, and whether it is a relative path that
// leads out of the folder. key is what keyOf returns for it; folder is where it is relative to if it is an argument of
// a program.
func (p paths) follow(text, key, folder string) (is string, leaves bool) {
	isHome := text == "~" || strings.HasPrefix(text, "~/")
	if (key == "workspace" || key == dataDir) && !isHome && !filepath.IsAbs(text) {
		return p.relative(text, filepath.Dir(p.config))
	}
	if folder != "" {
		path := text
		if _, value, has := strings.Cut(text, "="); has && strings.HasPrefix(text, "-") {
			path = value
		}
		if relativeUp.MatchString(path + "/") {
			is, leaves = p.relative(path, folder)
			return strings.TrimSuffix(text, path) + is, leaves
		}
	}
	is = p.moved(text)
	return is, is == text && folder == "" && p.leadsOut(text)
}

// relative is follow for what is a relative path, as seen from folder.
func (p paths) relative(path, folder string) (is string, leaves bool) {
	rest, moves := p.inside(folder)
	if moves && filepath.IsLocal(filepath.Join(".", rest, path)) { // it moves along
		return path, false
	}
	if to, is := p.inside(filepath.Join(folder, path)); is {
		return filepath.Join(p.to, to), false
	}
	return path, moves
}

// dataDir is the key that --data takes the place of.
const dataDir = "dataDir"

// keyOf returns the key of a value that is in no other value of the config, or "".
func keyOf(keys []string) string {
	if len(keys) != 1 {
		return ""
	}
	return keys[0]
}

// leadsOut reports whether text is a relative path that leads out of the folder.
func (p paths) leadsOut(text string) bool {
	if !relativeUp.MatchString(text + "/") {
		return false
	}
	_, is := p.inside(filepath.Join(filepath.Dir(p.config), text))
	return !is
}

// keepPlain returns the value of a variable, or the reference to it if there is none.
func keepPlain(name string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return "${" + name + "}"
}

// stays returns the paths into the folder that a config names which stays where it is.
func (p paths) stays(text string) (all []string) {
	values := places(text)
	folders := p.folders(text, values)
	for _, at := range slices.Sorted(maps.Keys(values)) {
		key := keyOf(values[at])
		if key == dataDir {
			continue
		}
		name := os.Expand(textAt(text, at), keepPlain)
		is, _ := p.follow(name, key, folders[at])
		if is != name && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// moved returns text, a value of the config, with the new places of what is moved.
func (p paths) moved(text string) string {
	path := text
	if rest, ok := strings.CutPrefix(text, "~/"); ok {
		path = filepath.Join(os.Getenv("HOME"), rest)
	}
	if strings.HasPrefix(text, "../") || strings.HasPrefix(text, "./..") {
		path = filepath.Join(filepath.Dir(p.config), text)
	}
	if filepath.IsAbs(path) {
		if rest, is := p.inside(path); is {
			return filepath.Join(p.to, rest)
		}
	}
	for _, name := range p.names {
		text = replacePath(text, name, p.to)
	}
	return text
}

// inside returns where in the folder a path is, if it is there.
func (p paths) inside(path string) (rest string, is bool) {
	path = filepath.Clean(path)
	real, err := filepath.EvalSymlinks(path)
	if err != nil { // there is no such file
		real = path
	}
	for _, path := range []string{path, real} {
		for _, name := range p.names {
			if rest, ok := strings.CutPrefix(path, name); ok && (rest == "" || rest[0] == '/') {
				return rest, true
			}
		}
	}
	return "", false
}

// replacePath replaces the path old, and what is below it, wherever it stands in text: as in --dir=/old/x.
func replacePath(text, old, to string) string {
	const around = "=:,; '\""
	var b strings.Builder
	for {
		at := strings.Index(text, old)
		if at < 0 {
			return b.String() + text
		}
		after := text[at+len(old):]
		begins := at == 0 && b.Len() == 0 || at > 0 && strings.IndexByte(around, text[at-1]) >= 0
		ends := after == "" || after[0] == '/' || strings.IndexByte(around, after[0]) >= 0
		b.WriteString(text[:at])
		if begins && ends {
			b.WriteString(to)
		} else {
			b.WriteString(old)
		}
		text = after
	}
}
