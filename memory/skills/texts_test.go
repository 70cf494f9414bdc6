package skills

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/texts/textstest"
)

// TestAllFromCatalogue lists pages with all that can be wrong with them in a
// language of full-width letters: nobody is told a word that is not in the catalogue.
func TestAllFromCatalogue(t *testing.T) {
	data := regexp.MustCompile("`[^`]*`|\\b(tea[0-9]*|TEA|more|skills|agents|name|description|always|requires\\.bins|rounds|exec|cheap)\\b")
	check := func(text string, most int) {
		t.Helper()
		if rest := textstest.Foreign(text, data); rest != "" || strings.Count(text, "\n") < most {
			t.Errorf("%q is not in the catalogue, of\n%s", rest, text)
		}
	}
	d := open(t)
	n := 0
	page := func(text string) {
		n++
		d.write(fmt.Sprintf("skills/tea%d/SKILL.md", n), text)
	}
	page("tea")
	page(strings.Repeat("x", maxPage+1))
	for _, head := range []string{
		"description: tea\nname: tea", "name: tea3", "- tea", "tea: 1", "description: [tea]", "description: tea\nalways: tea", "description: tea\nrequires: {bins: tea}",
		"description: tea\nrequires: {bins: [/tea]}", "description: tea\nrequires: {bins: [tea], env: [TEA], tools: [exec]}", "description: tea\nalways: true",
	} {
		page(skill(head))
	}
	page("---\ndescription: tea\n---\n")
	d.write("skills/TEA/SKILL.md", skill("description: tea"))
	for i, head := range []string{"rounds: 101", "rounds: tea", "tools: [exec]", "model: cheap"} {
		d.write(fmt.Sprintf("agents/tea%d.md", i), skill("description: tea\n"+head))
	}
	s := New(d, none, none)
	s.Texts = &textstest.Wide().Memory.Skills
	check(s.List(none, none), 20)
	d = open(t)
	s = New(d, all, all)
	s.Texts = &textstest.Wide().Memory.Skills
	check(s.List(all, all), 5)
	for i := range maxPages + 1 {
		d.write(fmt.Sprintf("agents/tea%d.md", i), skill("description: tea"))
	}
	d.must(os.Symlink("/etc", filepath.Join(d.w.Dir(), "skills")))
	check(s.List(all, all), maxPages+1)
}
