package template

import (
	"fmt"
	"slices"
	"strings"

	"parley/lazyregexp"
)

// A placeholder is what stands between two braces.
type placeholder struct {
	key        string
	conversion string // "!r", or ""
	spec       string // ":.2f", or ""
}

// asciiName matches names that Python takes as they are.
var asciiName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// cutPlaceholder splits text, which begins with a brace, after the brace that closes it, as str.format
// does: strings are nothing special.
func cutPlaceholder(text string) (inner, rest string, err string) {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return text[1:i], text[i+1:], ""
			}
		}
	}
	if text == "{" {
		return "", "", "Single '{' encountered in format string"
	}
	return "", "", "expected '}' before end of string"
}

// splitPlaceholder takes the text between braces apart, as str.format does.
func splitPlaceholder(inner string) (f placeholder, problem string) {
	end, bracket := len(inner), false
	for i := range len(inner) {
		c := inner[i]
		if c == '[' {
			bracket = true
		} else if c == ']' {
			bracket = false
		}
		if !bracket && (c == ':' || c == '!') {
			end = i
			break
		}
	}
	f.key = inner[:end]
	rest := inner[end:]
	if strings.HasPrefix(rest, "!") {
		if len(rest) < 2 {
			return f, "end of string while looking for conversion specifier"
		}
		f.conversion = rest[:2]
		if rest = rest[2:]; rest != "" && rest[0] != ':' {
			return f, "expected ':' after conversion specifier"
		}
	}
	if f.spec = rest; f.spec == ":" {
		f.spec = ""
	}
	return f, ""
}

// known reports whether there is an argument or a parameter called key.
func (p *parser) known(key string) bool {
	_, declared := p.parameters[key]
	_, given := p.arguments[key]
	return declared || given
}

// resolve reads the placeholder at the beginning of text, which is at offset in the template. It
// returns an error unless it can be bound to an argument.
func (p *parser) resolve(text string, offset int) (f placeholder, rest string, err error) {
	refuse := func(format string, args ...any) error {
		return &RenderError{Reason: fmt.Sprintf(format, args...), Line: p.line(offset)}
	}
	inner, rest, problem := cutPlaceholder(text)
	if problem == "" {
		f, problem = splitPlaceholder(inner)
	}
	if problem != "" {
		return f, "", refuse("%s", problem)
	}
	first := f.key
	if i := strings.IndexAny(first, ".["); i >= 0 && !p.known(first) {
		first = first[:i]
	}
	switch {
	case strings.Trim(first, "0123456789") == "" && !p.known(first):
		index := strings.TrimLeft(first, "0")
		if index == "" {
			index = "0"
		}
		return f, "", refuse("Replacement index %s out of range for positional args tuple", index)
	case !p.known(first):
		return f, "", &MissingError{Key: first, Line: p.line(offset)}
	case first != f.key:
		return f, "", refuse("attributes and items of an argument are not supported: {%s}", f.key)
	case f.conversion != "" && !slices.Contains([]string{"!r", "!s", "!a"}, f.conversion):
		return f, "", refuse("Unknown conversion specifier %s", f.conversion[1:])
	case strings.ContainsAny(f.spec, "{}\n"):
		return f, "", refuse("a placeholder in the format of another one is not supported: {%s%s}", f.key, f.spec)
	}
	if _, given := p.arguments[f.key]; !given && p.parameters[f.key].Required {
		return f, "", &MissingError{Key: f.key, Declared: true, Line: p.line(offset)}
	}
	return f, rest, nil
}

// variable returns the name of the variable that stands for an argument, or for its text. The name
// ends with underscores, because otherwise Python would change it in classes.
func (p *parser) variable(key string, text bool) string {
	kind := "v"
	if text {
		kind = "s"
	}
	name := fmt.Sprintf("__%s_%s__", kind, key)
	if !asciiName.MatchString(key) {
		number, found := p.variables[key]
		if !found {
			number = len(p.variables)
			p.variables[key] = number
		}
		name = fmt.Sprintf("__%s%d__", kind, number)
	}
	if !slices.ContainsFunc(p.bound, func(v Variable) bool { return v.Name == name }) {
		value, given := p.arguments[key]
		if !given {
			value = p.parameters[key].Default // B-036
		}
		p.bound = append(p.bound, Variable{Name: name, Text: text, Value: value})
	}
	return name
}

// operators are those of Python that may be copied into a program.
var operators = strings.Fields("+ - * / // % ** @ == != < <= > >= & | ^ << >> and or not in is")

// operator returns the operator that is the argument called key, if the author of the tool lists it
// as a choice.
func (p *parser) operator(key string) (string, bool) {
	value, isText := p.arguments[key].(string)
	if !isText || !slices.Contains(operators, value) || !slices.Contains(p.parameters[key].Choices, any(value)) {
		return "", false
	}
	return value, true
}
