package telegram

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/chat"
)

const (
	pollWait      = 50 * time.Second // how long Telegram may wait for an update
	pollTimeout   = 90 * time.Second // after which a poll counts as dead (P24)
	conflictPause = 30 * time.Second // while another process polls this bot
	maxUpdates    = 100              // in one answer; Telegram allows no more
)

// errPollTimeout is the health of a channel whose polls get no answer.
var errPollTimeout = fmt.Errorf("telegram fell silent for %v", pollTimeout)

// A poller asks Telegram for updates and delivers them. The offset that confirms
// them is sent only after each one is delivered or a dead letter (P1). After a
// quiet week Telegram may number updates from a lower number on: the last one
// counts, not the highest.
type poller struct {
	api      *botAPI
	receiver *receiver
	deliver  chat.Deliver

	offset int64
	limit  int           // updates in the next answer
	wait   time.Duration // how long Telegram may wait in the next request
	after  uint64        // the moment after which the next updates arose; 0 while some may be older
}

func newPoller(api *botAPI, receiver *receiver, deliver chat.Deliver) *poller {
	return &poller{api: api, receiver: receiver, deliver: deliver, limit: maxUpdates, wait: pollWait}
}

// poll makes one request for updates and delivers them.
func (p *poller) poll(ctx context.Context) error {
	began := p.receiver.numbers.begin()
	raws, err := p.api.getUpdates(ctx, p.offset, p.limit, p.wait)
	drained := err == nil && len(raws) < p.limit
	p.limit = maxUpdates
	if errors.Is(err, errMalformed) {
		p.limit = 1 // so that only the malformed update is affected
	}
	p.wait = pollWait
	if err != nil {
		p.wait = 0 // so that the answer shows at once that Telegram is back
	}
	last := p.receiver.deliverAll(ctx, raws, p.after, p.deliver)
	p.after = 0
	if drained {
		p.after = began // later updates were not in this answer
	}
	interrupted := ctx.Err() != nil // then some updates may not be delivered
	if last != 0 && !interrupted {
		p.offset = last + 1
	}
	if err != nil {
		return err
	}
	if len(raws) > 0 && last == 0 {
		return errors.New("the updates have no ids")
	}
	return nil
}
