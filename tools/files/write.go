package files

import (
	"context"
	"fmt"
	"unicode/utf8"

	"parley/tools"
)

type writeArgs struct {
	Path    string `json:"path" jsonschema:"the file, relative to the workspace" limit:"min=1"`
	Content string `json:"content" jsonschema:"all that the file is to hold"`
}

func write() tools.Tool {
	t := tools.New("write_file", "Write a text file of the workspace. Replaces the whole file if it exists, and makes the folders it is in.", writeFile)
	t.Category = "files"
	t.Aliases = map[string]string{"file_path": "path", "filepath": "path", "filename": "path", "file": "path", "text": "content", "contents": "content", "data": "content"}
	return t
}

func writeFile(_ context.Context, c tools.Call, in writeArgs) (tools.Result, error) {
	if _, refusal := locate(c, in.Path); refusal != nil {
		return *refusal, nil
	}
	if err := c.Workspace.WriteFile(in.Path, []byte(in.Content)); err != nil {
		return *explain(in.Path, err), nil
	}
	return tools.Result{Text: fmt.Sprintf("Successfully wrote %d characters to %s", utf8.RuneCountInString(in.Content), in.Path)}, nil
}
