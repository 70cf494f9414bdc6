package discord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"parley/channels"
	"parley/chat"
)

// A directory knows who the bot is, where its channels belong, and by which id a
// person's private chat goes. It asks Discord once for each.
type directory struct {
	channel string // name in config.json
	api     *botAPI
	self    user // set by identify, before anything is received

	// onPrivateChat is called with the id of each private chat that we open.
	onPrivateChat func(ctx context.Context, id string)

	mu       sync.Mutex
	parents  map[string]string // by channel or thread: the channel of a thread, otherwise ""
	roles    map[string]string // by server: the bot's own role
	privates map[string]string // by person: the private chat
}

func newDirectory(channel string, api *botAPI) *directory {
	return &directory{
		channel:  channel,
		api:      api,
		parents:  map[string]string{},
		roles:    map[string]string{},
		privates: map[string]string{},
	}
}

// identify finds out who the bot is.
func (d *directory) identify(ctx context.Context) error {
	if d.self.ID != "" {
		return nil
	}
	var self user
	if err := d.api.call(ctx, "GET", "/users/@me", nil, &self); err != nil {
		return err
	}
	if !snowflake.MatchString(self.ID) {
		return errors.New("the server does not say who we are")
	}
	d.self = self
	return nil
}

// isSelf reports whether u is the bot.
func (d *directory) isSelf(u user) bool { return u.ID == d.self.ID }

// lookUp returns the value of key in cache, and asks for it if it is not there.
func (d *directory) lookUp(cache map[string]string, key string, ask func() (string, error)) (string, error) {
	d.mu.Lock()
	value, ok := cache[key]
	d.mu.Unlock()
	if ok {
		return value, nil
	}
	value, err := ask()
	if err != nil {
		return value, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	cache[key] = value
	return value, nil
}

// address returns the address of the chat with that id, in which author wrote. A
// private chat is named by the person, so that its address is the same whoever
// writes first.
func (d *directory) address(ctx context.Context, id, guild, author string) (chat.Address, error) {
	if guild == "" {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.privates[author] = id
		return d.privateAddress(author), nil
	}
	parent, err := d.lookUp(d.parents, id, func() (string, error) { return d.askParent(ctx, id) })
	if parent != "" {
		return chat.Address{Channel: d.channel, Chat: parent, Thread: id}, err
	}
	return chat.Address{Channel: d.channel, Chat: id}, err
}

// privateAddress returns the address of the private chat with that person.
func (d *directory) privateAddress(person string) chat.Address {
	if !snowflake.MatchString(person) {
		return chat.Address{Channel: d.channel}
	}
	return chat.Address{Channel: d.channel, Chat: "@" + person}
}

// The types of channels that are threads.
const (
	firstThreadType = 10
	lastThreadType  = 12
)

// askParent asks for the channel of a thread. It is "" for what is no thread.
func (d *directory) askParent(ctx context.Context, id string) (string, error) {
	var is struct {
		Type   int    `json:"type"`
		Parent string `json:"parent_id"`
	}
	err := d.api.call(ctx, "GET", "/channels/"+id, nil, &is)
	if err != nil && !hasCode(err, 403, 404) {
		return "", fmt.Errorf("ask about channel %s: %w", id, err)
	}
	if is.Type < firstThreadType || is.Type > lastThreadType {
		return "", nil
	}
	return is.Parent, nil
}

// role returns the bot's own role in the server, "" if there is none.
func (d *directory) role(ctx context.Context, guild string) (string, error) {
	return d.lookUp(d.roles, guild, func() (string, error) {
		var roles []struct {
			ID   string `json:"id"`
			Tags struct {
				Bot string `json:"bot_id"`
			} `json:"tags"`
		}
		err := d.api.call(ctx, "GET", "/guilds/"+guild+"/roles", nil, &roles)
		if err != nil && !hasCode(err, 403, 404) {
			return "", fmt.Errorf("ask for the roles of server %s: %w", guild, err)
		}
		for _, r := range roles {
			if r.Tags.Bot == d.self.ID {
				return r.ID, nil
			}
		}
		return "", nil
	})
}

// channelID returns the channel to write to. The private chat with a person is
// opened first.
func (d *directory) channelID(ctx context.Context, a chat.Address) (string, error) {
	id := cmp.Or(a.Thread, a.Chat)
	person, private := strings.CutPrefix(id, "@")
	if !snowflake.MatchString(person) {
		return "", channels.ForGood("%q is not a discord chat", a.Session())
	}
	if !private {
		return id, nil
	}
	return d.lookUp(d.privates, person, func() (string, error) {
		var opened struct {
			ID string `json:"id"`
		}
		query := map[string]string{"recipient_id": person}
		if err := d.api.call(ctx, "POST", "/users/@me/channels", query, &opened); err != nil {
			return "", err
		}
		if !snowflake.MatchString(opened.ID) {
			return "", errors.New("the server names no chat")
		}
		d.onPrivateChat(ctx, opened.ID)
		return opened.ID, nil
	})
}
