package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"parley/channels/discord/discordtest"
)

// onServers is Discord with chats of all kinds: the first of three is private,
// the second a channel of a server, the third a thread.
type onServers struct {
	onDiscord
	rooms map[int]string // by chat
}

// room returns the channel of the chat, which begins to exist.
func (v *onServers) room(chat int) string {
	id := v.rooms[chat]
	switch {
	case id != "":
	case chat%3 == 0:
		id = v.dm(chat)
	case chat%3 == 1:
		id = v.dc.Channel("900")
	default:
		id = v.dc.Thread(v.room(chat - 1))
	}
	v.rooms[chat] = id
	return id
}

func (v *onServers) say(chat int, text string) {
	if chat%3 != 0 {
		text = "<@101> " + text
	}
	v.dc.Say(v.room(chat), fmt.Sprint(person+chat), "", text)
	v.reach("after say")
}

func (v *onServers) wait(ctx context.Context, chat int, ok func([]string) bool) (texts []string, err error) {
	err = v.dc.WaitChat(ctx, v.room(chat), func(ms []discordtest.Message) bool {
		texts = nil
		for _, m := range ms {
			if m.FromBot() {
				texts = append(texts, words(m.Text))
			}
		}
		return ok(texts)
	})
	return texts, err
}

// connections counts those on which the bot was ready.
func (v *onServers) connections() (n int) {
	v.dc.Look(func(view discordtest.View) {
		begun, resumed := view.Sessions()
		n = begun + resumed
	})
	return n
}

// A discordSiege kills the program while people talk in old chats and in new ones.
type discordSiege struct {
	*siege
	discord *onServers
	rnd     *rand.Rand
	unheard []int // private chats whose messages may all have been written while nobody listened
}

// speak has people write: somewhere new, or where they did before.
func (s *discordSiege) speak() {
	for range 1 + s.rnd.IntN(3) {
		chat := len(s.asked)
		if chat == 0 || s.rnd.IntN(2) == 0 {
			if s.asked = append(s.asked, 0); chat%3 == 0 {
				s.unheard = append(s.unheard, chat)
			}
		} else {
			chat = s.rnd.IntN(chat)
		}
		kinds := []string{"plain", "plain", "plain", "tool", "tool", "tell", "slow", "slow"}
		s.tell(chat, kinds[s.rnd.IntN(len(kinds))])
	}
}

// settle brings the program back and waits until everything is answered. Who
// wrote in private for the first time, maybe unheard, writes once more.
func (s *discordSiege) settle() {
	s.t.Helper()
	before := s.discord.connections()
	s.revive()
	s.online(before)
	for _, chat := range s.unheard {
		s.tell(chat, "plain")
	}
	s.unheard = nil
	s.answered()
}

// online waits for a connection after the first n.
func (s *discordSiege) online(n int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), waitTime)
	defer cancel()
	err := s.dc.Wait(ctx, func(v discordtest.View) bool {
		begun, resumed := v.Sessions()
		return begun+resumed > n && v.Online()
	})
	if err != nil {
		s.t.Fatalf("the bot does not come to Discord: %v", err)
	}
}

// TestTortureDiscord kills the real program while people talk on Discord in
// private, in servers and in threads, in many of them for the first time while it
// is dead, with tools and streamed answers; and sometimes Discord forgets the
// session meanwhile. Every message is answered, in order, and none twice (P1, P3, P9).
func TestTortureDiscord(t *testing.T) {
	t.Parallel()
	kills := 8
	switch {
	case os.Getenv("PARLEY_TORTURE") != "":
		kills = 200
	case testing.Short():
		kills = 2
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	s := &discordSiege{
		siege: &siege{died: make(chan string, 1), slow: 20 * time.Millisecond},
		rnd:   rand.New(rand.NewPCG(seed, 0)),
	}
	s.testGateway = newTestGateway(t, s.answer)
	s.discord = &onServers{rooms: map[int]string{}}
	s.discord.onDiscord = venues["discord"](s.testGateway, s.reach).(onDiscord)
	s.venue = s.discord
	s.revive()
	s.online(0)
	forget := func() {
		if s.rnd.IntN(3) == 0 {
			s.dc.Forget()
		}
	}
	for s.kills < kills { // twice, because a message over which the program dies three times would be put aside (P8)
		s.killAt(sometime(s.rnd), s.speak)
		forget()
		s.killAt(sometime(s.rnd), func() {
			s.speak()
			s.revive()
		})
		forget()
		s.speak()
		s.settle()
	}
	s.lift()
	all := 0
	for _, n := range s.asked {
		all += n
	}
	t.Logf("%d kills, %d chats, %d messages", s.kills, len(s.asked), all)
	if left := strings.Count(s.log.String(), "message suspended"); left > 0 {
		t.Errorf("%d messages were suspended", left)
	}
}
