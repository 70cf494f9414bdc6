package conversation

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"parley/chat"
	"parley/llm"
)

// msgLostResult stands for the result of a call that the history has none of (D-047).
const msgLostResult = "[Tool result unavailable — call was interrupted or lost]"

// heal returns ms as a conversation that every provider accepts (P25): each call
// is followed by exactly one result and each result follows its call, IDs are
// set and unique, arguments are JSON objects, nothing is empty, and a person
// begins. A missing result is made up, and a result without a call is dropped.
// A conversation that needs no healing is returned unchanged.
func heal(ms []llm.Message) []llm.Message {
	h := healer{out: make([]llm.Message, 0, len(ms)+1), seen: map[string]bool{}}
	for i := 0; i < len(ms); i++ {
		m := ms[i]
		switch {
		case m.Role == llm.Assistant:
			n := i + 1
			for n < len(ms) && ms[n].Role != llm.Assistant {
				n++
			}
			h.round(m, ms[i+1:n])
			i = n - 1
		case m.Role != llm.ToolRole:
			h.heard(m)
		}
	}
	return h.out
}

type healer struct {
	out  []llm.Message
	seen map[string]bool // IDs of calls
}

// heard adds something a person said.
func (h *healer) heard(m llm.Message) {
	if strings.TrimSpace(m.Text) == "" {
		m.Text = "(no text)"
	}
	h.out = append(h.out, llm.Message{Role: llm.User, Text: valid(m.Text), Images: m.Images})
}

// round adds answer, its results, which are among after, and then what else was
// said there.
func (h *healer) round(answer llm.Message, after []llm.Message) {
	if strings.TrimSpace(answer.Text) == "" && len(answer.Calls) == 0 {
		answer.Text = "(no answer)"
	}
	if len(h.out) == 0 {
		h.out = append(h.out, llm.Message{Role: llm.User, Text: "(earlier messages are left out)"})
	}
	var results []llm.Message
	var calls []llm.ToolCall
	after = slices.Clone(after)
	for _, c := range answer.Calls {
		r := llm.Message{Role: llm.ToolRole, Text: msgLostResult}
		isResult := func(m llm.Message) bool { return m.Role == llm.ToolRole && m.Call == c.ID }
		if i := slices.IndexFunc(after, isResult); i >= 0 {
			r = after[i]
			after = slices.Delete(after, i, i+1)
		}
		c.ID = h.unique(c.ID)
		c.Args = object(c.Args)
		c = c.Outer()
		c.Name = name(c.Name)
		r.Call = c.ID
		r.Name = c.Name
		r.Text = valid(r.Text)
		if r.Text == "" {
			r.Text = "(" + c.Name + " completed with no output)"
		}
		calls, results = append(calls, c), append(results, r)
	}
	answer.Text, answer.Calls = valid(answer.Text), calls
	h.out = append(h.out, answer)
	h.out = append(h.out, results...)
	for _, m := range after {
		if m.Role != llm.ToolRole {
			h.heard(m)
		}
	}
}

// unique returns id, or another one if it is empty or was used before.
func (h *healer) unique(id string) string {
	for n := 1; id == "" || h.seen[id]; n++ {
		id = "call_" + strconv.Itoa(len(h.seen)) + "_" + strconv.Itoa(n)
	}
	h.seen[id] = true
	return id
}

// object returns args if they are a JSON object, else an object that holds them.
func object(args string) string {
	if s := strings.TrimSpace(args); strings.HasPrefix(s, "{") && json.Valid([]byte(s)) {
		return args
	}
	if strings.TrimSpace(args) == "" {
		return "{}"
	}
	b, _ := json.Marshal(map[string]string{"unreadable": chat.ClipMiddle(valid(args), 1000)})
	return string(b)
}

// name returns s as providers accept the name of a tool.
func name(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, s)
	if s == "" {
		return "unknown"
	}
	return s[:min(len(s), 64)]
}
