package files

import (
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

func (p pen) write() tools.Tool {
	t := tools.New("write_file", "Write a text file of the workspace. Replaces the whole file if it exists, unless mode is append, and makes the folders it is in.", p.writeFile)
	t.Category, t.Guard, t.Preview = "files", p.guards, about("Writing")
	t.Aliases = pathNames("text", "content", "contents", "content", "data", "content")
	return t
}

func (p pen) writeFile(_ context.Context, c tools.Call, in writeArgs) (tools.Result, error) {
	name, refusal := locate(c, in.Path)
	if refusal != nil {
		return *refusal, nil
	}
	if err := p.put(c, name, in); err != nil {
		return *explain(in.Path, err), nil
	}
	return tools.Result{Text: fmt.Sprintf("Successfully wrote %d characters to %s", utf8.RuneCountInString(in.Content), in.Path)}, nil
}

// put writes what in says to the file called name.
func (p pen) put(c tools.Call, name string, in writeArgs) error {
	return alone(c.Workspace, func() (err error) {
		var old []byte
		if in.Mode == "append" {
			old, err = content(c.Workspace, name)
		}
		if err != nil {
			return err
		}
		data, err := encodeText(in.Content, in.Encoding, old)
		if err != nil {
			return err
		}
		return p.save(c, name, append(old, data...))
	})
}
