package chart

import (
	"encoding/xml"
	"fmt"
	"math"
	"strings"
	"testing"

	"parley/web/webtest"
)

func written(c Chart) string { return c.Node().(fmt.Stringer).String() }

// The lines of the grid are at round numbers, there are few of them, and the highest
// value is not above them.
func TestGrid(t *testing.T) {
	for _, most := range []float64{0.0003, .04, .5, 1, 2, 3, 4, 7, 9.99, 10, 11, 24, 25, 99, 100, 101, 12345, 1e9} {
		for _, whole := range []bool{true, false} {
			step, lines := grid(most, whole)
			if high := step * float64(lines); high < most-1e-9 || lines > 5 || step <= 0 {
				t.Errorf("up to %v: %d lines of %v", most, lines, step)
			}
			if whole && step != math.Trunc(step) {
				t.Errorf("up to %v, whole: a step of %v", most, step)
			}
			if digits := strings.Trim(strings.ReplaceAll(fmt.Sprintf("%.6g", step), ".", ""), "0"); !whole && !strings.Contains(" 1 2 25 5 1e-05 1e+08 25e+08 ", " "+digits+" ") {
				t.Errorf("up to %v: a step of %v", most, step)
			}
		}
	}
}

// Each column says its values, and its bars are as high as they are.
func TestColumns(t *testing.T) {
	c := Chart{
		ID: "latency", Title: "Time to answer", Empty: "nothing yet",
		Series: []Series{{Name: "median"}, {Name: "p95", Mark: true}},
		Points: []Point{
			{Name: "09:00", Tick: "09:00", Values: []float64{2, 4}},
			{Name: "10:00", Values: []float64{math.NaN(), math.NaN()}},
			{Name: "11:00", Values: []float64{0, 1}},
		},
		Format: func(v float64) string { return fmt.Sprintf("%g s", v) },
	}
	page := written(c)
	for _, want := range []string{
		`aria-label="09:00: median 2 s, p95 4 s"`, `aria-label="10:00: median not known, p95 not known"`,
		`y="93" width="24%" height="75"`, // half of the 150 pixels that 4 s take
		`y1="18" y2="18"`, `>4 s</text>`, `>09:00</text>`, `<td>–</td>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the chart lacks %s: %s", want, page)
		}
	}
	if n := strings.Count(page, `class="value`); n != 1 {
		t.Errorf("%d bars, want 1: nothing and unknown have none", n)
	}
	if n := strings.Count(page, `tabindex="0"`); n != 1 {
		t.Errorf("the Tab key stops %d times", n)
	}
	for i := range c.Points {
		c.Points[i].Values = []float64{0, math.NaN()}
	}
	if page := written(c); strings.Contains(page, "<svg") || !strings.Contains(page, "nothing yet") {
		t.Errorf("without values: %s", page)
	}
}

// Whatever texts a chart has, they are no markup.
func TestHostileTexts(t *testing.T) {
	for _, text := range webtest.Hostile {
		c := Chart{ID: "c", Title: text, Note: text, Empty: text, Series: []Series{{Name: text}, {Name: text + "2"}}, Points: []Point{{Name: text, Tick: text, Values: []float64{1, 2}}}}
		page := written(c)
		if faults := webtest.Active(page); len(faults) > 0 || !webtest.Shows(page, text) {
			t.Errorf("%q: %q in %s", text, faults, page)
		}
		if err := xml.Unmarshal([]byte(page[strings.Index(page, "<svg"):strings.Index(page, "</svg>")+6]), new(struct{})); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}
