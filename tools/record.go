package tools

import (
	"encoding/json"
	"time"

	"parley/llm"
	"parley/tools/arguments"
)

// A Record describes a call for programs. It is made from the session's
// log on request.
type Record struct {
	ID       string `json:"id"`
	Type     string `json:"type"` // "function"
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"` // JSON
	} `json:"function"`
	Result        string  `json:"result"` // JSON: {"success":…,"data":…,"error":…}
	Success       bool    `json:"success"`
	Skipped       bool    `json:"skipped"`
	ExecutionTime float64 `json:"execution_time"` // seconds; 0 if the call was not executed
	Meta          Meta    `json:"meta"`
}

// Meta is what a Record holds besides the seven keys of A-014.
type Meta struct {
	Tool string `json:"tool"`
	// Alias is the name that was called, if it is an alias. Callers who know the
	// Kit set it, and Server.
	Alias       string `json:"alias"`
	Server      string `json:"server"` // of an MCP tool
	Status      string `json:"status"` // "success" or "error" (E-029)
	Cached      bool   `json:"cached"`
	DuplicateOf string `json:"duplicate_of"` // ID of the call whose result this is
	Verdict     string `json:"verdict"`      // whether the result is useful: "ok" or "poor" (E-029)
	Code        string `json:"code"`
	DurationMS  int64  `json:"duration_ms"`
	CallTime    string `json:"call_time"` // RFC 3339; "" if unknown
	Agent       string `json:"agent"`
	Turn        int    `json:"turn"` // number of the model's answer
	RequestID   string `json:"requestId"`
	Persisted   string `json:"persisted"` // file with the whole of a long result
	Truncated   bool   `json:"truncated"`
}

// NewRecord makes the Record of a call from the text that the model read, and from
// its result. The agent made the call in this round.
func NewRecord(call llm.ToolCall, read string, r Result, agent string, round int) Record {
	rec := Record{
		ID:            call.ID,
		Type:          "function",
		Success:       !r.Failed,
		Skipped:       r.Skipped,
		ExecutionTime: r.Took.Seconds(),
	}
	rec.Function.Name = call.Name
	rec.Function.Arguments = call.Args
	if call.Args == "" {
		rec.Function.Arguments = "{}"
	} else if !json.Valid([]byte(call.Args)) {
		rec.Function.Arguments = arguments.JSON(call.Args)
	}
	rec.Result = read
	r.Text = read
	if r.Code == CodeNotFound {
		r.Text = "Tool not found: " + call.Name
	}
	if !r.JSON || !json.Valid([]byte(read)) { // the agent may have appended something
		rec.Result = envelope(r, false)
	}
	rec.Meta = Meta{
		Tool: call.Name, Status: "success", Verdict: "ok", Cached: r.Cached, DuplicateOf: r.Twin, Code: r.Code,
		DurationMS: r.Took.Milliseconds(), Agent: agent, Turn: round, RequestID: call.ID, Persisted: r.File,
		Truncated: r.Cut,
	}
	if r.Failed {
		rec.Meta.Status = "error"
	}
	if r.Verdict != Fine {
		rec.Meta.Verdict = string(r.Verdict)
	}
	if !r.Time.IsZero() {
		rec.Meta.CallTime = r.Time.Format(time.RFC3339)
	}
	return rec
}
