package data

import (
	"bytes"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"parley/tools"
)

// The operations are no enum of the schemas: an unknown one has a text of its
// own.
type textArgs struct {
	Text      string `json:"text" jsonschema:"the text"`
	Operation string `json:"operation" jsonschema:"count (characters), lines, words, upper, lower or reverse"`
}

func textProcess() tools.Tool {
	t := tools.New("text_process", "Count the characters, lines or words of a text exactly, change its case, or reverse it.", process)
	t.Aliases = map[string]string{"content": "text", "input": "text"}
	return t
}

func process(_ context.Context, _ tools.Call, in textArgs) (tools.Result, error) {
	switch in.Operation {
	case "count":
		return is("count", utf8.RuneCountInString(in.Text)), nil
	case "lines": // a newline at the end begins no further line
		return is("lines", len(slices.Collect(strings.Lines(in.Text)))), nil
	case "words":
		return is("words", len(strings.Fields(in.Text))), nil
	case "upper":
		return is("result", strings.ToUpper(in.Text)), nil
	case "lower":
		return is("result", strings.ToLower(in.Text)), nil
	case "reverse":
		runes := []rune(in.Text)
		slices.Reverse(runes)
		return is("result", string(runes)), nil
	}
	return tools.Failf(tools.CodeError, "Unknown operation: %s", in.Operation), nil
}

func is(key string, value any) tools.Result {
	return tools.Result{Data: map[string]any{key: value}}
}

type jsonArgs struct {
	JSON      string `json:"json_string" jsonschema:"the JSON, as text"`
	Operation string `json:"operation" jsonschema:"parse, format (indent by 2), keys (of an object) or validate"`
}

func jsonProcess() tools.Tool {
	t := tools.New("json_process", "Parse, format or validate JSON, or list its keys. The order of keys is kept.", processJSON)
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
		_ = json.Indent(&out, raw, "", "  ") // it was parsed before
		return is("result", string(literal.ReplaceAllFunc(out.Bytes(), unescaped))), nil
	case "keys":
		return keys(raw), nil
	case "validate":
		return is("valid", true), nil
	}
	return tools.Failf(tools.CodeError, "Unknown operation: %s", in.Operation), nil
}

var literal = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// unescaped returns a string literal with all characters written as themselves.
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

// keys returns the names in an object, in its order, each once.
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
		_ = d.Decode(&object) // its value; it was parsed before
	}
	return is("keys", names)
}
