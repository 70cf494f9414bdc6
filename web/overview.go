package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/channels/admission"
	"parley/chat"
	"parley/response"
	"parley/store"
	"parley/web/dashboard"
	"parley/web/layout"
	"parley/web/live"
)

// An Overview is the gateway's state and what needs the owner's attention.
type Overview struct {
	Version      string              `json:"version"`
	Began        time.Time           `json:"began"`
	Model        string              `json:"model"`
	Page         string              `json:"page"`    // where the web page is
	Reasons      []string            `json:"reasons"` // why it is not ready
	Warnings     []string            `json:"warnings"`
	Damaged      []string            `json:"damaged,omitempty"`  // what the store cannot read
	Disk         string              `json:"disk,omitempty"`     // what takes how much of it
	Gateways     []Instance          `json:"gateways,omitempty"` // that share the store; none if it is of one machine
	Channels     []Channel           `json:"channels"`
	Pairings     []admission.Pairing `json:"pairings"`
	DeadReplies  []DeadLetter        `json:"parked"`
	DeadMessages []DeadLetter        `json:"aside"`
}

// An Instance is one of the gateways that share the store. If the one that answers ends, another one takes over.
type Instance struct {
	Name    string    `json:"name"`  // which process it is, and where
	State   string    `json:"state"` // Answers or StandsBy
	Version string    `json:"version"`
	Since   time.Time `json:"since"`          // when it began to do that
	Page    string    `json:"page,omitempty"` // the address at which it lets people in; "" if at none
}

// What an Instance does.
const (
	Answers  = "answers"
	StandsBy = "stands by" // and passes people on to the one that answers
)

func (a *admin) overview(r *http.Request) (Overview, error) { return a.status(r.Context()) }

func (a *admin) status(ctx context.Context) (Overview, error) {
	gateway := a.cfg.Gateway
	o := Overview{
		Version:  a.cfg.Version,
		Began:    a.began,
		Model:    gateway.Model(),
		Page:     a.access.names.at(ctx).home,
		Reasons:  gateway.Reasons(ctx),
		Warnings: gateway.Warnings(),
	}
	if gateway.Damaged != nil {
		o.Damaged = gateway.Damaged()
	}
	if gateway.Disk != nil {
		o.Disk = gateway.Disk(ctx)
	}
	if gateway.Instances != nil {
		o.Gateways = gateway.Instances()
	}
	var errs [4]error
	o.Channels, errs[0] = gateway.Channels(ctx)
	o.Pairings, errs[1] = gateway.Pairings(ctx)
	o.DeadReplies, errs[2] = gateway.DeadLetters.show(ctx, gateway.DeadLetters.Replies)
	slices.Reverse(o.DeadReplies) // the latest first
	o.DeadMessages, errs[3] = gateway.DeadLetters.show(ctx, gateway.DeadLetters.Messages)
	return o, errors.Join(errs[:]...)
}

// show lists the letters in from as the owner sees them.
func (d DeadLetters) show(ctx context.Context, from chat.DeadLetters) (shown []DeadLetter, err error) {
	letters, err := from.List(ctx)
	for _, letter := range letters {
		shown = append(shown, DeadLetter{
			Key:     letter.Key,
			Session: letter.Session(),
			Text:    letter.Text(),
			Why:     d.Redact(letter.Reason),
			Time:    letter.Time,
		})
	}
	return shown, err
}

// dashboard returns the routes of the dashboard, which package dashboard makes together
// with what needs the owner's attention.
func (a *admin) dashboard() []route {
	d := a.cfg.Gateway.Dashboard
	return []route{
		{"GET /owner", owner, a.dashboardPage},
		{"GET /api/status", owner, serveJSON(a.overview)},
		{"GET /api/dashboard", owner, serveJSON(func(r *http.Request) (dashboard.Today, error) {
			return d.Load(r.Context())
		})},
		{"GET " + dashboardEvents, owner, func(w http.ResponseWriter, r *http.Request, _ visitor) error {
			return d.Follow(w, r, a.parts)
		}},
		{"POST /api/work/{id}/stop", owner, a.stop},
	}
}

const dashboardEvents = "/owner/events" // pieces of the page

func (a *admin) dashboardPage(w http.ResponseWriter, r *http.Request, _ visitor) error {
	parts, err := a.parts(r.Context())
	if err != nil {
		return err
	}
	return layout.Frame{
		Path:  "/owner",
		Title: "Dashboard",
		Lead: fmt.Sprintf("Parley %s, running since %s, answers with %s.", a.cfg.Version,
			a.pages.formatTime(a.began), a.cfg.Gateway.Model()),
		Actions: g.Group{h.Span(h.ID("live"), h.Role("status"), h.Class("state busy"), g.Text("Connecting"))},
		Assets:  dashboard.Assets(),
		Content: g.Group{dashboard.Content(dashboardEvents, parts)},
	}.Write(w)
}

// parts returns all parts of the dashboard.
func (a *admin) parts(ctx context.Context) ([]live.Part, error) {
	o, err := a.status(ctx)
	if err != nil {
		return nil, err
	}
	parts, err := a.cfg.Gateway.Dashboard.Parts(ctx)
	return append(parts, a.pages.attention(o)...), err
}

// stop stops what the path names, and says what it was.
func (a *admin) stop(w http.ResponseWriter, r *http.Request, v visitor) error {
	stopped, err := a.cfg.Gateway.Dashboard.Stop(r.Context(), r.PathValue("id"), v.Name)
	if errors.Is(err, store.ErrNotFound) {
		return response.Problem{Status: http.StatusNotFound, Text: "it is over already"}
	}
	if err != nil {
		return err
	}
	what := dashboard.Describe(stopped)
	a.cfg.Audit("session", v.ID, "stopped: "+what)
	response.JSON(w, http.StatusOK, map[string]any{"stopped": stopped, "said": "Stopped " + what + "."})
	return nil
}

