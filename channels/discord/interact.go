package discord

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"parley/channels"
	"parley/channels/network"
	"parley/chat"
	"parley/panics"
)

// interactTime is how long Discord waits to hear that we heard; after it the
// person reads that we did not respond.
const interactTime = 2500 * time.Millisecond

// The kinds of interactions, and of our answers to them.
const (
	useOfCommand = 2
	pressOfKey   = 3

	sayBack  = 4
	noChange = 6

	onlyToThem = 1 << 6 // a flag
)

// An interaction is the use of a command, or the press of a button.
type interaction struct {
	ID      string  `json:"id"`
	Token   string  `json:"token"` // by which it is answered
	Type    int     `json:"type"`
	Channel string  `json:"channel_id"`
	Guild   string  `json:"guild_id"`
	User    user    `json:"user"`
	Member  member  `json:"member"`
	On      message `json:"message"` // the one with the button
	Data    struct {
		Name    string `json:"name"`
		Options []struct {
			Value any `json:"value"`
		} `json:"options"`
		Button string `json:"custom_id"`
	} `json:"data"`
}

// interact delivers i once, and tells the person what became of it. It reports
// whether that was done, rather than cut short by the end of Run.
func (in *intake) interact(i interaction, since time.Time, e *event) (done bool) {
	ctx, cancel := context.WithDeadline(in.ctx, since.Add(interactTime))
	defer cancel()
	m, ok := in.c.interacted(ctx, i)
	if !ok && i.Type != pressOfKey || !snowflake.MatchString(i.ID) {
		return true
	}
	var err error
	if ok {
		taking, taken := context.WithDeadline(ctx, since.Add(interactTime*4/5)) // so that there is time to say that it failed
		err = panics.Try(func() error { return in.deliver(taking, m) })
		taken()
	}
	if err == nil && i.Type == useOfCommand { // a press that is heard twice does nothing
		if err := in.tracker.markHandled(context.WithoutCancel(ctx), e); err != nil {
			in.c.log.Warn("a restart may repeat a command", "command", m.Text, "err", err)
		}
	}
	done = err == nil || in.ctx.Err() == nil
	answer := map[string]any{"type": noChange}
	switch {
	case err != nil:
		in.c.log.Error("interaction not kept", "chat", i.Channel, "err", in.c.plainly(err))
		answer = quietly(in.c.cfg.Texts.NotKept)
	case i.Type == useOfCommand:
		answer = quietly("`" + strings.ReplaceAll(m.Text, "`", "'") + "` ✓")
	}
	err = in.c.call(ctx, "POST", fmt.Sprintf("/interactions/%s/%s/callback", i.ID, i.Token), answer, nil)
	if err != nil && !said(err, 404, 40060) { // too late, or answered already
		in.c.log.Warn("interaction not acknowledged", "chat", i.Channel, "err", in.c.plainly(err))
	}
	return done
}

// quietly says text to whoever interacts, and to nobody else.
func quietly(text string) map[string]any {
	return map[string]any{"type": sayBack, "data": map[string]any{"content": channels.Clip(text, 200), "flags": onlyToThem | noPreview, "allowed_mentions": nobody()}}
}

// interacted turns i into a message. It is not ok if i is none of ours.
func (c *Channel) interacted(ctx context.Context, i interaction) (m chat.Message, ok bool) {
	who := i.User
	if i.Member.User != nil {
		who = *i.Member.User
	}
	if !snowflake.MatchString(who.ID) || who.Bot || !snowflake.MatchString(i.ID) || !snowflake.MatchString(i.Channel) {
		return m, false
	}
	m = chat.Message{
		ID: i.ID, Account: c.me.ID, From: chat.Sender{ID: who.ID, Name: i.Member.name(who)},
		Group: i.Guild != "", Time: madeAt(i.ID),
	}
	switch i.Type {
	case useOfCommand:
		m.Text = "/" + i.Data.Name
		for _, o := range i.Data.Options {
			m.Text += fmt.Sprint(" ", o.Value)
		}
	case pressOfKey:
		m.Answer = network.Pressed(i.Data.Button, receipt(i.Channel, i.On.ID))
		if m.Answer == nil || !snowflake.MatchString(i.On.ID) {
			return m, false
		}
	default:
		return m, false
	}
	var err error
	m.At, err = c.at(ctx, i.Channel, i.Guild, who.ID)
	return m, err == nil
}

// keys are the rows of buttons below a question.
func keys(q *chat.Question) []any {
	rows := []any{}
	if q == nil {
		return rows
	}
	var row []any
	for i, choice := range q.Choices[:min(len(q.Choices), maxChoices)] {
		label := cmp.Or(channels.Line(choice, maxLabel), strconv.Itoa(i+1))
		row = append(row, map[string]any{"type": 2, "style": 2, "label": label, "custom_id": network.Button(q, i)})
		if len(row) == 5 || i == len(q.Choices)-1 {
			rows, row = append(rows, map[string]any{"type": 1, "components": row}), nil
		}
	}
	return rows
}

// What a message can hold of buttons.
const (
	maxChoices = 25
	maxLabel   = 80
)

// MaxChoices implements channels.Asker: five rows of five.
func (c *Channel) MaxChoices() int { return maxChoices }

// SetCommands sets the menu of commands.
func (c *Channel) SetCommands(ctx context.Context, cs []channels.Command) error {
	const text = 3
	menu := []any{}
	for _, cmd := range cs {
		menu = append(menu, map[string]any{"name": cmd.Name, "description": channels.Clip(cmd.Help, 100),
			"options": []any{map[string]any{"type": text, "name": "text", "description": c.cfg.Texts.MoreText}}})
	}
	var app struct {
		ID string `json:"id"`
	}
	err := c.call(ctx, "GET", "/applications/@me", nil, &app)
	if err == nil {
		err = c.call(ctx, "PUT", "/applications/"+app.ID+"/commands", menu, nil)
	}
	return c.refused("set commands", err)
}
