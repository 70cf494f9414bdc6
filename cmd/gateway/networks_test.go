package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"parley/llm/llmtest"
)

// networkCommands are the commands of scripts with networks around them: a
// Telegram, where people have numbers, and a model that repeats what it hears.
//
//	networks               begins; the config is home/.parley/config.json
//	config KEY JSON        adds a key to the config, with variables of the environment in it
//	model refuses          the model refuses the key from now on
//	model gone             the model cannot be reached any more
//	gateway [ARG…]         runs parley with these arguments in the background, as process $PID
//	finish                 ends it as SIGTERM does, and wants exit code 0
//	say PERSON TEXT        a person writes to the bot
//	block PERSON           a person blocks the bot
//	quiet PERSON N         wants the bot to have sent a person N messages
//	hear PERSON REGEXP     waits until the bot's last message to a person matches, and sets $found to the first group
//	until REGEXP COMMAND…  runs a command again and again until its output matches
//	find REGEXP            wants the output to match, and sets $found to the first group
//	recent ZONE REGEXP     wants the first group in the output to be a time of the last five minutes in a zone
//	log REGEXP             waits until the log of the gateway matches, and sets $found to the first group
//	nowhere TEXT           wants no file, no log and no request to the model to hold it
func networkCommands() map[string]func(*testscript.TestScript, bool, []string) {
	plain := func(do func(n *scriptTown, ts *testscript.TestScript, args []string)) func(*testscript.TestScript, bool, []string) {
		return func(ts *testscript.TestScript, negated bool, args []string) {
			n := ts.Value(scriptTownKey{}).(*scriptTown)
			if negated || n.town == nil {
				ts.Fatalf("there are no networks, or the command is negated")
			}
			do(n, ts, args)
		}
	}
	return map[string]func(*testscript.TestScript, bool, []string){
		"networks": func(ts *testscript.TestScript, _ bool, _ []string) { ts.Value(scriptTownKey{}).(*scriptTown).begin(ts) },
		"config":   plain((*scriptTown).addConfig),
		"model":    plain((*scriptTown).breakModel),
		"gateway":  plain((*scriptTown).runGateway),
		"finish":   plain((*scriptTown).stopGateway),
		"say":      plain((*scriptTown).sayAs),
		"block":    plain((*scriptTown).blockBot),
		"quiet":    plain((*scriptTown).countMessages),
		"find":     plain((*scriptTown).findInOutput),
		"recent":   plain((*scriptTown).wantRecent),
		"hear":     plain((*scriptTown).waitForMessage),
		"until":    plain((*scriptTown).repeatUntil),
		"log":      plain((*scriptTown).waitForLog),
		"nowhere":  plain((*scriptTown).wantNowhere),
	}
}

// A scriptTown is among the values of a script.
type scriptTown struct {
	town    *town // nil before the networks begin
	test    testscript.T
	refuses bool // the model refuses the key
}

type scriptTownKey struct{}

func (n *scriptTown) begin(ts *testscript.TestScript) {
	n.town = newTown(n.test.(testing.TB), func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		if n.refuses {
			return llmtest.Reply{Status: http.StatusUnauthorized}
		}
		return echo(ctx, r)
	})
	n.town.dir = filepath.Join(ts.Getenv("HOME"), ".parley")
	ts.Check(os.MkdirAll(n.town.dir, 0o700))
	ts.Defer(n.town.kill)
	ts.Setenv("TOWN_MODEL_KEY", canaryKey)
	ts.Setenv("TOWN_BOT_TOKEN", n.town.tg.Token())
	ts.Setenv("TELEGRAM", n.town.tg.URL)
	n.town.config()
}

func (n *scriptTown) addConfig(ts *testscript.TestScript, args []string) {
	var value any
	ts.Check(json.Unmarshal([]byte(args[1]), &value))
	n.town.more[args[0]] = value
	n.town.config()
}

func (n *scriptTown) breakModel(ts *testscript.TestScript, args []string) {
	switch args[0] {
	case "refuses":
		n.refuses = true
	case "gone":
		n.town.llm.Close()
	default:
		ts.Fatalf("a model refuses or is gone")
	}
}

