package telegram

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"parley/channels"
	"parley/chat"
	"parley/store"
)

// groupMoves remembers which groups have become supergroups. Such a group gets
// another id, and its messages are numbered from 1 again. Parley goes on calling
// it by the id that it had first.
type groupMoves struct {
	table store.Table[int64]
	log   *slog.Logger
}

// Prefixes of the keys in the table.
const (
	currentPrefix  = "to/"   // from the id that a chat had first to the one that it has now
	originalPrefix = "from/" // and back
)

// remember stores that the group from is now the supergroup to.
func (g *groupMoves) remember(ctx context.Context, from, to int64) error {
	g.log.Info("group became a supergroup", "from", from, "to", to)
	if err := g.table.Set(ctx, fmt.Sprint(currentPrefix, from), to); err != nil {
		return fmt.Errorf("remember that group %d is now %d: %w", from, to, err)
	}
	if err := g.table.Set(ctx, fmt.Sprint(originalPrefix, to), from); err != nil {
		return fmt.Errorf("remember that group %d was %d: %w", to, from, err)
	}
	return nil
}

// current returns the id that Telegram now uses for the chat that had that id first.
func (g *groupMoves) current(ctx context.Context, original int64) (id int64, moved bool, err error) {
	return g.lookUp(ctx, currentPrefix, original)
}

// original returns the id that the chat had first.
func (g *groupMoves) original(ctx context.Context, current int64) (id int64, moved bool, err error) {
	return g.lookUp(ctx, originalPrefix, current)
}

func (g *groupMoves) lookUp(ctx context.Context, prefix string, chat int64) (id int64, moved bool, err error) {
	if chat >= 0 { // a private chat
		return chat, false, nil
	}
	id, _, err = g.table.Get(ctx, fmt.Sprint(prefix, chat))
	if errors.Is(err, store.ErrNotFound) {
		return chat, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("look up group %d: %w", chat, err)
	}
	return id, true, nil
}

// A destination is where a message goes, by the ids that Telegram uses now.
type destination struct {
	chat   int64
	thread int  // a topic; 0 for none
	moved  bool // the chat had another id first
}

// generalTopic is the thread of a forum that requests must not name.
const generalTopic = "1"

// locate returns the destination that a names.
func (g *groupMoves) locate(ctx context.Context, a chat.Address) (destination, error) {
	original, err := strconv.ParseInt(a.Chat, 10, 64)
	if err != nil {
		return destination{}, channels.ForGood("%q is not a telegram chat", a.Session())
	}
	thread := 0
	if a.Thread != "" && a.Thread != generalTopic {
		thread, err = strconv.Atoi(a.Thread)
		if err != nil {
			return destination{}, channels.ForGood("%q is not a telegram chat", a.Session())
		}
	}
	id, moved, err := g.current(ctx, original)
	if err != nil {
		return destination{}, err
	}
	return destination{chat: id, thread: thread, moved: moved}, nil
}

// movedPrefix begins the ids of messages that were sent after their group became
// a supergroup, so that they differ from those of earlier messages.
const movedPrefix = "s"

// messageID names message n of a chat.
func messageID(n int, moved bool) string {
	if moved {
		return movedPrefix + strconv.Itoa(n)
	}
	return strconv.Itoa(n)
}

// messageNumber returns the number that Telegram now has for the message id. It
// is not ok for a message from before the chat moved.
func messageNumber(id string, moved bool) (n int, ok bool) {
	id, afterMove := strings.CutPrefix(id, movedPrefix)
	id, _, _ = strings.Cut(id, "e") // the id of an edit goes on with that of its update
	n, err := strconv.Atoi(id)
	return n, err == nil && afterMove == moved
}

// newReceipt names what was sent by the first of its messages and by the chat,
// because the chat may move. It is empty if Telegram did not return the number.
func newReceipt(chat int64, numbers []int) channels.Receipt {
	if len(numbers) == 0 {
		return ""
	}
	return channels.Receipt(fmt.Sprintf("%d/%d", chat, numbers[0]))
}

func parseReceipt(rc channels.Receipt) (chat int64, number int, err error) {
	if _, err := fmt.Sscanf(string(rc), "%d/%d", &chat, &number); err != nil {
		return 0, 0, channels.ForGood("%q is no receipt of telegram", rc)
	}
	return chat, number, nil
}
