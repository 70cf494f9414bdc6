// Package dashboard shows the owner how the gateway does, and keeps that up to date while
// somebody looks: figures of today, charts, what is under way with a button to stop it,
// the models, and the disk.
package dashboard

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/chat"
	"parley/llm"
	"parley/web/chart"
	"parley/web/layout"
	"parley/web/live"
	"parley/web/traffic"
)

//go:embed assets
var assets embed.FS

// Config is what a Dashboard shows.
type Config struct {
	Zone    *time.Location
	Traffic *traffic.Counter
	Streams *live.Streams

	Usage func(context.Context) ([]llm.Spent, error)
	// Problems counts the errors and warnings of the log since start. More says that there were
	// more than it knows of.
	Problems func(start time.Time) (errors, warnings int, more bool)
	Disk     func(context.Context) (Disk, error)
	Waiting  func(context.Context) (int, error) // messages that wait for their answer, or are being answered
	Models   func() []string                    // the names of those in the config, the usual one first

	// Work lists what is under way, and Stop stops it, as who asks. Its error is
	// store.ErrNotFound if it is over.
	Work func(context.Context) ([]chat.Work, error)
	Stop func(ctx context.Context, id, who string) (chat.Work, error)
}

// A Disk says what takes how much of it.
type Disk struct {
	Measured time.Time        `json:"measured,omitzero"` // zero: not yet
	Bytes    map[string]int64 `json:"bytes"`             // by part
	Grown    int64            `json:"grown,omitempty"`   // in the last week
	Free     uint64           `json:"free,omitempty"`    // on that disk; 0: unknown
}

// Total returns the sum of all parts.
func (d Disk) Total() (sum int64) {
	for _, n := range d.Bytes {
		sum += n
	}
	return sum
}

// A Dashboard is the page's content and the same as JSON.
type Dashboard struct {
	Config

	mu      sync.Mutex
	slow    slowData // what is read from the disk
	slowErr error
	read    time.Time // when it was
}

// slowData is what takes long enough to be read every ten seconds only.
type slowData struct {
	spent []llm.Spent
	disk  Disk
}

const (
	tick      = 2 * time.Second  // between two looks, while somebody reads
	slowEvery = 10 * time.Second // between two looks at what is on disk
)

// New returns a Dashboard.
func New(c Config) *Dashboard {
	if c.Zone == nil {
		c.Zone = time.Local
	}
	return &Dashboard{Config: c}
}

// Routes serve the scripts and style sheets.
func (d *Dashboard) Routes() []layout.Route {
	return slices.Concat(layout.Assets(assets), chart.Routes(), live.Routes())
}

// Assets are the names of the scripts and style sheets that the page loads.
func Assets() []string { return append(chart.Assets(), "dashboard.css", live.Asset) }

// Today is what was done today, in numbers.
type Today struct {
	Since    time.Time       `json:"since"`   // when counting began: at midnight, or later if Parley is new
	Traffic  traffic.Count   `json:"traffic"` // since then
	Turns    int             `json:"turns"`   // these three of the whole day
	Usage    llm.Usage       `json:"usage"`
	Cost     float64         `json:"cost"`
	Priced   bool            `json:"priced"` // the prices of some models are known
	Partial  bool            `json:"partial"`
	Forecast Forecast        `json:"forecast"`
	Errors   int             `json:"errors"`
	Warnings int             `json:"warnings"`
	More     bool            `json:"more,omitempty"` // there were more of these
	Waiting  int             `json:"waiting"`
	Work     []chat.Work     `json:"work"`
	Models   []ModelState    `json:"models"`
	Disk     Disk            `json:"disk"`
	Hours    []traffic.Count `json:"hours"` // the last 24
	Days     []Day           `json:"days"`  // the last 30

	TrafficDays []traffic.Count `json:"trafficDays"` // the last 30
}

// A ModelState is a model of the config, and what became of the requests to it.
type ModelState struct {
	traffic.Model
	Usual bool `json:"usual,omitempty"` // it answers unless somebody chose another
}

