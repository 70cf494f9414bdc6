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
	"sync/atomic"
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
	plain := func(do func(n *scriptGateway, ts *testscript.TestScript, args []string)) func(*testscript.TestScript, bool, []string) {
		return func(ts *testscript.TestScript, negated bool, args []string) {
			n := ts.Value(scriptGatewayKey{}).(*scriptGateway)
			if negated || n.testGateway == nil {
				ts.Fatalf("there are no networks, or the command is negated")
			}
			do(n, ts, args)
		}
	}
	return map[string]func(*testscript.TestScript, bool, []string){
		"networks": func(ts *testscript.TestScript, _ bool, _ []string) {
			ts.Value(scriptGatewayKey{}).(*scriptGateway).begin(ts)
		},
		"config":  plain((*scriptGateway).addConfig),
		"model":   plain((*scriptGateway).breakModel),
		"gateway": plain((*scriptGateway).runGateway),
		"finish":  plain((*scriptGateway).stopGateway),
		"say":     plain((*scriptGateway).sayAs),
		"block":   plain((*scriptGateway).blockBot),
		"quiet":   plain((*scriptGateway).countMessages),
		"find":    plain((*scriptGateway).findInOutput),
		"recent":  plain((*scriptGateway).wantRecent),
		"hear":    plain((*scriptGateway).waitForMessage),
		"until":   plain((*scriptGateway).repeatUntil),
		"log":     plain((*scriptGateway).waitForLog),
		"nowhere": plain((*scriptGateway).wantNowhere),
	}
}

// A scriptGateway is among the values of a script.
type scriptGateway struct {
	testGateway *testGateway // nil before the networks begin
	test        testscript.T
	refuses     atomic.Bool // the model refuses the key
}

type scriptGatewayKey struct{}

func (n *scriptGateway) begin(ts *testscript.TestScript) {
	n.testGateway = newTestGateway(n.test.(testing.TB), func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		if n.refuses.Load() {
			return llmtest.Reply{Status: http.StatusUnauthorized}
		}
		return echo(ctx, r)
	})
	n.testGateway.dir = filepath.Join(ts.Getenv("HOME"), ".parley")
	ts.Check(os.MkdirAll(n.testGateway.dir, 0o700))
	ts.Defer(n.testGateway.kill)
	ts.Setenv("TOWN_MODEL_KEY", canaryKey)
	ts.Setenv("TOWN_BOT_TOKEN", n.testGateway.tg.Token())
	ts.Setenv("TELEGRAM", n.testGateway.tg.URL)
	n.testGateway.config()
}

func (n *scriptGateway) addConfig(ts *testscript.TestScript, args []string) {
	var value any
	ts.Check(json.Unmarshal([]byte(args[1]), &value))
	n.testGateway.more[args[0]] = value
	n.testGateway.config()
}

func (n *scriptGateway) breakModel(ts *testscript.TestScript, args []string) {
	switch args[0] {
	case "refuses":
		n.refuses.Store(true)
	case "gone":
		n.testGateway.llm.Close()
	default:
		ts.Fatalf("a model refuses or is gone")
	}
}

func (n *scriptGateway) runGateway(ts *testscript.TestScript, args []string) {
	n.testGateway.args = args
	n.testGateway.start()
	ts.Setenv("PID", strconv.Itoa(n.testGateway.proc.cmd.Process.Pid))
}

func (n *scriptGateway) stopGateway(ts *testscript.TestScript, _ []string) {
	if code := n.testGateway.stop(); code != 0 {
		ts.Fatalf("the gateway ends with exit code %d", code)
	}
}

func personOf(ts *testscript.TestScript, arg string) int64 {
	person, err := strconv.ParseInt(arg, 10, 64)
	ts.Check(err)
	return person
}

func (n *scriptGateway) sayAs(ts *testscript.TestScript, args []string) {
	n.testGateway.tg.Say(personOf(ts, args[0]), args[1])
}

func (n *scriptGateway) blockBot(ts *testscript.TestScript, args []string) {
	n.testGateway.tg.Block(personOf(ts, args[0]))
}

func (n *scriptGateway) countMessages(ts *testscript.TestScript, args []string) {
	if texts := botTexts(n.testGateway.tg.Chat(personOf(ts, args[0]))); strconv.Itoa(len(texts)) != args[1] {
		ts.Fatalf("the bot said %q", texts)
	}
}

func (n *scriptGateway) findInOutput(ts *testscript.TestScript, args []string) {
	want, text := regexp.MustCompile(args[0]), ts.ReadFile("stdout")
	if !want.MatchString(text) {
		ts.Fatalf("the output is %q", text)
	}
	setFound(ts, want, text)
}

func (n *scriptGateway) wantRecent(ts *testscript.TestScript, args []string) {
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

func (n *scriptGateway) waitForMessage(ts *testscript.TestScript, args []string) {
	want := regexp.MustCompile(args[1])
	texts := n.testGateway.told(personOf(ts, args[0]), args[1], func(texts []string) bool {
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

func (n *scriptGateway) repeatUntil(ts *testscript.TestScript, args []string) {
	want := regexp.MustCompile(args[0])
	for late := time.Now().Add(waitTime); ; soon(n.testGateway.t.Context()) {
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

func (n *scriptGateway) waitForLog(ts *testscript.TestScript, args []string) {
	want := regexp.MustCompile(args[0])
	for late := time.After(waitTime); ; {
		text, more := n.testGateway.log.next()
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

func (n *scriptGateway) wantNowhere(ts *testscript.TestScript, args []string) {
	n.testGateway.grep(args[0])
	for _, r := range n.testGateway.llm.Requests() {
		if bytes.Contains(r.Body, []byte(args[0])) {
			ts.Fatalf("%q reached the model", args[0])
		}
	}
}
