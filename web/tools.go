package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/chat"
	"parley/response"
	"parley/tools"
	"parley/web/layout"
)

// A Toolbox lists the agent's tools and their calls.
type Toolbox struct {
	Tools func(context.Context) ([]tools.Tool, error) // all that an owner may use, hidden ones included
	Stats *tools.Stats

	// Calls returns the calls of a session, oldest first, or store.ErrNotFound.
	Calls func(context.Context, chat.SessionID) ([]tools.Record, error)
}

// toolList is the tools as models see them.
type toolList struct {
	Tools []offer      `json:"tools"`
	Total int          `json:"total"`
	Stats []tools.Stat `json:"-"`
}

// An offer is a tool in the form of a model's API.
type offer struct {
	Type     string `json:"type"` // "function"
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
	Category string `json:"category,omitempty"` // this and the next only if all are asked for
	AliasOf  string `json:"alias_of,omitempty"`
}

// listTools lists the tools that models see, or with ?all=1 all.
func (a *admin) listTools(r *http.Request) (toolList, error) {
	all := r.FormValue("all") != ""
	there, err := a.cfg.Gateway.Toolbox.Tools(r.Context())
	d := toolList{Tools: []offer{}, Stats: a.cfg.Gateway.Toolbox.Stats.All()}
	for _, t := range there {
		if !all && (t.Hidden || t.AliasOf != "") {
			continue
		}
		o := offer{Type: "function"}
		o.Function.Name = t.Name
		o.Function.Description = t.Description
		o.Function.Parameters = t.Schema
		if all {
			o.Category, o.AliasOf = t.Kind(), t.AliasOf
		}
		d.Tools = append(d.Tools, o)
	}
	d.Total = len(d.Tools)
	return d, err
}

func (p pages) tools(d toolList) g.Group {
	offered := g.Map(d.Tools, func(o offer) g.Node {
		return h.Tr(layout.RowHead(g.Text(o.Function.Name)), layout.TextCell(o.Function.Description))
	})
	used := g.Map(d.Stats, func(s tools.Stat) g.Node {
		return h.Tr(
			layout.RowHead(g.Text(s.Tool)),
			layout.Cell(s.Runs),
			layout.Cell(s.Failures),
			layout.Cell(fmt.Sprintf("%.0f", s.AverageDuration)),
			layout.Cell(s.CacheHits),
			layout.Cell(s.Duplicates),
			layout.Cell(s.Rollbacks),
		)
	})
	usedColumns := []string{"Tool", "Runs", "Failed", "Average, ms", "From cache", "Repeated", "Rolled back"}
	return g.Group{
		layout.Heading("offered", "Available tools"),
		layout.Table("offered", []string{"Tool", "Description for the model"}, "There are none.", offered),
		layout.Heading("used", "Statistics"),
		layout.Table("used", usedColumns, "Nothing yet.", used),
	}
}

// calls lists the calls of a session with their results.
func (a *admin) calls(r *http.Request) (any, error) {
	all, err := a.cfg.Gateway.Toolbox.Calls(r.Context(), chat.SessionID(r.PathValue("id")))
	return map[string]any{"calls": append([]tools.Record{}, all...), "total": len(all)}, err
}

// toolStats returns the statistics of all tools (C-043, C-045), or of the one that
// is named.
func (a *admin) toolStats(r *http.Request) (any, error) {
	if name := r.FormValue("tool"); name != "" {
		one, err := a.cfg.Gateway.Toolbox.Stats.Of(name)
		if err != nil {
			err = response.Problem{Status: http.StatusNotFound, Text: err.Error()} // C-044
		}
		return one, err
	}
	all := a.cfg.Gateway.Toolbox.Stats.All()
	return map[string]any{"tools": append([]tools.Stat{}, all...), "total": len(all)}, nil
}

// resetStats resets the statistics of all tools, or of the one that is named (C-044).
func (a *admin) resetStats(_ http.ResponseWriter, r *http.Request) (any, string, error) {
	a.cfg.Gateway.Toolbox.Stats.Reset(r.URL.Query()["tool"]...)
	return nil, "tool statistics reset", nil
}
