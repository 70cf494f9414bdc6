package custom

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

var jsonTypes = []string{"array", "boolean", "integer", "null", "number", "object", "string"}

// checkSchema returns what is wrong with the schema of a tool. A provider refuses whole requests
// because of one such schema.
func checkSchema(text json.RawMessage) error {
	var schema jsonschema.Schema
	if err := json.Unmarshal(text, &schema); err != nil {
		return err
	}
	return checkTypes(&schema)
}

// checkTypes returns an error if a type in s does not exist.
func checkTypes(s *jsonschema.Schema) error {
	if s == nil {
		return nil
	}
	for _, name := range append(slices.Clone(s.Types), s.Type) {
		if name != "" && !slices.Contains(jsonTypes, name) {
			return fmt.Errorf("there is no type %q; there are %s", name, strings.Join(jsonTypes, ", "))
		}
	}
	inner := slices.Concat(s.AllOf, s.AnyOf, s.OneOf, []*jsonschema.Schema{s.Items, s.AdditionalProperties})
	for _, property := range s.Properties {
		inner = append(inner, property)
	}
	for _, one := range inner {
		if err := checkTypes(one); err != nil {
			return err
		}
	}
	return nil
}
