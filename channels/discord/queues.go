package discord

import (
	"context"
	"log/slog"
	"sync"

	"parley/channels"
)

const maxJobs = 100 // that wait in one chat

// jobQueues does the jobs of each chat in order, and those of different chats
// concurrently.
type jobQueues struct {
	ctx     context.Context // Run's
	api     *botAPI
	tracker *tracker
	backoff func() channels.Backoff
	log     *slog.Logger
	live    sync.WaitGroup

	mu         sync.Mutex
	jobs       map[string][]job // by chat; present while its goroutine lives
	overflowed map[string]bool  // by chat: the last job fetches everything from it on
}

// A job is retried until it returns nil. Then its event is released.
type job struct {
	do    func(context.Context) error
	event *event
}

func newJobQueues(
	ctx context.Context, api *botAPI, tracker *tracker, backoff func() channels.Backoff, log *slog.Logger,
) *jobQueues {
	return &jobQueues{
		ctx:        ctx,
		api:        api,
		tracker:    tracker,
		backoff:    backoff,
		log:        log,
		jobs:       map[string][]job{},
		overflowed: map[string]bool{},
	}
}

// add appends do to the jobs of a chat. e is held until it is done. If the chat has
// too many jobs, fetch takes the place of do and of all that would follow: it asks
// Discord for them. If fetch is nil, do is dropped then.
func (q *jobQueues) add(chat string, e *event, do, fetch func(context.Context) error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ctx.Err() != nil {
		q.tracker.hold(e) // for ever: it is not handled
		return
	}
	if q.overflowed[chat] && fetch != nil {
		return
	}
	jobs, running := q.jobs[chat]
	if len(jobs) >= maxJobs {
		if fetch == nil {
			q.log.Error("event dropped, too many are waiting", "chat", chat)
			return
		}
		q.overflowed[chat] = true
		do = func(ctx context.Context) error {
			q.mu.Lock()
			delete(q.overflowed, chat)
			q.mu.Unlock()
			return fetch(ctx)
		}
	}
	q.tracker.hold(e)
	q.jobs[chat] = append(jobs, job{do: do, event: e})
	if !running {
		q.live.Go(func() { q.work(chat) })
	}
}

// start does f at once, outside of all queues. e is held until f is done.
func (q *jobQueues) start(e *event, f func() (done bool)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tracker.hold(e)
	if q.ctx.Err() != nil { // e is held for ever: it is not handled
		return
	}
	q.live.Go(func() {
		if f() {
			q.tracker.release(e)
		}
	})
}

// work does the jobs of a chat until there are none.
func (q *jobQueues) work(chat string) {
	for {
		next, ok := q.next(chat)
		if !ok {
			return
		}
		backoff := q.backoff()
		err := next.do(q.ctx)
		for err != nil && q.ctx.Err() == nil {
			q.log.Error("message not kept yet", "chat", chat, "err", q.api.redact(err))
			channels.Sleep(q.ctx, backoff.Next(q.api.channelError("", err)))
			err = next.do(q.ctx)
		}
		if err != nil {
			continue // the end of q.ctx ends this loop
		}
		q.tracker.release(next.event)
	}
}

// next removes the next job of a chat from its queue. It is not ok if there is none.
func (q *jobQueues) next(chat string) (next job, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	jobs := q.jobs[chat]
	if len(jobs) == 0 || q.ctx.Err() != nil {
		delete(q.jobs, chat)
		return job{}, false
	}
	q.jobs[chat] = jobs[1:]
	return jobs[0], true
}

// wait returns when everything has ended. q.ctx has, and nothing more is added.
func (q *jobQueues) wait() {
	q.mu.Lock() // whoever saw q.ctx still running has been counted
	live := &q.live
	q.mu.Unlock()
	live.Wait()
}
