package textmode

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"parley/llm"
)

// maxCall is how long a call may be, in bytes; of a longer one nothing is made.
const maxCall = 1 << 20

// A parser takes an answer apart while it comes in, however it is cut up: the
// text before the first call, and the calls. Only the names of tools on offer,
// or where there are none of those called before, and within them those of
// their parameters, are tags; all else is text (C-050).
type parser struct {
	stream func(llm.Delta) // may be nil
	taken  map[string]bool // IDs of calls
	idle   bool            // there are no tools this time: calls are left out
	tools  []string        // the tags of tools
	params map[string][]string

	text  strings.Builder
	calls []llm.ToolCall
	space []byte   // the white space at the end of text, which is none of it if a call follows
	rest  string   // may become a tag
	tags  []string // that may come now

	call  llm.ToolCall    // that is coming in, if it has a Name
	raw   strings.Builder // all of it
	args  map[string]string
	param string // that is coming in
	value []byte // of param
	cdata bool
	shown int  // bytes of raw when call was last streamed
	over  bool // a call was too long
}

const cdata = "<![CDATA["

func newParser(req llm.Request, stream func(llm.Delta)) *parser {
	p := &parser{stream: stream, idle: len(req.Tools) == 0, taken: map[string]bool{}, params: map[string][]string{}}
	for _, m := range req.Messages {
		for _, c := range m.Calls {
			p.taken[c.ID] = true
			if p.idle && p.params[c.Name] == nil {
				p.know(c.Name)
			}
		}
	}
	for _, t := range req.Tools {
		p.know(t.Name)
		params, _ := read(t.Schema)
		for _, param := range params {
			p.params[t.Name] = append(p.params[t.Name], "<"+param.name+">")
		}
	}
	p.tags = p.tools
	return p
}

// know makes tags of the name of a tool.
func (p *parser) know(name string) {
	p.tools = append(p.tools, "<"+name+">", "<"+name+"/>", "<"+name+" />")
	p.params[name] = []string{"</" + name + ">"}
}

// feed takes in the next piece of the answer.
func (p *parser) feed(s string) {
	if p.over {
		return
	}
	for p.rest += s; p.rest != "" && !p.over && p.step(); {
	}
	if raw := p.raw.Len(); p.call.Name != "" && raw > p.shown+p.shown/16 { // or a long one takes ages
		p.shown = raw
		args := maps.Clone(p.args)
		if p.param != "" {
			args[p.param] = strings.ToValidUTF8(trimmed(p.value), "")
		}
		p.show(args)
	}
}

// show streams the call with args.
func (p *parser) show(args map[string]string) {
	var js strings.Builder
	e := json.NewEncoder(&js)
	e.SetEscapeHTML(false)
	_ = e.Encode(args) // strings always can be
	before := p.call.Args
	if p.call.Args = strings.TrimSuffix(js.String(), "\n"); p.call.Args == before {
		return
	}
	if c := p.call; p.stream != nil && !p.idle {
		p.stream(llm.Delta{Call: &c})
	}
}

// step takes in the beginning of rest; false means that more is needed.
func (p *parser) step() bool {
	if p.cdata {
		return p.literal()
	}
	if n := strings.IndexByte(p.rest, '<'); n != 0 {
		if n < 0 {
			n = len(p.rest)
		}
		p.words(p.take(n))
		return true
	}
	for _, tag := range p.tags {
		if strings.HasPrefix(p.rest, tag) {
			p.take(len(tag))
			p.tag(tag)
			return true
		}
		if strings.HasPrefix(tag, p.rest) {
			return false
		}
	}
	p.words(p.take(1))
	return true
}

func (p *parser) take(n int) string {
	taken := p.rest[:n]
	p.rest = p.rest[n:]
	if p.call.Name != "" {
		p.raw.WriteString(taken)
		p.over = p.raw.Len() > maxCall
	}
	return taken
}

// literal takes in CDATA, to its end or to what may be the beginning of that.
func (p *parser) literal() bool {
	if n := strings.Index(p.rest, "]]>"); n >= 0 {
		p.words(p.take(n))
		p.take(3)
		p.cdata = false
		return true
	}
	n := max(len(strings.TrimRight(p.rest, "]")), len(p.rest)-2)
	p.words(p.take(n))
	return n > 0
}

// words takes in what is no tag: what a parameter holds, or text.
func (p *parser) words(s string) {
	switch {
	case p.param != "":
		p.value = append(p.value, s...)
	case p.call.Name == "" && len(p.calls) == 0:
		words := strings.TrimRight(s, " \t\r\n")
		if words != "" {
			p.say(string(p.space) + words)
			p.space = p.space[:0]
		}
		p.space = append(p.space, s[len(words):]...)
	}
}

func (p *parser) say(s string) {
	p.text.WriteString(s)
	if p.stream != nil && s != "" {
		p.stream(llm.Delta{Text: s})
	}
}

func (p *parser) tag(tag string) {
	name := strings.Trim(tag, "</ >")
	switch {
	case tag == cdata:
		p.cdata = true
	case p.param != "":
		p.args[p.param] = trimmed(p.value)
		p.param = ""
		p.value = nil
		p.tags = p.params[p.call.Name]
	case p.call.Name == "":
		p.begin(name, tag)
	case tag[1] == '/':
		p.done()
	default:
		p.param, p.tags = name, []string{"</" + name + ">", cdata}
	}
}

func (p *parser) begin(name, tag string) {
	p.raw.Reset()
	p.raw.Write(p.space)
	p.raw.WriteString(tag)
	p.space = nil
	p.shown = 0
	p.args = map[string]string{}
	p.tags = p.params[name]
	p.call = llm.ToolCall{Name: name}
	for n := 1; p.call.ID == "" || p.taken[p.call.ID]; n++ {
		p.call.ID = fmt.Sprintf("call_%d", n)
	}
	p.taken[p.call.ID] = true
	if strings.HasSuffix(tag, "/>") {
		p.done()
	}
}

func (p *parser) done() {
	p.show(p.args)
	p.calls = append(p.calls, p.call)
	p.call, p.tags = llm.ToolCall{}, p.tools
}

// end says that nothing more comes. A call without an end was no more than
// text, unless the answer is cut.
func (p *parser) end(cut bool) {
	switch {
	case p.over || len(p.calls) > 0:
	case p.call.Name == "":
		p.say(string(p.space) + p.rest)
	case !cut:
		p.say(p.raw.String() + p.rest)
	}
}

// trimmed returns value without the newline at its beginning and at its end.
func trimmed(value []byte) string {
	return strings.TrimSuffix(strings.TrimPrefix(string(value), "\n"), "\n")
}
