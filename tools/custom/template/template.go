// Package template makes Python programs of templates in which placeholders such as {name} stand
// for arguments.
//
// A template looks like one of Python's str.format: {name} is an argument, {{ and }} are braces. But
// no argument ever becomes part of the program's text, where it could be run: a placeholder becomes
// the name of a variable, and what runs the program sets that variable. The text of a program follows
// from its template alone; only an operator that the tool's author lists as a choice is copied into
// it.
package template

import (
	"fmt"
	"strings"
)

// A Parameter describes an argument.
type Parameter struct {
	Required bool
	Default  any   // nil: none
	Choices  []any // the only values it can have; nil: any
}

// A Program is a Python program and the variables that it expects to be set.
type Program struct {
	Source    string
	Variables []Variable
}

// A Variable is a name in a Program that stands for an argument.
type Variable struct {
	Name  string `json:"name"`
	Text  bool   `json:"text"` // the variable is Value as str() returns it, and "" for None
	Value any    `json:"value"`
}

// A MissingError is returned for a placeholder without an argument. It may also be a brace that is
// meant for Python.
type MissingError struct {
	Key      string // what stands in the braces
	Declared bool   // it is a required parameter
	Line     int
}

func (e *MissingError) Error() string { // B-030, B-033
	return "missing required argument: " + repr(e.Key)
}

// A RenderError is returned for a template that str.format would refuse, or that this package does
// not support (B-032).
type RenderError struct {
	Reason string
	Line   int
}

func (e *RenderError) Error() string {
	return fmt.Sprintf("the template cannot be rendered: %s (execution.py, line %d)", e.Reason, e.Line)
}

// Render makes a Program of a template. The error is a *MissingError or a *RenderError.
func Render(template string, parameters map[string]Parameter, arguments map[string]any) (p Program, err error) {
	r := &parser{
		src:        template,
		parameters: parameters,
		arguments:  arguments,
		mentioned:  map[string]bool{},
		variables:  map[string]int{},
		bound:      []Variable{},
	}
	if err := r.parse(); err != nil {
		return Program{}, err
	}
	source := r.join() // binds the last variables
	return Program{Source: source, Variables: r.bound}, nil
}

// repr returns s as Python writes it in a program.
func repr(s string) string {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	var b strings.Builder
	b.WriteByte(quote)
	for _, c := range s {
		switch {
		case c == rune(quote) || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte(quote)
	return b.String()
}
