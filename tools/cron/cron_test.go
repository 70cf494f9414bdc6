package cron

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"parley/chat"
	"parley/llm"
	"parley/scheduler/jobs"
	"parley/texts"
	"parley/tools"
	"parley/tools/arguments"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

// at is a chat with an owner.
var at = tools.Scope{At: chat.Address{Channel: "telegram", Chat: "42"}, From: chat.Sender{ID: "42", Role: chat.Owner}, Turn: "t"}

// bench is a kit with the tool, and what its clock was told.
type bench struct {
	kit    *tools.Kit
	orders []jobs.Order
	keys   []string
	asked  int // approvals
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{}
	do := func(_ context.Context, _ jobs.Asker, key string, o jobs.Order) (jobs.Answer, error) {
		b.orders, b.keys = append(b.orders, o), append(b.keys, key)
		if o.Name == "wrong" {
			return jobs.Answer{}, errors.New("unknown timezone 'X'")
		}
		return jobs.Answer{Text: "done"}, nil
	}
	ask := func(context.Context, tools.Call, string) (bool, string, error) { b.asked++; return false, "42", nil }
	var err error
	b.kit, err = tools.NewKit(t.Context(), tools.Scope{}, []tools.Source{tools.Fixed{New(do)}}, tools.Standard(tools.StandardConfig{Approve: ask})...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) call(t *testing.T, s tools.Scope, id, args string) string {
	t.Helper()
	r := b.kit.Call(t.Context(), tools.Call{ToolCall: llm.ToolCall{ID: id, Name: "cron", Args: args}, Scope: s})
	text, _, _ := strings.Cut(r.Text, "\n\n[Analyze")
	return text
}

// D-094: only action is required, and the schema has no choice at its top. What
// the model is told of the tool changes only when somebody wants it to.
func TestD094Schema(t *testing.T) {
	spec := New(nil).ToolSpec
	var schema map[string]any
	if err := json.Unmarshal(spec.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	if want := []any{"action"}; schema["type"] != "object" || !reflect.DeepEqual(schema["required"], want) || schema["oneOf"] != nil || schema["anyOf"] != nil {
		t.Errorf("%s", spec.Schema)
	}
	var pretty bytes.Buffer
	pretty.WriteString(spec.Description + "\n\n")
	if err := json.Indent(&pretty, spec.Schema, "", "  "); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "spec.txt")
	if *update {
		if err := os.WriteFile(golden, pretty.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || !bytes.Equal(pretty.Bytes(), want) {
		t.Errorf("%v; it is now\n%s", err, &pretty)
	}
}

// D-094, E-005: models say the same in many words.
func TestD094Orders(t *testing.T) {
	yes := true
	for args, want := range map[string]jobs.Order{
		`{"action":"add","message":"Stretch","every_seconds":3600}`:                                               {Action: "add", Change: jobs.Change{Message: "Stretch", Every: 3600}},
		`{"action":"add","message":"Stretch","cron_expr":"0 9 * * *","tz":"Europe/Berlin"}`:                       {Action: "add", Change: jobs.Change{Message: "Stretch", Cron: "0 9 * * *", Zone: "Europe/Berlin"}},
		`{"action":"add","message":"Stretch","at":"2030-01-01T09:00:00","name":"S"}`:                              {Action: "add", Change: jobs.Change{Message: "Stretch", At: "2030-01-01T09:00:00", Name: "S"}},
		`{"action":"add","text":"Stretch","schedule":"0 9 * * *","timezone":"UTC"}`:                               {Action: "add", Change: jobs.Change{Message: "Stretch", Cron: "0 9 * * *", Zone: "UTC"}},
		`{"action":"add","prompt":"Stretch","seconds":"60","job_id":null}`:                                        {Action: "add", Change: jobs.Change{Message: "Stretch", Every: 60}},
		`{"action":"add","message":"x","expr":"@daily","every_seconds":0,"at":"","isolated":"true","quiet":true}`: {Action: "add", Change: jobs.Change{Message: "x", Cron: "@daily", Isolated: &yes, Quiet: &yes}},
		`{"action":"add","tool":"web_fetch","args":"{\"url\":\"https://a.example\"}","every_seconds":60}`:         {Action: "add", Change: jobs.Change{Tool: "web_fetch", Args: map[string]any{"url": "https://a.example"}, Every: 60}},
		`{"action":"edit","id":"j1","model":"small","missed":"skip"}`:                                             {Action: "edit", ID: "j1", Change: jobs.Change{Model: "small", Missed: "skip"}},
		`{"action":"list"}`: {Action: "list"},
	} {
		b := newBench(t)
		if got := b.call(t, at, "c1", args); got != "done" {
			t.Errorf("%s: %s", args, got)
			continue
		}
		got := b.orders[0]
		if want.Action == "add" {
			got.ID = ""
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", args, got, want)
		}
	}
}

// D-095, D-097: the exact texts of what is refused, and that it is not done.
func TestD095D097Refusals(t *testing.T) {
	in := func(change func(*tools.Scope)) tools.Scope { s := at; change(&s); return s }
	job := in(func(s *tools.Scope) { s.Origin = chat.FromSchedule })
	child := in(func(s *tools.Scope) { s.Depth, s.Origin = 1, chat.FromParent })
	api := in(func(s *tools.Scope) { s.At.Channel = "api" })
	const nested, none = "Error: cannot schedule new jobs from within a cron job execution", ""
	add := `{"action":"add","message":"x","every_seconds":60}`
	for _, c := range []struct {
		scope      tools.Scope
		args, want string
	}{
		{job, add, nested}, {child, add, nested},
		{job, `{"action":"enable","job_id":"j"}`, nested}, {child, `{"action":"run","job_id":"j"}`, nested}, {job, `{"action":"edit","job_id":"j","name":"n"}`, nested},
		{job, `{"action":"list"}`, none}, {job, `{"action":"remove","job_id":"j"}`, none}, {job, `{"action":"disable","job_id":"j"}`, none}, {child, `{"action":"history","job_id":"j"}`, none},
		{api, add, "Error: scheduled cron jobs must be created from a chat session"},
		{api, `{"action":"list"}`, none}, {api, `{"action":"remove","job_id":"j"}`, none},
		{at, `{"action":"remove"}`, "Error: job_id is required for remove"},
		{at, `{"action":"add","name":"wrong","message":"x","cron_expr":"@daily","tz":"X"}`, "Error: unknown timezone 'X'"},
		{at, `{"action":"pause"}`, `Error: Invalid parameters for tool 'cron': action must be one of ["add","list","remove","enable","disable","run","edit","history"]`},
	} {
		b := newBench(t)
		got, want := b.call(t, c.scope, "c1", c.args), c.want
		if want == none {
			want = "done"
		}
		if got != want {
			t.Errorf("%s: %q, want %q", c.args, got, want)
		}
		if done := len(b.orders) > 0; done != (c.want == none) && !strings.Contains(c.args, "wrong") {
			t.Errorf("%s: done is %v", c.args, done)
		}
	}
}

// R-S12, R-S24: once strangers have had a word a person is asked before anything
// changes; otherwise everybody may use the clock of their own chat unasked.
func TestRS24Approval(t *testing.T) {
	for _, c := range []struct {
		action         string
		tainted, owner bool
		asked          int
	}{
		{"add", true, true, 1}, {"add", true, false, 1}, {"add", false, true, 0}, {"add", false, false, 0},
		{"edit", true, true, 1}, {"run", true, true, 1}, {"enable", true, false, 1}, {"disable", true, true, 1}, {"remove", true, true, 1},
		{"list", true, true, 0}, {"list", true, false, 0}, {"history", true, false, 0}, {"remove", false, false, 0},
	} {
		b, s := newBench(t), at
		if s.Tainted = c.tainted; !c.owner {
			s.From.Role = chat.User
		}
		b.call(t, s, "c1", `{"action":"`+c.action+`","job_id":"j","message":"x","every_seconds":60}`)
		if b.asked != c.asked || len(b.orders) != 1-c.asked {
			t.Errorf("%+v: asked %d times, done %d times", c, b.asked, len(b.orders))
		}
	}
}

// P6: a call that is made again after a crash is for the same job, and no other call is.
func TestP6OneJobACall(t *testing.T) {
	b := newBench(t)
	add := `{"action":"add","message":"x","every_seconds":60,"job_id":"mine"}`
	b.call(t, at, "c1", add)
	b.call(t, at, "c2", add)
	again := newBench(t)
	again.call(t, at, "c1", add)
	one, two, same := b.orders[0].ID, b.orders[1].ID, again.orders[0].ID
	if b.keys[0] == b.keys[1] || b.keys[0] != again.keys[0] {
		t.Errorf("%q and %q", b.keys, again.keys)
	}
	if len(one) != 8 || one == two || one != same || !New(nil).Repeatable {
		t.Errorf("%s, %s and %s", one, two, same)
	}
}

// C-015: what a person is shown of a call.
func TestC015Preview(t *testing.T) {
	for args, want := range map[string]string{
		`{"action":"add","message":"Say  good\nmorning to all and everybody in the house, please","cron_expr":"0 9 * * *"}`: "“Say good morning to all and everybody in…” every day at 9:00",
		`{"action":"remove","job_id":"1a2b3c4d"}`:                                "remove 1a2b3c4d",
		`{"action":"add","every_seconds":3600}`:                                  "",
		`{"action":"add","every_seconds":3600,"name":"tea","message":"make it"}`: "“tea” every hour",
		`{"action":"add","at":"2026-11-23T22:59:33Z","name":"tea"}`:              "“tea”",
		`{}`:                                  "",
		`{"action":null,"message":7,"at":""}`: "",
	} {
		if got := New(nil).Preview(texts.English().Agent.Steps, arguments.Partial(args)); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}
