package skills

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"parley/chat"
	"parley/texts"
)

// A Page is a Markdown file with a head: YAML between two lines ---.
type Page struct {
	Name        string
	Path        string   // in the workspace
	Description string   // one line without markup
	Text        string   // the text after the head
	Fault       string   // why the page cannot be used, for people; "" if it can
	Missing     string   // of a skill: what it needs and is not there, such as "needs ffmpeg"
	Always      bool     // of a skill: it is part of every prompt, as far as there is room
	Model       string   // of a profile: name in config.json; "" is the model of the agent that gives the task
	Tools       []string // of a profile: the tools it may use; nil is all that the agent that gives the task may use
	Rounds      int      // of a profile: of the model; 0 is the usual number
	Strict      bool     // of a profile: the first failure of a tool ends its task (D-041)

	needs  struct{ bins, env, tools []string }
	source []byte
}

const maxPage, maxLine = 64 << 10, 300 // bytes; characters of what is shown on a line

// parse makes a Page from the content of its file, or from the error of reading
// it.
func parse(say texts.PageFaults, name, path string, source []byte, err error) Page {
	if err != nil {
		return faultyPage(name, path, source, err)
	}
	p := Page{Name: name, Path: path, source: source}
	if err := p.parse(say, string(source)); err != nil {
		return faultyPage(name, path, source, err)
	}
	return p
}

// faultyPage returns the Page of a file that cannot be used because of err.
func faultyPage(name, path string, source []byte, err error) Page {
	fault := plain(strings.TrimPrefix(err.Error(), "yaml: "))
	return Page{Name: plain(name), Path: path, Fault: fault, source: source}
}

func (p *Page) parse(say texts.PageFaults, text string) error {
	name := p.Name
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	head, body, ended := strings.Cut(text, "\n---\n")
	head, begun := strings.CutPrefix(head, "---\n")
	switch {
	case len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
		return errors.New(say.Name)
	case len(text) > maxPage:
		return errors.New(say.TooBig.With(maxPage >> 10))
	case !begun || !ended || !utf8.ValidString(text) || strings.Contains(text, "\x00"):
		return errors.New(say.NotText)
	}
	var doc yaml.Node
	err := yaml.Unmarshal([]byte("\n"+head), &doc) // so that lines are numbered as in the page
	for _, n := range doc.Content {
		err = take(say, n, "", p.fields())
	}
	p.Text, p.Description = strings.TrimSpace(body), plain(p.Description)
	switch {
	case err != nil:
		return err
	case p.Name != name:
		return errors.New(say.OtherName.With(p.Name, name))
	case p.Description == "":
		return errors.New(say.NoDescription)
	case p.Text == "":
		return errors.New(say.NoText)
	case p.Rounds < 0 || p.Rounds > 100:
		return errors.New(say.Rounds)
	case strings.ContainsAny(strings.Join(p.needs.bins, ""), `/\`):
		return errors.New(say.Paths)
	}
	return nil
}

// fields returns the keys that the head of a page may have.
func (p *Page) fields() map[string]any {
	if !strings.HasPrefix(p.Path, skillDir) {
		return map[string]any{
			"name":        &p.Name,
			"description": &p.Description,
			"model":       &p.Model,
			"tools":       &p.Tools,
			"rounds":      &p.Rounds,
			"strict":      &p.Strict,
		}
	}
	needs := map[string]any{"bins": &p.needs.bins, "env": &p.needs.env, "tools": &p.needs.tools}
	return map[string]any{"name": &p.Name, "description": &p.Description, "always": &p.Always, "requires": needs}
}

// take stores the values of n where fields say, by key: in a pointer, or in fields
// of their own. It follows no aliases and decodes nothing nested, because both
// could take long.
func take(say texts.PageFaults, n *yaml.Node, prefix string, fields map[string]any) error {
	if n.Kind != yaml.MappingNode {
		return errors.New(say.NoKeys.With(n.Line))
	}
	wants := map[string]string{"*string": say.Text, "*bool": say.YesNo, "*int": say.Number, "*[]string": say.Names}
	nested := func(n *yaml.Node) bool { return n.Kind != yaml.ScalarNode }
	for pair := range slices.Chunk(n.Content, 2) {
		name, value := prefix+pair[0].Value, pair[1]
		to := fields[pair[0].Value]
		delete(fields, pair[0].Value)
		if inner, ok := to.(map[string]any); ok {
			if err := take(say, value, name+".", inner); err != nil {
				return err
			}
			continue
		}
		if to == nil {
			return errors.New(say.UnknownKey.With(pair[0].Line, name))
		}
		if value.Kind == yaml.AliasNode || slices.ContainsFunc(value.Content, nested) || value.Decode(to) != nil {
			return errors.New(say.WrongValue.With(value.Line, name, wants[fmt.Sprintf("%T", to)]))
		}
	}
	return nil
}

// plain returns text as one line that is not too long and has no markup.
func plain(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || strings.ContainsRune("[]<>`*", r) {
			return ' '
		}
		return r
	}, text)
	return chat.Shorten(strings.Join(strings.Fields(text), " "), maxLine)
}
