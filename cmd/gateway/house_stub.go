package main

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"parley/channels/console"
)

// options is what a house is built of.
type options struct {
	Config         *Config
	Chat           bool   // the terminal of this process only, no other channel
	Ask            string // say this, print the answer to Stdout and end
	Terminal       console.Terminal
	Stdout, Stderr io.Writer
	Log            *slog.Logger
	Redact         *redactor
	// Watch calls apply with each new config until ctx ends.
	Watch func(ctx context.Context, apply func(*Config) error)
}

func serve(context.Context, options) error { return errors.New("there is no house yet") }

func probeStore(string) error { return errors.New("there is no store yet") }

func (p *program) instruments() instruments { return instruments{} }
