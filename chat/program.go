package chat

import (
	"cmp"
	"encoding/json"
)

// Wishes are what a program asks of the answer to a message.
type Wishes struct {
	Model     string `json:"model,omitempty"`     // name of the model that answers; "" is the session's model
	MaxTokens int    `json:"maxTokens,omitempty"` // of what the model says at a time; 0: as it is configured
	Tools     bool   `json:"tools,omitempty"`     // the program brings tools of its own
	// Format is that of the answer, as OpenAI's response_format; nil: text.
	Format json.RawMessage `json:"format,omitempty"`
}

// Wanted returns what m asks of its answer.
func (m Message) Wanted() Wishes {
	var w Wishes
	if m.Wishes != nil {
		w = *m.Wishes
	}
	if m.Options != nil {
		w.Model = cmp.Or(m.Options.Model, w.Model)
	}
	return w
}

// IsAnsweredAlone reports whether nothing that is said meanwhile joins the turn that answers m: a scheduled task, the
// report of a subagent, or a message whose program has wishes.
func (m Message) IsAnsweredAlone() bool {
	return m.Origin == FromSchedule || m.Origin == FromSubagent || m.Wishes != nil
}

// A ClientTool is a tool of the program that a message comes from. The agent asks for it, and the program runs it.
type ClientTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema"` // JSON Schema of an object
}

// A ClientCall is a call of a [ClientTool].
type ClientCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // a JSON object
}
