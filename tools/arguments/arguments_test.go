package arguments

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// wide is a schema with one property of each kind.
const wide = `{"type":"object","properties":{
	"i":{"type":"integer","minimum":1,"maximum":600},"n":{"type":"number"},"x":{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1},
	"b":{"type":"boolean"},"s":{"type":"string","minLength":2,"maxLength":4},"t":{"type":"string"},
	"e":{"type":"string","enum":["a","b"]},"ei":{"type":"integer","enum":[1,2]},
	"null":{"type":["string","null"]},"any":{},"in":{"type":["integer","string"]},
	"li":{"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3},"lb":{"type":"array","items":{"type":"boolean"}},
	"o":{"type":"object","properties":{"b":{"type":"integer","maximum":5},"deep":{"type":"array","items":{"type":"object","properties":{"x":{"type":"boolean"}},"required":["x"]}}},"required":["b"],"additionalProperties":false},
	"m":{"type":"object","additionalProperties":{"type":"integer"}},
	"one":{"oneOf":[{"type":"string"},{"type":"integer"}]}, "p":{"type":"string","pattern":"^a+$"}, "_own":{"type":"string"}
},"additionalProperties":false}`

func parsed(t testing.TB, schema string) *Schema {
	t.Helper()
	sh := ParseSchema([]byte(schema))
	if sh.schema == nil || sh.rest == nil && !usual(sh.schema) {
		t.Fatalf("bad schema %s", schema)
	}
	return sh
}

func object(t testing.TB, js string) map[string]any {
	t.Helper()
	in, problem := parse("a", js, nil)
	if problem != "" {
		t.Fatalf("%s: %s", js, problem)
	}
	settle(in)
	return in
}

func TestCast(t *testing.T) {
	s := parsed(t, wide)
	aliases := map[string]string{"int": "i", "integer": "i", "text": "t", "b": "i"}
	for _, c := range []struct{ id, in, want string }{
		{"D-011", `{"i":"120"}`, `{"i":120}`},
		{"D-011", `{"i":" 7 "}`, `{"i":7}`},
		{"D-011", `{"n":"1.5"}`, `{"n":1.5}`},
		{"D-011", `{"n":"-2e3"}`, `{"n":-2000}`},
		{"D-011", `{"b":"Yes"}`, `{"b":true}`},
		{"D-011", `{"b":"0"}`, `{"b":false}`},
		{"D-011", `{"li":["1",2]}`, `{"li":[1,2]}`},
		{"D-011", `{"t":5}`, `{"t":"5"}`},
		{"D-011", `{"t":1234567890123456789}`, `{"t":"1234567890123456789"}`},
		{"D-011", `{"t":true}`, `{"t":"true"}`},
		{"D-011", `{"t":{"a":[1]}}`, `{"t":"{\"a\":[1]}"}`},
		{"design 6", `{"li":"[1,\"2\"]"}`, `{"li":[1,2]}`},
		{"design 6", `{"o":"{\"b\":\"3\"}"}`, `{"o":{"b":3}}`},
		{"design 6", `{"i":5.0}`, `{"i":5}`},
		{"D-012", `{"i":"abc"}`, `{"i":"abc"}`},
		{"D-013", `{"i":"1.0"}`, `{"i":"1.0"}`},
		{"D-012", `{"i":"12x"}`, `{"i":"12x"}`},
		{"D-012", `{"i":"99999999999999999999"}`, `{"i":"99999999999999999999"}`},
		{"D-012", `{"i":1.5}`, `{"i":1.5}`},
		{"D-012", `{"i":true}`, `{"i":true}`},
		{"D-012", `{"n":"NaN"}`, `{"n":"NaN"}`},
		{"D-012", `{"n":"Inf"}`, `{"n":"Inf"}`},
		{"D-012", `{"n":"0x10"}`, `{"n":"0x10"}`},
		{"D-012", `{"n":""}`, `{"n":""}`},
		{"D-012", `{"b":1}`, `{"b":1}`},
		{"D-012", `{"b":"maybe"}`, `{"b":"maybe"}`},
		{"D-012", `{"li":"words"}`, `{"li":"words"}`},
		{"D-012", `{"li":"null"}`, `{"li":"null"}`},
		{"D-012", `{"o":"[1]"}`, `{"o":"[1]"}`},
		{"D-012", `{"o":"null"}`, `{"o":"null"}`},
		{"C-037", `{"b":" True "}`, `{"b":true}`},
		{"C-037", `{"t":"true"}`, `{"t":"true"}`},
		{"C-037", `{"lb":["true","False"]}`, `{"lb":[true,false]}`},
		{"C-037", `{"o":{"b":1,"deep":[{"x":"TRUE"},{"x":"no"}]}}`, `{"o":{"b":1,"deep":[{"x":true},{"x":false}]}}`},
		{"E-037", `{"i":null,"t":"x"}`, `{"t":"x"}`},
		{"E-037", `{"o":{"b":1,"deep":null}}`, `{"o":{"b":1}}`},
		{"D-018", `{"null":null,"any":null}`, `{"any":null,"null":null}`},
		{"E-037", `{"one":null}`, `{}`}, // neither alternative takes it
		{"A-026", `{"_model":"x","_own":"y"}`, `{"_own":"y"}`},
		{"E-002", `{"int":"3"}`, `{"i":3}`},
		{"E-002", `{"integer":3,"int":2}`, `{"i":2,"integer":3}`},
		{"E-002", `{"int":3,"i":4}`, `{"i":4,"int":3}`},
		{"E-002", `{"b":"true"}`, `{"b":true}`},
		{"union", `{"in":"5"}`, `{"in":"5"}`},
		{"union", `{"in":true}`, `{"in":"true"}`},
		{"map", `{"m":{"a":"1","b":"x"}}`, `{"m":{"a":1,"b":"x"}}`},
		{"any", `{"any":{"i":"1"},"one":"5"}`, `{"any":{"i":"1"},"one":"5"}`},
	} {
		in := object(t, c.in)
		before := JSON(in)
		if got := s.castArgs(aliases, in); JSON(got) != c.want {
			t.Errorf("%s: %s becomes %s, want %s", c.id, c.in, JSON(got), c.want)
		}
		if JSON(in) != before { // E-003
			t.Errorf("%s: %s was changed in place to %s", c.id, before, JSON(in))
		}
	}
}

