package nats

import (
	"time"

	"golang.org/x/sys/unix"
)

// uptime returns how long the machine has run, also asleep. The clock of package time stops when it sleeps.
func uptime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
