package mcp

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

// A resultMaker makes the result of a call of what a server returned.
type resultMaker struct {
	v      *supervisor
	call   tools.Call
	texts  []string
	files  int
	result tools.Result
}

// toolResult returns what the model reads of the result of a tool (D-108, D-109).
func (v *supervisor) toolResult(c tools.Call, got *sdk.CallToolResult) tools.Result {
	m := &resultMaker{v: v, call: c}
	for _, content := range got.Content {
		m.add(content)
	}
	m.addStructured(got.StructuredContent)
	r := m.finish()
	r.Failed = got.IsError
	return r
}

// contentResult returns what the model reads of a prompt.
func (v *supervisor) contentResult(c tools.Call, all []sdk.Content) tools.Result {
	m := &resultMaker{v: v, call: c}
	for _, content := range all {
		m.add(content)
	}
	return m.finish()
}

// resourceResult returns what the model reads of a resource: the text as it is (D-110).
func (v *supervisor) resourceResult(c tools.Call, all []*sdk.ResourceContents) tools.Result {
	m := &resultMaker{v: v, call: c}
	for _, contents := range all {
		m.addContents(contents)
	}
	return m.finish()
}

func (m *resultMaker) finish() tools.Result {
	m.result.Text = strings.Join(m.texts, "\n")
	if m.result.Text == "" {
		m.result.Text = noOutput
	}
	return m.result
}

func (m *resultMaker) say(format string, args ...any) {
	m.texts = append(m.texts, fmt.Sprintf(format, args...))
}

// add adds one piece of content.
func (m *resultMaker) add(content sdk.Content) {
	switch c := content.(type) {
	case *sdk.TextContent:
		m.texts = append(m.texts, c.Text)
	case *sdk.ImageContent:
		m.addFile("image", c.MIMEType, c.Data)
	case *sdk.AudioContent:
		m.addFile("audio", c.MIMEType, c.Data)
	case *sdk.EmbeddedResource:
		m.addContents(c.Resource)
	case *sdk.ResourceLink:
		text := strings.TrimSpace(c.Name + " " + c.Description)
		m.say("[Resource link: %s URI: %s]", chat.Clip(chat.OneLine(text), 300, "…"), chat.OneLine(c.URI))
	case nil:
	default:
		m.say("[Content of a kind that is not supported: %T]", c)
	}
}

// addContents adds a resource.
func (m *resultMaker) addContents(r *sdk.ResourceContents) {
	switch {
	case r == nil:
	case r.Blob == nil:
		m.texts = append(m.texts, r.Text)
	default:
		m.say("[Binary resource: %d bytes]", len(r.Blob))
		m.addFile("resource", r.MIMEType, r.Blob)
	}
}

// addStructured adds what a tool returns for programs, unless the texts say it all.
func (m *resultMaker) addStructured(structured any) {
	if structured == nil {
		return
	}
	text, err := json.Marshal(structured)
	if err != nil || string(text) == "{}" || m.has(structured) {
		return
	}
	m.texts = append(m.texts, string(text))
}

// has reports whether the texts contain all values in value.
func (m *resultMaker) has(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, item := range v {
			if !m.has(item) {
				return false
			}
		}
		return true
	case []any:
		for _, item := range v {
			if !m.has(item) {
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
	for _, text := range m.texts {
		if strings.Contains(text, said) || strings.Contains(text, strings.Trim(quoted(said), `"`)) {
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
func (m *resultMaker) addFile(kind, mimeType string, data []byte) {
	m.files++
	if m.files > maxFiles {
		if m.files == maxFiles+1 {
			m.say("[More files were left out: there are more than %d]", maxFiles)
		}
		return
	}
	at, err := m.keep(fmt.Sprintf("%s-%d%s", kind, m.files, extension(mimeType)), data)
	if err != nil {
		m.say("[%s of %d bytes, which could not be kept: %v]", kind, len(data), err)
		return
	}
	m.result.Attached = append(m.result.Attached, at.String())
	if isPicture(data) {
		m.result.Pictures = append(m.result.Pictures, at.String())
	}
	hint := "it is sent with your answer: do not send it otherwise"
	if m.call.Depth > 0 {
		hint = "nobody is sent it unless you name its path in your answer"
	}
	m.say("[%s saved to %s; %s]", kind, m.call.Workspace.View().Shown(at), hint)
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
func (m *resultMaker) keep(name string, data []byte) (at workspace.Path, err error) {
	c := m.call
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
	if err := m.reserve(who, workspace.DiskBytes(int64(len(data)))); err != nil {
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
func (m *resultMaker) reserve(who chat.Person, bytes int64) error {
	if who == chat.TheOwner || m.v.config.MaxStored == nil {
		return nil
	}
	limit := m.v.config.MaxStored()
	if limit <= 0 {
		return nil
	}
	used, ok, err := m.call.Workspace.Reserve(string(who), who.InboxFolder(), bytes, limit)
	if err != nil || ok {
		return err
	}
	return fmt.Errorf("this person's files use %.1f MB of the %.1f MB allowed", float64(used)/1e6, float64(limit)/1e6)
}
