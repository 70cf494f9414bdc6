package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"parley/channels"
	"parley/chat"
)

// What the page shows of a step, however much there is.
const (
	maxParams = 16
	maxName   = 64  // runes
	maxValue  = 600 // runes of a parameter, a result or an error
)

// A step is a chat.Step, on the way to the reply of that ID.
type step struct {
	Reply string `json:"reply"`
	chat.Step
}

// step shows how far a tool is (A-089: in the order in which they began).
func (rm *room) step(r chat.Reply, s chat.Step) {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	rm.begin(r.ID)
	if s, news := rm.making.steps.Add(brief(s)); news {
		rm.pushing(event("step", 0, step{r.ID, s}))
	}
}

// brief returns what the page shows of s.
func brief(s chat.Step) chat.Step {
	params := map[string]any{}
	for _, k := range slices.Sorted(maps.Keys(s.Params)) {
		if len(params) < maxParams {
			params[channels.Clip(k, maxName)] = briefly(s.Params[k])
		}
	}
	s.Params = params
	s.Tool, s.Name = channels.Clip(s.Tool, maxName), channels.Clip(s.Name, maxName)
	s.Call, s.Tip, s.Result, s.Error = channels.Clip(s.Call, maxValue), channels.Clip(s.Tip, maxValue), channels.Clip(s.Result, maxValue), channels.Clip(s.Error, maxValue)
	return s
}

// briefly returns v, or the beginning of what it is as text.
func briefly(v any) any {
	text, ok := v.(string)
	if !ok {
		raw, err := json.Marshal(v)
		if err == nil && len(raw) <= maxValue {
			return v
		}
		text = cmp.Or(string(raw), fmt.Sprint(v))
	}
	return channels.Clip(text, maxValue)
}
