package channels

import (
	"context"
	"errors"
	"slices"
	"strings"

	"parley/chat"
)

// TellOwners sends text once, in private, to every owner whom a channel can
// address. Another text needs another id.
func (h *Hub) TellOwners(ctx context.Context, id, text string) error {
	var errs []error
	for _, owner := range h.access.Rules().Owners() {
		if to, ok := h.PrivateChat(owner); ok {
			errs = append(errs, h.Send(ctx, chat.Reply{ID: "tell:" + id + ":" + owner, To: to, Text: text}))
		}
	}
	if errs == nil {
		h.cfg.Log.Warn("no owner can be told", "text", text)
	}
	return errors.Join(errs...)
}

// OwnerChat returns the private chat with the first owner whom a channel can
// address; ok is false if there is none. Owners with an ID come first: they carry
// their network with them, unlike the terminal and the web page.
func (h *Hub) OwnerChat() (at chat.Address, ok bool) {
	owners := h.access.Rules().Owners()
	slices.SortStableFunc(owners, func(a, b string) int {
		return min(1, strings.Count(b, ":")) - min(1, strings.Count(a, ":"))
	})
	for _, owner := range owners {
		if at, ok = h.PrivateChat(owner); ok {
			break
		}
	}
	return at, ok
}

// PrivateChat returns the chat in which owner can be addressed; ok is false if
// their channel starts no conversations.
func (h *Hub) PrivateChat(owner string) (at chat.Address, ok bool) {
	channel := owner
	person := ""
	if i := strings.LastIndex(owner, ":"); i >= 0 {
		channel = owner[:i]
		person = owner[i+1:]
	}
	if d, ok := h.Channel(channel).(DirectMessenger); ok {
		at = d.Direct(person)
	}
	at.Channel = channel
	return at, at.Chat != ""
}
