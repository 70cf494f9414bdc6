package console

import (
	"context"
	"slices"
	"strings"

	"parley/channels"
)

// SetCommands implements [channels.CommandMenu]: terminals complete the names.
func (c *Channel) SetCommands(_ context.Context, cs []channels.Command) error {
	c.mu.Lock()
	c.commands = nil
	for _, command := range cs {
		c.commands = append(c.commands, command.Name)
	}
	clients := slices.Clone(c.clients)
	c.mu.Unlock()
	for _, k := range clients {
		c.sendCommands(k)
	}
	return nil
}

// sendCommands sends k the names of the commands, unless it is a pipe.
func (c *Channel) sendCommands(k *client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !k.pipe && len(c.commands) > 0 {
		k.conn.send(frame{Kind: frameCommands, Text: strings.Join(c.commands, " ")})
	}
}
