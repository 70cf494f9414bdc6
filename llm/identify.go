package llm

import "fmt"

// maxID is the longest ID that every provider takes back.
const maxID = 40

// Identify gives each of calls, which answer said, an ID that no other call
// of the conversation has. Some providers give none, the same one twice, or
// start anew with every answer. The same calls after the same conversation
// always get the same IDs.
func Identify(calls []ToolCall, said []Message) {
	taken := map[string]bool{"": true}
	for _, m := range said {
		for _, c := range m.Calls {
			taken[c.ID] = true
		}
	}
	for i := range calls {
		id := calls[i].ID
		if len(id) > maxID {
			id = ""
		}
		for n := 0; taken[id]; n++ {
			id = fmt.Sprintf("call_%d_%d", len(said), i+n)
		}
		taken[id] = true
		calls[i].ID = id
	}
}
