package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A value is a part of a config that anybody may have written: asking for what is not there, or
// is something else, gives nothing.
type value struct{ any any }

// parseJSON reads JSON as its authors' programs do: with comments and more (see relax).
func parseJSON(text []byte) (v value, err error) {
	d := json.NewDecoder(bytes.NewReader(relax(text)))
	d.UseNumber() // ids have more digits than a float keeps
	if err := d.Decode(&v.any); err != nil {
		return v, fmt.Errorf("it is not JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return v, errors.New("it is not JSON: something follows its end")
	}
	return v, nil
}

// parseYAML reads YAML. Aliases are not followed, because few of them can stand for a lot.
func parseYAML(text []byte) (v value, err error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return v, fmt.Errorf("it is not YAML: %w", err)
	}
	if len(doc.Content) == 0 {
		return v, nil
	}
	v.any = plainYAML(doc.Content[0], 0)
	return v, nil
}

func plainYAML(n *yaml.Node, depth int) any {
	switch {
	case depth > 100:
		return nil
	case n.Kind == yaml.MappingNode:
		m := map[string]any{}
		for pair := range slices.Chunk(n.Content, 2) {
			m[pair[0].Value] = plainYAML(pair[1], depth+1)
		}
		return m
	case n.Kind == yaml.SequenceNode:
		list := []any{}
		for _, c := range n.Content {
			list = append(list, plainYAML(c, depth+1))
		}
		return list
	case n.Kind != yaml.ScalarNode || n.Tag == "!!null":
		return nil
	case n.Tag == "!!bool":
		return strings.EqualFold(n.Value, "true")
	case n.Tag == "!!int" || n.Tag == "!!float":
		return json.Number(n.Value)
	}
	return n.Value
}

// get returns what is under keys, one in the other. A key may have another spelling after a "|".
func (v value) get(keys ...string) value {
	for _, key := range keys {
		m, _ := v.any.(map[string]any)
		v = value{}
		for name := range strings.SplitSeq(key, "|") {
			if found, ok := m[name]; ok {
				v = value{found}
				break
			}
		}
	}
	return v
}

func (v value) exists() bool { return v.any != nil }

// text returns a text or a number as text, "" for anything else.
func (v value) text() string {
	switch t := v.any.(type) {
	case string:
		return t
	case json.Number:
		return t.String()
	}
	return ""
}

// is reports whether v is true; if it is neither true nor false, otherwise.
func (v value) is(otherwise bool) bool {
	b, ok := v.any.(bool)
	if !ok {
		return otherwise
	}
	return b
}

// int returns a whole number, 0 for anything else.
func (v value) int() int64 {
	n, ok := v.any.(json.Number)
	if !ok {
		return 0
	}
	i, err := n.Int64()
	if err != nil {
		f, _ := n.Float64()
		i = int64(f)
	}
	return i
}

// float returns a number, 0 for anything else.
func (v value) float() float64 {
	n, _ := v.any.(json.Number)
	f, _ := n.Float64()
	return f
}

// list returns the elements of a list. A single text is a list of one.
func (v value) list() (all []value) {
	if s, ok := v.any.(string); ok && s != "" {
		return []value{v}
	}
	elements, _ := v.any.([]any)
	for _, e := range elements {
		all = append(all, value{e})
	}
	return all
}

// texts returns the elements of a list that are texts or numbers.
func (v value) texts() (all []string) {
	for _, e := range v.list() {
		if t := e.text(); t != "" {
			all = append(all, t)
		}
	}
	return all
}

// keys returns the names in a table, sorted.
func (v value) keys() []string {
	m, _ := v.any.(map[string]any)
	return slices.Sorted(maps.Keys(m))
}

// under returns v with what other has besides, whose values win: both are tables.
func (v value) under(other value) value {
	a, isTable := v.any.(map[string]any)
	b, ok := other.any.(map[string]any)
	if !ok {
		if other.exists() {
			return other
		}
		return v
	}
	if !isTable {
		return other
	}
	merged := maps.Clone(a)
	for key, inner := range b {
		merged[key] = value{a[key]}.under(value{inner}).any
	}
	return value{merged}
}
