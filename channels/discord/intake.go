package discord

import (
	"context"
	"encoding/json"
	"log/slog"

	"parley/channels/network"
	"parley/chat"
	"parley/panics"
	"parley/store"
	"parley/texts"
)

// An intake delivers what people send: in order within a chat, and concurrently
// otherwise. Discord has no acknowledgement: what deliver does not take waits here,
// and is requested again if it is too much, or after a restart.
//
// In each new session, messages may have been missed in every chat. They are read
// back before anything later in that chat is delivered.
type intake struct {
	ctx     context.Context // Run's
	api     *botAPI
	reader  *reader
	deliver chat.Deliver
	tracker *tracker
	state   *readState
	queues  *jobQueues
	dead    store.Log
	texts   *texts.Channels
	log     *slog.Logger
	lookups chan struct{} // holds a value for each chat that is being read back
}

// beginSession is called when a new session begins, before any of its events.
func (in *intake) beginSession(session, resumeURL string, sequence int64, guilds []string) {
	if in.state.mode == "none" {
		guilds = nil
	}
	in.tracker.setSession(session, resumeURL, sequence, guilds)
	in.state.beginSession(session)
}

// handleEvent takes an event of the gateway. It returns at once.
func (in *intake) handleEvent(kind string, sequence int64, data json.RawMessage) {
	if kind == "MESSAGE_CREATE" || kind == "MESSAGE_UPDATE" {
		in.handleMessageEvent(sequence, data, kind == "MESSAGE_UPDATE")
		return
	}
	e := in.tracker.beginEvent(sequence, "")
	defer in.tracker.release(e)
	switch kind {
	case "READY":
		in.log.Info("connected to discord")
		in.catchUp(e)
	case "RESUMED":
		in.log.Info("connected to discord again")
	case "GUILD_CREATE":
		in.catchUpGuild(e, data)
	case "GUILD_DELETE":
		in.handleGuildDelete(data)
	case "INTERACTION_CREATE":
		in.handleInteractionEvent(e, data)
	}
}

// handleGuildDelete notes that the bot left a server, unless it is only unavailable.
func (in *intake) handleGuildDelete(data json.RawMessage) {
	var g guild
	if err := json.Unmarshal(data, &g); err != nil || g.Unavailable {
		return
	}
	in.tracker.noteLeft(g.ID)
}

// handleMessageEvent queues the message of an event.
func (in *intake) handleMessageEvent(sequence int64, data json.RawMessage, edited bool) {
	w, err := decodeMessage(data)
	e := in.tracker.beginEvent(sequence, w.ID)
	defer in.tracker.release(e)
	if err != nil {
		in.addDeadLetter(e, data, err)
		return
	}
	handle := func(ctx context.Context) error { return in.handleMessage(ctx, w, e, edited) }
	if edited { // edits cannot be requested
		in.queues.add(w.Channel, e, handle, nil)
		return
	}
	in.queues.add(w.Channel, e, handle, func(ctx context.Context) error {
		return in.fetchMissed(ctx, w.Channel, w.Guild, previousID(w.ID), "")
	})
}

// handleMessage delivers the message of an event, after what was missed before it.
func (in *intake) handleMessage(ctx context.Context, w message, e *event, edited bool) error {
	if in.state.wasHandled(w, e, edited) {
		return nil
	}
	until := w.ID
	if edited { // the message itself may have been missed
		until = ""
	}
	if err := in.readBack(ctx, w.Channel, w.Guild, e, until); err != nil {
		return err
	}
	return in.deliverMessage(ctx, w, e, edited)
}

// deliverMessage delivers w if it is for the bot, and notes that the chat was read
// that far. If Parley panics over w, as it would again after each restart, w
// becomes a dead letter (P4). e is nil for a message that was read back.
func (in *intake) deliverMessage(ctx context.Context, w message, e *event, edited bool) (err error) {
	addressed := false
	crash := panics.Try(func() error {
		addressed, err = in.readAndDeliver(ctx, w, edited)
		return nil
	})
	if crash != nil {
		addressed = true // so that the position is stored at once
		err = in.keepDeadLetter(ctx, w.raw, crash)
	}
	if err != nil {
		return err
	}
	if !edited {
		in.state.note(ctx, w, e, addressed)
	}
	return nil
}

// readAndDeliver delivers w if it is addressed to the bot.
func (in *intake) readAndDeliver(ctx context.Context, w message, edited bool) (addressed bool, err error) {
	m, addressed, err := in.reader.read(ctx, w, edited)
	if err != nil || !addressed {
		return false, err
	}
	// A crash after the delivery must not leave a chat whose position is unknown.
	position := chatPosition{Last: previousID(w.ID), Guild: w.Guild}
	if err := in.state.storeIfUnknown(ctx, w.Channel, position); err != nil {
		return true, err
	}
	return true, in.deliver(ctx, m)
}

// notePrivateChat notes that we opened a private chat, so that answers there are
// read back if they arrive while Parley does not run.
func (in *intake) notePrivateChat(ctx context.Context, id string) {
	private, _ := in.tracker.bounds()
	if private == "" { // there was no session yet
		return
	}
	if err := in.state.storeIfUnknown(ctx, id, chatPosition{Last: private}); err != nil {
		in.log.Warn("private chat not noted", "chat", id, "err", err)
	}
}

// addDeadLetter queues an event that cannot be understood.
func (in *intake) addDeadLetter(e *event, raw json.RawMessage, reason error) {
	keep := func(ctx context.Context) error { return in.keepDeadLetter(ctx, raw, reason) }
	in.queues.add("", e, keep, nil)
}

// keepDeadLetter keeps raw for inspection (P4).
func (in *intake) keepDeadLetter(ctx context.Context, raw json.RawMessage, reason error) error {
	in.log.Error("event not understood, kept for inspection", "err", reason)
	return network.KeepDeadLetter(ctx, in.dead, raw)
}

// close returns when everything has ended. in.ctx has, and no more events arrive.
func (in *intake) close() {
	in.queues.wait()
	if err := in.tracker.save(context.WithoutCancel(in.ctx)); err != nil {
		in.log.Warn("position not stored, the next start receives some events again", "err", err)
	}
}
