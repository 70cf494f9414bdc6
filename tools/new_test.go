package tools

import (
	"context"
	"fmt"
	"testing"
)

// A number that a tool of ours has no room for is refused, never rounded.
func TestNumberOutOfRange(t *testing.T) {
	type in struct {
		N int `json:"n"`
	}
	tool := New("count", "Counts.", func(_ context.Context, _ Call, in in) (Result, error) {
		return Result{Text: fmt.Sprint(in.N)}, nil
	})
	for args, want := range map[string]string{
		`{"n":9007199254740993}`:        "9007199254740993",
		`{"n":1e3}`:                     "1000",
		`{"n":12345678901234567890123}`: "Error: Invalid parameters for tool 'count': n does not fit: 12345678901234567890123 is out of range" + hint,
	} {
		if r := kitOf(t, tool).Call(t.Context(), callTo("count", args)); r.Text != want {
			t.Errorf("%s: %q, want %q", args, r.Text, want)
		}
	}
}

// D-019, D-022, D-023, B-076, C-038: from the model's words to the tool, or back to the model.
func TestCastThenValidate(t *testing.T) {
	k := kitOf(t, echo("exec", `{"type":"object","properties":{"timeout":{"type":"integer","maximum":600},"path":{"type":"string"}},"required":["path"]}`))
	for _, c := range []struct{ id, args, want string }{
		{"D-022", `{"path":"p","timeout":"120"}`, `{"path":"p","timeout":120}`},
		{"D-023", `{"path":"p","timeout":999}`, "Error: Invalid parameters for tool 'exec': timeout must be <= 600" + hint},
		{"D-021", `{"timeout":999}`, "Error: Invalid parameters for tool 'exec': path is required; timeout must be <= 600" + hint},
		{"E-037", `{"path":null}`, "Error: Invalid parameters for tool 'exec': path is required" + hint},
	} {
		if r := k.Call(t.Context(), callTo("exec", c.args)); r.Text != c.want || r.Failed && r.Code != CodeInvalid {
			t.Errorf("%s: %s = %q, %s, want %q", c.id, c.args, r.Text, r.Code, c.want)
		}
	}
}

// A schema nobody can read lets arguments through as they are, and does no harm.
func TestBrokenSchema(t *testing.T) {
	for _, schema := range []string{`{`, `[]`, `{"type":5}`} {
		if r := kitOf(t, echo("a", schema)).Call(t.Context(), callTo("a", `{"x":"1"}`)); r.Text != `{"x":"1"}` {
			t.Errorf("%s: %+v", schema, r)
		}
	}
}

type fields struct {
	Path  string   `json:"path" jsonschema:"which" limit:"min=1 max=9"`
	Count int      `json:"count" limit:"min=1 max=600 default=60"`
	Ratio *float64 `json:"ratio,omitempty" limit:"min=0.5"`
	Mode  string   `json:"mode,omitempty" limit:"enum=replace|insert default=insert"`
	Part  string   `json:"part" limit:"choice=head|tail"`
	Tags  []string `json:"tags,omitempty" limit:"max=3"`
	Flag  *bool    `json:"flag,omitempty"`
}

// D-005: what is left out is the default that the schema names, what is given is not.
func TestDefaults(t *testing.T) {
	u := New("u", "Tells.", func(_ context.Context, _ Call, in fields) (Result, error) {
		return Result{Text: fmt.Sprintf("%d %s %v %v", in.Count, in.Mode, in.Ratio, in.Tags)}, nil
	})
	for args, want := range map[string]string{
		`{"path":"x"}`: "60 insert <nil> []", `{"path":"x","count":1,"tags":["a"]}`: "1 insert <nil> [a]", `{"path":"x","mode":"replace","count":null}`: "60 replace <nil> []",
	} {
		if r := kitOf(t, u).Call(t.Context(), callTo("u", args)); r.Text != want {
			t.Errorf("%s: %s, want %s", args, r.Text, want)
		}
	}
}
