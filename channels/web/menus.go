package web

import (
	"context"
	"net/http"
	"sync/atomic"

	"parley/channels"
)

// Menus are what the message box proposes.
type menus struct {
	channel  *Channel
	commands atomic.Pointer[[]channels.Command]
}

// SetCommands implements [channels.CommandMenu].
func (c *Channel) SetCommands(_ context.Context, cs []channels.Command) error {
	c.menus.commands.Store(&cs)
	return nil
}

// models returns the names of the models that the person of req may choose.
func (m *menus) models(req request) ([]string, error) {
	c := m.channel
	if c.cfg.Models == nil {
		return nil, nil
	}
	return c.cfg.Models(req.r.Context(), c.address(req.who.ID, ""), req.who)
}

// A menuCommand is a slash command that the message box proposes.
type menuCommand struct {
	Name string `json:"name"`
	Help string `json:"help"`
}

// serve sends them: commands, the names of models, and which of them answers.
func (m *menus) serve(req request) error {
	answer := struct {
		Commands []menuCommand `json:"commands"`
		Models   []string      `json:"models"`
		Model    string        `json:"model"`
	}{Commands: []menuCommand{}, Models: []string{}}
	if cs := m.commands.Load(); cs != nil {
		for _, command := range *cs {
			answer.Commands = append(answer.Commands, menuCommand(command))
		}
	}
	models, err := m.models(req)
	if err != nil {
		return err
	}
	answer.Models = append(answer.Models, models...)
	if answer.Model, err = m.channel.cfg.Model(req.r.Context(), req.room.address, req.who); err != nil {
		return err
	}
	return req.writeJSON(http.StatusOK, answer)
}
