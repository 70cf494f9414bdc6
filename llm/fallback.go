package llm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	cooldown    = 30 * time.Second // of a model that failed
	maxCooldown = 10 * time.Minute // even if the provider asks for more
)

// Fallback asks the models in turn until one answers (P11). After every *Error it
// asks the next one: another provider may have a valid key, credit, or a larger
// window. A model with a temporary error cools down for 30 seconds, or as long as
// its provider asks, and is asked last until then.
//
// If none answers, the error holds those of all models, and errors.As finds the
// first.
func Fallback(models ...Model) Model {
	if len(models) == 1 {
		return models[0]
	}
	return &fallback{models: models, coolUntil: make([]time.Time, len(models))}
}

type fallback struct {
	models []Model

	mu        sync.Mutex
	coolUntil []time.Time // by model
}

// Generate implements Model.
func (f *fallback) Generate(ctx context.Context, req Request, stream func(Delta)) (Message, error) {
	out := resettable{stream: stream}
	errs := make([]error, len(f.models))
	for _, i := range f.order() {
		out.reset()
		msg, err := f.models[i].Generate(ctx, req, out.send)
		if err == nil {
			f.setCoolUntil(i, time.Time{})
			return msg, nil
		}
		if ctx.Err() != nil {
			return Message{}, ctx.Err()
		}
		e, ok := errors.AsType[*Error](err)
		if !ok {
			return Message{}, err
		}
		if e.Temporary() {
			f.setCoolUntil(i, time.Now().Add(max(cooldown, min(e.After, maxCooldown))))
		}
		errs[i] = err
	}
	return Message{}, joinErrors(errs)
}

// order returns the models that are ready, then those that cool down.
func (f *fallback) order() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ready, cooling []int
	for i, until := range f.coolUntil {
		if time.Now().Before(until) {
			cooling = append(cooling, i)
		} else {
			ready = append(ready, i)
		}
	}
	return append(ready, cooling...)
}

func (f *fallback) setCoolUntil(i int, t time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.coolUntil[i] = t
}

// joinErrors returns an error with the texts of all. errors.As finds the first.
func joinErrors(errs []error) error {
	if len(errs) == 0 {
		return &Error{Kind: BadRequest, Err: errors.New("no model is set")}
	}
	err := errs[0]
	for _, next := range errs[1:] {
		err = fmt.Errorf("%w; then %w", err, next)
	}
	return err
}
