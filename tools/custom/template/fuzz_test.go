package template

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// FuzzRender makes programs of any template. Two sets of arguments give the same program, so that
// nothing of an argument can be in it; and its lines are those of the template (R-S21, B-035, B-051).
func FuzzRender(f *testing.F) {
	for _, template := range []string{
		"x = '{a}'\nprint(f'{a} {{b}} {x!r:>{a}}', {b}, {{1: {a}}})", `"""{a}""" r'{b}' b'{{}}' # {c}`,
		`print(f"{x['k']} {f'{a}'}")`, "{a}{op}{b}", "class A:\n\tx='{a}' u\"{b}\" '''\n{a}'''", `'\N{{DASH}}{a}\'' {a:>{b}}`,
		"lambda a=1: f'{a}'", "{{{a}}}", "f'{{{{{a}}}}}'", "f'{{a", "'{", "{", "}", "f'{a!r:{b}}'", "f'''{\na\n}'''", "{a!r}{b!s:x}",
	} {
		f.Add(template, "x' + open('/etc/passwd').read() + '", "}{'\"\\\n#")
	}
	f.Fuzz(func(t *testing.T, template, one, two string) {
		parameters := map[string]Parameter{"a": {}, "b": {Required: true}, "op": {Choices: []any{"+", "-"}}, "ö": {}}
		first, err := Render(template, parameters, map[string]any{"a": one, "b": two, "op": one + "x", "ö": two})
		second, err2 := Render(template, parameters, map[string]any{"a": []any{two}, "b": 1, "op": "x" + two, "ö": nil})
		if fmt.Sprint(err) != fmt.Sprint(err2) {
			t.Fatalf("whether %q can be rendered depends on arguments: %v, %v", template, err, err2)
		}
		if first.Source != second.Source {
			t.Fatalf("%q became %q and %q", template, first.Source, second.Source)
		}
		if err == nil && strings.Count(first.Source, "\n") != strings.Count(template, "\n") {
			t.Fatalf("%q became %q: the lines have other numbers", template, first.Source)
		}
		if _, err := json.Marshal(first.Variables); err != nil {
			t.Fatal(err)
		}
	})
}

// TestRandomTemplates puts pieces of Python together at random, and fuzzes less than FuzzRender, but
// at each run of the tests.
func TestRandomTemplates(t *testing.T) {
	pieces := []string{
		"{a}", "{b!r}", "{a:>3}", "{{", "}}", "{", "}", "'", `"`, "'''", `"""`, "f'", `rf"`, "b'", "u'", "r'", "#", "\n", "\\", " ",
		"a", "name", "=", "(", ")", "[", "]", ":", "!", "lambda", "def f(", "in", "{op}", "1", ".", `\N{`, "é", "{ö}", ",",
	}
	parameters := map[string]Parameter{"a": {}, "b": {}, "op": {Choices: []any{"+"}}, "ö": {}}
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 20_000 {
		var b strings.Builder
		for range random.IntN(12) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		secret := "SECRET'\"\n{a}"
		p, err := Render(b.String(), parameters, map[string]any{"a": secret, "b": secret, "op": secret, "ö": secret})
		if err != nil {
			continue
		}
		if strings.Contains(p.Source, "SECRET") || strings.Count(p.Source, "\n") != strings.Count(b.String(), "\n") {
			t.Fatalf("seed %d: %q became %q", seed, b.String(), p.Source)
		}
	}
}
