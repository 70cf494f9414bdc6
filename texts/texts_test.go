package texts_test

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/texts"
	"parley/texts/textstest"
)

// languages are all catalogues there are.
func languages() map[string]*texts.Catalogue {
	return map[string]*texts.Catalogue{"English": texts.English(), "wide": textstest.Wide()}
}

// each calls do for every text of v, which is at path. A Count has as many as it
// has forms, at the path with the first number of each.
func each(path string, v reflect.Value, do func(path string, v any)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			each(path+"."+v.Type().Field(i).Name, v.Field(i), do)
		}
	default:
		do(path, v.Interface())
	}
}

// A form is a text of a Count.
type form struct {
	text    texts.Format
	numbers []int // for which it is, of the first mostCounted
}

// mostCounted is how many numbers, from 0 on, the forms of a Count are looked at for.
const mostCounted = 200

// forms returns the texts of c.
func forms(c texts.Count) (all []form) {
	for n := range mostCounted {
		text := c(n)
		i := slices.IndexFunc(all, func(f form) bool { return f.text == text })
		if i < 0 {
			i, all = len(all), append(all, form{text: text})
		}
		all[i].numbers = append(all[i].numbers, n)
	}
	return all
}

// wrong returns what is wrong with the catalogue c, which is to be as English is.
func wrong(c *texts.Catalogue) (faults []string) {
	fault := func(path, format string, args ...any) {
		faults = append(faults, path+": "+fmt.Sprintf(format, args...))
	}
	english := map[string]any{}
	each("", reflect.ValueOf(*texts.English()), func(path string, v any) { english[path] = v })
	check := func(path, text string, want map[int]string, mayLeaveOut bool) {
		if strings.TrimSpace(text) == "" {
			fault(path, "is empty")
			return
		}
		got, err := verbs(text)
		if err != nil {
			fault(path, "%v", err)
		}
		if mayLeaveOut {
			for place := range want {
				if got[place] == "" {
					delete(want, place)
				}
			}
		}
		if !maps.Equal(got, want) {
			fault(path, "takes %v, and in English %v", got, want)
		}
	}
	each("", reflect.ValueOf(*c), func(path string, v any) {
		switch v := v.(type) {
		case string:
			if strings.TrimSpace(v) == "" {
				fault(path, "is empty")
			}
		case texts.Format:
			want, _ := verbs(string(english[path].(texts.Format)))
			check(path, string(v), want, false)
		case texts.Count:
			if v == nil {
				fault(path, "is missing")
				return
			}
			for _, f := range forms(v) {
				want, _ := verbs(string(english[path].(texts.Count)(2)))
				check(fmt.Sprintf("%s of %d", path, f.numbers[0]), string(f.text), want, len(f.numbers) == 1)
			}
		default:
			fault(path, "is a %T, and no text", v)
		}
	})
	slices.Sort(faults)
	return faults
}

var verb = regexp.MustCompile(`%([-+# 0]*)(?:\[(\d+)\])?(\d*(?:\.\d+)?)([a-zA-Z%])?`)

// verbs returns which verb stands for which argument of a format.
func verbs(format string) (map[int]string, error) {
	all, next := map[int]string{}, 1
	for _, m := range verb.FindAllStringSubmatch(format, -1) {
		if m[4] == "%" {
			continue
		}
		if m[4] == "" {
			return nil, fmt.Errorf("%q is no verb", m[0])
		}
		if m[2] != "" {
			next, _ = strconv.Atoi(m[2])
		}
		what := m[1] + m[3] + m[4]
		if all[next] != "" && all[next] != what {
			return nil, fmt.Errorf("argument %d is written as %q and %q", next, all[next], what)
		}
		all[next] = what
		next++
	}
	for place := range all {
		if place > 1 && all[place-1] == "" && !strings.Contains(format, "%[") {
			return nil, fmt.Errorf("argument %d is left out", place-1)
		}
	}
	return all, nil
}

// TestCatalogues checks that every language says everything, and takes what
// English takes.
func TestCatalogues(t *testing.T) {
	for name, c := range languages() {
		for _, fault := range wrong(c) {
			t.Errorf("%s: %s", name, fault)
		}
	}
}

// TestCataloguesNotice: what a translation gets wrong is noticed.
func TestCataloguesNotice(t *testing.T) {
	for want, spoil := range map[string]func(*texts.Catalogue){
		".Agent.Turn.Stopped: is empty":                   func(c *texts.Catalogue) { c.Agent.Turn.Stopped = " " },
		".Agent.Turn.ToolFailed: takes map[1:s], and in":  func(c *texts.Catalogue) { c.Agent.Turn.ToolFailed = "Das ging nicht: %s" },
		".Agent.Turn.OutOfRounds: takes map[1:s], and in": func(c *texts.Catalogue) { c.Agent.Turn.OutOfRounds = "%s Runden" },
		".Agent.Turn.TooOld: is missing":                  func(c *texts.Catalogue) { c.Agent.Turn.TooOld = nil },
		".Agent.Subagents.Some of 1: takes map[1:s], and in English map[1:d]": func(c *texts.Catalogue) {
			c.Agent.Subagents.Some = polish("%s pomocnik", "%[1]d pomocnicy", "%[1]d pomocników")
		},
		".Agent.Subagents.Some of 2: takes map[], and in English map[1:d]": func(c *texts.Catalogue) {
			c.Agent.Subagents.Some = polish("pomocnik", "pomocnicy", "%[1]d pomocników")
		},
		".Agent.Limits.Low: takes map[1:d 2: v 3:s 4:s], and": func(c *texts.Catalogue) { c.Agent.Limits.Low = "%d % von %s: %s" },
	} {
		c := texts.English()
		spoil(c)
		if got := wrong(c); len(got) == 0 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%q, want %s", got, want)
		}
	}
	c := texts.English()
	c.Agent.Turn.ToolFailed = "%[2]s (with %[1]s)"
	c.Agent.Subagents.Some = polish("pomocnik", "%[1]d pomocnicy", "%[1]d pomocników")
	if got := wrong(c); len(got) > 0 {
		t.Errorf("another order, and another plural: %q", got)
	}
}

// polish is a Count of a language with three forms: for one, for what ends in 2, 3
// or 4, and for the rest.
func polish(one, few, many texts.Format) texts.Count {
	return func(n int) texts.Format {
		switch {
		case n == 1:
			return one
		case 2 <= n%10 && n%10 <= 4 && (n%100 < 12 || n%100 > 14):
			return few
		}
		return many
	}
}

// TestPlurals: a language may have more plurals than English.
func TestPlurals(t *testing.T) {
	helpers := polish("pomocnik", "%[1]d pomocnicy", "%[1]d pomocników")
	for n, want := range map[int]string{0: "0 pomocników", 1: "pomocnik", 2: "2 pomocnicy", 5: "5 pomocników", 13: "13 pomocników", 22: "22 pomocnicy"} {
		if got := helpers.Of(n); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestFormats(t *testing.T) {
	en := texts.English().Agent
	for got, want := range map[string]string{
		en.Subagents.Some.Of(1):                    "a background task",
		en.Subagents.Some.Of(3):                    "3 background tasks",
		en.Span.Of(0):                              "a moment",
		en.Span.Of(time.Second):                    "a second",
		en.Span.Of(90 * time.Minute):               "an hour",
		en.Span.Of(49 * time.Hour):                 "2 days",
		en.Turn.TooOld.Of(1, "an hour")[:43]:       "I was away, and your message is more than a",
		texts.Format("%[2]s %[1]s").With("a", "b"): "b a",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
