package llm

import "fmt"

// maxIDLen is the greatest length of an ID, in bytes, that every provider accepts.
const maxIDLen = 40

// Identify gives each of calls, which follow history, an ID that no other call of
// the conversation has. Some providers give none, the same one twice, or begin
// again with every answer. The same calls after the same history always get the
// same IDs.
func Identify(calls []ToolCall, history []Message) {
	taken := map[string]bool{"": true}
	for _, m := range history {
		for _, c := range m.Calls {
			taken[c.ID] = true
		}
	}
	for i := range calls {
		id := calls[i].ID
		if len(id) > maxIDLen {
			id = ""
		}
		for n := 0; taken[id]; n++ {
			id = fmt.Sprintf("call_%d_%d", len(history), i+n)
		}
		taken[id] = true
		calls[i].ID = id
	}
}
