package response

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"reflect"
	"strings"
)

// ReadJSON decodes the JSON body of r, which has at most that many bytes, into v. The
// error is a Problem.
func ReadJSON(w http.ResponseWriter, r *http.Request, most int64, v any) error {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return Problem{
			Status: http.StatusUnsupportedMediaType,
			Text:   "the Content-Type must be application/json",
		}
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, most))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	if _, big := errors.AsType[*http.MaxBytesError](err); big {
		return Problem{
			Status: http.StatusRequestEntityTooLarge,
			Text:   fmt.Sprintf("the request is larger than %d KB", most>>10),
		}
	} else if err != nil {
		return JSONProblem(err, v)
	}
	return nil
}

// JSONProblem returns the Problem of a request whose JSON, because of err, cannot be
// decoded into v.
func JSONProblem(err error, v any) error {
	return BadRequest("unexpected JSON: " + describeJSONError(err, v))
}

// describeJSONError says in terms of JSON why a decoder could not fill v.
func describeJSONError(err error, v any) string {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		kinds := map[reflect.Kind]string{
			reflect.String: "text",
			reflect.Int:    "a whole number",
			reflect.Bool:   "true or false",
		}
		return cmp.Or(jsonName(e.Field, v), "it") + " must be " + cmp.Or(kinds[e.Type.Kind()], "an object")
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	if strings.HasPrefix(text, "unknown field") {
		var names []string
		for _, f := range reflect.VisibleFields(reflect.TypeOf(v).Elem()) {
			if f.Anonymous { // its fields follow
				continue
			}
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			names = append(names, cmp.Or(name, strings.ToLower(f.Name)))
		}
		text += "; there are " + strings.Join(names, ", ")
	}
	return text
}

// jsonName returns field, as a decoder of v names it, without the names of
// embedded structs, which JSON does not have.
func jsonName(field string, v any) string {
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v).Elem()) {
		if f.Anonymous {
			field = strings.TrimPrefix(field, f.Name+".")
		}
	}
	return field
}