// Numbers keep each of their digits, whatever is made of them.
func TestNumbersKeepTheirDigits(t *testing.T) {
	s := parsed(t, wide)
	for _, c := range []struct{ in, want string }{
		{`{"t":12345678901234567890123}`, `{"t":"12345678901234567890123"}`},
		{`{"t":0.10}`, `{"t":"0.10"}`},
		{`{"t":1e30}`, `{"t":"1e30"}`},
		{`{"t":{"id":12345678901234567890123}}`, `{"t":"{\"id\":12345678901234567890123}"}`},
		{`{"i":9007199254740993}`, `{"i":9007199254740993}`},
		{`{"i":12345678901234567890123}`, `{"i":12345678901234567890123}`},
		{`{"i":1e30}`, `{"i":1000000000000000000000000000000}`},
		{`{"i":-1.50e2}`, `{"i":-150}`},
		{`{"n":0.1}`, `{"n":0.1}`},
		{`{"n":3.141592653589793238462643}`, `{"n":3.141592653589793238462643}`},
		{`{"n":"3.141592653589793238462643"}`, `{"n":3.141592653589793238462643}`},
		{`{"n":".5"}`, `{"n":0.5}`},
		{`{"any":[18446744073709551616,-0]}`, `{"any":[18446744073709551616,0]}`},
	} {
		in, problem := parse("a", c.in, s)
		if got := JSON(s.castArgs(nil, in)); problem != "" || got != c.want {
			t.Errorf("%s becomes %s %s, want %s", c.in, got, problem, c.want)
		}
	}
}

