package admin

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

// TestCloseWaitsForOpen checks that a command that is interrupted while it opens a
// gateway closes that gateway all the same.
func TestCloseWaitsForOpen(t *testing.T) {
	c := NewClient(filepath.Join(t.TempDir(), "admin.sock"))
	opening := make(chan struct{})
	goOn := make(chan struct{})
	closed := false
	c.Open = func() (func() error, error) {
		close(opening)
		<-goOn
		return func() error {
			closed = true
			return nil
		}, nil
	}
	ctx, interrupt := context.WithCancel(t.Context())
	asked := make(chan error)
	go func() { asked <- c.Ask(ctx, "GET", "/api/status", nil, nil) }()
	<-opening
	interrupt()
	if err := <-asked; !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted question ended with %v", err)
	}
	go close(goOn)
	if err := c.Close(); err != nil || !closed {
		t.Errorf("Close returned %v; the gateway is closed: %v", err, closed)
	}
}