func (n *scriptTown) runGateway(ts *testscript.TestScript, args []string) {
	n.town.args = args
	n.town.start()
	ts.Setenv("PID", strconv.Itoa(n.town.proc.cmd.Process.Pid))
}

func (n *scriptTown) stopGateway(ts *testscript.TestScript, _ []string) {
	if code := n.town.stop(); code != 0 {
		ts.Fatalf("the gateway ends with exit code %d", code)
	}
}

func personOf(ts *testscript.TestScript, arg string) int64 {
	person, err := strconv.ParseInt(arg, 10, 64)
	ts.Check(err)
	return person
}

func (n *scriptTown) sayAs(ts *testscript.TestScript, args []string) {
	n.town.tg.Say(personOf(ts, args[0]), args[1])
}

func (n *scriptTown) blockBot(ts *testscript.TestScript, args []string) {
	n.town.tg.Block(personOf(ts, args[0]))
}

func (n *scriptTown) countMessages(ts *testscript.TestScript, args []string) {
	if texts := botTexts(n.town.tg.Chat(personOf(ts, args[0]))); strconv.Itoa(len(texts)) != args[1] {
		ts.Fatalf("the bot said %q", texts)
	}
}

func (n *scriptTown) findInOutput(ts *testscript.TestScript, args []string) {
	want, text := regexp.MustCompile(args[0]), ts.ReadFile("stdout")
	if !want.MatchString(text) {
		ts.Fatalf("the output is %q", text)
	}
	setFound(ts, want, text)
}

func (n *scriptTown) wantRecent(ts *testscript.TestScript, args []string) {
	zone, err := time.LoadLocation(args[0])
	ts.Check(err)
	m := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if m == nil {
		ts.Fatalf("there is no %s", args[1])
	}
	when, err := time.ParseInLocation("2006-01-02 15:04", m[1], zone)
	ts.Check(err)
	if since := time.Since(when); since < 0 || since > 5*time.Minute {
		ts.Fatalf("%s is %v ago", m[0], since)
	}
}

func (n *scriptTown) waitForMessage(ts *testscript.TestScript, args []string) {
	want := regexp.MustCompile(args[1])
	texts := n.town.told(personOf(ts, args[0]), args[1], func(texts []string) bool {
		return len(texts) > 0 && want.MatchString(texts[len(texts)-1])
	})
	setFound(ts, want, texts[len(texts)-1])
}

// setFound sets $found to the first group of want in text.
func setFound(ts *testscript.TestScript, want *regexp.Regexp, text string) {
	if m := want.FindStringSubmatch(text); len(m) > 1 {
		ts.Setenv("found", m[1])
	}
}

func (n *scriptTown) repeatUntil(ts *testscript.TestScript, args []string) {
	want := regexp.MustCompile(args[0])
	for late := time.Now().Add(waitTime); ; soon(n.town.t.Context()) {
		_ = ts.Exec(args[1], args[2:]...) // its exit code may change, too
		text := ts.ReadFile("stdout")
		if want.MatchString(text) {
			setFound(ts, want, text)
			return
		}
		if time.Now().After(late) {
			ts.Fatalf("%q says %q", args[1:], text)
		}
	}
}

func (n *scriptTown) waitForLog(ts *testscript.TestScript, args []string) {
	want := regexp.MustCompile(args[0])
	for late := time.After(waitTime); ; {
		text, more := n.town.log.next()
		if want.MatchString(text) {
			setFound(ts, want, text)
			return
		}
		select {
		case <-more:
		case <-late:
			ts.Fatalf("the log says %q", text)
		}
	}
}

func (n *scriptTown) wantNowhere(ts *testscript.TestScript, args []string) {
	n.town.grep(args[0])
	for _, r := range n.town.llm.Requests() {
		if bytes.Contains(r.Body, []byte(args[0])) {
			ts.Fatalf("%q reached the model", args[0])
		}
	}
}