// Values are cast and checked through references and combined schemas, too.
func TestCastThroughCombinedSchemas(t *testing.T) {
	s := parsed(t, `{"type":"object","$defs":{
		"count":{"type":"integer","maximum":9},"a/b":{"$ref":"#/$defs/count"},"loop":{"$ref":"#/$defs/loop"},
		"tree":{"type":"object","properties":{"n":{"$ref":"#/$defs/count"},"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["n"]}
	},"properties":{
		"ref":{"$ref":"#/$defs/count"},"escaped":{"$ref":"#/$defs/a~1b"},
		"tree":{"$ref":"#/$defs/tree"},
		"maybe":{"anyOf":[{"type":"integer"},{"type":"null"}]},
		"all":{"allOf":[{"$ref":"#/$defs/count"},{"minimum":2}]},
		"one":{"oneOf":[{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},{"type":"array","items":{"type":"boolean"}}]},
		"kind":{"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"v":{"type":"integer"}}},{"type":"object","properties":{"k":{"const":"b"},"v":{"type":"string"}}}]}
	}}`)
	for _, c := range []struct{ in, want, wrong string }{
		{`{"ref":"7"}`, `{"ref":7}`, ""},
		{`{"ref":"70"}`, `{"ref":70}`, "ref must be <= 9"},
		{`{"escaped":"7"}`, `{"escaped":7}`, ""},
		{`{"tree":{"n":"1","kids":[{"n":"2"},{"n":"3","kids":"[{\"n\":\"4\"}]"}]}}`, `{"tree":{"kids":[{"n":2},{"kids":[{"n":4}],"n":3}],"n":1}}`, ""},
		{`{"tree":{"n":1,"kids":[{}]}}`, `{"tree":{"kids":[{}],"n":1}}`, "tree.kids[0].n is required"},
		{`{"maybe":"5"}`, `{"maybe":5}`, ""},
		{`{"maybe":null}`, `{"maybe":null}`, ""},
		{`{"maybe":"x"}`, `{"maybe":"x"}`, "maybe should be integer"},
		{`{"all":"3"}`, `{"all":3}`, ""},
		{`{"all":"1"}`, `{"all":1}`, "all must be >= 2"},
		{`{"one":"{\"n\":\"5\"}"}`, `{"one":{"n":5}}`, ""},
		{`{"one":["yes"]}`, `{"one":[true]}`, ""},
		{`{"kind":{"k":"a","v":"5"}}`, `{"kind":{"k":"a","v":5}}`, ""},
		{`{"kind":{"k":"b","v":5}}`, `{"kind":{"k":"b","v":"5"}}`, ""},
		{`{"kind":{"k":"c","v":5}}`, `{"kind":{"k":"c","v":5}}`, `kind.k must be "a"`},
	} {
		in, _ := parse("a", c.in, s)
		out := s.castArgs(nil, in)
		if wrong := strings.Join(s.check(out), "; "); JSON(out) != c.want || wrong != c.wrong {
			t.Errorf("%s becomes %s (%s), want %s (%s)", c.in, JSON(out), wrong, c.want, c.wrong)
		}
	}
	// A schema that goes round in circles ends, whatever it is asked.
	sh := ParseSchema([]byte(`{"type":"object","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"},"c":{"allOf":[{"$ref":"#/$defs/c"}]}},
		"properties":{"x":{"$ref":"#/$defs/a"},"y":{"$ref":"#/$defs/c"}}}`))
	in, _ := parse("a", `{"x":"1"}`, sh)
	sh.check(sh.castArgs(nil, in))
}

// What the library cannot read of a schema switches off no other check.
func TestUnreadableSchemaParts(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","properties":{"p":{"type":"string","pattern":"^(?!x).*$"},"x":{"exclusiveMinimum":0}}}`,
		`{"type":"object","properties":{"p":{"$ref":"https://example.com/schema.json"},"x":{"exclusiveMinimum":0}}}`,
		`{"type":"object","properties":{"p":{"$ref":"#/$defs/none"},"x":{"exclusiveMinimum":0}}}`,
		`{"type":"object","properties":{"p":{"type":"object","patternProperties":{"(?=y)":{}},"additionalProperties":false},"x":{"exclusiveMinimum":0}}}`,
	} {
		sh := ParseSchema([]byte(schema))
		for in, fine := range map[string]bool{`{"x":1}`: true, `{"x":0}`: false} {
			if wrong := sh.check(object(t, in)); (len(wrong) == 0) != fine {
				t.Errorf("%s: %s: %q", schema, in, wrong)
			}
		}
	}
}

