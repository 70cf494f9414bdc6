package custom

import (
	"encoding/json"
	"fmt"
	"strings"

	"parley/chat"
	"parley/tools/sandbox"
)

// An Outcome is what became of a run (B-050). Its JSON is that of the admin API.
type Outcome struct {
	Success    bool    `json:"success"` // the program ended by itself, with exit code 0
	Status     string  `json:"status"`  // "completed", "timeout" or "error"
	Output     string  `json:"output"`  // what it wrote to stdout, then to stderr (B-049)
	Stderr     string  `json:"stderr,omitempty"`
	ReturnCode int     `json:"return_code"`
	Truncated  bool    `json:"truncated"`
	Timeout    float64 `json:"timeout"` // seconds that it had
	ElapsedMS  int64   `json:"elapsed_ms"`
	CustomTool bool    `json:"custom_tool"` // true
	ToolID     string  `json:"tool_id"`
	Message    string  `json:"message"` // what models and people read of it (B-059)

	Error   string   `json:"error,omitempty"`   // why the program did not run
	Missing string   `json:"missing,omitempty"` // the placeholder without an argument (B-030)
	Refused []string `json:"refused,omitempty"` // hosts that it may not reach

	sources []string // where untrusted content comes from that the program may have read

	WithoutHosts bool `json:"without_hosts,omitempty"` // it had no network, for want of a sandbox that knows hosts
}

// The values of Status.
const (
	statusCompleted = "completed"
	statusTimeout   = "timeout"
	statusError     = "error"
)

// maxOutput is how many characters of output are kept (B-048).
const maxOutput = 10_000

// read sets what the program wrote (B-049).
func (o *Outcome) read(stdout, stderr *sandbox.Ends) {
	o.Stderr = storable(stderr.String())
	both := sandbox.Ends{Max: maxOutput}
	both.Append(stdout)
	if text := stdout.String(); text != "" && !strings.HasSuffix(text, "\n") && o.Stderr != "" {
		_, _ = both.Write([]byte("\n"))
	}
	both.Append(stderr)
	o.Output = strings.TrimSuffix(storable(both.String()), "\n") // print adds one
	o.Truncated = both.Cut()
}

// storable returns text that anybody can store and show.
func storable(text string) string { return strings.ReplaceAll(text, "\x00", "\ufffd") }

// finish sets Message, and applies return.json (B-052 to B-058).
func (o *Outcome) finish(d Definition) {
	var layer struct{ Truncate, Template any }
	_ = json.Unmarshal(d.Return, &layer)
	if n, isNumber := layer.Truncate.(float64); isNumber && n >= 1 && n == float64(int(n)) { // B-053
		if cut := chat.Clip(o.Output, int(n), ""); len(cut) < len(o.Output) {
			o.Output = cut
			o.Truncated = true
		}
	}
	o.Message = o.defaultMessage()
	form, isText := layer.Template.(string)
	if !isText || form == "" || o.Error != "" || o.Status == statusTimeout {
		return
	}
	if message, ok := fill(form, map[string]string{
		"output":      o.Output,
		"stderr":      o.Stderr,
		"return_code": fmt.Sprint(o.ReturnCode),
		"tool_id":     o.ToolID,
	}); ok {
		o.Message = message
	}
}

// defaultMessage is the Message without a template (B-056).
func (o *Outcome) defaultMessage() string {
	switch {
	case o.Error != "":
		return o.Error
	case o.Status == statusTimeout:
		return fmt.Sprintf("the program was stopped because it took too long (%g seconds)", o.Timeout) // B-047
	case !o.Success:
		return fmt.Sprintf("the program failed (return code: %d)", o.ReturnCode)
	case strings.TrimSpace(o.Output) == "":
		return "the custom tool was run, and wrote nothing"
	}
	return o.Output
}

// fill replaces {name} by values in form, once (B-057), and doubled braces by single ones. ok is false
// for a form with anything else in braces (B-056).
func fill(form string, values map[string]string) (filled string, ok bool) {
	var b strings.Builder
	for rest := form; rest != ""; {
		i := strings.IndexAny(rest, "{}")
		if i < 0 {
			b.WriteString(rest)
			break
		}
		b.WriteString(rest[:i])
		rest = rest[i:]
		if strings.HasPrefix(rest, "{{") || strings.HasPrefix(rest, "}}") {
			b.WriteByte(rest[0])
			rest = rest[2:]
			continue
		}
		end := strings.IndexByte(rest, '}')
		if end < 1 {
			return "", false
		}
		value, known := values[rest[1:end]]
		if !known {
			return "", false
		}
		b.WriteString(value)
		rest = rest[end+1:]
	}
	return b.String(), true
}
