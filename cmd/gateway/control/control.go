// Package control gives the owner's pages what the gateway's parts know, and stops what
// runs: for the dashboard, the log, the pages of tools, and that of memory.
package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/agent"
	"parley/chat"
	"parley/host"
	"parley/redact"
	"parley/scheduler"
	"parley/sizes"
	"parley/store"
	"parley/web/dashboard"
	"parley/web/layout"
	"parley/web/live"
	"parley/web/logs"
	"parley/web/traffic"
)

// Config is what a dashboard shows.
type Config struct {
	Pool      *agent.Pool
	Scheduler *scheduler.Scheduler
	Traffic   *traffic.Counter
	Recent    *redact.Recent
	Store     store.Store
	DataDir   string
	Zone      *time.Location
	Models    func() (usual string, all []string)
}

// Pages returns the dashboard of c, and the pages of the log.
func Pages(c Config) (*dashboard.Dashboard, layout.Pages) {
	streams := live.New()
	log := &logs.Pages{Recent: c.Recent, Streams: streams, Zone: c.Zone}
	return dashboard.New(dashboard.Config{
		Zone:     c.Zone,
		Traffic:  c.Traffic,
		Streams:  streams,
		Usage:    c.Pool.Budget().Usage,
		Problems: c.Recent.Count,
		Disk:     c.disk,
		Models:   c.models,
		Work:     c.work,
		Stop:     c.stop,
		Waiting: func(ctx context.Context) (int, error) {
			s, err := c.Pool.Status(ctx)
			return s.Waiting, err
		},
	}), log
}

// models returns the names of the models, that of conversations that chose none first.
func (c Config) models() []string {
	usual, all := c.Models()
	others := slices.DeleteFunc(all, func(name string) bool { return name == usual })
	return append([]string{usual}, others...)
}

// disk returns what was measured last.
func (c Config) disk(ctx context.Context) (dashboard.Disk, error) {
	samples, err := sizes.Samples(ctx, c.Store)
	if err != nil || len(samples) == 0 {
		return dashboard.Disk{}, nil // as if nothing had been measured: the next sample takes its place
	}
	last := samples[len(samples)-1]
	d := dashboard.Disk{Measured: last.Time, Bytes: last.Bytes}
	for _, s := range slices.Backward(samples) {
		if last.Time.Sub(s.Time) >= 7*24*time.Hour {
			d.Grown = last.Total() - s.Total()
			break
		}
	}
	if free, _, known := host.FreeSpace(c.DataDir); known {
		d.Free = free
	}
	return d, nil
}

// systemPrefix begins the IDs of runs of the gateway's own jobs.
const systemPrefix = "job:"

// work lists what is under way, with the names of jobs.
func (c Config) work(ctx context.Context) ([]chat.Work, error) {
	all, err := c.Pool.Underway().All(ctx)
	if err != nil {
		return nil, fmt.Errorf("list what is under way: %w", err)
	}
	system := c.Scheduler.SystemRuns().IDs()
	if len(system) == 0 && !slices.ContainsFunc(all, func(w chat.Work) bool { return w.Kind == chat.WorkJob }) {
		return all, nil
	}
	jobs, err := c.Scheduler.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	for _, j := range jobs {
		for i := range all {
			if all[i].Kind == chat.WorkJob && all[i].What == j.ID {
				all[i].What = j.Name
			}
		}
		if slices.Contains(system, j.ID) && len(j.Runs) > 0 {
			began := j.Runs[len(j.Runs)-1].Began
			all = append(all, chat.Work{ID: systemPrefix + j.ID, Kind: chat.WorkJob, What: j.Name, Since: began})
		}
	}
	return all, nil
}

// stop stops the work of that ID.
func (c Config) stop(ctx context.Context, id, who string) (chat.Work, error) {
	job, system := strings.CutPrefix(id, systemPrefix)
	if !system {
		return c.Pool.Underway().Stop(ctx, id, who)
	}
	if !c.Scheduler.SystemRuns().Stop(job) {
		return chat.Work{}, store.ErrNotFound
	}
	return chat.Work{ID: id, Kind: chat.WorkJob, What: job}, nil
}
