package discord

import "time"

// Hasten shortens what a test would wait for.
func (c *Channel) Hasten(handshake, newSession time.Duration) {
	c.timing.handshake = handshake
	c.timing.leastBackoff = newSession
	c.timing.newSession = newSession
}

// SaveEvery sets how often the position in Discord's events is stored.
func (c *Channel) SaveEvery(interval time.Duration) { c.timing.saveInterval = interval }
