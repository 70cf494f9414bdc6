package web

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"parley/channels/web/notify"
	"parley/channels/webpush"
	"parley/chat"
	"parley/response"
	"parley/store"
)

// plain takes the marks of Markdown out of the words of a notification.
var plain = strings.NewReplacer("**", "", "`", "", "### ", "", "## ", "", "# ", "")

// tellAway tells the person what the agent said in e, unless a page shows it in a moment. Repeating it has no further
// effect. The outbox is told only after it is on disk that somebody is to be told.
func (rm *room) tellAway(ctx context.Context, e logEntry) error {
	if rm.c.cfg.Notify == nil {
		return nil
	}
	conv, err := rm.c.conversations.get(ctx, rm.address)
	if err != nil {
		return err
	}
	return rm.c.cfg.Notify.Tell(store.Deferred(ctx), notify.Notice{
		ID:    e.ID,
		At:    rm.address,
		Seq:   e.Seq,
		Title: displayTitle(rm.address.Thread, conv),
		Text:  plain.Replace(e.Text),
		Asks:  e.Ask != nil,
	})
}

// hasSeen returns a function that reports whether a page in sight has shown an entry, or its conversation is gone.
func hasSeen(c *Channel) func(context.Context, chat.Address, uint64) (bool, error) {
	return func(ctx context.Context, at chat.Address, seq uint64) (bool, error) {
		conv, err := c.conversations.get(ctx, at)
		if errors.Is(err, errGone) {
			return true, nil
		}
		return conv.Seen >= seq || conv.Unread == 0, err
	}
}

var errNoPush = response.Problem{Status: http.StatusNotFound, Text: "There are no notifications here."}

// servePushKey sends the key that browsers subscribe to.
func servePushKey(n *notify.Service) func(request) error {
	return func(req request) error {
		if n == nil {
			return errNoPush
		}
		key, err := n.Key(req.r.Context())
		if err != nil {
			return err
		}
		return req.writeJSON(http.StatusOK, map[string]string{"key": key})
	}
}

// subscribe has a browser of the person be told what is said while no page is open.
func subscribe(n *notify.Service) func(request) error {
	return func(req request) error {
		var in struct {
			Subscription struct {
				webpush.Subscription
				ExpirationTime *float64
			}
			Private bool
		}
		if err := req.readJSON(&in); err != nil {
			return err
		}
		if n == nil {
			return errNoPush
		}
		if err := in.Subscription.Check(); err != nil {
			return response.BadRequest("This subscription is not valid: " + err.Error() + ".")
		}
		if err := n.Subscribe(req.r.Context(), req.who.ID, in.Subscription.Subscription, in.Private); err != nil {
			return err
		}
		req.w.WriteHeader(http.StatusNoContent)
		return nil
	}
}

// unsubscribe ends that.
func unsubscribe(n *notify.Service) func(request) error {
	return func(req request) error {
		var in struct{ Endpoint string }
		if err := req.readJSON(&in); err != nil {
			return err
		}
		if n == nil {
			return errNoPush
		}
		if err := n.Unsubscribe(req.r.Context(), req.who.ID, in.Endpoint); err != nil {
			return err
		}
		req.w.WriteHeader(http.StatusNoContent)
		return nil
	}
}
