package web

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/llm"
	"parley/web/layout"
)

// usage is what was spent: in total, by person and by model, each with a chart of
// the last days, and by day.
type usage struct {
	Days   []string       `json:"days"` // of the charts, as 2006-01-02
	All    usageSummary   `json:"all"`  // one row, or none
	Tables []usageSummary `json:"tables"`
}

type usageSummary struct {
	Title string `json:"title"`
	Money bool   `json:"money"` // some costs are known
	Rows  []*row `json:"rows"`
}

type row struct {
	Name  string    `json:"name"`
	Turns int       `json:"turns"`
	Usage llm.Usage `json:"usage"`
	Cost  float64   `json:"cost"`
	Part  bool      `json:"part"`           // Cost is incomplete: the price of some tokens was unknown
	Bars  []int     `json:"bars,omitempty"` // tokens of each day, in percent of the table's largest, rounded up
}

func (r *row) tokens() int { return r.Usage.In + r.Usage.Out }

func (a *admin) usage(r *http.Request) (usage, error) {
	spent, err := a.cfg.Gateway.Usage(r.Context())
	if err != nil {
		return usage{}, err
	}
	days := lastDays(spent)
	byDay := summarizeUsage("By day", spent, nil, func(p llm.Spent) string { return p.Day })
	slices.SortFunc(byDay.Rows, func(a, b *row) int { return strings.Compare(b.Name, a.Name) })
	byDay.Rows = byDay.Rows[:min(len(byDay.Rows), chartDays)]
	return usage{days, summarizeUsage("Total", spent, days, func(llm.Spent) string { return "all" }), []usageSummary{
		summarizeUsage("By person", spent, days, func(p llm.Spent) string { return p.Who }),
		summarizeUsage("By model", spent, days, func(p llm.Spent) string { return p.Model }),
		byDay,
	}}, nil
}

const chartDays = 30

// lastDays returns the days of the charts, which end with the latest day of spent.
func lastDays(spent []llm.Spent) (days []string) {
	last := ""
	for _, p := range spent {
		last = max(last, p.Day)
	}
	end, err := time.Parse(time.DateOnly, last)
	for i := 1 - chartDays; err == nil && i <= 0; i++ {
		days = append(days, end.AddDate(0, 0, i).Format(time.DateOnly))
	}
	return days
}

// summarizeUsage returns a table with a row for each name, the largest first. A row has
// a bar for each of days.
func summarizeUsage(title string, spent []llm.Spent, days []string, name func(llm.Spent) string) usageSummary {
	rows := map[string]*row{}
	t := usageSummary{Title: title}
	most := 1
	for _, p := range spent {
		r := rows[name(p)]
		if r == nil {
			r = &row{Name: name(p), Bars: make([]int, len(days))}
			rows[r.Name], t.Rows = r, append(t.Rows, r)
		}
		r.Turns += p.Turns
		r.Usage = r.Usage.Add(p.Usage)
		r.Cost += p.Cost
		r.Part = r.Part || p.Unpriced > 0
		t.Money = t.Money || p.Unpriced < p.Usage.In+p.Usage.Out
		if day := slices.Index(days, p.Day); day >= 0 {
			r.Bars[day] += p.Usage.In + p.Usage.Out
			most = max(most, r.Bars[day])
		}
	}
	for _, r := range t.Rows {
		for day, tokens := range r.Bars {
			r.Bars[day] = (tokens*100 + most - 1) / most
		}
	}
	slices.SortFunc(t.Rows, func(a, b *row) int {
		return cmp.Or(cmp.Compare(b.tokens(), a.tokens()), strings.Compare(a.Name, b.Name))
	})
	return t
}

func (p pages) usage(u usage) g.Group {
	var page g.Group
	if len(u.Days) > 0 {
		caption := fmt.Sprintf("Tokens of each day, from %s to %s. The figures are below.",
			u.Days[0], u.Days[len(u.Days)-1])
		page = append(page, h.Figure(barChart(u.All.Rows[0].Bars), h.FigCaption(g.Text(caption))))
	}
	for i, t := range u.Tables {
		id := "t" + strconv.Itoa(i)
		columns := []string{"Name", "", "Turns", "Tokens read", "Tokens written"}
		if t.Money {
			columns = append(columns, "Cost")
		}
		rows := g.Map(t.Rows, func(r *row) g.Node { return usageRow(r, t.Money) })
		page = append(page, layout.Heading(id, t.Title), layout.Table(id, columns, "Nothing yet.", rows))
	}
	return page
}

func usageRow(r *row, money bool) g.Node {
	cost := layout.Money(r.Cost)
	if r.Part {
		cost = "at least " + cost
	}
	return h.Tr(
		layout.RowHead(g.Text(r.Name)),
		h.Td(h.Class("bar"), barChart(r.Bars)),
		layout.Cell(layout.Grouped(r.Turns)),
		layout.Cell(layout.Grouped(r.Usage.In)),
		layout.Cell(layout.Grouped(r.Usage.Out)),
		g.If(money, layout.Cell(cost)),
	)
}

// barChart returns a picture of bars, whose heights are in percent. Without bars
// it is nil.
func barChart(heights []int) g.Node {
	if len(heights) == 0 {
		return nil
	}
	var bars g.Group
	for i, height := range heights {
		bars = append(bars, g.El("rect",
			g.Attr("x", strconv.Itoa(i)), h.Width(".8"), h.Height(strconv.Itoa(height))))
	}
	return h.SVG(
		h.Class("bars"),
		g.Attr("viewBox", fmt.Sprintf("0 -100 %d 100", len(heights))),
		g.Attr("preserveAspectRatio", "none"),
		h.Aria("hidden", "true"),
		g.El("g", g.Attr("transform", "scale(1 -1)"), bars),
	)
}