// No schema, however entangled, keeps a call from coming to an end.
func TestEntangledSchemas(t *testing.T) {
	doubling := ""
	for i := range 60 {
		doubling += fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	var kinds []string
	for i := range 30 {
		kinds = append(kinds, fmt.Sprintf(`{"type":"object","properties":{"k%d":{"type":"integer"},"in":{"$ref":"#/$defs/any"}}}`, i))
	}
	deep := strings.Repeat(`{"in":`, 40) + `"x"` + strings.Repeat("}", 40)
	for _, c := range []struct{ name, defs, in string }{
		{"d0", `"d0":{"allOf":[{"$ref":"#/$defs/d0"},{"$ref":"#/$defs/d0"}]}`, `"1"`},
		{"d0", doubling + `"d60":{"type":"integer"}`, `"1"`},
		{"any", `"any":{"anyOf":[` + strings.Join(kinds, ",") + `]}`, deep},
	} {
		s := ParseSchema([]byte(`{"type":"object","properties":{"a":{"$ref":"#/$defs/` + c.name + `"}},"$defs":{` + c.defs + `}}`))
		done := make(chan bool)
		go func() {
			defer close(done)
			s.Prepare("a", `{"a":`+c.in+`}`, nil)
		}()
		select {
		case <-done:
		case <-time.After(time.Minute):
			t.Fatalf("a call with %.200s takes for ever", c.defs)
		}
	}
}

// Some models put a fence or a byte order mark around their arguments.
func TestFencedArguments(t *testing.T) {
	for _, args := range []string{
		"\ufeff{\"a\":1}", "```json\n{\"a\":1}\n```", "```\n{\"a\":1}```", "  ```JSON\n{'a':1,}\n```\n", "```{\"a\":1}```", "\ufeff```json\n{\"a\":1}\n```",
		"```json {\"a\":1} ```", "```json\r\n{\"a\":1}\r\n```",
	} {
		if in, problem := parse("a", args, nil); problem != "" || JSON(in) != `{"a":1}` {
			t.Errorf("%q: %s %s", args, JSON(in), problem)
		}
	}
	if in, problem := parse("a", "```json\n{\"a\":1", nil); problem == "" { // cut off on its way
		t.Errorf("half of a fence became %s", JSON(in))
	}
}

// C-055: what is wrong with arguments, each with its path.
func TestValidate(t *testing.T) {
	s := parsed(t, wide)
	for _, c := range []struct{ id, in, want string }{
		{"D-004", `{"i":1,"n":1,"b":true,"s":"äöü","e":"a","ei":2,"null":null,"any":[],"in":"x","li":[1],"o":{"b":5},"m":{"x":1},"one":1,"p":"aa"}`, ""},
		{"D-014", `{"i":"x"}`, "i should be integer"},
		{"D-014", `{"n":"x"}`, "n should be number"},
		{"D-014", `{"b":"x"}`, "b should be boolean"},
		{"D-014", `{"t":[]}`, "t should be string"},
		{"D-014", `{"li":{}}`, "li should be array"},
		{"D-014", `{"o":[]}`, "o should be object"},
		{"D-014", `{"null":1}`, "null should be string"},
		{"D-014", `{"in":[]}`, "in should be integer or string"},
		{"D-014", `{"e":"c"}`, `e must be one of ["a","b"]`},
		{"D-014", `{"ei":3}`, `ei must be one of [1,2]`},
		{"D-014", `{"i":0}`, "i must be >= 1"},
		{"D-014", `{"i":601}`, "i must be <= 600"},
		{"D-014", `{"n":1e999}`, "n must be finite"},
		{"D-014", `{"s":"ä"}`, "s must be at least 2 chars"},
		{"D-014", `{"s":"äöüäö"}`, "s must be at most 4 chars"},
		{"D-014", `{"li":[]}`, "li must have at least 1 items"},
		{"D-014", `{"li":[1,2,3,4]}`, "li must have at most 3 items"},
		{"D-014", `{"zz":1,"i":0}`, "i must be >= 1; unexpected parameter zz"},
		{"D-015", `{"o":{}}`, "o.b is required"},
		{"D-016", `{"o":{"b":6}}`, "o.b must be <= 5"},
		{"D-016", `{"o":{"b":1,"c":1}}`, "unexpected parameter o.c"},
		{"D-016", `{"o":{"b":1,"deep":[{"x":true},{}]}}`, "o.deep[1].x is required"},
		{"D-016", `{"li":[1,"x"]}`, "li[1] should be integer"},
		{"D-016", `{"m":{"k":"x"}}`, "m.k should be integer"},
		{"D-018", `{"i":true}`, "i should be integer"},
		{"D-018", `{"i":null}`, "i should be integer"},
		{"D-018", `{"n":true}`, "n should be number"},
	} {
		if got := strings.Join(s.check(object(t, c.in)), "; "); got != c.want {
			t.Errorf("%s: %s: %q, want %q", c.id, c.in, got, c.want)
		}
	}
	for _, in := range []string{`{"one":[]}`, `{"p":"b"}`, `{"x":0}`, `{"x":1}`} { // what only the library judges
		if got := s.check(object(t, in)); len(got) != 1 {
			t.Errorf("%s: %q, want a complaint", in, got)
		}
	}
	for schema, want := range map[string]string{ // D-017
		`{"type":"array"}`:             "Schema must be object type, got 'array'",
		`{"type":["object","string"]}`: "Schema must be object type, got 'object|string'",
		`{}`:                           "Schema must be object type, got ''",
	} {
		if got := strings.Join(parsed(t, schema).check(map[string]any{}), "; "); got != want {
			t.Errorf("D-017: %s: %q, want %q", schema, got, want)
		}
	}
	left := maxSteps
	if got := s.checkValue(s.schema, []any{}, "", &left); len(got) != 1 || got[0] != "parameter should be object" { // D-016
		t.Errorf("root: %q", got)
	}
	if got := checkNan(s); got != "n must be finite" {
		t.Errorf("NaN: %q", got)
	}
}

func checkNan(s *Schema) string {
	left := maxSteps
	return strings.Join(s.checkValue(s.schema.Properties["n"], math.NaN(), "n", &left), "; ")
}

// D-013: where the root of the schema is no object, the arguments stay as they came.
func TestSchemaOfNoObject(t *testing.T) {
	for _, kind := range []string{``, `"type":"array",`, `"type":"string",`} {
		schema := `{` + kind + `"properties":{"x":{"type":"integer"}}}`
		aliases := map[string]string{"y": "x"}
		const in = `{"_own":"1","x":"1"}`
		if got := JSON(ParseSchema([]byte(schema)).repair(aliases, object(t, in))); got != in {
			t.Errorf("%s: %s becomes %s", schema, in, got)
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

// D-005…D-009: no type lists, which some vendors reject; no unknown arguments; always the same bytes. Models are
// not shown limits, of which they are told when they exceed them.
func TestSchemaOf(t *testing.T) {
	const want = `{"type":"object","properties":{"path":{"type":"string","description":"which","minLength":1,"maxLength":9},` +
		`"count":{"type":"integer","default":60,"minimum":1,"maximum":600},"ratio":{"type":"number","minimum":0.5},` +
		`"mode":{"type":"string","default":"insert","enum":["replace","insert"]},` +
		`"part":{"type":"string","default":"head","enum":["head","tail"]},` +
		`"tags":{"type":"array","items":{"type":"string"},"maxItems":3},` +
		`"flag":{"type":"boolean"}},` +
		`"required":["path"],"additionalProperties":false}`
	const wantShown = `{"type":"object","properties":{"path":{"type":"string","description":"which"},` +
		`"count":{"type":"integer","default":60},"ratio":{"type":"number"},` +
		`"mode":{"type":"string","default":"insert","enum":["replace","insert"]},` +
		`"part":{"type":"string","default":"head","enum":["head","tail"]},` +
		`"tags":{"type":"array","items":{"type":"string"}},` +
		`"flag":{"type":"boolean"}},` +
		`"required":["path"]}`
	for range 20 {
		s := must(SchemaOf(reflect.TypeFor[fields]()))
		got := s.Source()
		shown := s.Shown()
		if string(got) != want || string(shown) != wantShown {
			t.Fatalf("got  %s\nwant %s\nand  %s\nwant %s", got, want, shown, wantShown)
		}
		eachSchema(s.schema, func(js *jsonschema.Schema) { js.PropertyOrder = nil }) // it is not in the source
		if parsed := ParseSchema(got); !reflect.DeepEqual(s, parsed) {
			t.Fatalf("got  %s %+v\nwant %s %+v", JSON(s.schema), s.rest, JSON(parsed.schema), parsed.rest)
		}
	}
	if got := must(SchemaOf(reflect.TypeFor[struct{}]())).Source(); string(got) != `{"type":"object","properties":{},"additionalProperties":false}` {
		t.Errorf("of nothing: %s", got)
	}
	for _, bad := range []reflect.Type{
		reflect.TypeFor[string](), reflect.TypeFor[struct{ F func() }](),
		reflect.TypeFor[struct {
			A int `json:"a" limit:"mni=1"`
		}](), reflect.TypeFor[struct {
			A int `json:"a" limit:"min=one"`
		}](), reflect.TypeFor[struct {
			A int `json:"a" limit:"default=one"`
		}](),
	} {
		if s, err := SchemaOf(bad); err == nil {
			t.Errorf("%v: %s, want an error", bad, s.Source())
		}
	}
}

// A schema is written as the library would marshal it, whatever the types of the fields.
func TestWrite(t *testing.T) {
	type inner struct {
		Name string          `json:"name" jsonschema:"what \"it\" is <called> & more – ünïcode\\"`
		Raw  json.RawMessage `json:"raw,omitempty"`
		At   time.Time       `json:"at"`
	}
	type all struct {
		inner
		List  []inner            `json:"list" limit:"min=1 max=3"`
		Deep  map[string][]inner `json:"deep,omitempty" jsonschema:"all of them"`
		Any   any                `json:"any,omitempty"`
		Lists [][]string         `json:"lists,omitempty"`
		Three [3]uint8           `json:"three"`
		Small int8               `json:"small"`
		Ratio float64            `json:"ratio" limit:"min=-0.000001 max=1e30"`
		Ptr   *inner             `json:"ptr,omitempty"`
		Open  map[string]any     `json:"open,omitempty"`
	}
	for _, of := range []reflect.Type{reflect.TypeFor[all](), reflect.TypeFor[fields](), reflect.TypeFor[struct{}]()} {
		s := must(SchemaOf(of))
		if want := must(json.Marshal(s.schema)); string(s.Source()) != string(want) {
			t.Errorf("got  %s\nwant %s", s.Source(), want)
		}
		shown := s.schema.CloneSchemas()
		eachSchema(shown, func(js *jsonschema.Schema) {
			js.AdditionalProperties = nil
			js.Minimum, js.Maximum = nil, nil
			js.MinLength, js.MaxLength = nil, nil
			js.MinItems, js.MaxItems = nil, nil
		})
		if want := must(json.Marshal(shown)); string(s.Shown()) != string(want) {
			t.Errorf("shown %s\nwant  %s", s.Shown(), want)
		}
	}
}

// Whatever a model writes, it is mended and checked without a panic; what is valid stays
// so; what was cast is cast; and what they let through the library finds valid too.
func FuzzCast(f *testing.F) {
	for _, seed := range []string{`{"i":"120","b":"Yes"}`, `{"li":"[1,\"2\"]"}`, `{"o":{"b":1,"deep":[{"x":"TRUE"}]}}`, `{"_x":null,"null":null}`,
		`{"n":"1e999","any":{"":[null]}}`, `{"in":5.0,"t":{"a":1e300}}`, `"{\"arguments\":{}}"`, `{"m":{"_":null}}`, `{"int":1,"i":null}`} {
		f.Add(seed)
	}
	s := parsed(f, wide)
	aliases := map[string]string{"int": "i", "text": "t"}
	f.Fuzz(func(t *testing.T, args string) {
		in, problem := parse("a", args, s)
		if problem != "" {
			return
		}
		valid := len(s.check(in)) == 0
		out := s.castArgs(aliases, in)
		complaints := s.check(out)
		if valid && len(complaints) > 0 {
			t.Errorf("%s was valid and becomes %s: %s", args, JSON(out), complaints)
		}
		if again := s.castArgs(aliases, out); !reflect.DeepEqual(again, out) {
			t.Errorf("%s becomes %s, and then %s", args, JSON(out), JSON(again))
		}
		if len(complaints) > 0 {
			return
		}
		var plain any
		js, err := json.Marshal(out)
		if err == nil {
			err = json.Unmarshal(js, &plain)
		}
		if err == nil {
			err = s.rest.Validate(plain)
		}
		if err != nil {
			t.Errorf("%s becomes %s: %v", args, js, err)
		}
	})
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
