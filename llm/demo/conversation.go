package demo

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/lazyregexp"
	"parley/llm"
)

// A conversation is what the model makes of a request.
type conversation struct {
	tools     []llm.ToolSpec
	channel   string // the name of the channel, "" if the instructions have none
	memory    string // the file of what is to be remembered
	hasNotice bool   // the person was told that this is a demo
	now       time.Time

	earlier []string // what people wrote before this turn, in small letters
	jobs    []job    // that were made and not stopped, the latest last
	buttons []string // that the person was shown last

	from  origin
	quiet bool      // nothing is to be said unless there is news
	time  time.Time // when the latest message was written, on the clock of people
	asked string    // what they wrote since the model spoke last
	all   string    // what they wrote in this turn
	uses  []use     // in this turn
}

// A job is one that the model has put on the schedule.
type job struct {
	name, id string
	repeats  bool
}

// An origin says who the model answers.
type origin int

const (
	fromPerson origin = iota
	fromSchedule
	fromSubagent
	fromParent // the model is a subagent
)

// A use is a tool call with its result.
type use struct {
	call
	id     string
	result string
	isOver bool
}

// failed reports whether the result is an error.
func (u use) failed() bool { return strings.HasPrefix(u.result, "Error") }

// arg returns an argument of the call, "" if it has none of that name.
func (u use) arg(name string) string {
	var values map[string]any
	_ = json.Unmarshal([]byte(u.args), &values) // without arguments there is no value
	text, _ := values[name].(string)
	return text
}

// ownersMemory is the file of what is to be remembered of owners. Others have folders of their own.
const ownersMemory = "MEMORY.md"

// isOwner reports whether the person may change what Parley is.
func (c conversation) isOwner() bool { return c.memory == ownersMemory }

// nothingToSay is the whole answer to what asks for one only if there is news.
const nothingToSay = "NOTHING_TO_SAY"

var (
	memoryForm = lazyregexp.New(
		`hold these instructions, (\S+\.md) what you remember|what you remember belongs in (\S+\.md)`)
	headerForm  = lazyregexp.New(`^\[\w{3} (\d{4}-\d\d-\d\d \d\d:\d\d)([^\n]*)\]\n`)
	channelForm = lazyregexp.New(`on the channel "([^"]*)"`)
	jobForm     = lazyregexp.New(`\(id: ([^)\s]+)\)`)
	quoteForm   = lazyregexp.New(`^(> [^\n]*\n)+`)
	numberForm  = lazyregexp.New(`^\s*(\d{1,2})[.)]?\s*$`)
)

// readConversation returns what the model knows when it is asked.
func readConversation(req llm.Request, now time.Time) conversation {
	c := conversation{tools: req.Tools, memory: ownersMemory, now: now}
	if m := channelForm.FindStringSubmatch(req.System); m != nil {
		c.channel = m[1]
	}
	if m := memoryForm.FindStringSubmatch(req.System); m != nil {
		c.memory = cmp.Or(m[1], m[2])
	}
	for _, m := range req.Messages {
		switch m.Role {
		case llm.User:
			c.hear(m.Text)
		case llm.ToolRole:
			c.finish(m)
		default:
			c.speak(m)
		}
	}
	c.all = strings.TrimSpace(c.all)
	return c
}

// hear reads a message of a person or of the gateway.
func (c *conversation) hear(text string) {
	if c.said() {
		c.endTurn()
	}
	header := headerForm.FindStringSubmatch(text)
	c.from = fromPerson
	c.quiet = header != nil && strings.Contains(header[2], nothingToSay)
	if header != nil {
		text = text[len(header[0]):]
		c.time, _ = time.Parse("2006-01-02 15:04", header[1])
		for from, words := range map[origin]string{
			fromSchedule: "from the schedule", fromSubagent: "from the subagent", fromParent: "from the parent",
		} {
			if strings.HasPrefix(header[2], ", "+words) {
				c.from = from
			}
		}
		if strings.HasSuffix(header[2], "quoted below") {
			text = text[len(quoteForm.FindString(text)):]
		}
	}
	if m := numberForm.FindStringSubmatch(text); m != nil { // of a button, where buttons are numbered
		if n, _ := strconv.Atoi(m[1]); n >= 1 && n <= len(c.buttons) {
			text = c.buttons[n-1]
		}
	}
	if c.asked != "" {
		c.asked += "\n"
		c.all += "\n"
	}
	c.asked += text
	c.all += text
}

