package tools

import (
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"parley/llm"
	"parley/texts"
)

// asked returns what a person is asked about a call of a tool whose sentence names these values.
func asked(in map[string]any, about ...Said) string {
	t := Tool{ToolSpec: llm.ToolSpec{Name: "dig"}}
	t.Ask = func(texts.Asks, Call) Sentence {
		return Asking(texts.Format("Do "+strings.TrimSpace(strings.Repeat("%s ", len(about)))+"?"), about...)
	}
	return prompt(texts.English().Tools.Approval, t, Call{Input: in})
}

// C-051: what will happen is said in words; what the words do not show whole stands below them, and nothing
// in them is markup, a link, invisible, or turns the rest of the sentence round.
func TestSentence(t *testing.T) {
	long := strings.Repeat("x", 200)
	for value, want := range map[string]string{
		"notes.txt":           "Do **notes.txt**?",
		"my notes/über-2.txt": "Do **my notes/über-2.txt**?",
		"a_b.txt":             "Do **a_b.txt**?",
		"_a_":                 "Do `_a_`?",
		"a**b**":              "Do `a**b**`?",
		"[x](https://e.com)":  "Do `[x](https://e.com)`?",
		"x `y`":               "Do `x ˋyˋ`?\n\n- `a`: `x ˋyˋ`",
		"a\nDelete b?":        "Do `a␊Delete b?`?\n\n- `a`: `a␊Delete b?`",
		"a\u202egpj.exe":      "Do `a\ufffdgpj.exe`?\n\n- `a`: `a\ufffdgpj.exe`",
		"a\u200bb":            "Do `a\ufffdb`?\n\n- `a`: `a\ufffdb`",
		"אב.txt":              "Do `\u2068אב.txt\u2069`?",
		"":                    "Do `\"\"`?\n\n- `a`: `\"\"`",
		long:                  "Do `" + long[:60] + "…`?\n\n- `a`: `" + long + "`",
		"https://u:pw@e.com/": "Do `https://…@e.com/`?\n\n- `a`: `https://…@e.com/`",
	} {
		if got := asked(map[string]any{"a": value}, Named(value)); got != want {
			t.Errorf("%q:\ngot  %q\nwant %q", value, got, want)
		}
	}
	if got, want := asked(map[string]any{"a": "x", "b": "x", "c": 1}, Quoted("x")), "Do `x`?\n\n- `b`: `x`\n- `c`: `1`"; got != want {
		t.Errorf("of two arguments of one value one is told: %q, want %q", got, want)
	}
	broken := Tool{ToolSpec: llm.ToolSpec{Name: "dig"}, Hints: Hints{Display: "Dig *deep*"}, Ask: func(texts.Asks, Call) Sentence { panic("no") }}
	if got := prompt(texts.English().Tools.Approval, broken, Call{Input: map[string]any{"a": 1}}); got != "Use `Dig *deep*` (`dig`)?\n\n- `a`: `1`" {
		t.Errorf("of a tool whose sentence fails: %q", got)
	}
}

// C-051: however a value looks, the sentence has one line and shows it all, or it is listed below.
func TestSentenceOfAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.String().Draw(t, "value")
		code := rapid.Bool().Draw(t, "code")
		got := asked(map[string]any{"a": value}, Said{value, code})
		first, rest, more := strings.Cut(got, "\n")
		inside := strings.TrimSuffix(strings.TrimPrefix(first, "Do "), "?")
		bare := inside
		for _, mark := range []string{"**", "`"} {
			if within, ok := strings.CutPrefix(bare, mark); ok {
				bare = strings.TrimSuffix(within, mark)
				break
			}
		}
		if !strings.HasPrefix(inside, "`") && !plainName.MatchString(bare) || strings.Count(inside, "`")%2 != 0 || strings.Count(inside, "`") > 2 {
			t.Errorf("%q is asked as %q", value, first)
		}
		if strings.ContainsFunc(first, func(r rune) bool { return !unicode.IsGraphic(r) && r != '\u2068' && r != '\u2069' }) {
			t.Errorf("%q hides something", first)
		}
		if !more && strings.Trim(bare, "\u2068\u2069") != value || more && !strings.Contains(rest, "- `a`: ") {
			t.Errorf("%q is neither whole nor listed: %q", value, got)
		}
	})
}
