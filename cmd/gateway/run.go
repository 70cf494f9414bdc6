package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/chat"
	"parley/cmd/gateway/sandboxes"
	"parley/config"
	"parley/host"
	"parley/store"
)

// The time that shutting down may take. With the three seconds that a channel
// has for what is on its way it is less than 20 from the signal to the end (P16).
const (
	turnTime  = 12 * time.Second // for turns to finish
	drainTime = 3 * time.Second  // for their answers to be sent
	strayTime = time.Second      // for tools that were given up on
)

// run runs all parts until ctx ends, and then shuts them down: nothing more is
// received, turns finish, their answers are sent (P16).
func (g *gateway) run(ctx context.Context, leave context.CancelCauseFunc) error {
	work, rest := context.WithCancel(context.WithoutCancel(ctx))
	defer rest()
	var outbox, intake sync.WaitGroup
	run := func(wg *sync.WaitGroup, part func() error) {
		wg.Go(func() {
			if err := part(); err != nil {
				leave(err)
			}
		})
	}
	g.mcp.SignIn.Start() // before anybody can answer what nobody waits for
	run(&outbox, func() error { return g.hub.Work(work) })
	outbox.Go(func() { g.auditLog.Run(work) })
	outbox.Go(func() { g.cache.Run(work) })
	outbox.Go(func() { g.stats.Run(work) })
	outbox.Go(func() { g.observer.Traffic().Keep(work, g.store.Bucket(store.BucketTraffic), g.Log) })
	outbox.Go(func() { g.mcp.Run(work) }) // turns that finish use it
	run(&intake, func() error { return g.pool.Run(ctx) })
	run(&intake, func() error { return g.receive(ctx) })
	run(&intake, func() error { return g.scheduler.Run(ctx) })
	intake.Go(func() { g.Watch(ctx, g.apply) })
	intake.Go(func() { g.shell.Run(ctx) })
	intake.Go(func() { host.SaveMemory(ctx, g.gcPercent) })
	intake.Go(func() { g.copies().Run(ctx) })
	intake.Go(func() { upkeepOf(g).Run(ctx) })
	intake.Go(func() { sandboxes.LogChoice(ctx, g.sandbox, g.Log) })
	intake.Go(func() { g.verifier.Run(ctx, g.tellDamage) })
	intake.Go(func() { g.servers.Serve(leave) })
	<-ctx.Done()
	g.Log.Debug("closing", "why", context.Cause(ctx))
	defer time.AfterFunc(time.Second, func() { fmt.Fprintln(g.Stderr, closingNote) }).Stop()
	var calls sync.WaitGroup // whoever waits for an answer still gets it
	calls.Go(func() { g.servers.Shutdown(work) })
	intake.Wait()
	draining, stop := context.WithTimeout(work, drainTime)
	g.hub.Drain(draining)
	stop()
	rest()
	outbox.Wait()
	_ = g.mcpServer.Close() // its sessions have ended, whatever they say
	_ = g.servers.Close()   // close says what is wrong
	calls.Wait()
	return why(ctx)
}

// closingNote tells whoever waits for the end why it takes time.
const closingNote = "finishing what is under way, for 20 seconds at most; " +
	"Ctrl-C twice ends it at once and loses nothing"

// receive lets people in. At a chat of this process the other networks wait.
func (g *gateway) receive(ctx context.Context) error {
	deliver := g.observer.Deliver(func(ctx context.Context, m chat.Message) error {
		if err := g.checkIntake(ctx, m); err != nil {
			return err
		}
		err := g.pool.Deliver(ctx, m)
		g.full.Store(errors.Is(err, store.ErrFull))
		return err
	})
	if g.Chat {
		return g.hub.Receive(ctx, deliver, "console")
	}
	return g.hub.Receive(ctx, deliver)
}

// why returns the error that ended ctx, nil if it was meant to end.
func why(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, errLeft) && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// apply goes on with what c says and could not be told before.
func (g *gateway) apply(c *config.Config) error {
	access, err := c.Rules()
	if err != nil {
		return err
	}
	settings, err := g.settings(context.Background(), c)
	if err != nil {
		return err
	}
	g.hub.Access().SetRules(access)
	g.pool.Set(settings)
	g.now.Store(c)
	g.auditLog.Add("config", "config.json", "reloaded")
	for _, w := range c.Warnings() {
		g.Log.Warn(w)
	}
	g.keepGoodConfig(c)
	return nil
}

// close ends what build made. Everything that uses it has ended.
func (g *gateway) close() error {
	ctx, stop := context.WithTimeout(context.Background(), strayTime)
	defer stop()
	if err := g.strays.Wait(ctx); err != nil {
		g.Log.Warn("tools still at work", "err", err)
	}
	var errs []error
	if g.servers != nil {
		errs = append(errs, g.servers.Close())
	}
	if g.auditLog != nil {
		g.auditLog.Flush()
	}
	if g.files != nil {
		errs = append(errs, g.files.Close())
	}
	if g.customTools != nil {
		errs = append(errs, g.customTools.Close())
	}
	if g.workspaceLock != nil {
		errs = append(errs, g.workspaceLock.Close())
	}
	if g.store != nil {
		errs = append(errs, g.store.Close())
	}
	if g.unlockData != nil {
		errs = append(errs, g.unlockData())
	}
	return errors.Join(errs...)
}
