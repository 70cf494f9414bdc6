package admin

import (
	"context"
	"fmt"

	"parley/chat"
)

// PrintUsage prints the tokens that were used and what they cost, by person, by model and by day.
func (c *Client) PrintUsage(ctx context.Context) error {
	type table struct {
		Title string `json:"title"`
		Money bool   `json:"money"`
		Rows  []struct {
			Name  string `json:"name"`
			Turns int    `json:"turns"`
			Usage struct {
				In, Out, Cached int
			} `json:"usage"`
			Cost float64 `json:"cost"`
			Part bool    `json:"part"`
		} `json:"rows"`
	}
	var u struct {
		All    table   `json:"all"`
		Tables []table `json:"tables"`
	}
	if err := c.Ask(ctx, "GET", "/api/usage", nil, &u); err != nil {
		return err
	}
	t := c.newTable()
	for _, part := range append([]table{u.All}, u.Tables...) {
		if len(part.Rows) > 0 {
			t.row(part.Title)
		}
		for _, r := range part.Rows {
			cost := ""
			switch {
			case part.Money && r.Part:
				cost = fmt.Sprintf("cost at least %.4f", r.Cost)
			case part.Money:
				cost = fmt.Sprintf("cost %.4f", r.Cost)
			}
			tokens := fmt.Sprintf("%d in (%d from cache), %d out", r.Usage.In, r.Usage.Cached, r.Usage.Out)
			t.row("  "+chat.OneLine(r.Name), count(r.Turns, "turn"), tokens, cost)
		}
	}
	if len(u.All.Rows) == 0 {
		t.row("No tokens were used yet.")
	}
	return t.flush()
}
