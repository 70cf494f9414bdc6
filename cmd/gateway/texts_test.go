package main

import (
	"fmt"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"parley/chat"
	"parley/scheduler"
	"parley/texts/textstest"
	"parley/tools/cron"
)

// allFromCatalogue wants text to be in the language of full-width letters, but
// for what data matches.
func allFromCatalogue(t *testing.T, text string, data *regexp.Regexp) {
	t.Helper()
	if rest := textstest.Foreign(text, data); rest != "" || text == "" {
		t.Errorf("%q is not in the catalogue, of\n%s", rest, text)
	}
}

// TestAllFromCatalogue gives /cron in a language of full-width letters: nobody is
// told a word that is not in the catalogue. Models are told the same in English.
func TestAllFromCatalogue(t *testing.T) {
	data := regexp.MustCompile("`[^`]*`|/[a-z]+|\\b(tea|dream|heartbeat|none|telegram|NOTE|CET|[0-9hms]*[0-9][hms])\\b")
	inBubble(t, func(t *testing.T, w *watch) {
		w.texts = textstest.Wide()
		n := 0
		say := func(text string) {
			t.Helper()
			n++
			m := chat.Message{ID: fmt.Sprint(n), At: inPrivate.At, From: inPrivate.From, Text: text}
			got, err := w.cmdCron(t.Context(), m)
			if err != nil {
				t.Error(err)
			}
			allFromCatalogue(t, got, data)
		}
		say("/cron sing")
		w.do(inPrivate, cron.Order{Action: "add", ID: "tea", Name: "tea", Message: "x", Every: 3600})
		for _, text := range []string{
			"/cron", "/cron history tea", "/cron history none", "/cron off tea", "/cron", "/cron on tea", "/cron run tea", "/cron",
			"/cron off dream", "/cron on dream", "/cron remove dream",
		} {
			say(text)
			synctest.Wait()
		}
		time.Sleep(90 * time.Second)
		if err := w.clock.Ended(t.Context(), w.ran[0], scheduler.Ended{Outcome: scheduler.Failed, Note: "NOTE", Tokens: 340, Cost: 0.0123}); err != nil {
			t.Fatal(err)
		}
		say("/cron")
		say("/cron history tea")
		w.says(w.do(inPrivate, cron.Order{Action: "disable", ID: "tea"}), "Disabled job tea")
		say("/cron remove tea")
	})
	say := jobTexts{texts: textstest.Wide().Gateway.Jobs, zone: time.UTC}
	for _, s := range []scheduler.Schedule{{At: time.Unix(0, 0)}, {Every: time.Minute}} {
		allFromCatalogue(t, say.schedule(s), data)
	}
	allFromCatalogue(t, say.list(make([]scheduler.Job, mostListed+1), chat.Address{}), data)
	allFromCatalogue(t, say.list(nil, chat.Address{}), data)
	for _, o := range []scheduler.Outcome{
		scheduler.Waiting, scheduler.Running, scheduler.Answered, scheduler.Sending, scheduler.Delivered, scheduler.Undelivered, scheduler.Silent,
		scheduler.Done, scheduler.Failed, scheduler.Interrupted, scheduler.Stopped, scheduler.Skipped, scheduler.Missing, scheduler.Refused,
	} {
		allFromCatalogue(t, say.outcome(o), data)
	}
}
