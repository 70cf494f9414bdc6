package nats

import "time"

// A moment is when something happened, for the time since then, in which a machine that sleeps counts.
type moment struct {
	clock time.Time
	awake time.Duration // as uptime says
}

func now() moment { return moment{clock: time.Now(), awake: uptime()} }

// elapsed returns how long ago it was.
func (m moment) elapsed() time.Duration { return max(time.Since(m.clock), uptime()-m.awake) }
