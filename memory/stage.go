package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"parley/llm"
)

// maxEdit is how many characters an edit may take away, and how many it may add.
const maxEdit = 2_000

// A stage holds texts that a model edits. Nothing of it lasts by itself.
type stage struct {
	was, now map[string]string // by name of the file
	most     int               // bytes that each may have
	why      string
	done     bool
}

// run lets the model edit until it is done. A failure is as that of model.
func (s *stage) run(ctx context.Context, model llm.Model, system, told string) error {
	ask := "The files as they are:\n\n"
	for _, name := range slices.Sorted(maps.Keys(s.was)) {
		ask += fmt.Sprintf("--- %s ---\n%s--- end of %[1]s ---\n\n", name,
			ended(strings.ToValidUTF8(s.was[name], "\uFFFD")))
	}
	said := []llm.Message{{Role: llm.User, Text: ask + "What was said since, each line behind a mark:\n\n" + told}}
	s.now = maps.Clone(s.was)
	for n := 0; n < maxRounds && !s.done; n++ {
		m, err := model.Generate(ctx, llm.Request{System: system, Messages: said, Tools: stageTools}, nil)
		switch {
		case err != nil:
			return err
		case m.Finish == llm.Filtered:
			return &llm.Error{Kind: llm.BadRequest, Err: errors.New("the answer was held back")}
		case len(m.Calls) == 0:
			s.done, s.why = true, cmp.Or(s.why, m.Text)
		}
		m.Calls = slices.Clone(m.Calls)
		llm.Identify(m.Calls, said)
		said = append(said, m)
		for _, c := range m.Calls {
			said = append(said, llm.Message{Role: llm.ToolRole, Call: c.ID, Name: c.Name, Text: s.call(c)})
		}
	}
	s.why = clip(strings.Join(strings.Fields(s.why), " "), 300)
	return nil
}

// call does what the model asks and returns what it is told.
func (s *stage) call(c llm.ToolCall) string {
	var in struct{ File, Old, New, Why string }
	if json.Unmarshal([]byte(c.Args), &in) != nil {
		return "The arguments are no JSON object of texts. Nothing was changed."
	}
	switch c.Name {
	case "done":
		s.done, s.why = true, in.Why
		return "Good night."
	case "edit_memory":
		if err := s.edit(in.File, in.Old, in.New); err != nil {
			return "Nothing was changed: " + err.Error() + "."
		}
		return fmt.Sprintf("%s has %d bytes now.", in.File, len(s.now[in.File]))
	}
	return fmt.Sprintf("There is no tool named %q; there are edit_memory and done.", c.Name)
}

func (s *stage) edit(file, old, add string) error {
	add = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.Join(rows(add), "\n"))
	text, there := s.now[file]
	next := strings.Replace(text, old, add, 1)
	n := strings.Count(text, old)
	taken := 0
	if old == "" {
		next, n = ended(text)+ended(add), 1
	}
	for _, l := range udiff.Lines(s.was[file], next) {
		for _, e := range udiff.Strings(s.was[file][l.Start:l.End], l.New) {
			taken += e.End - e.Start
		}
	}
	switch {
	case !there:
		return fmt.Errorf("there is no file %q here; there are %s", file,
			strings.Join(slices.Sorted(maps.Keys(s.now)), ", "))
	case old == "" && strings.TrimSpace(add) == "":
		return errors.New("old and new are both empty")
	case max(utf8.RuneCountInString(old), utf8.RuneCountInString(add)) > maxEdit:
		return fmt.Errorf("old and new may have at most %d characters each; make several small edits", maxEdit)
	case n == 0:
		return errors.New("old is not in the file; copy it letter by letter")
	case n > 1:
		return fmt.Errorf("old is in the file %d times; copy more of what is around it", n)
	case len(next) > max(s.most, len(text)):
		return fmt.Errorf("the file would have %d bytes, and may have %d; take out first what matters least", len(next),
			s.most)
	case taken > max(200, len(s.was[file])/2):
		return errors.New("that would leave too little of what the file said; a dream changes details only")
	}
	s.now[file] = next
	return nil
}

// ended returns text with an end of its last line.
func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

var stageTools = []llm.ToolSpec{{
	Name:        "edit_memory",
	Description: "Replace a piece of a file, or add to its end.",
	Schema: json.RawMessage(`{"type":"object","properties":{
"file":{"type":"string","description":"name of the file, as it is shown"},
"old":{"type":"string","description":"what is to be replaced, copied letter by letter; it must be in the file exactly once; empty to add new at the end"},
"new":{"type":"string","description":"what takes its place; empty to take old out"}},
"required":["file","old","new"],"additionalProperties":false}`),
}, {
	Name:        "done",
	Description: "End the dream. Call it last, also when there was nothing to change.",
	Schema: json.RawMessage(`{"type":"object","properties":{
"why":{"type":"string","description":"in one sentence, what was changed and why"}},
"required":["why"],"additionalProperties":false}`),
}}
