package pins

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/tools/mcp"
)

// The kinds of what a server offers.
const (
	Tool         = "tool"
	Resource     = "resource"
	Template     = "template"
	Prompt       = "prompt"
	Instructions = "instructions"
)

// keyOf returns the key of an item in a record.
func keyOf(kind, name string) string { return kind + " " + name }

// canonical returns v as JSON whose bytes are the same whenever its meaning is: keys are sorted, and
// what is empty is left out.
func canonical(v map[string]any) string {
	maps.DeleteFunc(v, func(_ string, field any) bool {
		text, err := json.Marshal(field)
		return err == nil && (string(text) == "null" || string(text) == `""`)
	})
	text, err := json.Marshal(v)
	if err != nil {
		return "" // a schema that no JSON can hold has not been read from JSON
	}
	var plain any // of structs, the keys are not sorted
	if json.Unmarshal(text, &plain) != nil {
		return ""
	}
	text, _ = json.Marshal(plain) // it was just decoded
	return string(text)
}

func ofTool(t *sdk.Tool) string {
	return canonical(map[string]any{
		"name":         t.Name,
		"title":        t.Title,
		"description":  t.Description,
		"annotations":  t.Annotations,
		"inputSchema":  t.InputSchema,
		"outputSchema": t.OutputSchema,
	})
}

func ofResource(r *sdk.Resource) string {
	return canonical(map[string]any{
		"name":        r.Name,
		"title":       r.Title,
		"description": r.Description,
		"uri":         r.URI,
		"mimeType":    r.MIMEType,
	})
}

func ofTemplate(t *sdk.ResourceTemplate) string {
	return canonical(map[string]any{
		"name":        t.Name,
		"title":       t.Title,
		"description": t.Description,
		"uriTemplate": t.URITemplate,
		"mimeType":    t.MIMEType,
	})
}

func ofPrompt(p *sdk.Prompt) string {
	return canonical(map[string]any{
		"name":        p.Name,
		"title":       p.Title,
		"description": p.Description,
		"arguments":   p.Arguments,
	})
}

// commandOf returns what the config says about a server that has to do with whom one trusts: what is
// started or reached. Values of variables and headers are not in it.
func (b *Book) commandOf(s mcp.Server) string {
	var args []string
	for _, arg := range s.Args {
		args = append(args, b.config.Redact(arg))
	}
	return canonical(map[string]any{
		"command": b.config.Redact(s.Command),
		"args":    args,
		"env":     slices.Sorted(maps.Keys(s.Env)),
		"url":     b.config.Redact(s.URL),
		"headers": slices.Sorted(maps.Keys(s.Headers)),
	})
}

// itemsOf returns the items of l by their keys. It takes out of l what has the name of an earlier item,
// and what is too long, which it returns, too.
func itemsOf(l *mcp.Listing) (seen map[string]string, tooLong []string) {
	seen = map[string]string{}
	size := 0
	add := func(kind, name, text string) bool {
		key := keyOf(kind, name)
		if _, twice := seen[key]; twice {
			return false
		}
		if len(key)+len(text) > maxItem || size+len(key)+len(text) > maxPinned || text == "" {
			const shown = 100 // characters of a name in the log
			tooLong = append(tooLong, strings.ToValidUTF8(key[:min(len(key), shown)], ""))
			return false
		}
		size += len(key) + len(text)
		seen[key] = text
		return true
	}
	l.Tools = filter(l.Tools, func(t *sdk.Tool) bool { return add(Tool, t.Name, ofTool(t)) })
	l.Resources = filter(l.Resources, func(r *sdk.Resource) bool { return add(Resource, r.Name, ofResource(r)) })
	l.Templates = filter(l.Templates, func(t *sdk.ResourceTemplate) bool {
		return add(Template, t.Name, ofTemplate(t))
	})
	l.Prompts = filter(l.Prompts, func(p *sdk.Prompt) bool { return add(Prompt, p.Name, ofPrompt(p)) })
	text := canonical(map[string]any{"text": l.Instructions})
	if l.Instructions != "" && !add(Instructions, "", text) {
		l.Instructions = ""
	}
	return seen, tooLong
}

// add adds to l the item that is kept under key.
func add(l *mcp.Listing, key, text string) error {
	kind, _, _ := strings.Cut(key, " ")
	switch kind {
	case Tool:
		return addTo(&l.Tools, text)
	case Resource:
		return addTo(&l.Resources, text)
	case Template:
		return addTo(&l.Templates, text)
	case Prompt:
		return addTo(&l.Prompts, text)
	}
	l.Instructions, _ = fieldsOf(text)["text"].(string)
	return nil
}

func addTo[T any](list *[]*T, text string) error {
	item := new(T)
	*list = append(*list, item)
	return json.Unmarshal([]byte(text), item)
}

// keep takes out of l what may not be used.
func keep(l *mcp.Listing, may func(key string) bool) {
	l.Tools = filter(l.Tools, func(t *sdk.Tool) bool { return may(keyOf(Tool, t.Name)) })
	l.Resources = filter(l.Resources, func(r *sdk.Resource) bool { return may(keyOf(Resource, r.Name)) })
	l.Templates = filter(l.Templates, func(t *sdk.ResourceTemplate) bool { return may(keyOf(Template, t.Name)) })
	l.Prompts = filter(l.Prompts, func(p *sdk.Prompt) bool { return may(keyOf(Prompt, p.Name)) })
	if !may(keyOf(Instructions, "")) {
		l.Instructions = ""
	}
}

// filter returns a new list of those that keep reports true for.
func filter[T any](all []*T, keep func(*T) bool) (kept []*T) {
	for _, item := range all {
		if keep(item) {
			kept = append(kept, item)
		}
	}
	return kept
}
