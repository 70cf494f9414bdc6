// Package chart draws charts of bars as SVG: with an axis, gridlines, what each column
// says on hover, focus and tap, and a table of the same numbers.
//
// The picture is as wide as its place: what is placed from left to right is in percent,
// and what is placed from top to bottom in pixels, so that texts have one size at any
// width. A page with charts loads [Assets] and serves [Routes].
package chart

import (
	"embed"
	"math"
	"strconv"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/web/layout"
)

//go:embed assets
var assets embed.FS

// Routes serve the script and the style sheet of charts.
func Routes() []layout.Route { return layout.Assets(assets) }

// Assets are the names that a page with charts loads.
func Assets() []string { return []string{"chart.css", "chart.js"} }

// A Chart shows numbers over time, or over anything else that has an order.
type Chart struct {
	ID     string // of its element
	Title  string
	Note   string // in small print below; "" for none
	Empty  string // stands in its place while all values are zero or unknown
	Series []Series
	Points []Point

	// Format returns a value in words, with its unit. nil: as a whole number.
	Format func(float64) string
	// Whole says that values are whole numbers, and so are the lines of the grid.
	Whole bool
}

// A Series is one of the numbers that each Point has.
type Series struct {
	Name string
	Mark bool // it is drawn as a line over the bars of the others, such as the 95th percentile over the median
}

// A Point is a column of a Chart.
type Point struct {
	Name   string    // what it is about in full: "Monday, 23 November"
	Tick   string    // what stands below it on the axis; "" for nothing
	Values []float64 // of each Series; NaN if it is not known
}

// Where things are from top to bottom, in pixels.
const (
	top    = 18  // of the highest line of the grid
	bottom = 168 // the axis
	ticks  = 186 // the words below the axis
)

// Node returns the chart.
func (c Chart) Node() g.Node {
	return h.Figure(h.Class("chart"), h.ID(c.ID),
		h.FigCaption(
			h.Strong(g.Text(c.Title)),
			g.If(len(c.Series) > 1, h.Span(h.Class("legend"), g.Map(c.Series, c.legend))),
		),
		g.Iff(c.largest() == 0, func() g.Node { return h.P(h.Class("none"), g.Text(c.Empty)) }),
		g.Iff(c.largest() > 0, func() g.Node { return g.Group{c.picture(), c.table()} }),
		g.If(c.Note != "", h.Small(g.Text(c.Note))),
	)
}

func (c Chart) legend(s Series) g.Node {
	return h.Span(h.Class("key "+c.class(s)), g.Text(s.Name))
}

// class returns the class of a series, which has its colour.
func (c Chart) class(s Series) string {
	if s.Mark {
		return "mark"
	}
	n := 1
	for _, other := range c.Series {
		if other == s {
			break
		}
		if !other.Mark {
			n++
		}
	}
	return "series" + strconv.Itoa(n)
}

// largest returns the largest value, or 0.
func (c Chart) largest() (most float64) {
	for _, p := range c.Points {
		for _, v := range p.Values {
			if !math.IsNaN(v) {
				most = max(most, v)
			}
		}
	}
	return most
}

func (c Chart) picture() g.Node {
	step, lines := grid(c.largest(), c.Whole)
	scale := (bottom - top) / (step * float64(lines))
	wide := 100 / float64(len(c.Points))
	var rules, words, columns g.Group
	for i := range lines + 1 {
		y := number(bottom - float64(i)*step*scale)
		rules = append(rules, g.El("line", h.Class("rule"), g.Attr("x1", "0"), g.Attr("x2", "100%"), g.Attr("y1", y),
			g.Attr("y2", y)))
		if i > 0 {
			y = number(bottom - float64(i)*step*scale - 4)
			words = append(words, text("scale", "0", y, c.format(float64(i)*step)))
		}
	}
	for i, p := range c.Points {
		columns = append(columns, c.column(i, p, wide, scale))
		if p.Tick != "" {
			words = append(words, text("tick", percent((float64(i)+.5)*wide), strconv.Itoa(ticks), p.Tick))
		}
	}
	return h.SVG(g.Attr("role", "group"), h.Aria("label", c.Title+". The arrow keys go from column to column."),
		rules, columns, g.El("g", h.Aria("hidden", "true"), words))
}

