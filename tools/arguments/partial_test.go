package arguments

import (
	"reflect"
	"strings"
	"testing"
)

// C-016
func TestPartial(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{``, `null`}, {` `, `null`}, {`null`, `null`}, {`[1`, `null`}, {`"x`, `null`}, {`7`, `null`}, {`}`, `null`},
		{`{`, `{}`}, {`{}`, `{}`}, {`{"`, `{}`}, {`{"pa`, `{}`}, {`{"path"`, `{}`}, {`{"path":`, `{}`},
		{`{"path":"`, `{"path":""}`}, {`{"path":"no`, `{"path":"no"}`}, {`{"path":"notes"`, `{"path":"notes"}`}, {`{"path":"notes","te`, `{"path":"notes"}`},
		{`{"path":"notes","text": "a b`, `{"path":"notes","text":"a b"}`},
		{`{"a":"x\`, `{"a":"x"}`}, {`{"a":"x\n`, `{"a":"x\n"}`}, {`{"a":"x\u00`, `{"a":"x"}`}, {`{"a":"x\u00e4`, `{"a":"xä"}`}, {`{"a":"x\"y`, `{"a":"x\"y"}`},
		{`{"a":"\ud83d`, `{"a":""}`}, {`{"a":"\ud83d\ude0`, `{"a":""}`}, {`{"a":"\ud83d\ude00`, `{"a":"😀"}`}, {"{\"a\":\"x\xf0\x9f", `{"a":"x"}`},
		{`{"n":12`, `{}`}, {`{"n":12,`, `{"n":12}`}, {`{"n":12}`, `{"n":12}`}, {`{"n":9007199254740993 `, `{"n":9007199254740993}`},
		{`{"b":tru`, `{}`}, {`{"b":true`, `{"b":true}`}, {`{"b":null`, `{"b":null}`},
		{`{"l":["a","b`, `{"l":["a","b"]}`}, {`{"l":[1,2`, `{"l":[1]}`}, {`{"l":[1,2]`, `{"l":[1,2]}`}, {`{"o":{"a":1,"b":"x`, `{"o":{"a":1,"b":"x"}}`},
		{`{"l":[{"a":"x"},{"a":"y`, `{"l":[{"a":"x"},{"a":"y"}]}`}, {`{"o":{"a":1},"z":"`, `{"o":{"a":1},"z":""}`},
		{`{"a":1,'b'`, `{"a":1}`}, {`{"a":1,}`, `{"a":1}`}, {`{"a" "b"`, `{"a":"b"}`}, {`{"a":"x"]`, `{"a":"x"}`},
		{`{"a":1}{"b":2`, `{"a":1}`}, {`{"deep":` + strings.Repeat("[", 5), `{"deep":[[[[[]]]]]}`},
	} {
		if got := JSON(Partial(c.args)); got != c.want {
			t.Errorf("Partial(%s) = %s, want %s", c.args, got, c.want)
		}
	}
	Partial(`{"a":` + strings.Repeat("[", 1<<20))
}

// C-016: whatever comes in, byte by byte: no panic, and what was whole stays as it is.
func FuzzPartial(f *testing.F) {
	for _, seed := range []string{`{"path":"notes/a.md","text":"line\n\u00e4\ud83d\ude00 \"q\"","n":12,"b":true,"l":[1,"x",{"y":null}],"o":{}}`, `{"a":{"b":{"c":[[["`, `{"":"","":1}`, "{\"\xff\":1e5,", `{"a":-0.5e+3,"b":1}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, args string) {
		if len(args) > 300 {
			return
		}
		whole, err := decode(args)
		valid := err == nil
		var before map[string]any
		for i := range len(args) + 1 {
			now := Partial(args[:i])
			changed := 0
			for name, v := range before {
				if _, has := now[name]; !has && valid {
					t.Fatalf("%q: %s is lost of %s", args[:i], name, JSON(before))
				} else if !reflect.DeepEqual(now[name], v) {
					changed++
				}
			}
			if changed > 1 && valid {
				t.Fatalf("%q: of %s becomes %s", args[:i], JSON(before), JSON(now))
			}
			before = now
		}
		if valid && reflect.ValueOf(whole).Kind() == reflect.Map && !reflect.DeepEqual(settle(whole), any(before)) {
			t.Errorf("%s is whole, and %s", args, JSON(before))
		}
	})
}
