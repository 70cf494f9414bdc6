package moving

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// folders returns where the arguments of MCP servers are relative to, by the places at which they stand in the text of
// a config, whose values are at those places: the server's cwd, or its own folder.
func (p paths) folders(text string, values map[int][]string) map[int]string {
	cwd, all := map[string]string{}, map[int]string{}
	servers := map[int]string{} // of each argument
	for at, keys := range values {
		if len(keys) != 4 || keys[0] != "tools" || keys[1] != "mcpServers" && keys[1] != "mcp_servers" {
			continue
		}
		switch name := keys[2]; keys[3] {
		case "args":
			servers[at] = name
		case "cwd":
			cwd[name] = textAt(text, at)
		}
	}
	for at, name := range servers {
		folder := os.Expand(cwd[name], keepPlain)
		if rest, isHome := strings.CutPrefix(folder, "~"); isHome {
			folder = filepath.Join(os.Getenv("HOME"), rest)
		}
		if folder == "" {
			folder = filepath.Join(p.names[0], "mcp", "server") // its name makes no difference
		}
		all[at] = folder
	}
	return all
}

// places returns the keys that lead to each value of JSON with comments that is a text, by where it stands.
func places(text string) map[int][]string {
	all := map[int][]string{}
	keys := []string{} // of the objects and lists that are open, and of the value
	var objects []bool // whether they are objects
	isName := false
	for i := 0; i < len(text); i++ {
		switch rest := text[i:]; {
		case strings.HasPrefix(rest, "//"):
			i += lengthTo(rest, "\n")
		case strings.HasPrefix(rest, "/*"):
			i += lengthTo(rest, "*/")
		case rest[0] == '"' && isName:
			keys[len(keys)-1] = textAt(text, i)
			i += len(jsonText.FindString(rest)) - 1
		case rest[0] == '"':
			all[i] = slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return key == "" })
			i += len(jsonText.FindString(rest)) - 1
		case rest[0] == '{' || rest[0] == '[':
			isName = rest[0] == '{'
			objects, keys = append(objects, isName), append(keys, "")
		case (rest[0] == '}' || rest[0] == ']') && len(keys) > 0:
			objects, keys = objects[:len(objects)-1], keys[:len(keys)-1]
			isName = false
		case rest[0] == ',':
			isName = len(objects) > 0 && objects[len(objects)-1]
		case rest[0] == ':':
			isName = false
		}
	}
	return all
}

// lengthTo returns the length of text up to the end of mark, less one.
func lengthTo(text, mark string) int {
	before, _, _ := strings.Cut(text, mark)
	return min(len(before)+len(mark), len(text)) - 1
}

// textAt returns what the JSON text says that begins at text[at:].
func textAt(text string, at int) (value string) {
	if json.Unmarshal([]byte(jsonText.FindString(text[at:])), &value) != nil {
		return ""
	}
	return value
}
