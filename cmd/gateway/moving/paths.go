package moving

import (
	"encoding/json"
	"fmt"
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
	// dataDir is the key that --data takes the place of.
	dataDir = lazyregexp.New(`"dataDir"\s*:\s*"(?:[^"\\\n]|\\.)*"`)
)

// rewrite returns the text of a config with the new places of what is moved, and what it has changed in words. The
// error names a path that only the environment leads to.
func (p paths) rewrite(text string) (_ string, changes []string, err error) {
	changed := jsonText.ReplaceAllStringFunc(text, func(quoted string) string {
		var was string
		if json.Unmarshal([]byte(quoted), &was) != nil {
			return quoted
		}
		is := p.moved(was)
		if is == was {
			if expanded := os.Expand(was, keepPlain); p.moved(expanded) != expanded {
				err = fmt.Errorf("%s names %s, which is %s: it would go on to use the old folder\n"+
					"write it without a variable, and move again", p.config, was, expanded)
			}
			return quoted
		}
		if change := was + " is now " + is; !slices.Contains(changes, change) {
			changes = append(changes, change)
		}
		out, _ := json.Marshal(is) // a text can be encoded
		return string(out)
	})
	return changed, changes, err
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
	text = dataDir.ReplaceAllString(text, "")
	for _, quoted := range jsonText.FindAllString(text, -1) {
		var name string
		if json.Unmarshal([]byte(quoted), &name) != nil {
			continue
		}
		if name = os.Expand(name, keepPlain); p.moved(name) != name && !slices.Contains(all, name) {
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
