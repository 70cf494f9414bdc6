package chat

// A Field is one of the values that a Question asks for. Its texts are plain.
type Field struct {
	Kind     FieldKind `json:"kind"`
	Label    string    `json:"label"`
	Note     string    `json:"note,omitempty"` // says more about it
	Hint     string    `json:"hint,omitempty"` // what a right value is, in words
	Required bool      `json:"required,omitempty"`
	Options  []Option  `json:"options,omitempty"` // of a choice
	Preset   []string  `json:"preset,omitempty"`  // values that are filled in at first

	Format  string `json:"format,omitempty"`  // of a text: one of JSON Schema
	Pattern string `json:"pattern,omitempty"` // of a text: a regular expression

	// Of a number. Nil: there is no limit.
	Min *float64 `json:"min,omitempty"`
	Max *float64 `json:"max,omitempty"`

	// Characters of a text, or how many options. Nil: there is no limit.
	MinLength *int `json:"minLength,omitempty"`
	MaxLength *int `json:"maxLength,omitempty"`
}

// A FieldKind is what kind of value a Field has.
type FieldKind string

// The kinds.
const (
	FieldText    FieldKind = "text"
	FieldInteger FieldKind = "integer"
	FieldNumber  FieldKind = "number"
	FieldYesNo   FieldKind = "yesno"   // Options are those two, with the values "true" and "false"
	FieldChoice  FieldKind = "choice"  // one of Options
	FieldChoices FieldKind = "choices" // any of Options
)

// Formats of a text that people are helped to write.
const (
	FormatEmail    = "email"
	FormatAddress  = "uri"
	FormatDate     = "date"
	FormatDateTime = "date-time"
)

// An Option is one of the values of a choice.
type Option struct {
	Value string `json:"value"`
	Label string `json:"label"` // is that of no other option
}

// WrongValues are the Values of an Answer that was not accepted. The question stays open.
type WrongValues struct {
	Problems []string // a sentence for each Field of the question; "" if its value is right
}

// Error implements error.
func (w *WrongValues) Error() string { return "values of a form are not right" }
