package arguments

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// JSON returns v as JSON on one line. For values that JSON cannot represent, such
// as NaN, it returns the error as a JSON string.
func JSON(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		b.Reset()
		_ = enc.Encode(err.Error()) // a string cannot fail
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Fill sets the fields of the struct that v points to by the arguments in. If one
// does not fit, it returns a text for the model. Numbers in fields of type any keep
// all digits.
func Fill(tool string, in map[string]any, v any) (problem string) {
	args, err := json.Marshal(in)
	if err != nil {
		return fmt.Sprintf("Invalid parameters for tool '%s': %v", tool, err)
	}
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	err = d.Decode(v)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && strings.HasPrefix(wrong.Value, "number ") {
		return fmt.Sprintf("Invalid parameters for tool '%s': %s does not fit: %s is out of range",
			tool, wrong.Field, strings.TrimPrefix(wrong.Value, "number "))
	}
	if err != nil {
		return fmt.Sprintf("Invalid parameters for tool '%s': %v", tool, err)
	}
	return ""
}
