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

// each calls do for every text of v, which is at path.
func each(path string, v reflect.Value, do func(path string, v reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			each(path+"."+v.Type().Field(i).Name, v.Field(i), do)
		}
	default:
		do(path, v)
	}
}

// wrong returns what is wrong with the catalogue c, which is to be as English is.
func wrong(c *texts.Catalogue) (faults []string) {
	fault := func(path, format string, args ...any) {
		faults = append(faults, path+": "+fmt.Sprintf(format, args...))
	}
	english := map[string]reflect.Value{}
	each("", reflect.ValueOf(*texts.English()), func(path string, v reflect.Value) { english[path] = v })
	found := map[string]bool{}
	each("", reflect.ValueOf(*c), func(path string, v reflect.Value) {
		found[path] = true
		if v.Kind() != reflect.String {
			fault(path, "is a %s, and no text", v.Kind())
			return
		}
		if strings.TrimSpace(v.String()) == "" {
			fault(path, "is empty")
			return
		}
		model, known := english[path]
		if !known {
			fault(path, "is not in English")
			return
		}
		if v.Type() != reflect.TypeFor[texts.Format]() {
			return
		}
		got, err := verbs(v.String())
		if err != nil {
			fault(path, "%v", err)
		}
		if many, is := strings.CutSuffix(path, ".One"); is && english[many+".Many"].IsValid() {
			want, _ := verbs(english[many+".Many"].String())
			for place, verb := range got { // it may leave verbs out
				if want[place] != verb {
					fault(path, "argument %d is written %q, and not as in Many, %q", place, verb, want[place])
				}
			}
			return
		}
		if want, _ := verbs(model.String()); !maps.Equal(got, want) {
			fault(path, "takes %v, and in English %v", got, want)
		}
	})
	for path := range english {
		if !found[path] {
			fault(path, "is missing")
		}
	}
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
		".Agent.Turn.Stopped: is empty":                                   func(c *texts.Catalogue) { c.Agent.Turn.Stopped = " " },
		".Agent.Turn.ToolFailed: takes map[1:s], and in":                  func(c *texts.Catalogue) { c.Agent.Turn.ToolFailed = "Das ging nicht: %s" },
		".Agent.Turn.OutOfRounds: takes map[1:s], and in":                 func(c *texts.Catalogue) { c.Agent.Turn.OutOfRounds = "%s Runden" },
		".Agent.Turn.TooOld.One: argument 1 is written \"s\", and not as": func(c *texts.Catalogue) { c.Agent.Turn.TooOld.One = "%s" },
		".Agent.Limits.Low: takes map[1:d 2: v 3:s 4:s], and":             func(c *texts.Catalogue) { c.Agent.Limits.Low = "%d % von %s: %s" },
	} {
		c := texts.English()
		spoil(c)
		if got := wrong(c); len(got) == 0 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%q, want %s", got, want)
		}
	}
	c := texts.English()
	c.Agent.Turn.ToolFailed = "%[2]s (with %[1]s)"
	if got := wrong(c); len(got) > 0 {
		t.Errorf("another order: %q", got)
	}
}

func TestFormats(t *testing.T) {
	en := texts.English().Agent
	for got, want := range map[string]string{
		en.Helpers.Some.Of(1):                      "a helper",
		en.Helpers.Some.Of(3):                      "3 helpers",
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
