package web

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"parley/llm"
)

// A table is what was used by one kind of thing, as bars and in figures.
type table struct {
	Title string
	Rows  []row
	Money bool // some costs are known
}

type row struct {
	Name  string
	Turns int
	Usage llm.Usage
	Cost  float64
	Part  bool // Cost is not all of it: some model has no price
	Share int  // of the largest row's tokens, percent
}

const mostDays = 30 // of a table

// usage sums what was spent: by day, by person and by model.
func (s *Server) usage(ctx context.Context) ([]table, error) {
	spent, err := ask(ctx, s.House.Usage)
	if err != nil {
		return nil, err
	}
	days := s.sum("By day", spent, func(p llm.Spent) string { return p.Day })
	slices.SortFunc(days.Rows, func(a, b row) int { return cmp.Compare(b.Name, a.Name) })
	days.Rows = days.Rows[:min(len(days.Rows), mostDays)]
	return []table{
		days,
		s.sum("By person", spent, func(p llm.Spent) string { return p.Who }),
		s.sum("By model", spent, func(p llm.Spent) string { return p.Model }),
	}, nil
}

// sum makes a table with a row for each name, the largest first.
func (s *Server) sum(title string, spent []llm.Spent, name func(llm.Spent) string) table {
	rows := map[string]row{}
	t := table{Title: title}
	most := 1
	for _, p := range spent {
		r := rows[name(p)]
		r.Name, r.Turns, r.Usage = name(p), r.Turns+p.Turns, r.Usage.Add(p.Usage)
		cost, known := 0.0, false
		if s.House.Price != nil {
			cost, known = s.House.Price(p.Model, p.Usage)
		}
		r.Cost, r.Part, t.Money = r.Cost+cost, r.Part || !known, t.Money || known
		rows[r.Name] = r
		most = max(most, r.tokens())
	}
	for _, r := range rows {
		r.Share = r.tokens() * 100 / most
		rows[r.Name] = r
	}
	t.Rows = slices.SortedFunc(maps.Values(rows), func(a, b row) int {
		return cmp.Or(cmp.Compare(b.tokens(), a.tokens()), cmp.Compare(a.Name, b.Name))
	})
	return t
}

func (r row) tokens() int { return r.Usage.In + r.Usage.Out }
