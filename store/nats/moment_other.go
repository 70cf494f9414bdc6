//go:build !linux

package nats

import "time"

// uptime would return how long the machine has run, also asleep. Systems that can be asked differ.
func uptime() time.Duration { return 0 }
