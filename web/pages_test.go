package web

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	g "maragu.dev/gomponents"

	"parley/response"
	"parley/web/layout"
	"parley/web/live"
	"parley/web/webtest"
)

// R-S5: whatever stands in any field of what a page shows is text there, and no
// address leads elsewhere.
func TestRS5HostilePages(t *testing.T) {
	p := pages{time.UTC}
	for _, text := range webtest.Hostile {
		for _, on := range []bool{true, false} {
			made := map[string]g.Group{
				"overview": contents(p.attention(filled[Overview](text, on))),
				"usage":    p.usage(filled[usage](text, on)),
				"tools":    p.tools(filled[toolList](text, on)),
				"changes":  p.changes(filled[personMemory](text, on)),
				"changed":  p.changed(filled[changed](text, on)),
				"members":  p.members(filled[members](text, on)),
				"events":   p.events(filled[events](text, on)),
			}
			for name, content := range made {
				page := written(t, layout.Page("/owner", text, content))
				if faults := webtest.Active(page); len(faults) > 0 {
					t.Errorf("%s of %q: %q", name, text, faults)
				}
				if body := content.String(); !webtest.Shows(body, text) {
					t.Errorf("%s does not show %q: %s", name, text, body)
				}
			}
		}
	}
}

// R-S5: a refusal is text, for browsers and for programs.
func TestRS5HostileProblem(t *testing.T) {
	for _, text := range webtest.Hostile {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/", nil)
		r.Header.Set("Accept", "text/html")
		response.Problem{Status: http.StatusConflict, Text: text}.Write(w, r)
		page := w.Body.String()
		if faults := webtest.Active(page); len(faults) > 0 || !webtest.Shows(page, text) && !strings.HasPrefix(text, "javascript") {
			t.Errorf("%q: %q in %s", text, faults, page)
		}
	}
}

func contents(parts []live.Part) (all g.Group) {
	for _, p := range parts {
		all = append(all, p.Node)
	}
	return all
}

func written(t *testing.T, page g.Node) string {
	t.Helper()
	w := httptest.NewRecorder()
	if err := response.Page(w, http.StatusOK, page); err != nil {
		t.Fatal(err)
	}
	return w.Body.String()
}

// filled returns a T in which every text is text and every truth is on, with one
// element in every list.
func filled[T any](text string, on bool) (v T) {
	fill(reflect.ValueOf(&v).Elem(), text, on)
	return v
}

func fill(v reflect.Value, text string, on bool) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(on)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text, on)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), text, on)
	case reflect.Map:
		key := reflect.New(v.Type().Key()).Elem()
		value := reflect.New(v.Type().Elem()).Elem()
		fill(key, text, on)
		v.Set(reflect.MakeMap(v.Type()))
		if value.Kind() != reflect.Interface {
			fill(value, text, on)
			v.SetMapIndex(key, value)
		}
	case reflect.Struct:
		for _, f := range v.Fields() {
			if f.CanSet() {
				fill(f, text, on)
			}
		}
	}
}
