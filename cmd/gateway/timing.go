package main

import (
	"context"

	"parley/agent"
	"parley/chat"
	"parley/scheduler"
)

// openClock makes h.clock. It is wound up when the house lives.
func (h *house) openClock() {
	c := h.Config
	var own []scheduler.System
	if c.Dream.Cron != "" {
		own = append(own, scheduler.System{ID: dreamID, Schedule: scheduler.Schedule{Cron: c.Dream.Cron}, Do: h.dream})
	}
	if c.Heartbeat.Every > 0 {
		own = append(own, scheduler.System{ID: heartbeatID, Schedule: scheduler.Schedule{Every: c.Heartbeat.Every}, Do: h.heartbeat})
	}
	h.clock = scheduler.New(scheduler.Config{
		Store: h.store, Deliver: h.pool.Deliver, Role: h.roleNow, Tell: h.tellChat,
		Zone: c.zone(), Least: c.Cron.MinInterval, Most: c.Cron.Jobs, System: own, Log: h.Log,
	})
}

// roleNow says what from may do at a by now (R-S24).
func (h *house) roleNow(ctx context.Context, a chat.Address, from chat.Sender) (chat.Role, error) {
	role, err := h.hub.Role(ctx, a.Channel, from.ID)
	if err == nil && role != chat.Stranger && (a.Channel == "web" || a.Channel == "api") { // their keys are those of people of the web
		if may, err := h.web.May(ctx, from.ID); !may {
			return chat.Stranger, err
		}
	}
	return role, err
}

// tellChat says text at a, once for each id.
func (h *house) tellChat(ctx context.Context, id string, a chat.Address, text string) error {
	return h.hub.Send(ctx, chat.Reply{ID: id, To: a, Text: text})
}

// ended tells the clock how the run of a job came out.
func (h *house) ended(ctx context.Context, e agent.End) error {
	return h.clock.Ended(ctx, e.Message, scheduler.Ended{
		Outcome: scheduler.Outcome(e.Outcome), Text: e.Text, Tokens: e.Tokens, Cost: e.Cost, Tainted: e.Tainted,
	})
}

// limits are those of a day, as the agent knows them.
func (c *Config) limits() agent.Limits {
	l := c.Limits
	return agent.Limits{
		Person: agent.Limit(*l["person"]), Session: agent.Limit(*l["session"]), Job: agent.Limit(*l["job"]), Everybody: agent.Limit(*l["everybody"]),
	}
}
