package custom

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"parley/lazyregexp"
	"parley/tools"
)

// A Definition is a custom tool as its files describe it (B-019). Its JSON is that of the admin API
// (B-062).
type Definition struct {
	ID          string          `json:"id"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"` // a JSON Schema of type object
	Required    []string        `json:"required"`   // those of Parameters
	Category    string          `json:"category"`
	Icon        string          `json:"icon"`
	Timeout     float64         `json:"timeout"`   // in seconds
	Network     bool            `json:"network"`   // it asks for the network
	Workspace   string          `json:"workspace"` // what it sees of the workspace: "none", "read" or "write"
	ReadOnly    bool            `json:"read_only"` // it changes nothing, so that results may be reused (B-078)
	Execution   Execution       `json:"execution"`
	Code        string          `json:"execution_code"` // the text of execution.py, a template
	Return      json.RawMessage `json:"return"`         // null if there is none
	Meta        json.RawMessage `json:"meta"`           // null if there is none

	// InvalidID and ValidationError say why a tool with a bad id is not offered (B-008).
	InvalidID       bool     `json:"invalid_id"`
	ValidationError string   `json:"validation_error"`
	Warnings        []string `json:"warnings"` // what its author should mend; the tool works
	Folder          string   `json:"folder"`
	Revision        string   `json:"revision"` // changes with every change of the four files
}

// An Execution says how a tool is run.
type Execution struct {
	Type string `json:"type"` // "python" (B-075)
	File string `json:"file"`
}

// Category is that of custom tools that name no other one (B-015, B-019).
const Category = "custom"

// Limits of a Definition.
const (
	defaultTimeout = 30 * time.Second
	maxTimeout     = tools.MaxTimeout // B-025
	maxID          = 64               // characters, which is what model providers allow
)

