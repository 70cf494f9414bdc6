package custom

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
)

// A Draft is a tool as an owner wants it to be. Its JSON is the body of a request to the admin API
// (B-063). What is left out of a Draft of an existing tool stays as it is, except for Return and
// Meta (B-064).
type Draft struct {
	ID          string          `json:"id"`
	Description *string         `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Required    json.RawMessage `json:"required"`
	Category    *string         `json:"category"`
	Icon        *string         `json:"icon"`
	Timeout     json.RawMessage `json:"timeout"`
	Network     json.RawMessage `json:"network"`
	Workspace   *string         `json:"workspace"`
	ReadOnly    json.RawMessage `json:"read_only"`
	Code        *string         `json:"execution_code"`
	Execution   struct {
		Type *string `json:"type"`
		Code *string `json:"code_template"`
	} `json:"execution"`
	Return       json.RawMessage `json:"return"`
	ReturnConfig json.RawMessage `json:"return_config"`
	Meta         json.RawMessage `json:"meta"`
	Notes        string          `json:"notes"`

	// Revision is that of the Definition from which the Draft was made. "" replaces the tool in
	// whatever state it is.
	Revision string `json:"revision"`
}

const emptyCode = "# add python code here\n" // B-065

// Save creates or changes a tool, and keeps its former files as a version. by is who does it. The
// error is a *Refusal, or ErrConflict.
func (l *Library) Save(d Draft, by string) (Definition, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	folder, files, err := l.plan(d)
	if err != nil {
		return Definition{}, err
	}
	if err := l.replace(folder, files, by); err != nil {
		return Definition{}, err
	}
	return l.get(d.ID)
}

// plan returns the folder of a Draft, and what its files are to hold. The caller holds l.mu.
func (l *Library) plan(d Draft) (folder string, files map[string]string, err error) {
	if d.ID == "" {
		return "", nil, refusef("id is required") // B-066
	}
	if problem := checkID(d.ID); problem != "" {
		return "", nil, refusef("%s", problem)
	}
	if why := l.whyReserved(d.ID); why != "" {
		return "", nil, refusef("%s", why) // B-010
	}
	folder, err = l.folderOf(d.ID)
	if errors.Is(err, ErrNotFound) {
		folder, err = d.ID, nil
	}
	if err != nil {
		return "", nil, err
	}
	now := l.load(folder)
	if now.fault == nil && now.tool.ID != d.ID {
		return "", nil, refusef("the folder %q holds the tool %q", folder, now.tool.ID)
	}
	for _, other := range l.list().Tools { // models confuse names that differ in nothing else
		if other.ID != d.ID && strings.EqualFold(other.ID, d.ID) {
			return "", nil, refusef("there is a tool with the id %q already", other.ID)
		}
	}
	if d.Revision != "" && d.Revision != revision(now.files) {
		return "", nil, ErrConflict
	}
	files, err = d.files(now.files)
	if err != nil {
		return "", nil, err
	}
	return folder, files, refuseFault(parse(folder, files))
}

// refuseFault makes a *Refusal of the error of parse.
func refuseFault(_ Definition, err error) error {
	if wrong, ok := errors.AsType[*fault](err); ok {
		return refusef("%v", wrong)
	}
	return err
}

// files returns what the files of d are to hold, where they hold before now.
func (d Draft) files(before map[string]string) (map[string]string, error) {
	definition, err := d.definition(before[fileDefinition])
	if err != nil {
		return nil, err
	}
	code, exists := before[fileCode]
	switch own := cmp.Or(d.Code, d.Execution.Code); {
	case own != nil && *own != "":
		code = *own
	case own != nil, !exists:
		code = emptyCode
	}
	files := map[string]string{fileDefinition: definition, fileCode: code}
	optional := map[string]json.RawMessage{fileReturn: d.Return, fileMeta: d.meta()}
	if isBlank(d.Return) {
		optional[fileReturn] = d.ReturnConfig
	}
	for name, raw := range optional {
		if isBlank(raw) { // B-064
			continue
		}
		object, err := readObject(name, string(raw))
		if err != nil {
			return nil, refusef("%v", err)
		}
		files[name] = layOut(object)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text, err := readText(name, []byte(files[name]))
		if err != nil {
			return nil, refusef("%v", err)
		}
		files[name] = text
	}
	return files, nil
}

// isBlank reports whether an optional object is to be absent.
func isBlank(raw json.RawMessage) bool {
	switch strings.Join(strings.Fields(string(raw)), "") {
	case "", "null", "{}", `""`:
		return true
	}
	return false
}

// meta returns Meta with Notes.
func (d Draft) meta() json.RawMessage {
	var object map[string]json.RawMessage
	if d.Notes == "" || !isBlank(d.Meta) && json.Unmarshal(d.Meta, &object) != nil {
		return d.Meta
	}
	if object == nil {
		object = map[string]json.RawMessage{}
	}
	object["notes"] = encode(d.Notes)
	return encode(object)
}

// definition returns the text of definition.json, where it was before. Keys that Parley does not
// know are kept.
func (d Draft) definition(before string) (string, error) {
	object, err := readObject(fileDefinition, before)
	if err != nil { // a broken or missing file begins anew
		object = map[string]json.RawMessage{}
	}
	object["id"] = encode(d.ID)
	for key, text := range map[string]*string{
		"description": d.Description,
		"category":    d.Category,
		"icon":        d.Icon,
		"workspace":   d.Workspace,
	} {
		if text != nil {
			object[key] = encode(*text)
		}
	}
	for key, raw := range map[string]json.RawMessage{
		"parameters": d.Parameters,
		"required":   d.Required,
		"timeout":    d.Timeout,
		"network":    d.Network,
		"read_only":  d.ReadOnly,
	} {
		if len(raw) > 0 && string(raw) != "null" {
			object[key] = raw
		}
	}
	if d.Execution.Type != nil {
		object["execution"] = encode(Execution{Type: *d.Execution.Type, File: fileCode})
	}
	return layOut(object), nil
}

// layOut returns an object as people read it: the keys of a definition first, in their order
// (B-063).
func layOut(object map[string]json.RawMessage) string {
	var keys []string
	for _, key := range definitionKeys {
		if object[key] != nil {
			keys = append(keys, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	var b strings.Builder
	for i, key := range keys {
		b.WriteString([]string{"{", ","}[min(i, 1)])
		b.Write(encode(key))
		b.WriteByte(':')
		b.Write(object[key])
	}
	if len(keys) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return indent(b.String()) + "\n"
}

// folderOf returns the folder of the tool called id, or of the broken tool in the folder of that
// name. The error is ErrNotFound, or a *Refusal for an id that cannot be one. The caller holds l.mu.
func (l *Library) folderOf(id string) (string, error) {
	if id == "" {
		return "", refusef("id is required") // B-066
	}
	if strings.ContainsAny(id, "/\\\x00") || strings.HasPrefix(id, ".") { // B-067
		return "", refusef("%s", msgInvalidID)
	}
	if d, err := l.get(id); err == nil {
		return d.Folder, nil
	}
	folders, err := l.folders()
	if err != nil {
		return "", err
	}
	if slices.Contains(folders, id) {
		return id, nil
	}
	return "", fmt.Errorf("%w: %s", ErrNotFound, id)
}

// Delete removes a tool. Its files are kept as a version (B-067). The error is ErrNotFound, or a
// *Refusal.
func (l *Library) Delete(id, by string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	folder, err := l.folderOf(id)
	if err != nil {
		return err
	}
	return l.replace(folder, nil, by)
}

// ReadFile returns one file of a tool as it is, also of a broken one (B-069). It is "" if there is no
// such file.
func (l *Library) ReadFile(id, name string) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	folder, err := l.fileOf(id, name)
	if err != nil {
		return "", err
	}
	data, err := l.files.Names().ReadFile(path.Join(folder, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(data), err
}

// WriteFile replaces one file of a tool, also of a broken one (B-069). An empty text removes an
// optional file. The file may be wrong: then the tool is not offered.
func (l *Library) WriteFile(id, name, text, by string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	folder, err := l.fileOf(id, name)
	if err != nil {
		return err
	}
	files := maps.Clone(l.read(folder).files)
	files[name], err = readText(name, []byte(text))
	if err != nil {
		return refusef("%v", err)
	}
	if text == "" && (name == fileReturn || name == fileMeta) {
		delete(files, name)
	}
	return l.replace(folder, files, by)
}

// fileOf returns the folder of a tool if name is one of its four files.
func (l *Library) fileOf(id, name string) (string, error) {
	if !slices.Contains(fileNames, name) {
		return "", refusef("a custom tool has the files %s", strings.Join(fileNames, ", "))
	}
	return l.folderOf(id)
}
