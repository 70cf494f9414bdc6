package files

import (
	"cmp"
	"context"
	"fmt"
	"unicode/utf8"

	"parley/tools"
)

type writeArgs struct {
	Path     string `json:"path" jsonschema:"the file, relative to the workspace" limit:"min=1"`
	Content  string `json:"content" jsonschema:"what the file is to hold, or what to add to it"`
	Mode     string `json:"mode,omitempty" jsonschema:"whether to replace what the file holds or to add to its end" limit:"enum=write|append default=write"`
	Encoding string `json:"encoding,omitempty" jsonschema:"utf-8, gbk, gb18030, latin-1 or utf-16" limit:"default=utf-8"`
}

// writes returns write_file, and the same as the other system has it.
func (p pen) writes() []tools.Tool {
	t := tools.New("write_file", "Write a text file of the workspace. Replaces the whole file if it exists, unless mode is append, and makes the folders it is in.", p.writeFile)
	t.Category, t.Guard, t.Preview = "files", p.guards, about("Writing")
	t.Aliases = pathNames("text", "content", "contents", "content", "data", "content")
	other := tools.New("file_write", t.Description, p.fileWrite)
	other.Category, other.Guard, other.Preview, other.Aliases = t.Category, t.Guard, t.Preview, t.Aliases
	other.AliasOf, other.JSON = t.Name, true
	return []tools.Tool{t, other}
}

func (p pen) writeFile(_ context.Context, c tools.Call, in writeArgs) (tools.Result, error) {
	if refusal := p.put(c, in); refusal != nil {
		return *refusal, nil
	}
	return tools.Result{Text: fmt.Sprintf("Successfully wrote %d characters to %s", utf8.RuneCountInString(in.Content), in.Path)}, nil
}

func (p pen) fileWrite(_ context.Context, c tools.Call, in writeArgs) (tools.Result, error) {
	name, refusal := project(c, in.Path)
	if refusal == nil {
		refusal = p.put(c, in)
	}
	if refusal != nil {
		return *refusal, nil
	}
	return tools.Result{Data: map[string]any{
		"success": true, "size": utf8.RuneCountInString(in.Content), "path": name, "mode": cmp.Or(in.Mode, "write"),
	}}, nil
}

// put writes what in says.
func (p pen) put(c tools.Call, in writeArgs) *tools.Result {
	e, ok := encodings[plain(in.Encoding)]
	if !ok {
		return noEncoding(in.Encoding)
	}
	encode := func(_ string, old []byte) ([]byte, *tools.Result) {
		data, err := e.encode(in.Content, old)
		if err != nil {
			return nil, fail("Cannot write %s as %s: it has no form for a character of the content.", in.Path, in.Encoding)
		}
		return append(old, data...), nil
	}
	if in.Mode == "append" {
		return p.rewrite(c, in.Path, encode)
	}
	return alone(c, in.Path, func(name string) *tools.Result {
		data, refusal := encode(name, nil)
		if refusal != nil {
			return refusal
		}
		return p.save(c, in.Path, name, data)
	})
}
