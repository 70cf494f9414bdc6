// Package results makes what models read of what MCP servers return: texts as they are, and files in the
// workspace.
package results

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"mime"
	"path"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/chat"
	"parley/llm"
	"parley/tools"
	"parley/tools/sandbox"
	"parley/workspace"
)

const (
	filesFolder = sandbox.WorkDir + "/mcp" // in the workspace
	maxFiles    = 10                       // of one result, as in one message
	noOutput    = "(no output)"            // D-107
)

// A Maker makes the results of calls.
type Maker struct {
	// MaxStored is how many bytes of files a person may have in the workspace, 0 for any number. It
	// may be nil.
	MaxStored func() int64
}

// OfTool returns what the model reads of the result of a tool (D-108, D-109).
func (m Maker) OfTool(c tools.Call, got *sdk.CallToolResult) tools.Result {
	made := &result{maker: m, call: c}
	for _, content := range got.Content {
		made.add(content)
	}
	made.addStructured(got.StructuredContent)
	r := made.finish()
	r.Failed = got.IsError
	return r
}

// OfPrompt returns what the model reads of a prompt.
func (m Maker) OfPrompt(c tools.Call, all []*sdk.PromptMessage) tools.Result {
	made := &result{maker: m, call: c}
	for _, message := range all {
		if message != nil {
			made.add(message.Content)
		}
	}
	return made.finish()
}

// OfResource returns what the model reads of a resource: the text as it is (D-110).
func (m Maker) OfResource(c tools.Call, all []*sdk.ResourceContents) tools.Result {
	made := &result{maker: m, call: c}
	for _, contents := range all {
		made.addContents(contents)
	}
	return made.finish()
}

// A result is that of one call, in the making.
type result struct {
	maker Maker
	call  tools.Call
	texts []string
	files int
	made  tools.Result

	compared int // bytes that has has looked through
}

func (r *result) finish() tools.Result {
	r.made.Text = strings.Join(r.texts, "\n")
	if r.made.Text == "" {
		r.made.Text = noOutput
	}
	return r.made
}

func (r *result) say(format string, args ...any) {
	r.texts = append(r.texts, fmt.Sprintf(format, args...))
}

// add adds one piece of content.
func (r *result) add(content sdk.Content) {
	switch c := content.(type) {
	case *sdk.TextContent:
		r.texts = append(r.texts, c.Text)
	case *sdk.ImageContent:
		r.addFile("image", c.MIMEType, c.Data)
	case *sdk.AudioContent:
		r.addFile("audio", c.MIMEType, c.Data)
	case *sdk.EmbeddedResource:
		r.addContents(c.Resource)
	case *sdk.ResourceLink:
		text := strings.TrimSpace(c.Name + " " + c.Description)
		r.say("[Resource link: %s URI: %s]", chat.Clip(chat.OneLine(text), 300, "…"), chat.OneLine(c.URI))
	case nil:
	default:
		r.say("[Content of a kind that is not supported: %T]", c)
	}
}

// addContents adds a resource.
func (r *result) addContents(of *sdk.ResourceContents) {
	switch {
	case of == nil:
	case of.Blob == nil:
		r.texts = append(r.texts, of.Text)
	default:
		r.say("[Binary resource: %d bytes]", len(of.Blob))
		r.addFile("resource", of.MIMEType, of.Blob)
	}
}

// addStructured adds what a tool returns for programs, unless the texts say it all.
func (r *result) addStructured(structured any) {
	if structured == nil {
		return
	}
	text, err := json.Marshal(structured)
	if err != nil || string(text) == "{}" || r.has(structured) {
		return
	}
	r.texts = append(r.texts, string(text))
}

// maxCompared is how many bytes are looked through for the values of structured content (R-S22).
const maxCompared = 32 << 20

// has reports whether the texts contain all values in value. If that takes too long to find out, they do not.
func (r *result) has(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, item := range v {
			if !r.has(item) {
				return false
			}
		}
		return true
	case []any:
		for _, item := range v {
			if !r.has(item) {
				return false
			}
		}
		return true
	case nil:
		return true
	}
	said := fmt.Sprint(value)
	if number, ok := value.(float64); ok {
		text, _ := json.Marshal(number) // a number always can
		said = string(text)
	}
	escaped := strings.Trim(quoted(said), `"`)
	for _, text := range r.texts {
		if r.compared += len(text); r.compared > maxCompared {
			return false
		}
		if strings.Contains(text, said) || escaped != said && strings.Contains(text, escaped) {
			return true
		}
	}
	return false
}

