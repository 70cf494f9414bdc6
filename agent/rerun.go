package agent

import (
	"context"
	"iter"
	"log/slog"
	"time"

	"parley/agent/replay"
	"parley/agent/subagents"
	"parley/chat"
	"parley/store"
)

// Recording yields the lines of a recording of the session id, JSON each. Damaged
// records are left out. If there is no such session the error is
// store.ErrNotFound, and there are no lines.
func (p *Pool) Recording(ctx context.Context, id chat.SessionID) iter.Seq2[[]byte, error] {
	return replay.Write(ctx, p.sessions, p.prompts, p.config.Zone, id)
}

// Rerun runs t of the recording r again in a Pool of its own on s, an empty Store:
// the messages are heard again, the model answers as it did, and tools give what
// they gave. It returns where what is asked, done and said is not as it was. An
// error says why the turn cannot be run again.
func Rerun(ctx context.Context, s store.Store, r *replay.Recording, t replay.Turn) ([]string, error) {
	var pool *Pool
	w := &worker{id: r.Session(), soft: ctx, hard: ctx, pull: func() []store.Item { return nil }}
	hear := func(m chat.Message) {
		item := store.Item{ID: m.Key(), Done: func(context.Context) error { return nil }, Later: func(time.Duration) {}}
		w.waiting = append(w.waiting, delivery{Message: m, item: item, command: pool.command(m)})
	}
	const model = "recorded"
	replayer, err := replay.NewReplayer(r, t, hear, func(ratio float64) { pool.ratios.Set(model, ratio) })
	if err != nil {
		return nil, err
	}
	traits := replayer.Traits()
	pool = New(Config{
		Store: s, Send: func(context.Context, chat.Reply) error { return nil },
		Memory: replayer, Log: slog.New(slog.DiscardHandler), Zone: r.Zone(),
	}, Settings{
		Models: map[string]Model{model: {Model: replayer, Window: replay.Window, Vision: traits.Vision}},
		Model:  model, Kit: replayer.Kit, Rounds: traits.Rounds, Rollback: traits.Rollback,
	})
	w.pool = pool
	before, err := replayer.Prepare(ctx, pool.sessions)
	if err != nil {
		return nil, err
	}
	if before != nil {
		pool.sessions.Cache(before)
	}
	replayer.Begin()
	if id := subagents.IDOf(w.waiting[0].In); id != "" {
		pool.subagents.Roster().Adopt(id)
	}
	if err := w.handle(w.shift(1)); err != nil {
		return nil, err
	}
	err = replayer.Compare(ctx, pool.sessions)
	return replayer.Differences(), err
}
