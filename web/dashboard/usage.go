package dashboard

import (
	"slices"
	"time"

	"parley/llm"
)

// A Day is what was used on one day.
type Day struct {
	Date    time.Time `json:"date"`
	Turns   int       `json:"turns"`
	Usage   llm.Usage `json:"usage"`
	Cost    float64   `json:"cost"`
	Partial bool      `json:"partial,omitempty"` // the price of some of it is not known
}

// days returns the last n days, the latest last: that of now.
func days(spent []llm.Spent, now time.Time, n int) []Day {
	all := make([]Day, n)
	at := map[string]*Day{}
	for i := range all {
		all[i].Date = time.Date(now.Year(), now.Month(), now.Day()-n+1+i, 12, 0, 0, 0, now.Location())
		at[all[i].Date.Format(time.DateOnly)] = &all[i]
	}
	for _, s := range spent {
		if d := at[s.Day]; d != nil {
			d.Turns += s.Turns
			d.Usage = d.Usage.Add(s.Usage)
			d.Cost += s.Cost
			d.Partial = d.Partial || s.Unpriced > 0
		}
	}
	return all
}

// minForecast is how many whole days a forecast needs.
const minForecast = 3

// A Forecast is what the month will take if it goes on as the last days.
type Forecast struct {
	Days   int     `json:"days"` // the whole days that it is made of: at most 30, and fewer than 3 are not enough
	Tokens int     `json:"tokens,omitempty"`
	Cost   float64 `json:"cost,omitempty"`
}

// Known reports whether there were enough days.
func (f Forecast) Known() bool { return f.Days >= minForecast }

// forecast returns what the month of now will take: what it has taken, and for each day
// that is left, and for what is left of today, the mean of the whole days before today.
// These are at most 30, and begin with the first on which something was used.
func forecast(spent []llm.Spent, now time.Time) Forecast {
	all := days(spent, now, 31)
	today := all[len(all)-1]
	before := all[:len(all)-1]
	first := slices.IndexFunc(before, func(d Day) bool { return d.Turns > 0 || tokens(d) > 0 })
	if first < 0 {
		return Forecast{}
	}
	before = before[first:]
	f := Forecast{Days: len(before)}
	if !f.Known() {
		return f
	}
	var meanTokens, meanCost float64
	for _, d := range before {
		meanTokens += float64(tokens(d)) / float64(len(before))
		meanCost += d.Cost / float64(len(before))
	}
	sumTokens, sumCost := max(float64(tokens(today)), meanTokens), max(today.Cost, meanCost)
	for _, d := range before {
		if d.Date.Month() == now.Month() && d.Date.Year() == now.Year() {
			sumTokens += float64(tokens(d))
			sumCost += d.Cost
		}
	}
	left := float64(time.Date(now.Year(), now.Month()+1, 0, 12, 0, 0, 0, now.Location()).Day() - now.Day())
	f.Tokens = int(sumTokens + left*meanTokens)
	f.Cost = sumCost + left*meanCost
	return f
}

func tokens(d Day) int { return d.Usage.In + d.Usage.Out }
