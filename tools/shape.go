package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"parley/chat"
)

// Shape makes Text of Data where the tool left that to the pipeline: always if
// its Hints say JSON, else if Text is empty. Data that says itself that it is
// a failure makes the result one. The Kit wraps up the Text of JSON
// tools at last, so that all of the pipeline's failures look alike.
func Shape() Middleware {
	return around(func(ctx context.Context, t Tool, c Call) (Result, error) {
		r, err := t.Run(ctx, c)
		if err == nil && !r.Failed {
			r = promote(r)
		}
		switch {
		case err != nil || r.Failed && r.Text != "":
		case !t.JSON && r.Text == "" && r.Data != nil:
			r.Text = text(r.Data)
		case t.JSON && !r.Failed && r.Data == nil && r.Text != "":
			r.Text = text(r.Text)
		case t.JSON && !r.Failed:
			r.Text = text(r.Data)
		}
		return r, err
	})
}

// maxAddress is how many characters of a page's address a failure shows.
const maxAddress = 300

// promote makes r a failure if its Data is an object that says so: by
// "success": false, or by an "error" and no word of success (A-034, E-040).
// The "url" it is about goes with the error.
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
		r.Text = text(m["error"])
	}
	r.Failed = true
	return r
}

// envelope returns r wrapped up in JSON. Text is put in as a string,
// or as the JSON it is; of a failure it is the error, and data is null. Of a
// result from memory the envelope says so.
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
		e.Data = json.RawMessage(text(r.Text))
	}
	return text(e)
}

// text returns v as JSON, in one line. Of what JSON has no form for, such as
// NaN, it says so.
func text(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		b.Reset()
		_ = enc.Encode(err.Error()) // which cannot fail
	}
	return strings.TrimSuffix(b.String(), "\n")
}
