package llm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	rest    = 30 * time.Second // how long a model that failed is passed over
	maxRest = 10 * time.Minute // the longest that a provider's own wish makes it
)

// Fallback asks the models in turn until one answers (P11). Every *Error
// passes on to the next: another provider may have a valid key, credit, or a
// larger window. A model that failed for a while only is left alone for 30
// seconds, or as long as its provider asks, and asked last until then.
//
// When none answers, the error tells of all; errors.As finds that of the first.
func Fallback(models ...Model) Model {
	if len(models) == 1 {
		return models[0]
	}
	return &fallback{models: models, until: make([]time.Time, len(models))}
}

type fallback struct {
	models []Model
	mu     sync.Mutex
	until  []time.Time // until when each model rests
}

func (f *fallback) Generate(ctx context.Context, req Request, stream func(Delta)) (Message, error) {
	out := pieces{stream: stream}
	errs := make([]error, len(f.models))
	for _, i := range f.order() {
		out.reset()
		msg, err := f.models[i].Generate(ctx, req, out.send)
		if err == nil {
			f.restUntil(i, time.Time{})
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
			f.restUntil(i, time.Now().Add(max(rest, min(e.After, maxRest))))
		}
		errs[i] = err
	}
	return Message{}, all(errs)
}

// order lists the models that are ready, then those that rest.
func (f *fallback) order() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ready, resting []int
	for i, until := range f.until {
		if time.Now().Before(until) {
			resting = append(resting, i)
		} else {
			ready = append(ready, i)
		}
	}
	return append(ready, resting...)
}

func (f *fallback) restUntil(i int, t time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.until[i] = t
}

func all(errs []error) error {
	if len(errs) == 0 {
		return &Error{Kind: BadRequest, Err: errors.New("no model is set")}
	}
	err := errs[0]
	for _, next := range errs[1:] {
		err = fmt.Errorf("%w; then %w", err, next)
	}
	return err
}
