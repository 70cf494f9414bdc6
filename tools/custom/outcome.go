package custom

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
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
}

// The values of Status.
const (
	statusCompleted = "completed"
	statusTimeout   = "timeout"
	statusError     = "error"
)

// maxOutput is how many characters of output are kept (B-048): the first and last half.
const maxOutput = 10_000

// A capture keeps the beginning and the end of what is written to it.
type capture struct {
	head, tail []byte
	bytes      int64
	characters int64 // as far as it is UTF-8
}

// half is how many bytes maxOutput/2 characters have at most.
const half = maxOutput / 2 * utf8.UTFMax

// Write implements [io.Writer].
func (c *capture) Write(data []byte) (int, error) {
	c.bytes += int64(len(data))
	for _, b := range data {
		if utf8.RuneStart(b) {
			c.characters++
		}
	}
	rest := data
	if room := half - len(c.head); room > 0 {
		n := min(room, len(rest))
		c.head = append(c.head, rest[:n]...)
		rest = rest[n:]
	}
	c.tail = append(c.tail, rest[max(0, len(rest)-half):]...)
	if extra := len(c.tail) - half; extra > half { // not at each write
		c.tail = append(c.tail[:0], c.tail[extra:]...)
	}
	return len(data), nil
}

// text returns what was kept, without the middle if that is gone.
func (c *capture) text() string { return clean(string(c.head) + string(c.tail)) }

// dropped reports whether the middle is gone.
func (c *capture) dropped() bool { return c.bytes > int64(len(c.head)+len(c.tail)) }

// clean returns text that anybody can store and show.
func clean(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\ufffd"), "\x00", "\ufffd")
}

// shorten returns the first and last half of a text that had so many characters, if that is more
// than maxOutput.
func shorten(text string, characters int64) (kept string, cut bool) {
	if characters <= maxOutput {
		return text, false
	}
	gap := fmt.Sprintf("\n\n... (%d chars truncated) ...\n\n", characters-maxOutput)
	return first(text, maxOutput/2) + gap + last(text, maxOutput/2), true
}

// first returns the first n characters of text.
func first(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i]
		}
	}
	return text
}

// last returns the last n characters of text.
func last(text string, n int) string {
	return text[len(first(text, max(0, utf8.RuneCountInString(text)-n))):]
}

// read sets what the program wrote (B-049).
func (o *Outcome) read(stdout, stderr *capture) {
	o.Stderr, _ = shorten(stderr.text(), stderr.characters)
	output := stdout.text()
	if output != "" && stderr.bytes > 0 {
		output = strings.TrimSuffix(output, "\n") + "\n"
	}
	output += stderr.text()
	cut := false
	o.Output, cut = shorten(strings.TrimSuffix(output, "\n"), stdout.characters+stderr.characters) // print adds one
	o.Truncated = cut || stdout.dropped() || stderr.dropped()
}

// finish sets Message, and applies return.json (B-052 to B-058).
func (o *Outcome) finish(d Definition) {
	var layer struct{ Truncate, Template any }
	_ = json.Unmarshal(d.Return, &layer)
	if n, isNumber := layer.Truncate.(float64); isNumber && n >= 1 && n == float64(int(n)) { // B-053
		if cut := first(o.Output, int(n)); len(cut) < len(o.Output) {
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
