package web

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/llm"
)

// usage is what was spent: in all, by person and by model, with a chart of the
// last days each, and in figures by day.
type usage struct {
	Days   []string `json:"days"` // across the charts, 2006-01-02
	All    table    `json:"all"`  // one row, or none
	Tables []table  `json:"tables"`
}

type table struct {
	Title string `json:"title"`
	Money bool   `json:"money"` // some costs are known
	Rows  []*row `json:"rows"`
}

type row struct {
	Name  string    `json:"name"`
	Turns int       `json:"turns"`
	Usage llm.Usage `json:"usage"`
	Cost  float64   `json:"cost"`
	Part  bool      `json:"part"`           // Cost is not all of it: of some tokens the price was not known
	Bars  []int     `json:"bars,omitempty"` // tokens of each day, in percent of the table's largest, rounded up
}

func (r *row) tokens() int { return r.Usage.In + r.Usage.Out }

func (a *admin) usage(r *http.Request) (any, error) {
	spent, err := a.cfg.Gateway.Usage(r.Context())
	if err != nil {
		return nil, err
	}
	days := lastDays(spent)
	byDay := usageTable("By day", spent, nil, func(p llm.Spent) string { return p.Day })
	slices.SortFunc(byDay.Rows, func(a, b *row) int { return strings.Compare(b.Name, a.Name) })
	byDay.Rows = byDay.Rows[:min(len(byDay.Rows), chartDays)]
	return usage{days, usageTable("In all", spent, days, func(llm.Spent) string { return "all" }), []table{
		usageTable("By person", spent, days, func(p llm.Spent) string { return p.Who }),
		usageTable("By model", spent, days, func(p llm.Spent) string { return p.Model }),
		byDay,
	}}, nil
}

const chartDays = 30

// lastDays are those up to the latest of spent.
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

// usageTable returns a table with a row for each name, the largest first. A row has
// a bar for each of days.
func usageTable(title string, spent []llm.Spent, days []string, name func(llm.Spent) string) table {
	rows := map[string]*row{}
	t := table{Title: title}
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
