package telegram

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"

	"github.com/go-telegram/bot/models"
)

// An identity is who the bot is at Telegram. Its user name is needed in groups
// only, so the first poll and private chats do not wait for it.
type identity struct {
	api       *botAPI
	id        string
	allGroups bool // it is to read everything in groups
	log       *slog.Logger

	mu       sync.Mutex // held while the user name is requested
	username string     // empty until it is needed
}

func newIdentity(cfg *Config, api *botAPI, log *slog.Logger) *identity {
	id, _, _ := strings.Cut(cfg.Token, ":")
	return &identity{api: api, id: id, allGroups: cfg.Groups == "all", log: log}
}

// name returns the bot's user name.
func (i *identity) name(ctx context.Context) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.username != "" {
		return i.username, nil
	}
	me, err := i.api.bot.GetMe(ctx)
	if err != nil {
		return "", i.api.redactedError("ask for the bot's name", err)
	}
	i.username = me.Username
	if i.allGroups && !me.CanReadAllGroupMessages {
		i.log.Warn("telegram shows the bot only some messages of groups:" +
			" to get all, send /setprivacy to @BotFather and add the bot to the group again")
	}
	return i.username, nil
}

// is reports whether u is the bot.
func (i *identity) is(u *models.User) bool {
	return u != nil && strconv.FormatInt(u.ID, 10) == i.id
}
