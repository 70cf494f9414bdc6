package discord

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"parley/channels/network"
	"parley/chat"
	"parley/panics"
)

const (
	// interactionTimeout is how long Discord waits for our answer: after it, the
	// person reads that we did not respond.
	interactionTimeout = 2500 * time.Millisecond
	// deliverTimeout leaves time to say that the delivery failed.
	deliverTimeout = interactionTimeout * 4 / 5
	maxNotice      = 200 // runes of what we answer to an interaction
)

// The types of interactions, and of answers to them.
const (
	commandInteraction = 2
	buttonInteraction  = 3

	answerMessage  = 4
	answerNoChange = 6

	ephemeralFlag = 1 << 6 // only the person who interacts sees the message
)

// An interaction is the use of a command, or the press of a button.
type interaction struct {
	ID      string  `json:"id"`
	Token   string  `json:"token"` // with which it is answered
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

// sender returns who interacts.
func (i interaction) sender() user {
	if i.Member.User != nil {
		return *i.Member.User
	}
	return i.User
}

// commandText returns the command as a message has it.
func (i interaction) commandText() string {
	text := "/" + i.Data.Name
	for _, option := range i.Data.Options {
		text += fmt.Sprint(" ", option.Value)
	}
	return text
}

// readInteraction turns i into a message. It is not ok if i is not for the bot.
func (r *reader) readInteraction(ctx context.Context, i interaction) (m chat.Message, ok bool) {
	sender := i.sender()
	if !snowflake.MatchString(sender.ID) || sender.Bot {
		return m, false
	}
	if !snowflake.MatchString(i.ID) || !snowflake.MatchString(i.Channel) {
		return m, false
	}
	m = chat.Message{
		ID:      i.ID,
		Account: r.directory.self.ID,
		From:    chat.Sender{ID: sender.ID, Name: i.Member.name(sender)},
		Group:   i.Guild != "",
		Time:    timeOf(i.ID),
	}
	switch i.Type {
	case commandInteraction:
		m.Text = i.commandText()
	case buttonInteraction:
		m.Answer = network.Pressed(i.Data.Button, newReceipt(i.Channel, i.On.ID))
		if m.Answer == nil || !snowflake.MatchString(i.On.ID) {
			return m, false
		}
	default:
		return m, false
	}
	at, err := r.directory.address(ctx, i.Channel, i.Guild, sender.ID)
	m.At = at
	return m, err == nil
}

// handleInteractionEvent takes the event of an interaction. It returns at once.
func (in *intake) handleInteractionEvent(e *event, data json.RawMessage) {
	var i interaction
	if err := json.Unmarshal(data, &i); err != nil {
		in.addDeadLetter(e, data, err)
		return
	}
	if in.tracker.wasHandled(e) {
		return
	}
	if snowflake.MatchString(i.Channel) { // in a chat where messages may have been missed before
		in.addReadBack(i.Channel, i.Guild, e)
	}
	received := time.Now()
	in.queues.start(e, func() (done bool) { return in.handleInteraction(i, received, e) })
}

// handleInteraction delivers i once, and tells the person what became of it. It is
// not done if the end of Run interrupted it.
func (in *intake) handleInteraction(i interaction, received time.Time, e *event) (done bool) {
	ctx, cancel := context.WithDeadline(in.ctx, received.Add(interactionTimeout))
	defer cancel()
	m, ok := in.reader.readInteraction(ctx, i)
	if !ok && i.Type != buttonInteraction || !snowflake.MatchString(i.ID) {
		return true
	}
	var err error
	if ok {
		err = in.deliverInteraction(ctx, m, received.Add(deliverTimeout))
	}
	if err != nil {
		done = in.ctx.Err() == nil
		in.log.Error("interaction not kept", "chat", i.Channel, "err", in.api.redact(err))
		in.acknowledgeInteraction(ctx, i, ephemeralNotice(in.texts.NotKept))
		return done
	}
	answer := map[string]any{"type": answerNoChange}
	if i.Type == commandInteraction { // a button press that is received twice does nothing
		if err := in.tracker.markHandled(context.WithoutCancel(ctx), e); err != nil {
			in.log.Warn("a restart may repeat a command", "command", m.Text, "err", err)
		}
		answer = ephemeralNotice("`" + strings.ReplaceAll(m.Text, "`", "'") + "` ✓")
	}
	in.acknowledgeInteraction(ctx, i, answer)
	return true
}

func (in *intake) deliverInteraction(ctx context.Context, m chat.Message, deadline time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	return panics.Try(func() error { return in.deliver(ctx, m) })
}

// acknowledgeInteraction answers i.
func (in *intake) acknowledgeInteraction(ctx context.Context, i interaction, answer map[string]any) {
	path := fmt.Sprintf("/interactions/%s/%s/callback", i.ID, i.Token)
	err := in.api.call(ctx, "POST", path, answer, nil)
	if err != nil && !hasCode(err, 404, codeAcknowledged) { // too late, or answered already
		in.log.Warn("interaction not acknowledged", "chat", i.Channel, "err", in.api.redact(err))
	}
}

// ephemeralNotice answers an interaction with a message that nobody else sees.
func ephemeralNotice(text string) map[string]any {
	return map[string]any{
		"type": answerMessage,
		"data": map[string]any{
			"content":          chat.Shorten(text, maxNotice),
			"flags":            ephemeralFlag | noPreviewFlag,
			"allowed_mentions": noMentions(),
		},
	}
}