// idForm is what ids look like (B-008).
var idForm = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_-]*$`)

const msgInvalidID = "a tool id begins with a letter and has letters, digits, _ and - only" // B-008, B-066

// checkID returns what is wrong with an id, "" if nothing is.
func checkID(id string) string {
	switch {
	case !idForm.MatchString(id):
		return msgInvalidID
	case len(id) > maxID:
		return fmt.Sprintf("a tool id has at most %d characters", maxID)
	}
	return ""
}

// emptySchema stands for parameters that are missing or no object (B-021, B-022).
var emptySchema = json.RawMessage(`{"type":"object","properties":{}}`)

// definitionKeys are those of definition.json, in the order in which they are written.
var definitionKeys = []string{
	"id", "description", "parameters", "required", "category", "icon", "timeout", "network", "workspace",
	"read_only", "execution",
}

// A fault is an error in a file of a tool.
type fault struct{ file, reason string }

func (f *fault) Error() string { return f.file + ": " + f.reason }

const msgTooLarge = "it is larger than 256 KiB"

// readText returns the text of a file without a byte order mark (B-006), with line breaks as
// Python reads them.
func readText(name string, data []byte) (string, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(data) > maxFile {
		return "", &fault{name, msgTooLarge}
	}
	if !utf8.Valid(data) {
		return "", &fault{name, "it is not UTF-8 text"}
	}
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data)), nil
}

// readObject parses a JSON object. The error says where it is wrong.
func readObject(name, text string) (map[string]json.RawMessage, error) {
	var object map[string]json.RawMessage
	err := json.Unmarshal([]byte(text), &object)
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
		before := text[:min(int(wrong.Offset), len(text))]
		line := strings.Count(before, "\n") + 1
		return nil, &fault{name, fmt.Sprintf("no valid JSON in line %d: %v", line, err)}
	}
	if err != nil || object == nil {
		return nil, &fault{name, "it must hold a JSON object"}
	}
	return object, nil
}

// parse makes a Definition of the files in folder. The error is a *fault.
func parse(folder string, files map[string]string) (Definition, error) {
	d := Definition{Folder: folder, Code: files[fileCode], Revision: revision(files), Warnings: []string{}}
	for _, name := range []string{fileDefinition, fileCode} { // B-003
		if _, found := files[name]; !found {
			return d, &fault{name, "it is missing"}
		}
	}
	object, err := readObject(fileDefinition, files[fileDefinition])
	if err != nil {
		return d, err
	}
	if err := d.readFields(object); err != nil {
		return d, &fault{fileDefinition, err.Error()}
	}
	d.Return = d.readOptional(fileReturn, files)
	d.Meta = d.readOptional(fileMeta, files)
	d.Icon = cmp.Or(d.Icon, d.metaIcon()) // B-024
	if problem := checkIcon(d.Icon); problem != "" {
		d.Icon = ""
		d.warn("%s", problem)
	}
	if d.Folder != d.ID {
		d.warn("the folder is called %q, not like the tool", d.Folder) // B-009
	}
	d.ValidationError = checkID(d.ID)
	d.InvalidID = d.ValidationError != ""
	return d, nil
}

func (d *Definition) warn(format string, args ...any) {
	d.Warnings = append(d.Warnings, fmt.Sprintf(format, args...))
}

// readFields takes over the keys of definition.json. The error says what is wrong with them.
func (d *Definition) readFields(object map[string]json.RawMessage) error {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(definitionKeys, key) {
			d.warn("definition.json has an unknown key: %q", key)
		}
	}
	for _, field := range []struct {
		key, kind string
		value     any
	}{
		{"id", "a text", &d.ID},
		{"description", "a text", &d.Description},
		{"category", "a text", &d.Category},
		{"icon", "a text", &d.Icon},
		{"network", "true or false", &d.Network},
		{"workspace", "a text", &d.Workspace},
		{"read_only", "true or false", &d.ReadOnly},
		{"required", "a list of texts", &d.Required},
	} {
		if raw, found := object[field.key]; found && json.Unmarshal(raw, field.value) != nil {
			return fmt.Errorf("%q must be %s", field.key, field.kind)
		}
	}
	if err := d.checkWorkspace(); err != nil {
		return err
	}
	d.ID = cmp.Or(d.ID, d.Folder)                                  // B-007
	d.Description = cmp.Or(d.Description, "Custom tool "+d.ID)     // B-020
	d.Category = cmp.Or(d.Category, Category)                      // B-019
	if err := d.readParameters(object["parameters"]); err != nil { // after Required
		return err
	}
	return d.readExecution(object["execution"], object["timeout"])
}

// The values of Definition.Workspace.
const (
	WorkspaceNone  = "none"
	WorkspaceRead  = "read"  // it reads what commands read
	WorkspaceWrite = "write" // it changes the folder work, too
)

// checkWorkspace sets Workspace if it is left out.
func (d *Definition) checkWorkspace() error {
	d.Workspace = cmp.Or(d.Workspace, WorkspaceNone)
	switch {
	case !slices.Contains([]string{WorkspaceNone, WorkspaceRead, WorkspaceWrite}, d.Workspace):
		return errors.New(`"workspace" must be "none", "read" or "write"`)
	case d.Workspace == WorkspaceWrite && d.ReadOnly:
		return errors.New(`a tool with "workspace": "write" cannot be "read_only"`)
	}
	return nil
}

// readParameters sets Parameters and Required.
func (d *Definition) readParameters(raw json.RawMessage) error {
	schema := map[string]json.RawMessage{}
	var kind string
	_, isObject := decodeObject(raw, &schema), json.Unmarshal(schema["type"], &kind)
	if present := len(raw) > 0 && string(raw) != "null"; !present || isObject != nil || kind != "object" {
		if present {
			d.warn(`the type of "parameters" must be "object": until then the tool has no arguments`) // B-022
		}
		d.Parameters = emptySchema
		d.Required = []string{}
		return nil
	}
	var properties map[string]json.RawMessage
	if schema["properties"] != nil && json.Unmarshal(schema["properties"], &properties) != nil {
		return errors.New(`"parameters.properties" must be an object`)
	}
	if schema["properties"] == nil {
		schema["properties"] = json.RawMessage("{}") // some providers want it
	}
	if own := schema["required"]; own != nil && string(own) != "null" { // B-023
		d.Required = nil
		if json.Unmarshal(own, &d.Required) != nil {
			return errors.New(`"parameters.required" must be a list of texts`)
		}
	}
	if d.Required == nil {
		d.Required = []string{}
	}
	for _, name := range d.Required {
		if properties[name] == nil {
			d.warn("%q is required, but not described in \"parameters\"", name)
		}
	}
	schema["required"] = encode(d.Required)
	d.Parameters = encode(schema)
	if err := checkSchema(d.Parameters); err != nil {
		return fmt.Errorf(`"parameters" is no JSON Schema: %w`, err)
	}
	return nil
}

// decodeObject decodes raw into v. A missing value is an error.
func decodeObject(raw json.RawMessage, v *map[string]json.RawMessage) error {
	if err := json.Unmarshal(raw, v); err != nil {
		return err
	}
	if *v == nil {
		return errors.New("null")
	}
	return nil
}

// readExecution sets Execution and Timeout. A timeout of the execution goes before that of the tool
// (B-025).
func (d *Definition) readExecution(raw, ownTimeout json.RawMessage) error {
	var how struct {
		Type    *string
		File    string
		Timeout json.RawMessage
	}
	if len(raw) > 0 && json.Unmarshal(raw, &how) != nil {
		return errors.New(`"execution" must be an object`)
	}
	d.Execution = Execution{Type: "python", File: fileCode}
	if how.Type != nil && !strings.HasPrefix(strings.ToLower(*how.Type), "python") {
		return errors.New("only Python can be executed") // B-044, B-075
	}
	d.Timeout = defaultTimeout.Seconds()
	for _, raw := range []json.RawMessage{how.Timeout, ownTimeout} {
		if len(raw) == 0 || string(raw) == "null" {
			continue
		}
		var seconds float64
		switch err := json.Unmarshal(raw, &seconds); {
		case err != nil || seconds <= 0 || math.IsInf(seconds, 0):
			d.warn("the timeout must be a number of seconds: it is %v", defaultTimeout)
		case seconds > maxTimeout.Seconds():
			d.warn("the timeout can be at most %v", maxTimeout)
			d.Timeout = maxTimeout.Seconds()
		default:
			d.Timeout = seconds
		}
		break
	}
	return nil
}

// readOptional returns the object in an optional file, null if there is none. A broken file counts
// as absent (B-005).
func (d *Definition) readOptional(name string, files map[string]string) json.RawMessage {
	text, found := files[name]
	if !found {
		return json.RawMessage("null")
	}
	if _, err := readObject(name, text); err != nil {
		d.warn("%v: it is ignored", err)
		return json.RawMessage("null")
	}
	return json.RawMessage(text)
}

// metaIcon returns the icon that meta.json names.
func (d *Definition) metaIcon() string {
	var meta struct{ Icon any }
	_ = json.Unmarshal(d.Meta, &meta)
	icon, _ := meta.Icon.(string)
	return icon
}

// checkIcon returns what is wrong with the name of an icon, which must not lead out of the folder
// of icons (B-024).
func checkIcon(name string) string {
	if strings.ContainsAny(name, "/\\\x00") || strings.Contains(name, "..") {
		return "an icon is the name of an SVG file, without a folder"
	}
	return ""
}

// encode returns v as JSON, with characters as they are.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimSpace(b.Bytes())
}
