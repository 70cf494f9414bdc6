package store_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"parley/store"
)

func TestInOrder(t *testing.T) {
	wrong := errors.New("wrong")
	for _, tt := range []struct {
		name          string
		queued        bool
		first, second error
		want          []string
		err           error
	}{
		{"one after the other", false, nil, nil, []string{"first", "second"}, nil},
		{"the first fails", false, wrong, nil, []string{"first"}, wrong},
		{"the second fails", false, nil, wrong, []string{"first", "second"}, wrong},
		{"the first fails late", true, wrong, nil, []string{"second", "first"}, wrong},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var mu sync.Mutex
			var done []string
			seconds := make(chan struct{})
			note := func(what string) {
				mu.Lock()
				defer mu.Unlock()
				done = append(done, what)
			}
			err := store.InOrder(t.Context(), func(ctx context.Context) error {
				if tt.queued {
					store.Queued(ctx)
					store.Queued(ctx)
					<-seconds
				}
				note("first")
				return tt.first
			}, func(context.Context) error {
				note("second")
				close(seconds)
				return tt.second
			})
			if !errors.Is(err, tt.err) || !slices.Equal(done, tt.want) {
				t.Errorf("done %q, %v; want %q, %v", done, err, tt.want, tt.err)
			}
		})
	}
}
