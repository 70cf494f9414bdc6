package tools

import (
	"context"
	"encoding/json"
	"strings"

	"parley/chat"
	"parley/tools/arguments"
)

// Shape makes Text from Data: always for tools with the hint JSON, and otherwise
// if Text is empty. Data that says that it is a failure makes the result one
// . The Kit wraps the Text of JSON tools last, so that all failures of the
// pipeline look the same.
func Shape() Middleware {
	return around(func(ctx context.Context, t Tool, c Call) (Result, error) {
		r, err := t.Run(ctx, c)
		if err != nil {
			return r, err
		}
		if !r.Failed {
			r = promote(r)
		}
		switch {
		case r.Failed && r.Text != "":
		case !t.JSON && r.Text == "" && r.Data != nil:
			r.Text = arguments.JSON(r.Data)
		case t.JSON && !r.Failed && r.Data == nil && r.Text != "":
			r.Text = arguments.JSON(r.Text)
		case t.JSON && !r.Failed:
			r.Text = arguments.JSON(r.Data)
		}
		return r, nil
	})
}

// maxAddress is how many characters of a URL a failure shows.
const maxAddress = 300

// promote makes r a failure if its Data is an object with "success": false
// or with an "error" and no "success" (A-034, E-040). The error includes
// the object's "url".
func promote(r Result) Result {
	m, ok := r.Data.(map[string]any)
	if !ok {
		return r
	}
	success, told := m["success"]
	message, isText := m["error"].(string)
	switch {
	case told && success != false, !told && message == "":
		return r
	case isText:
		r.Text = message
		if address, _ := m["url"].(string); address != "" && !strings.Contains(message, address) {
			r.Text += " (" + chat.Clip(address, maxAddress, "…") + ")"
		}
	case m["error"] != nil:
		r.Text = arguments.JSON(m["error"])
	}
	r.Failed = true
	return r
}

// envelope returns r wrapped in JSON. Text is included as a string or, if
// it is JSON, as it is. For a failure, it is the error, and data is null. The JSON
// also says whether the result comes from the cache.
func envelope(r Result, isJSON bool) string {
	e := struct {
		Success   bool            `json:"success"`
		Data      json.RawMessage `json:"data"`
		Error     *string         `json:"error"`
		Cached    bool            `json:"cached,omitempty"`
		Duplicate bool            `json:"duplicate,omitempty"`
	}{Success: !r.Failed, Cached: r.Cached && !r.Failed, Duplicate: r.Skipped}
	switch {
	case r.Failed:
		message := strings.TrimSuffix(strings.TrimPrefix(r.Text, prefix), hint)
		e.Error = &message
	case isJSON && json.Valid([]byte(r.Text)):
		e.Data = json.RawMessage(r.Text)
	default:
		e.Data = json.RawMessage(arguments.JSON(r.Text))
	}
	return arguments.JSON(e)
}