// speak reads an answer of the model, or its calls.
func (c *conversation) speak(m llm.Message) {
	c.asked = ""
	c.hasNotice = c.hasNotice || strings.Contains(m.Text, whatItIs)
	for _, made := range m.Calls {
		u := use{call: inner(made), id: made.ID}
		if u.tool == "message" {
			c.hasNotice = c.hasNotice || strings.Contains(u.arg("text"), whatItIs)
			c.buttons = buttonsOf(u.args)
		}
		c.uses = append(c.uses, u)
	}
	if len(m.Calls) == 0 {
		c.endTurn()
	}
}

// endTurn begins the next turn.
func (c *conversation) endTurn() {
	c.earlier = append(c.earlier, strings.ToLower(c.all))
	c.all = ""
	c.uses = nil
}

// finish reads the result of a call.
func (c *conversation) finish(m llm.Message) {
	i := slices.IndexFunc(c.uses, func(u use) bool { return u.id == m.Call && !u.isOver })
	if i < 0 { // the call was made in words
		c.uses = append(c.uses, use{call: call{m.Name, "{}"}, result: m.Text, isOver: true})
		return
	}
	c.uses[i].result = m.Text
	c.uses[i].isOver = true
	c.noteJob(c.uses[i])
}

// noteJob keeps the job that u has made, and forgets the one that it has ended.
func (c *conversation) noteJob(u use) {
	if u.tool != "cron" || u.failed() {
		return
	}
	switch u.arg("action") {
	case "add":
		j := job{name: u.arg("name"), repeats: u.arg("at") == ""}
		j.id = j.name
		if m := jobForm.FindStringSubmatch(u.result); m != nil {
			j.id = m[1]
		}
		if j.name != "" {
			c.jobs = append(c.jobs, j)
		}
	case "remove":
		ended := u.arg("job_id")
		c.jobs = slices.DeleteFunc(c.jobs, func(j job) bool { return j.id == ended || j.name == ended })
	}
}

// jobsNamed returns the IDs of the jobs of that name which repeat, or of the latest that
// does not: it may be over. Of a job that was made elsewhere, the name has to do.
func (c conversation) jobsNamed(name string) (ids []string) {
	id := name
	for _, j := range c.jobs {
		if !strings.EqualFold(j.name, name) {
			continue
		}
		id = j.id
		if j.repeats && !slices.Contains(ids, j.id) {
			ids = append(ids, j.id)
		}
	}
	if len(ids) == 0 {
		return []string{id}
	}
	return ids
}

// inner returns the call that made stands for: tools that are not listed are called
// with call_tool.
func inner(made llm.ToolCall) call {
	var in struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if made.Name == "call_tool" && json.Unmarshal([]byte(made.Args), &in) == nil && in.Name != "" {
		return call{in.Name, string(in.Arguments)}
	}
	return call{made.Name, made.Args}
}

func buttonsOf(args string) []string {
	var in struct {
		Buttons []string `json:"buttons"`
	}
	_ = json.Unmarshal([]byte(args), &in) // without buttons there are none
	return in.Buttons
}

// offers reports whether the model may call tool.
func (c conversation) offers(tool string) bool {
	return slices.ContainsFunc(c.tools, func(t llm.ToolSpec) bool { return t.Name == tool })
}

// tried reports whether tool was called in this turn.
func (c conversation) tried(tool string) bool {
	return slices.ContainsFunc(c.uses, func(u use) bool { return u.tool == tool })
}

// said reports whether the last call of this turn said the answer, and nothing was
// asked since.
func (c conversation) said() bool {
	if c.asked != "" || len(c.uses) == 0 {
		return false
	}
	last := c.uses[len(c.uses)-1]
	return last.tool == "message" && buttonsOf(last.args) != nil && !last.failed()
}