// column returns the bars of a point, under an area as high as the chart that can be
// pointed at.
func (c Chart) column(i int, p Point, wide, scale float64) g.Node {
	bars := 0
	for _, s := range c.Series {
		if !s.Mark {
			bars++
		}
	}
	left, broad := (float64(i)+.14)*wide, .72*wide/float64(max(bars, 1))
	var shapes g.Group
	at := left
	for k, s := range c.Series {
		v := p.Values[k]
		tall := v * scale
		switch {
		case math.IsNaN(v):
		case s.Mark:
			y := number(bottom - tall)
			shapes = append(shapes, g.El("line", h.Class("mark"), g.Attr("x1", percent(left)),
				g.Attr("x2", percent(left+.72*wide)), g.Attr("y1", y), g.Attr("y2", y)))
		case v > 0:
			tall = max(tall, 1.5) // a little is not nothing
			shapes = append(shapes, g.El("rect", h.Class("value "+c.class(s)), g.Attr("x", percent(at)),
				g.Attr("y", number(bottom-tall)), h.Width(percent(broad)), h.Height(number(tall)), g.Attr("rx", "2")))
		}
		if !s.Mark {
			at += broad
		}
	}
	stop := "-1"
	if i == len(c.Points)-1 {
		stop = "0" // the arrow keys lead to the others
	}
	return g.El("g", h.Class("column"), h.TabIndex(stop), h.Role("img"), h.Aria("label", p.Name+": "+c.describe(p)),
		g.El("rect", h.Class("area"), g.Attr("x", percent(float64(i)*wide)), g.Attr("y", "0"), h.Width(percent(wide)),
			h.Height(strconv.Itoa(bottom))),
		shapes)
}

// describe returns the values of p in words.
func (c Chart) describe(p Point) string {
	var all []string
	for k, s := range c.Series {
		value := "not known"
		if !math.IsNaN(p.Values[k]) {
			value = c.format(p.Values[k])
		}
		if len(c.Series) > 1 {
			value = s.Name + " " + value
		}
		all = append(all, value)
	}
	return strings.Join(all, ", ")
}

// table returns the numbers as a table, the latest first.
func (c Chart) table() g.Node {
	columns := []string{""}
	for _, s := range c.Series {
		columns = append(columns, s.Name)
	}
	var rows g.Group
	for i := range c.Points {
		p := c.Points[len(c.Points)-1-i]
		row := g.Group{layout.RowHead(g.Text(p.Name))}
		for _, v := range p.Values {
			if math.IsNaN(v) {
				row = append(row, layout.Cell("–"))
			} else {
				row = append(row, layout.Cell(c.format(v)))
			}
		}
		rows = append(rows, h.Tr(row))
	}
	return h.Details(h.Summary(g.Text("As a table")), layout.LabelledTable(c.Title, columns, "", rows))
}

func (c Chart) format(v float64) string {
	if c.Format == nil {
		return strconv.FormatFloat(math.Round(v), 'f', -1, 64)
	}
	return c.Format(v)
}

// grid returns how far the lines of the grid are from each other, and how many there
// are above the axis, three to five, so that the highest is at most or above most.
func grid(most float64, whole bool) (step float64, lines int) {
	step = math.Pow(10, math.Floor(math.Log10(most/4)))
	for _, times := range []float64{1, 2, 2.5, 5, 10} {
		if most <= 4*step*times {
			step *= times
			break
		}
	}
	if whole {
		step = max(1, math.Ceil(step))
	}
	return step, max(1, int(math.Ceil(most/step-1e-9)))
}

func text(class, x, y, words string) g.Node {
	return g.El("text", h.Class(class), g.Attr("x", x), g.Attr("y", y), g.Text(words))
}

func number(v float64) string { return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) }

func percent(v float64) string { return number(v) + "%" }
