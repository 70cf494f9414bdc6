package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"parley/channels"
	"parley/chat"
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
	ID      string `json:"id"`
	Token   string `json:"token"` // by which it is answered
	Type    int    `json:"type"`
	Channel string `json:"channel_id"`
	Guild   string `json:"guild_id"`
	Where   struct {
		Type   int    `json:"type"`
		Parent string `json:"parent_id"`
	} `json:"channel"`
	User   user    `json:"user"`
	Member member  `json:"member"`
	On     message `json:"message"` // the one with the button
	Data   struct {
		Name    string `json:"name"`
		Options []struct {
			Value any `json:"value"`
		} `json:"options"`
		Button string `json:"custom_id"`
	} `json:"data"`
}

// interact delivers i once, and tells the person what became of it.
func (in *intake) interact(i interaction, since time.Time) {
	ctx, cancel := context.WithDeadline(in.ctx, since.Add(interactTime))
	defer cancel()
	m, ok := in.c.interacted(ctx, i)
	if !ok && i.Type != pressOfKey || !snowflake.MatchString(i.ID) {
		return
	}
	var err error
	if ok {
		taking, taken := context.WithDeadline(ctx, since.Add(interactTime*4/5)) // so that there is time to say that it failed
		if crash := guard(func() { err = in.deliver(taking, m) }); crash != nil {
			err = crash
		}
		taken()
	}
	answer := map[string]any{"type": noChange}
	switch {
	case err != nil:
		in.c.log.Error("interaction not kept", "chat", i.Channel, "err", in.c.plainly(err))
		answer = quietly("I could not take that in. Please try again in a moment.")
	case i.Type == useOfCommand:
		answer = quietly("`" + strings.ReplaceAll(m.Text, "`", "'") + "` ✓")
	}
	err = in.c.call(ctx, "POST", fmt.Sprintf("/interactions/%s/%s/callback", i.ID, i.Token), answer, nil)
	if err != nil && !said(err, 404, 40060) { // too late, or answered already
		in.c.log.Warn("interaction not acknowledged", "chat", i.Channel, "err", in.c.plainly(err))
	}
}

// quietly says text to whoever interacts, and to nobody else.
func quietly(text string) map[string]any {
	if len(text) > 200 {
		text = strings.ToValidUTF8(text[:200], "") + "…"
	}
	return map[string]any{"type": sayBack, "data": map[string]any{"content": text, "flags": onlyToThem, "allowed_mentions": nobody()}}
}

var buttonForm = regexp.MustCompile(`^q:([A-Za-z0-9]{1,32}):([0-9]{1,2})$`)

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
		button := buttonForm.FindStringSubmatch(i.Data.Button)
		if button == nil || !snowflake.MatchString(i.On.ID) {
			return m, false
		}
		n, _ := strconv.Atoi(button[2])
		m.Answer = &chat.Answer{Question: button[1], Choice: n, Receipt: string(receipt(i.Channel, i.On.ID))}
	default:
		return m, false
	}
	if i.Guild != "" && i.Where.Type != 0 {
		parent := ""
		if i.Where.Type >= 10 && i.Where.Type <= 12 {
			parent = i.Where.Parent
		}
		c.learn(i.Channel, i.Guild, parent)
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
		label := []rune(choice)
		if len(label) > maxLabel {
			label = append(label[:maxLabel-1], '…')
		}
		row = append(row, map[string]any{"type": 2, "style": 2, "label": string(label), "custom_id": fmt.Sprintf("q:%s:%d", q.ID, i)})
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

// A command is an entry of Discord's menu.
type command struct {
	Name    string   `json:"name"`
	Help    string   `json:"description"`
	Type    int      `json:"type"`
	Options []option `json:"options"`
}

type option struct {
	Type     int    `json:"type"` // 3: text
	Name     string `json:"name"`
	Help     string `json:"description"`
	Required bool   `json:"required,omitempty"`
}

// SetCommands sets the menu of commands, unless it is so already.
func (c *Channel) SetCommands(ctx context.Context, cs []channels.Command) error {
	var menu, now []command
	for _, cmd := range cs {
		help := []rune(cmd.Help)
		menu = append(menu, command{Name: cmd.Name, Help: string(help[:min(len(help), 100)]), Type: 1,
			Options: []option{{Type: 3, Name: "text", Help: "what else to say"}}})
	}
	var app struct {
		ID string `json:"id"`
	}
	if err := c.call(ctx, "GET", "/applications/@me", nil, &app); err != nil {
		return c.refused("set commands", err)
	}
	path := "/applications/" + app.ID + "/commands"
	err := c.call(ctx, "GET", path, nil, &now)
	byName := func(a, b command) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(menu, byName)
	slices.SortFunc(now, byName)
	if err == nil && same(now, menu) {
		return nil
	}
	return c.refused("set commands", c.call(ctx, "PUT", path, menu, nil))
}

// same compares menus by what is stored of them.
func same(a, b []command) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}
