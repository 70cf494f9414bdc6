package control

import (
	"context"
	"time"

	"parley/agent"
	"parley/agent/timeline"
	"parley/channels"
	"parley/chat"
	"parley/llm"
	"parley/memory"
	"parley/texts"
	"parley/web"
	"parley/web/layout"
	"parley/web/memorypages"
	"parley/web/peoplepages"
	"parley/web/talkpages"
)

// People is what the pages about people show: who they are, what they said, and what is remembered of it.
type People struct {
	Hub   *channels.Hub
	Pool  *agent.Pool
	Notes *memory.Notes
	Steps texts.Steps
	Price func(model string, u llm.Usage) (cost float64, known bool)
	Limit func() (tokens int, money float64) // of each person, a day
	Zone  *time.Location
	Audit func(kind, who, what string)
	Web   func() *web.Server
}

// Pages returns the pages about people.
func (p People) Pages() []layout.Pages {
	talks := p.Pool.Sessions()
	reader := timeline.Reader{Pool: p.Pool, Texts: p.Steps, Price: p.Price}
	return []layout.Pages{
		&memorypages.Pages{Notes: p.Notes, Zone: p.Zone, Audit: p.Audit},
		&talkpages.Pages{List: talks.Talks, Search: talks.Search, Turns: reader.Turns, Names: p.names, Zone: p.Zone},
		&peoplepages.Pages{
			Access: p.Hub.Access(), Talks: talks.Talks, Usage: p.Pool.Budget().Usage, Limit: p.Limit, Zone: p.Zone,
			Audit: p.Audit, Stop: p.stop,
			Invited: func(ctx context.Context) (map[string]time.Time, error) { return p.Web().Invited(ctx) },
		},
	}
}

// names returns what people call themselves who were let in by a code, by where they write: telegram:42.
func (p People) names(ctx context.Context) (map[string]string, error) {
	paired, err := p.Hub.Access().Paired(ctx)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, one := range paired {
		names[one.At.Channel+":"+one.At.Chat] = one.Name
	}
	return names, nil
}

// stop ends what is under way for the person or the group with that ID on channel. The work of those who are owners by
// now goes on, also in a group that is blocked: they are still heard there.
func (p People) stop(ctx context.Context, channel, id, who string) error {
	if channel == "web" {
		p.Web().Disconnect(id)
	}
	is := func(at chat.Address, from chat.Sender) bool {
		isOwner := p.Hub.Access().Rules().Role(at.Channel, from.ID) == chat.Owner
		return at.Channel == channel && (from.ID == id || at.Chat == id) && !isOwner
	}
	return p.Pool.Underway().StopAll(ctx, is, who)
}
