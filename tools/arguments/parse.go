// Package arguments reads the arguments that a model wrote for a call: it parses
// them, repairs common mistakes and checks them against a schema. It also makes the
// schema of a struct.
package arguments

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"parley/lazyregexp"
)

const maxArgs = 1 << 20 // bytes of arguments

// parse returns the arguments that a model wrote: a JSON object, an empty text, or
// an object wrapped in another one (D-027). If that fails, it returns a text for
// the model. Small syntax errors are repaired (E-036), but arguments that were cut
// off are never completed: they would run as if they were whole.
func parse(tool, args string, s *Schema) (in map[string]any, problem string) {
	if len(args) > maxArgs {
		return nil, fmt.Sprintf(
			"Invalid parameters for tool '%s': %d bytes of arguments are more than the limit of %d. The tool was not "+
				"run. Send less at a time.",
			tool,
			len(args),
			maxArgs,
		)
	}
	v, err := decodeNested(unfence(args))
	if errors.Is(err, errEmpty) || err == nil && v == nil {
		return map[string]any{}, ""
	}
	if err != nil {
		return nil, fmt.Sprintf(
			"Invalid JSON arguments for tool '%s': %v. The tool was not run. Send the call again, with one complete "+
				"JSON object as its arguments.",
			tool,
			err,
		)
	}
	in, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Sprintf("Invalid parameters for tool '%s': parameters must be a JSON object, got %s", tool,
			kind(v))
	}
	return unwrap(in, s), ""
}

// decodeNested decodes args, and the string in it if it is one: some models write
// the object as a string, even twice.
func decodeNested(args string) (any, error) {
	v, err := decodeOrMend(args)
	for range 2 {
		text, isText := v.(string)
		if err != nil || !isText {
			return v, err
		}
		v, err = decode(text)
	}
	return v, err
}

// decodeOrMend decodes args or, if that fails, args with its syntax repaired. The error
// is about what the model wrote.
func decodeOrMend(args string) (any, error) {
	v, err := decode(args)
	if err == nil {
		return v, nil
	}
	mended, stillWrong := decode(mend(args))
	if stillWrong != nil {
		return nil, err
	}
	return mended, nil
}

// unfence returns args without a byte order mark, and without the Markdown fence
// that some models put around JSON.
func unfence(args string) string {
	args = strings.TrimPrefix(args, "\ufeff")
	body, fenced := strings.CutPrefix(strings.TrimSpace(args), "```")
	body, closed := strings.CutSuffix(body, "```")
	if !fenced || !closed {
		return args
	}
	return languageForm.ReplaceAllString(body, "")
}

// languageForm matches the language after a fence, on a line of its own or before
// the JSON on the same line.
var languageForm = lazyregexp.New(`^[A-Za-z0-9]*(?:[ \t]*\r?\n|[ \t]+)`)

// mend repairs syntax that models write and JSON does not have: strings in single
// quotes, line breaks in strings, and a comma before a closing bracket (E-036).
func mend(args string) string {
	var b strings.Builder
	quote := byte(0) // the quote that began the current string
	for i := 0; i < len(args); i++ {
		switch c := args[i]; {
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
			b.WriteByte('"')
		case c == quote && c != 0:
			quote = 0
			b.WriteByte('"')
		case quote == 0 && c == ',': // the only case that looks ahead, which is slow in a megabyte of spaces
			rest := strings.TrimLeft(args[i+1:], " \t\r\n")
			if rest != "" && strings.IndexByte("]}", rest[0]) < 0 {
				b.WriteByte(c)
			}
		case quote == 0:
			b.WriteByte(c)
		case c == '\\' && i+1 < len(args):
			if i++; args[i] != '\'' {
				b.WriteByte(c)
			}
			b.WriteByte(args[i])
		case c == '"' || c < ' ':
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// unwrap returns in, or the object in its only member "arguments".
func unwrap(in map[string]any, s *Schema) map[string]any {
	inner, ok := in["arguments"]
	if !ok || len(in) != 1 {
		return in
	}
	if s != nil && s.schema != nil && s.schema.Properties["arguments"] != nil {
		return in
	}
	if text, ok := inner.(string); ok {
		inner, _ = decode(text)
	}
	if m, ok := inner.(map[string]any); ok {
		return m
	}
	return in
}

var errEmpty = errors.New("there is no JSON value")

// decode parses one JSON value. Numbers stay [json.Number], digit by digit,
// because they may turn out to be meant as text (see settle).
func decode(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	switch err := d.Decode(&v); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("the JSON ends too early")
	case errors.Is(err, io.EOF):
		return nil, errEmpty
	case err != nil:
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("there is more after the JSON value")
	}
	return v, nil
}
