// Package titles has the conversations of the page given titles in the background. Which of them are due waits in a
// queue on disk, so that a kill loses none. A conversation for which no title can be made keeps its first words.
package titles

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"parley/chat"
	"parley/panics"
	"parley/store"
)

const (
	requestTimeout = 2 * time.Minute // to make one title
	retryDelay     = time.Minute     // before the second try
)

// A Beginning is what a title is made of.
type Beginning struct {
	At       chat.Address
	Asked    string // by the person; "" if they sent a file without words
	Answered string // Markdown
}

// A Page has the conversations.
type Page interface {
	// BeginTitle returns how the conversation at at began, and counts the try, before anything is asked. It returns
	// nil if no title is to be made: there is one, there was nothing to name, or it was tried often enough.
	BeginTitle(ctx context.Context, at chat.Address) (*Beginning, error)
	// SetTitle names the conversation, unless its person has done so meanwhile.
	SetTitle(ctx context.Context, at chat.Address, title string) error
}

// A Config is what a Service needs.
type Config struct {
	Store store.Store
	// On reports whether titles are wanted.
	On func() bool
	// Make returns a title for what began with b, "" if none suits.
	Make func(ctx context.Context, b Beginning) (string, error)
	Log  *slog.Logger
}

// A Service has titles made, one after the other: nobody waits for them, and models that answer one request at a time
// have others to answer.
type Service struct {
	cfg   Config
	queue store.Queue
}

// New returns a Service.
func New(cfg Config) *Service { return &Service{cfg: cfg, queue: cfg.Store.Queue(store.QueueTitles)} }

// Want has the conversation at at named, in which the agent has said reply. Repeating it has no further effect.
func (s *Service) Want(ctx context.Context, at chat.Address, reply string) error {
	if !s.cfg.On() {
		return nil
	}
	body, err := json.Marshal(at)
	if err != nil {
		return err
	}
	return s.queue.Push(ctx, string(at.Session())+"\x00"+reply, body)
}

// Run makes the titles that are due until ctx ends.
func (s *Service) Run(ctx context.Context, page Page) error {
	inTurn := func(store.Item) string { return "" }
	return store.Work(ctx, s.queue, inTurn, func(ctx context.Context, _ string, take func() []store.Item) {
		for items := take(); len(items) > 0; items = take() {
			for _, item := range items {
				s.handle(ctx, page, item)
			}
		}
	})
}

// handle ends one item, or puts it off.
func (s *Service) handle(ctx context.Context, page Page, item store.Item) {
	if ctx.Err() != nil {
		item.Later(0)
		return
	}
	var at chat.Address
	_ = json.Unmarshal(item.Body, &at) // what is damaged names no conversation, and is dropped
	err := s.name(ctx, page, at)
	if ctx.Err() != nil {
		item.Later(0)
		return
	}
	if err != nil {
		s.cfg.Log.Debug("no title made yet", "session", at.Session(), "err", err)
		item.Later(retryDelay)
		return
	}
	if err := item.Done(ctx); err != nil && ctx.Err() == nil {
		s.cfg.Log.Warn("a title may be made again", "session", at.Session(), "err", err)
	}
}

var errNone = errors.New("the model has made none")

// name gives the conversation at at a title, if it is to have one. After an error it may be tried again.
func (s *Service) name(ctx context.Context, page Page, at chat.Address) error {
	if !s.cfg.On() {
		return nil
	}
	b, err := page.BeginTitle(ctx, at)
	if b == nil || err != nil {
		return err
	}
	limited, stop := context.WithTimeout(ctx, requestTimeout)
	defer stop()
	var title string
	err = panics.Try(func() error {
		title, err = s.cfg.Make(limited, *b)
		return err
	})
	switch {
	case err != nil:
		return err
	case title == "":
		return errNone
	}
	return page.SetTitle(ctx, at, title)
}