// attention returns the parts of the dashboard that say how the channels do, and what
// waits for the owner.
func (p pages) attention(o Overview) []live.Part {
	return []live.Part{
		{ID: "alerts", Node: g.Group{
			alert("Not ready", o.Reasons), alert("Warnings", o.Warnings), p.pairingTable(o.Pairings),
		}},
		{ID: "channels", Node: channelList(o.Channels)},
		{ID: "instances", Node: p.instanceTable(o.Gateways)},
		{ID: "letters", Node: g.Group{p.deadReplies(o.DeadReplies), p.deadMessages(o.DeadMessages)}},
	}
}

// alert returns a box with texts, if there are any.
func alert(title string, texts []string) g.Node {
	if len(texts) == 0 {
		return nil
	}
	items := g.Map(texts, func(text string) g.Node { return h.Li(g.Text(text)) })
	return h.Section(h.Class("alert"), h.H2(g.Text(title)), h.Ul(items))
}

func (p pages) deadReplies(letters []DeadLetter) g.Node {
	if len(letters) == 0 {
		return nil
	}
	rows := g.Map(letters, func(l DeadLetter) g.Node {
		return p.deadLetterRow(l,
			layout.PostButton(layout.Path("api", "parked", l.Key, "resend"), "Send again", ""),
			g.Text(" "),
			layout.PostButton(layout.Path("api", "parked", l.Key, "drop"), "Drop", "Drop this reply?"),
		)
	})
	return g.Group{
		layout.Heading("parked", "Replies that could not be sent"),
		layout.Table("parked", []string{"To", "Reply", "Why", "Time", "Action"}, "", rows),
	}
}

func (p pages) deadMessages(letters []DeadLetter) g.Node {
	if len(letters) == 0 {
		return nil
	}
	rows := g.Map(letters, func(l DeadLetter) g.Node {
		return p.deadLetterRow(l,
			layout.PostButton(layout.Path("api", "aside", l.Key, "again"), "Answer", ""),
			g.Text(" "),
			layout.PostButton(layout.Path("api", "aside", l.Key, "drop"), "Drop", "Drop this message?"),
		)
	})
	return g.Group{
		layout.Heading("aside", "Messages that could not be answered"),
		h.P(g.Text("Answering them crashed Parley, so they are not retried.")),
		layout.Table("aside", []string{"From", "Message", "Why", "Time", "Action"}, "", rows),
	}
}

func (p pages) deadLetterRow(l DeadLetter, actions ...g.Node) g.Node {
	return h.Tr(
		layout.RowHead(g.Text(string(l.Session))),
		layout.TextCell(layout.Excerpt(l.Text)),
		layout.Cell(l.Why),
		layout.Cell(p.formatTime(l.Time)),
		h.Td(actions...),
	)
}

func channelList(all []Channel) g.Node {
	if len(all) == 0 {
		return layout.Empty("There are no channels yet", "Name one in channels of the config: telegram, discord, web.")
	}
	return h.Ul(h.Class("states"), g.Map(all, func(c Channel) g.Node {
		state := layout.Status(layout.Good, "works")
		if c.Trouble != "" {
			state = layout.Status(layout.Bad, "does not receive")
		}
		var notes []string
		if c.Trouble != "" {
			notes = append(notes, c.Trouble)
		}
		if c.Pending > 0 {
			oldest := c.Oldest.Round(time.Second)
			notes = append(notes, fmt.Sprintf("replies to send: %d, the oldest for %s", c.Pending, oldest))
		}
		if c.Dropped > 0 {
			notes = append(notes, fmt.Sprintf("unknown senders turned away: %d", c.Dropped))
		}
		return h.Li(
			h.Div(h.B(g.Text(c.Name)), g.If(len(notes) > 0, h.Small(g.Text(strings.Join(notes, "; "))))),
			state,
		)
	}))
}

// instanceTable lists the gateways that share the store, if it can be shared.
func (p pages) instanceTable(all []Instance) g.Node {
	if len(all) == 0 {
		return g.Text("")
	}
	rows := g.Map(all, func(one Instance) g.Node {
		return h.Tr(
			layout.RowHead(g.Text(one.Name)),
			layout.Cell(one.State),
			layout.Cell(one.Version),
			layout.Cell(p.formatTime(one.Since)),
			layout.Cell(one.Page),
		)
	})
	columns := []string{"Gateway", "State", "Version", "Since", "Page"}
	return g.Group{layout.Heading("gateways", "Gateways"), layout.Table("gateways", columns, "", rows)}
}

func (p pages) pairingTable(all []admission.Pairing) g.Node {
	if len(all) == 0 {
		return nil
	}
	rows := g.Map(all, func(asks admission.Pairing) g.Node {
		approve := layout.Path("api", "pairings", asks.Code, "approve")
		return h.Tr(
			layout.RowHead(g.Text(asks.Name)),
			layout.Cell(asks.At.Channel),
			layout.Cell(asks.Sender),
			layout.Cell(p.formatTime(asks.Time)),
			h.Td(layout.PostButton(approve, "Approve", "Allow "+asks.Name+" to talk to your agent?")),
		)
	})
	columns := []string{"Name (unverified)", "Channel", "ID", "Since", "Action"}
	return g.Group{layout.Heading("pairings", "Pairing requests"), layout.Table("pairings", columns, "", rows)}
}
