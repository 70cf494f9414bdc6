package tools

import (
	"cmp"
	"strings"
	"unicode"

	"parley/chat"
	"parley/lazyregexp"
	"parley/texts"
)

// A Sentence says in one sentence what a call is about to do, as a question to the person who
// may allow it: "Delete **notes.txt**?".
type Sentence struct {
	Text  func(about ...any) string // [texts.Format.With], or the form of a [texts.Count]
	About []Said                    // what stands in its places
}

// Asking returns the sentence that says f about these values.
func Asking(f texts.Format, about ...Said) Sentence { return Sentence{f.With, about} }

// AskingOf returns the sentence that says c about n things and these values.
func AskingOf(c texts.Count, n int, about ...Said) Sentence {
	return Sentence{func(about ...any) string { return c.Of(n, about...) }, about}
}

// A Said is a value in a sentence: whatever it is, it cannot look like anything but a value.
type Said struct {
	text string
	code bool
}

// Named is the name of something: a file, a chat, a job.
func Named(text string) Said { return Said{text: text} }

// Quoted is something that is meant word by word, such as a command.
func Quoted(text string) Said { return Said{text: text, code: true} }

// What a sentence shows of a value, in characters. Its beginning is shown of a longer one, and
// all of it below the sentence.
const (
	maxNamed  = 60
	maxQuoted = 160
)

// plainName matches names without anything that is markup somewhere, cannot be seen, or is
// written in the other direction.
var plainName = lazyregexp.New(`^[\p{L}\p{N}]+(?:(?:[._/@+:-]|, | )[\p{L}\p{N}]+)*$`)

// String returns s as Markdown.
func (s Said) String() string {
	text, _ := s.mark()
	return text
}

// mark returns s as Markdown, and whether that shows all of it as it is.
func (s Said) mark() (text string, isWhole bool) {
	limit := maxNamed
	if s.code {
		limit = maxQuoted
	}
	visible := inPlain(chat.HideLogins(s.text))
	shown := chat.Clip(visible, limit, "…")
	isWhole = shown == s.text
	switch {
	case strings.TrimSpace(s.text) == "":
		return "`\"\"`", false
	case strings.ContainsFunc(shown, isRightToLeft): // the rest of the sentence keeps its order
		return "`\u2068" + shown + "\u2069`", isWhole
	case !s.code && isWhole && plainName.MatchString(shown):
		return "**" + shown + "**", true
	}
	return "`" + shown + "`", isWhole
}

// isRightToLeft reports whether r is of a script that is written from right to left.
func isRightToLeft(r rune) bool {
	return unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko,
		unicode.Samaritan, unicode.Mandaic, unicode.Adlam)
}

// sentence says what c would do, and which of its values that shows as they are: they need not
// be listed below it.
func sentence(say texts.Approval, t Tool, c Call) (text string, shown []string) {
	asked := t.asking(say, c)
	about := make([]any, len(asked.About))
	for i, value := range asked.About {
		marked, isWhole := value.mark()
		about[i] = marked
		if isWhole {
			shown = append(shown, value.text)
		}
	}
	return asked.Text(about...), shown
}

// asking returns the sentence of t, or else one that says which tool it is.
func (t Tool) asking(say texts.Approval, c Call) (s Sentence) {
	defer func() {
		if recover() != nil || s.Text == nil {
			s = Asking(say.Asks.Use, Quoted(t.Name))
			if name := cmp.Or(t.Display, say.Names.Of(t.canonical())); name != "" {
				s = Asking(say.Asks.UseKnown, Named(name), Quoted(t.Name))
			}
		}
	}()
	if t.Ask == nil {
		return s
	}
	return t.Ask(say.Asks, c)
}
