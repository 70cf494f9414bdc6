package data

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"parley/lazyregexp"
	"parley/tools"
)

// textArgs are the arguments of text_process. The schema does not list the
// operations, because the error for an unknown one has a text of its own (A-037,
//
type textArgs struct {
	Text      string `json:"text" jsonschema:"the text"`
	Operation string `json:"operation" jsonschema:"count (characters), lines, words, upper, lower or reverse"`
}

var textOperations = map[string]func(string) tools.Result{
	"count": func(s string) tools.Result { return is("count", utf8.RuneCountInString(s)) },
	"lines": func(s string) tools.Result { return is("lines", len(slices.Collect(strings.Lines(s)))) },
	"words": func(s string) tools.Result { return is("words", len(strings.Fields(s))) },
	"upper": func(s string) tools.Result { return is("result", strings.ToUpper(s)) },
	"lower": func(s string) tools.Result { return is("result", strings.ToLower(s)) },
	"reverse": func(s string) tools.Result {
		runes := []rune(s)
		slices.Reverse(runes)
		return is("result", string(runes))
	},
}

func textProcess() tools.Tool {
	t := tools.New(
		"text_process",
		"Count the characters, lines or words of a text exactly, change its case, or reverse it.",
		func(_ context.Context, _ tools.Call, in textArgs) (tools.Result, error) {
			if do := textOperations[in.Operation]; do != nil {
				return do(in.Text), nil
			}
			return tools.Failf(tools.CodeError, "Unknown operation: %s", in.Operation), nil
		},
	)
	t.Aliases = map[string]string{"content": "text", "input": "text"}
	return t
}

func is(key string, value any) tools.Result {
	return tools.Result{Data: map[string]any{key: value}}
}

type jsonArgs struct {
	JSON      string `json:"json_string" jsonschema:"the JSON, as text"`
	Operation string `json:"operation" jsonschema:"parse, format (indent by 2), keys (of an object) or validate"`
}

func jsonProcess() tools.Tool {
	t := tools.New("json_process", "Parse, format or validate JSON, or list its keys. The order of keys is kept.",
		processJSON)
	t.Aliases = map[string]string{"json": "json_string", "text": "json_string"}
	return t
}

func processJSON(_ context.Context, _ tools.Call, in jsonArgs) (tools.Result, error) {
	var raw json.RawMessage
	if err := json.Unmarshal([]byte(in.JSON), &raw); err != nil {
		return tools.Failf(tools.CodeError, "JSON parse error: %v", err), nil
	}
	switch in.Operation {
	case "parse":
		return is("data", raw), nil
	case "format":
		var out bytes.Buffer
		_ = json.Indent(&out, raw, "", "  ") // which is valid JSON
		return is("result", string(literal.ReplaceAllFunc(out.Bytes(), unescaped))), nil
	case "keys":
		return keys(raw), nil
	case "validate":
		return is("valid", true), nil
	}
	return tools.Failf(tools.CodeError, "Unknown operation: %s", in.Operation), nil
}

var literal = lazyregexp.New(`"(?:[^"\\]|\\.)*"`)

// unescaped returns a string literal with all characters written literally.
func unescaped(quoted []byte) []byte {
	var s string
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if json.Unmarshal(quoted, &s) != nil || e.Encode(s) != nil {
		return quoted
	}
	return bytes.TrimSpace(out.Bytes())
}

// keys returns the names in an object, in their order, each once.
func keys(object json.RawMessage) tools.Result {
	d := json.NewDecoder(bytes.NewReader(object))
	if open, _ := d.Token(); open != json.Delim('{') {
		return tools.Failf(tools.CodeError, "JSON root element is not an object")
	}
	names := []string{}
	for d.More() {
		name, _ := d.Token()
		if key, _ := name.(string); !slices.Contains(names, key) {
			names = append(names, key)
		}
		_ = d.Decode(&object) // skip the value, which is valid JSON
	}
	return is("keys", names)
}
