package files

import (
	"context"
	"fmt"
	"unicode/utf8"

	"parley/tools"
	"parley/workspace"
)

type writeArgs struct {
	Path     string `json:"path" limit:"min=1"`
	Content  string `json:"content"`
	Mode     string `json:"mode" limit:"choice=write|append"`
	Encoding string `json:"encoding" jsonschema:"or gbk, gb18030, latin-1, utf-16" limit:"default=utf-8"`
}

func (e editor) write() tools.Tool {
	t := newTool(
		"write_file",
		"Write a text file of the workspace. Replaces it if it exists, unless mode is append.",
		e.open,
		e.writeFile,
	)
	t.Use = tools.Basic
	e.protect(&t, askWrite)
	t.Aliases = aliases("text", "content", "contents", "content", "data", "content")
	return t
}

// writeFile implements write_file (D-058).
func (e editor) writeFile(_ context.Context, c tools.Call, at workspace.Path, in writeArgs) (tools.Result, error) {
	err := e.put(c, at, in)
	return tools.Result{
		Text: fmt.Sprintf("Successfully wrote %d characters to %s", utf8.RuneCountInString(in.Content), in.Path),
	}, err
}

// put writes or appends the text in a call's arguments to a file.
func (e editor) put(c tools.Call, at workspace.Path, in writeArgs) error {
	return e.rewrite(c, at, in.Mode != "append", func(old []byte) ([]byte, error) {
		if in.Mode != "append" {
			old = nil
		}
		data, err := encodeText(in.Content, in.Encoding, old)
		return append(old, data...), err
	})
}
