package files

import (
	"context"
	"fmt"
	"unicode/utf8"

	"parley/tools"
	"parley/workspace"
)

type writeArgs struct {
	Path     string `json:"path" jsonschema:"the file, relative to the workspace" limit:"min=1"`
	Content  string `json:"content" jsonschema:"what the file is to hold, or what to add to it"`
	Mode     string `json:"mode,omitempty" jsonschema:"whether to replace what the file holds or to add to its end" limit:"enum=write|append default=write"`
	Encoding string `json:"encoding,omitempty" jsonschema:"utf-8, gbk, gb18030, latin-1 or utf-16" limit:"default=utf-8"`
}

func (p pen) write() tools.Tool {
	t := tool(
		"write_file",
		stepWrite,
		"Write a text file of the workspace. Replaces the whole file if it exists, unless mode is append, and makes "+
			"the folders it is in.",
		p.open,
		p.writeFile,
	)
	p.protect(&t)
	t.Aliases = named("text", "content", "contents", "content", "data", "content")
	return t
}

// writeFile is write_file (D-058).
func (p pen) writeFile(_ context.Context, c tools.Call, at workspace.Path, in writeArgs) (tools.Result, error) {
	err := p.put(c, at, in)
	return tools.Result{
		Text: fmt.Sprintf("Successfully wrote %d characters to %s", utf8.RuneCountInString(in.Content), in.Path),
	}, err
}

// put writes what in says to a file.
func (p pen) put(c tools.Call, at workspace.Path, in writeArgs) error {
	return p.rewrite(c, at, in.Mode != "append", func(old []byte) ([]byte, error) {
		if in.Mode != "append" {
			old = nil
		}
		data, err := encodeText(in.Content, in.Encoding, old)
		return append(old, data...), err
	})
}