// Load returns everything as it is now.
func (d *Dashboard) Load(ctx context.Context) (t Today, err error) {
	slow, err := d.loadSlow(ctx)
	if err != nil {
		return t, err
	}
	now := time.Now().In(d.Zone)
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, d.Zone)
	t.Since = midnight
	if began := d.Traffic.Began(); began.After(midnight) {
		t.Since = began
	}
	t.Traffic = d.Traffic.Since(midnight)
	t.Days = days(slow.spent, now, 30)
	today := t.Days[len(t.Days)-1]
	t.Turns = today.Turns
	t.Usage = today.Usage
	t.Cost = today.Cost
	t.Partial = today.Partial
	t.Priced = slices.ContainsFunc(t.Days, func(d Day) bool { return d.Cost > 0 })
	t.Forecast = forecast(slow.spent, now)
	t.Errors, t.Warnings, t.More = d.Problems(midnight)
	t.Models = d.models()
	t.Disk = slow.disk
	t.Hours = d.Traffic.Hours(24)
	t.TrafficDays = d.Traffic.Days(now, 30)
	var failed error
	t.Work, err = d.Work(ctx)
	t.Waiting, failed = d.Waiting(ctx)
	return t, errors.Join(err, failed)
}

// loadSlow returns what is on disk, as it was at most ten seconds ago.
func (d *Dashboard) loadSlow(ctx context.Context) (slowData, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.read.IsZero() && time.Since(d.read) < slowEvery && d.slowErr == nil {
		return d.slow, nil
	}
	var next slowData
	var failed error
	next.spent, d.slowErr = d.Usage(ctx)
	next.disk, failed = d.Disk(ctx)
	d.slowErr = errors.Join(d.slowErr, failed)
	d.slow, d.read = next, time.Now()
	return d.slow, d.slowErr
}

// models returns the models of the config, and those that were asked besides.
func (d *Dashboard) models() (all []ModelState) {
	asked := d.Traffic.Models()
	for i, name := range d.Models() {
		state := ModelState{Model: traffic.Model{Name: name}, Usual: i == 0}
		for _, m := range asked {
			if m.Name == name {
				state.Model = m
			}
		}
		all = append(all, state)
	}
	for _, m := range asked {
		if !slices.ContainsFunc(all, func(s ModelState) bool { return s.Name == m.Name }) {
			all = append(all, ModelState{Model: m})
		}
	}
	return all
}

// Parts returns the parts of the page that change, as they are now.
func (d *Dashboard) Parts(ctx context.Context) ([]live.Part, error) {
	t, err := d.Load(ctx)
	if err != nil {
		return nil, err
	}
	return []live.Part{
		{ID: "figures", Node: d.figures(t)},
		{ID: "work", Node: d.work(t.Work)},
		{ID: "hours", Node: d.hours(t)},
		{ID: "models", Node: d.modelList(t.Models)},
		{ID: "disk", Node: d.disk(t.Disk)},
		{ID: "days", Node: d.days(t)},
	}, nil
}

// Content returns the page's content: the parts, with alerts and channels among them,
// which package web knows.
func Content(events string, parts []live.Part) g.Node {
	byID := func(id string) g.Node {
		for _, p := range parts {
			if p.ID == id {
				return p.Node
			}
		}
		return g.Text("")
	}
	part := func(id string) g.Node { return h.Div(h.ID(id), byID(id)) }
	card := func(title, id string) g.Node { return layout.Card(title, part(id)) }
	return h.Div(h.Class("dashboard"), h.Data("live", events),
		part("alerts"),
		part("figures"),
		card("Running now", "work"),
		h.Div(h.Class("grid"), h.ID("hours"), byID("hours")),
		h.Div(h.Class("grid"), h.ID("days"), byID("days")),
		h.Div(h.Class("grid three"),
			card("Channels", "channels"),
			card("Models", "models"),
			card("Disk", "disk"),
		),
		part("instances"),
		part("letters"),
	)
}

// Follow serves the parts that others returns, with those of d, whenever they change.
func (d *Dashboard) Follow(
	w http.ResponseWriter, r *http.Request, all func(context.Context) ([]live.Part, error),
) error {
	return d.Streams.Serve(w, r, live.Follow(tick, all))
}

// Describe returns what w is, in words: "the turn in telegram:42".
func Describe(w chat.Work) string {
	switch {
	case w.Kind == chat.WorkTurn:
		return "the turn in " + string(w.Session)
	case w.What == "":
		return "the " + string(w.Kind)
	}
	return "the " + string(w.Kind) + " " + cmp.Or(chat.Inline(w.What, 80), w.ID)
}
