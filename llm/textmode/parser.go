package textmode

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"parley/llm"
)

// maxCall is how long a call may be, in bytes. A longer one is dropped.
const maxCall = 1 << 20

const (
	cdataOpen  = "<![CDATA["
	cdataClose = "]]>"
)

// A parser separates an answer, however it is divided into pieces, into the text
// before the first call, and the calls. Tags are only the names of the tools in the
// request (if there are none, of tools that were called before), and within those
// the names of their parameters. Everything else is text (C-050).
type parser struct {
	stream    func(llm.Delta)     // may be nil
	usedIDs   map[string]bool     // of calls
	noTools   bool                // the request has none: calls are left out
	toolTags  []string            // of all tools
	paramTags map[string][]string // by tool, with the tag that closes it

	text    strings.Builder
	calls   []llm.ToolCall
	space   []byte   // white space at the end of text, which is dropped if a call follows
	pending string   // may become a tag
	tags    []string // that are possible now

	call     llm.ToolCall    // that is being read, if it has a Name
	raw      strings.Builder // all of that call
	args     map[string]string
	param    string // that is being read
	value    []byte // of param
	inCDATA  bool
	streamed int  // bytes of raw when call was last streamed
	tooLong  bool // a call was
}

func newParser(req llm.Request, stream func(llm.Delta)) *parser {
	p := &parser{
		stream:    stream,
		noTools:   len(req.Tools) == 0,
		usedIDs:   map[string]bool{},
		paramTags: map[string][]string{},
	}
	for _, m := range req.Messages {
		for _, c := range m.Calls {
			p.usedIDs[c.ID] = true
			if p.noTools && p.paramTags[c.Name] == nil {
				p.addTool(c.Name)
			}
		}
	}
	for _, t := range req.Tools {
		p.addTool(t.Name)
		params, _ := readSchema(t.Schema)
		for _, param := range params {
			p.paramTags[t.Name] = append(p.paramTags[t.Name], "<"+param.name+">")
		}
	}
	p.tags = p.toolTags
	return p
}

// addTool adds the tags of a tool.
func (p *parser) addTool(name string) {
	p.toolTags = append(p.toolTags, "<"+name+">", "<"+name+"/>", "<"+name+" />")
	p.paramTags[name] = []string{"</" + name + ">"}
}

// feed parses the next piece of the answer.
func (p *parser) feed(s string) {
	if p.tooLong {
		return
	}
	p.pending += s
	for p.pending != "" && !p.tooLong && p.step() {
	}
	size := p.raw.Len()
	if p.call.Name != "" && size > p.streamed+p.streamed/16 { // less often the longer it gets
		p.streamed = size
		args := maps.Clone(p.args)
		if p.param != "" {
			args[p.param] = strings.ToValidUTF8(trimNewlines(p.value), "")
		}
		p.streamCall(args)
	}
}

// streamCall streams the call with args, unless they are unchanged.
func (p *parser) streamCall(args map[string]string) {
	var encoded strings.Builder
	e := json.NewEncoder(&encoded)
	e.SetEscapeHTML(false)
	_ = e.Encode(args) // strings can always be encoded
	before := p.call.Args
	p.call.Args = strings.TrimSuffix(encoded.String(), "\n")
	if p.call.Args == before || p.stream == nil || p.noTools {
		return
	}
	call := p.call
	p.stream(llm.Delta{Call: &call})
}

// step parses the beginning of pending. It returns false if more is needed.
func (p *parser) step() bool {
	if p.inCDATA {
		return p.stepCDATA()
	}
	if n := strings.IndexByte(p.pending, '<'); n != 0 {
		if n < 0 {
			n = len(p.pending)
		}
		p.handleText(p.take(n))
		return true
	}
	for _, tag := range p.tags {
		if strings.HasPrefix(p.pending, tag) {
			p.take(len(tag))
			p.handleTag(tag)
			return true
		}
		if strings.HasPrefix(tag, p.pending) {
			return false
		}
	}
	p.handleText(p.take(1))
	return true
}

// take removes n bytes from pending and returns them.
func (p *parser) take(n int) string {
	taken := p.pending[:n]
	p.pending = p.pending[n:]
	if p.call.Name != "" {
		p.raw.WriteString(taken)
		p.tooLong = p.raw.Len() > maxCall
	}
	return taken
}

// stepCDATA parses CDATA up to its end, or to what may be the beginning of the end.
func (p *parser) stepCDATA() bool {
	if n := strings.Index(p.pending, cdataClose); n >= 0 {
		p.handleText(p.take(n))
		p.take(len(cdataClose))
		p.inCDATA = false
		return true
	}
	n := max(len(strings.TrimRight(p.pending, "]")), len(p.pending)-2)
	p.handleText(p.take(n))
	return n > 0
}

// handleText adds s, which is not a tag, to the value of a parameter or to the text.
func (p *parser) handleText(s string) {
	switch {
	case p.param != "":
		p.value = append(p.value, s...)
	case p.call.Name == "" && len(p.calls) == 0:
		words := strings.TrimRight(s, " \t\r\n")
		if words != "" {
			p.addText(string(p.space) + words)
			p.space = p.space[:0]
		}
		p.space = append(p.space, s[len(words):]...)
	}
}

func (p *parser) addText(s string) {
	p.text.WriteString(s)
	if p.stream != nil && s != "" {
		p.stream(llm.Delta{Text: s})
	}
}

func (p *parser) handleTag(tag string) {
	name := strings.Trim(tag, "</ >")
	switch {
	case tag == cdataOpen:
		p.inCDATA = true
	case p.param != "":
		p.args[p.param] = trimNewlines(p.value)
		p.param = ""
		p.value = nil
		p.tags = p.paramTags[p.call.Name]
	case p.call.Name == "":
		p.beginCall(name, tag)
	case tag[1] == '/':
		p.endCall()
	default:
		p.param = name
		p.tags = []string{"</" + name + ">", cdataOpen}
	}
}

func (p *parser) beginCall(name, tag string) {
	p.raw.Reset()
	p.raw.Write(p.space)
	p.raw.WriteString(tag)
	p.space = nil
	p.streamed = 0
	p.args = map[string]string{}
	p.tags = p.paramTags[name]
	p.call = llm.ToolCall{Name: name}
	for n := 1; p.call.ID == "" || p.usedIDs[p.call.ID]; n++ {
		p.call.ID = fmt.Sprintf("call_%d", n)
	}
	p.usedIDs[p.call.ID] = true
	if strings.HasSuffix(tag, "/>") {
		p.endCall()
	}
}

func (p *parser) endCall() {
	p.streamCall(p.args)
	p.calls = append(p.calls, p.call)
	p.call = llm.ToolCall{}
	p.tags = p.toolTags
}

// end is called at the end of the answer. A call that is not closed was only text,
// unless the answer is cut off.
func (p *parser) end(cut bool) {
	switch {
	case p.tooLong || len(p.calls) > 0:
	case p.call.Name == "":
		p.addText(string(p.space) + p.pending)
	case !cut:
		p.addText(p.raw.String() + p.pending)
	}
}

// trimNewlines returns value without one newline at its beginning and one at its end.
func trimNewlines(value []byte) string {
	return strings.TrimSuffix(strings.TrimPrefix(string(value), "\n"), "\n")
}
