package nats

import (
	"time"

	client "github.com/nats-io/nats.go"
)

// WithOptions returns cfg with options of the client.
func WithOptions(cfg Config, options ...client.Option) Config {
	cfg.options = options
	return cfg
}

// WithLeaseTime returns cfg with another time after which locks are taken over.
func WithLeaseTime(cfg Config, d time.Duration) Config {
	cfg.leaseTime = d
	return cfg
}
