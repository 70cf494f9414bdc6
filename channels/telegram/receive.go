package telegram

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"sync"

	"parley/channels"
	"parley/channels/network"
	"parley/chat"
	"parley/lazyregexp"
	"parley/panics"
	"parley/store"
)

// A receiver delivers what updates bring.
type receiver struct {
	api     *botAPI
	reader  *reader
	numbers *numbers
	dead    store.Log
	health  *network.HealthState
	log     *slog.Logger
}

// A rawUpdate is an update as it arrived, and its content.
type rawUpdate struct {
	raw    json.RawMessage
	update update
	err    error // it cannot be understood
}

var updateIDForm = lazyregexp.New(`"update_id"\s*:\s*([0-9]{1,18})\b`)

// decodeUpdate decodes raw, or at least its id if it is not valid JSON.
func decodeUpdate(raw json.RawMessage) rawUpdate {
	u := rawUpdate{raw: raw}
	u.err = json.Unmarshal(raw, &u.update)
	if id := updateIDForm.FindSubmatch(raw); u.err != nil && u.update.ID == 0 && id != nil {
		u.update.ID, _ = strconv.ParseInt(string(id[1]), 10, 64) // 18 digits at most
	}
	return u
}

// deliverAll delivers each of raws: in order within a chat, and concurrently
// otherwise. It retries what could not be stored until everything is, or ctx ends.
// All messages got their numbers after that moment, unless it is 0. It returns the
// id of the last update, 0 if none has one.
func (r *receiver) deliverAll(
	ctx context.Context, raws []json.RawMessage, after uint64, deliver chat.Deliver,
) (last int64) {
	byChat := map[int64][]rawUpdate{}
	movedFrom := map[int64]int64{} // by the id of a supergroup
	for _, raw := range raws {
		u := decodeUpdate(raw)
		last = cmp.Or(u.update.ID, last)
		r.noteMessage(u.update, after)
		var id int64
		if m := u.update.subject(); m != nil {
			if m.MovedFrom != 0 { // messages from before and after the move are of one chat
				movedFrom[m.Chat.ID] = m.MovedFrom
			}
			id = cmp.Or(movedFrom[m.Chat.ID], m.Chat.ID)
		}
		byChat[id] = append(byChat[id], u)
	}
	var all sync.WaitGroup
	for _, updates := range byChat {
		all.Go(func() { r.deliverInOrder(ctx, updates, deliver) })
	}
	all.Wait()
	return last
}

// noteMessage notes the number of the message in u, which got it after that
// moment. The message of a pressed button is our own: it may be one that is being
// traced.
func (r *receiver) noteMessage(u update, after uint64) {
	if u.Message != nil {
		r.numbers.note(u.Message.Chat.ID, after, u.Message.ID)
	} else if u.Edited != nil { // the message got its number long ago
		r.numbers.note(u.Edited.Chat.ID, 0, u.Edited.ID)
	}
}

// deliverInOrder delivers updates one after the other, each until it is stored.
func (r *receiver) deliverInOrder(ctx context.Context, updates []rawUpdate, deliver chat.Deliver) {
	for _, u := range updates {
		backoff := pollBackoff
		for ctx.Err() == nil {
			err := r.deliver(ctx, u, deliver)
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return
			}
			r.health.SetHealth(err)
			r.log.Error("update not kept, telegram keeps it meanwhile", "update", u.update.ID, "err", err)
			channels.Sleep(ctx, backoff.Next(err))
		}
	}
}

// deliver delivers u. If u cannot be understood (P4), or Parley panics over it, as
// it would again after each restart, it becomes a dead letter. An error means that
// u is stored nowhere.
func (r *receiver) deliver(ctx context.Context, u rawUpdate, deliver chat.Deliver) (err error) {
	if u.err != nil {
		return r.keepDeadLetter(ctx, u)
	}
	u.err = panics.Try(func() error {
		err = r.readAndDeliver(ctx, u.update, deliver)
		return nil
	})
	if u.err != nil {
		return r.keepDeadLetter(ctx, u)
	}
	if err != nil {
		return err
	}
	if u.update.Press != nil {
		r.api.acknowledgePress(ctx, u.update.Press.ID, r.log)
	}
	return nil
}

// readAndDeliver delivers the message in u, if it has one for the bot.
func (r *receiver) readAndDeliver(ctx context.Context, u update, deliver chat.Deliver) error {
	m, ok, err := r.reader.read(ctx, u)
	if err != nil || !ok {
		return err
	}
	return deliver(ctx, m)
}

func (r *receiver) keepDeadLetter(ctx context.Context, u rawUpdate) error {
	r.log.Error("update not understood, kept for inspection", "update", u.update.ID, "err", u.err)
	return network.KeepDeadLetter(ctx, r.dead, u.raw)
}
