package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/cmd/gateway/control"
	"parley/cmd/gateway/sandboxes"
	"parley/cmd/gateway/upkeep"
	"parley/host"
)

// printBanner tells whoever started Parley what it runs with.
func (g *gateway) printBanner() {
	if g.Chat && !g.Terminal.Interactive() {
		return
	}
	for _, line := range g.Config.Banner(host.Version(), g.Chat) {
		fmt.Fprintln(g.Stderr, line)
	}
}

// report tells an owner how the channels do.
func (o ownerAPI) report(ctx context.Context) (lines []string) {
	say := o.app.texts.Gateway.Report
	states, dead, err := control.Watch{Hub: o.app.hub}.Report(ctx, say, o.app.Chat)
	if err != nil {
		o.app.Log.Error("status", "err", err)
		return []string{say.Failed}
	}
	lines = append(o.notices(), sandboxes.StatusLine(ctx, o.app.sandbox, say))
	lines = append(lines, toolboxOf(o.app).missingTools()...)
	return slices.Concat(lines, states, []string{say.OnDisk.With(o.disk(ctx))}, dead)
}

// disk tells what takes how much of the disk.
func (o ownerAPI) disk(ctx context.Context) string {
	return upkeep.Sizes(ctx, o.app.store, o.app.Config.Zone(), o.app.texts.Gateway.Report)
}

// startNotes returns what the owners should know of the start.
func (g *gateway) startNotes() []string {
	fault := g.now.Load().FellBack
	if fault == nil {
		return g.notes
	}
	first, _, _ := strings.Cut(fault.Error(), "\n")
	return append(slices.Clone(g.notes), g.texts.Gateway.Owners.ConfigFaulty.With(first))
}

// tellOwners has the owners know what went wrong at the start.
func (g *gateway) tellOwners(ctx context.Context) {
	for _, note := range g.startNotes() {
		if err := g.hub.TellOwners(ctx, g.began.Format(time.RFC3339Nano), note); err != nil {
			g.Log.Error("the owners were not told", "note", note, "err", err)
		}
	}
}

// notices returns the notes of the start, what damage was found since, and what is not archived.
func (o ownerAPI) notices() []string {
	say := o.app.texts.Gateway.Report
	unarchived := upkeep.Warnings(&o.app.faults, say)
	return slices.Concat(o.app.startNotes(), control.DamageWarning(say, o.app.verifier.Damaged()), unarchived)
}
