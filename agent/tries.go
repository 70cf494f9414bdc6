package agent

import (
	"context"
	"errors"
	"time"

	"parley/store"
)

// crashes is how often a message is taken up again after the process died with
// it. The first time counts as well: the third crash is the last (P8).
const crashes = 2

// begun returns how often j was taken up after a crash.
func (l *lane) begun(j job) (int, error) {
	if !j.item.Again {
		return 0, nil
	}
	n, _, err := store.Load[int](l.hard, l.tries, j.Key())
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDamaged) { // begin to count anew
		return 0, nil
	}
	return n, err
}

// count notes that those of jobs that a crash left behind are taken up again.
func (l *lane) count(jobs []job) error {
	return l.insist(l.hard, "count tries", func(ctx context.Context) error {
		for _, j := range jobs {
			if !j.item.Again {
				continue
			}
			if _, err := store.Save(ctx, l.tries, j.Key(), l.crashed+1, store.Any); err != nil {
				return err
			}
		}
		return nil
	})
}

// uncount takes back what count noted: the process lives.
func (l *lane) uncount(jobs []job, failed error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(l.hard), 5*time.Second)
	defer cancel()
	for _, j := range jobs {
		var err error
		switch {
		case !j.item.Again:
		case failed == nil || l.crashed == 0:
			err = l.tries.Delete(ctx, j.Key())
		default:
			_, err = store.Save(ctx, l.tries, j.Key(), l.crashed, store.Any)
		}
		if err != nil {
			l.Log.Warn("count of tries not taken back", "message", j.Key(), "err", err)
		}
	}
}

// park puts j aside and says so (P8).
func (l *lane) park(j job) error {
	s, err := l.open(l.hard, l.id)
	if err != nil {
		return err
	}
	t := turn{session: s, lane: l, jobs: []job{j}}
	if err := t.catchUp(l.hard); err != nil {
		return err
	}
	if len(t.jobs) > 0 { // it had no answer yet
		l.Log.Error("message parked: the process crashed with it again and again", "message", j.Key(), "session", l.id)
		err = l.insist(l.hard, "park message", func(ctx context.Context) error {
			_, err := l.parked.Put(ctx, j.Key(), j.item.Body, store.Any)
			return err
		})
		if err != nil {
			return err
		}
		s.history.begin(j.Message)
		if err := t.end(l.hard, parked, wordsParked); err != nil {
			return err
		}
	}
	return l.tries.Delete(l.hard, j.Key())
}
