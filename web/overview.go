package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/channels/admission"
	"parley/chat"
	"parley/web/layout"
)

// An Overview is the gateway's state and what needs the owner's attention.
type Overview struct {
	Version      string              `json:"version"`
	Began        time.Time           `json:"began"`
	Model        string              `json:"model"`
	Page         string              `json:"page"`    // where the web page is
	Reasons      []string            `json:"reasons"` // why it is not ready
	Warnings     []string            `json:"warnings"`
	Damaged      []string            `json:"damaged,omitempty"` // what the store cannot read
	Disk         string              `json:"disk,omitempty"`    // what takes how much of it
	Channels     []Channel           `json:"channels"`
	Pairings     []admission.Pairing `json:"pairings"`
	DeadReplies  []DeadLetter        `json:"parked"`
	DeadMessages []DeadLetter        `json:"aside"`
}

func (a *admin) overview(r *http.Request) (Overview, error) {
	ctx := r.Context()
	gateway := a.cfg.Gateway
	o := Overview{
		Version:  a.cfg.Version,
		Began:    a.began,
		Model:    gateway.Model(),
		Page:     a.access.names.home,
		Reasons:  gateway.Reasons(ctx),
		Warnings: gateway.Warnings(),
	}
	if gateway.Damaged != nil {
		o.Damaged = gateway.Damaged()
	}
	if gateway.Disk != nil {
		o.Disk = gateway.Disk(ctx)
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

func (p pages) overview(o Overview) g.Group {
	fact := func(name, value string) g.Node { return h.Div(h.Dt(g.Text(name)), h.Dd(g.Text(value))) }
	return g.Group{
		alert("Not ready", o.Reasons),
		alert("Warnings", o.Warnings),
		h.Dl(
			fact("Version", o.Version),
			fact("Running since", p.formatTime(o.Began)),
			fact("Model", o.Model),
			fact("Waiting for you", fmt.Sprintf("replies: %d, messages: %d", len(o.DeadReplies), len(o.DeadMessages))),
			g.If(o.Disk != "", h.Div(h.Class("whole"), h.Dt(g.Text("Disk")), h.Dd(g.Text(o.Disk)))),
		),
		p.deadReplies(o.DeadReplies),
		p.deadMessages(o.DeadMessages),
		channelTable(o.Channels),
		p.pairingTable(o.Pairings),
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

func channelTable(all []Channel) g.Node {
	rows := g.Map(all, func(c Channel) g.Node {
		state := layout.Coloured("good", "works")
		if c.Trouble != "" {
			state = layout.Coloured("bad", c.Trouble)
		}
		oldest := ""
		if c.Pending > 0 {
			oldest = c.Oldest.Round(time.Second).String()
		}
		return h.Tr(
			layout.RowHead(g.Text(c.Name)),
			h.Td(state),
			layout.Cell(c.Pending),
			layout.Cell(oldest),
			layout.Cell(c.Dropped),
		)
	})
	columns := []string{"Channel", "State", "Pending replies", "Oldest", "Unknown senders turned away"}
	return g.Group{layout.Heading("channels", "Channels"), layout.Table("channels", columns, "There are none.", rows)}
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
