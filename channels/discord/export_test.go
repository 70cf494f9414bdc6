package discord

import "time"

// Hasten shortens what a test would wait for.
func (c *Channel) Hasten(patience, calm time.Duration) {
	c.patience, c.haste, c.calm = patience, calm, calm
}

// Remember sets how often the position in Discord's events is stored.
func (c *Channel) SaveEvery(every time.Duration) { c.saveInterval = every }
