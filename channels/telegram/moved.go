package telegram

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"parley/store"
)

// A group that becomes a supergroup gets another id, and its messages are
// numbered from 1 again. The house goes on calling it by the id it had first;
// the ids of its later messages begin with movedPrefix, so that they are not
// taken for earlier ones.
const movedPrefix = "s"

// moved remembers that the group from is now the supergroup to.
func (c *Channel) moved(ctx context.Context, from, to int64) error {
	c.log.Info("group became a supergroup", "from", from, "to", to)
	for key, id := range map[string]int64{fmt.Sprint(today, from): to, fmt.Sprint(first, to): from} {
		if err := c.aliases.Set(ctx, key, id); err != nil {
			return fmt.Errorf("remember that group %d is now %d: %w", from, to, err)
		}
	}
	return nil
}

// The ways of alias.
const (
	today = "to/"   // from the id that a chat had first to the one that Telegram knows now
	first = "from/" // and back
)

// alias returns the other id of chat, or chat if it has not moved.
func (c *Channel) alias(ctx context.Context, way string, chat int64) (id int64, moved bool, err error) {
	if chat >= 0 {
		return chat, false, nil
	}
	id, _, err = c.aliases.Get(ctx, fmt.Sprint(way, chat))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return chat, false, nil
	case err != nil:
		return 0, false, fmt.Errorf("look up group %d: %w", chat, err)
	}
	return id, true, nil
}

// messageID names message n of a chat that has moved or not.
func messageID(n int, moved bool) string {
	if moved {
		return movedPrefix + strconv.Itoa(n)
	}
	return strconv.Itoa(n)
}

// messageNumber returns what Telegram calls the message id now. It is not ok
// for one from before the chat moved.
func messageNumber(id string, moved bool) (n int, ok bool) {
	id, after := strings.CutPrefix(id, movedPrefix)
	id, _, _ = strings.Cut(id, "e") // the id of an edit goes on with that of its update
	n, err := strconv.Atoi(id)
	return n, err == nil && after == moved
}
