package discord

import "time"

// Hasten shortens what a test would wait for.
func (c *Channel) Hasten(patience, calm time.Duration) {
	c.patience, c.haste, c.calm = patience, calm, calm
}
