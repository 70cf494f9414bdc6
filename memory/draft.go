package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"parley/chat"
	"parley/llm"
)

// maxEdit is how many characters an edit may remove, and how many it may add.
const maxEdit = 2_000

// A draft is a set of texts that a model edits. It changes no files.
type draft struct {
	was, now map[string]string // by file name
	most     int               // bytes that each may have
	why      string
	done     bool
	from     map[mark][]int64 // cursors of the entries that the model named for a new line
}

// run lets the model edit until it is done. An error is like those of the model.
func (s *draft) run(ctx context.Context, model llm.Model, system, told string) error {
	ask := "The files as they are:\n\n"
	for _, name := range slices.Sorted(maps.Keys(s.was)) {
		ask += fmt.Sprintf("--- %s ---\n%s--- end of %[1]s ---\n\n", name,
			ended(strings.ToValidUTF8(s.was[name], "\uFFFD")))
	}
	said := []llm.Message{{Role: llm.User, Text: ask + "What was said since, each line behind a mark:\n\n" + told}}
	s.now = maps.Clone(s.was)
	s.from = map[mark][]int64{}
	for n := 0; n < maxRounds && !s.done; n++ {
		m, err := model.Generate(ctx, llm.Request{System: system, Messages: said, Tools: draftTools}, nil)
		switch {
		case err != nil:
			return err
		case m.Finish == llm.Filtered:
			return &llm.Error{Kind: llm.BadRequest, Err: errors.New("the answer was held back")}
		case len(m.Calls) == 0:
			s.done = true
			s.why = cmp.Or(s.why, m.Text)
		}
		m.Calls = slices.Clone(m.Calls)
		llm.Identify(m.Calls, said)
		said = append(said, m)
		for _, c := range m.Calls {
			said = append(said, llm.Message{Role: llm.ToolRole, Call: c.ID, Name: c.Name, Text: s.call(c)})
		}
	}
	s.why = chat.Shorten(chat.OneLine(s.why), 300)
	return nil
}

// call carries out a call of the model, and returns the answer for it.
func (s *draft) call(c llm.ToolCall) string {
	var in struct {
		File, Old, New, Why string
		From                any // whatever the model makes of it: it is only a hint
	}
	if json.Unmarshal([]byte(c.Args), &in) != nil {
		return "The arguments are no JSON object of texts. Nothing was changed."
	}
	switch c.Name {
	case "done":
		s.done = true
		s.why = in.Why
		return "Good night."
	case "edit_memory":
		before := s.now[in.File]
		if err := s.edit(in.File, in.Old, in.New); err != nil {
			return "Nothing was changed: " + err.Error() + "."
		}
		for _, m := range newMarks(in.File, before, s.now[in.File]) {
			s.from[m] = cursors(in.From)
		}
		return fmt.Sprintf("%s has %d bytes now.", in.File, len(s.now[in.File]))
	}
	return fmt.Sprintf("There is no tool named %q; there are edit_memory and done.", c.Name)
}

// cursors returns the numbers of entries in what a model wrote: a number, or a list of numbers or texts.
func cursors(v any) (all []int64) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, one := range list {
		switch one := one.(type) {
		case float64:
			all = append(all, int64(one))
		case string:
			n, _ := strconv.ParseInt(strings.TrimPrefix(one, "Entry "), 10, 64) // no entry is number 0
			all = append(all, n)
		}
	}
	return all
}

func (s *draft) edit(file, old, add string) error {
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
		next = ended(text) + ended(add)
		n = 1
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
		return fmt.Errorf("the file would have %d bytes, and may have %d; first remove what matters least",
			len(next), s.most)
	case taken > max(200, len(s.was[file])/2):
		return errors.New("that would leave too little of what the file said; a dream changes details only")
	}
	s.now[file] = next
	return nil
}

// ended returns text with a line break at its end.
func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

var draftTools = []llm.ToolSpec{{
	Name:        "edit_memory",
	Description: "Replace a piece of a file, or add to its end.",
	Schema: json.RawMessage(`{"type":"object","properties":{
"file":{"type":"string","description":"name of the file, as it is shown"},
"old":{"type":"string",
"description":"the text to replace, copied letter by letter; it must occur exactly once; empty to add new at the end"},
"new":{"type":"string","description":"the text to put in its place; empty to remove old"},
"from":{"type":"array","items":{"type":"integer"},"description":"numbers of the entries that new comes from"}},
"required":["file","old","new"],"additionalProperties":false}`),
}, {
	Name:        "done",
	Description: "End the dream. Call it last, also when there was nothing to change.",
	Schema: json.RawMessage(`{"type":"object","properties":{
"why":{"type":"string","description":"in one sentence, what was changed and why"}},
"required":["why"],"additionalProperties":false}`),
}}