func quoted(text string) string {
	out, _ := json.Marshal(text) // a text always can
	return string(out)
}

// addFile keeps data in the workspace, shows it to the model if it is a picture that models can see,
// and has it come with the answer.
func (r *result) addFile(kind, mimeType string, data []byte) {
	r.files++
	if r.files > maxFiles {
		if r.files == maxFiles+1 {
			r.say("[More files were left out: there are more than %d]", maxFiles)
		}
		return
	}
	at, err := r.keep(fmt.Sprintf("%s-%d%s", kind, r.files, extension(mimeType)), data)
	if err != nil {
		r.say("[%s of %d bytes, which could not be kept: %v]", kind, len(data), err)
		return
	}
	r.made.Attached = append(r.made.Attached, at.String())
	if isPicture(data) {
		r.made.Pictures = append(r.made.Pictures, at.String())
	}
	hint := "it is sent with your answer: do not send it otherwise"
	if r.call.Depth > 0 {
		hint = "nobody is sent it unless you name its path in your answer"
	}
	r.say("[%s saved to %s; %s]", kind, r.call.Workspace.View().Shown(at), hint)
}

// isPicture reports whether models can be shown data.
func isPicture(data []byte) bool {
	_, err := llm.NewImage(data)
	return err == nil
}

// extension returns the end of the name of a file of that type.
func extension(mimeType string) string {
	kind, _, _ := mime.ParseMediaType(mimeType)
	known := map[string]string{
		"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "image/svg+xml": ".svg",
		"audio/wav": ".wav", "audio/x-wav": ".wav", "audio/mpeg": ".mp3", "audio/ogg": ".ogg", "audio/mp4": ".m4a",
		"application/pdf": ".pdf", "application/json": ".json", "application/zip": ".zip", "application/gzip": ".gz",
		"text/plain": ".txt", "text/html": ".html", "text/csv": ".csv", "text/markdown": ".md",
	}
	if known[kind] != "" {
		return known[kind]
	}
	return ".bin"
}

// keep writes a file that a server returned, which holds untrusted content (R-S12). A call that is
// repeated writes to the same path.
func (r *result) keep(name string, data []byte) (at workspace.Path, err error) {
	c := r.call
	if c.Workspace == nil {
		return at, fmt.Errorf("there is no workspace")
	}
	wanted := path.Join(filesFolder, fmt.Sprintf("%.6x", sha256.Sum256([]byte(c.Key()))), name)
	at, err = tools.Resolve(c, wanted)
	if err != nil {
		return at, err
	}
	switch view := c.Workspace.View(); {
	case view.Shown(at) != wanted: // a command made a link, maybe to the agent's standing rules (R-S12)
		return at, fmt.Errorf("there is a link in %s", filesFolder)
	case !view.MayChange(at):
		return at, fmt.Errorf("%s may only be read here", filesFolder)
	}
	who := c.Whose()
	if err := r.reserve(who, workspace.DiskBytes(int64(len(data)))); err != nil {
		return at, err
	}
	if err := c.Workspace.SetOrigin(at, ""); err != nil {
		return at, err
	}
	if who != chat.TheOwner {
		if err := c.Workspace.Charge(at, string(who)); err != nil {
			return at, err
		}
	}
	return at, c.Workspace.WriteFile(at, data)
}

// reserve returns an error if who may not store as many bytes.
func (r *result) reserve(who chat.Person, bytes int64) error {
	if who == chat.TheOwner || r.maker.MaxStored == nil {
		return nil
	}
	limit := r.maker.MaxStored()
	if limit <= 0 {
		return nil
	}
	used, ok, err := r.call.Workspace.Reserve(string(who), who.InboxFolder(), bytes, limit)
	if err != nil || ok {
		return err
	}
	return fmt.Errorf("this person's files use %.1f MB of the %.1f MB allowed", float64(used)/1e6, float64(limit)/1e6)
}
