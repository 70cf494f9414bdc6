package elicit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/store/mem"
	"parley/texts"
	"parley/timetest"
	"parley/tools"
	"parley/tools/mcp"
	"parley/tools/mcp/elicit"
	"parley/tools/mcp/sampling"
)

// A person answers questions: each by the next of answers, or never.
type person struct {
	t         *testing.T
	mu        sync.Mutex
	answers   []string
	asked     []chat.Reply
	withdrawn []string
	told      []chat.Reply

	maxFields int          // of a form that the person is shown
	values    [][][]string // of the forms that they send
}

func (p *person) ask(ctx context.Context, r chat.Reply) (elicit.Answer, error) {
	p.mu.Lock()
	p.asked = append(p.asked, r)
	answer, waits := "", len(p.answers) == 0
	if !waits {
		answer = p.answers[0]
		p.answers = p.answers[1:]
	}
	p.mu.Unlock()
	if waits {
		<-ctx.Done()
		return elicit.Answer{}, ctx.Err()
	}
	for n, choice := range r.Ask.Choices {
		if r.Ask.TakesValues(n) && answer == choice {
			values := p.values[0]
			p.values = p.values[1:]
			return elicit.Answer{Index: n, Text: choice, Values: values}, nil
		}
		if choice == answer {
			return elicit.Answer{Index: n, Text: choice}, nil
		}
	}
	return elicit.Answer{Index: -1, Text: answer}, nil
}

func (p *person) withdraw(_ context.Context, id string) error {
	p.withdrawn = append(p.withdrawn, id)
	return nil
}

func (p *person) send(_ context.Context, r chat.Reply) error {
	p.told = append(p.told, r)
	return nil
}

// newInputs returns Inputs that ask p.
func (p *person) newInputs(s store.Store) *elicit.Inputs {
	return elicit.New(elicit.Config{
		Log:       slog.New(slog.DiscardHandler),
		Store:     s,
		Words:     elicit.Words{Elicit: &texts.English().Tools.Elicit, Form: &texts.English().Channels.Form},
		Ask:       p.ask,
		Withdraw:  p.withdraw,
		Send:      p.send,
		Patience:  func() time.Duration { return 15 * time.Minute },
		ShowsForm: func(_ chat.Address, fields int) bool { return fields <= p.maxFields },
		Sampler:   sampling.New(sampling.Config{}),
	})
}

func aCall() tools.Call {
	at := chat.Address{Channel: "telegram", Chat: "7"}
	scope := tools.Scope{Session: at.Session(), At: at, From: chat.Sender{ID: "7"}, Turn: "turn"}
	return tools.Call{ToolCall: llm.ToolCall{ID: "1", Name: "mcp_shop_order"}, Scope: scope}
}

func form(schema string) *sdk.ElicitParams {
	return &sdk.ElicitParams{Mode: "form", Message: "How many?", RequestedSchema: json.RawMessage(schema)}
}

func object(properties string) string {
	return `{"type":"object","properties":{` + properties + `}}`
}

// answer has p asked what a server of the latest protocol asks, and returns the result in JSON.
func (p *person) answer(asked *sdk.ElicitParams) string {
	p.t.Helper()
	i := p.newInputs(mem.New())
	q := mcp.Questions{All: sdk.InputRequestMap{"q": asked}, State: "state", Round: 1}
	if err := i.Keep(p.t.Context(), "shop", aCall(), q); err != nil {
		p.t.Fatal(err)
	}
	if !i.Kept(aCall()) {
		p.t.Fatal("the question is not kept")
	}
	given, err := i.Answer(p.t.Context(), aCall())
	if err != nil || given.State != "state" || given.Round != 1 || i.Kept(aCall()) {
		p.t.Fatalf("%+v %v", given, err)
	}
	r, _ := given.All["q"].(*sdk.ElicitResult)
	text, err := json.Marshal(r.Content)
	if err != nil {
		p.t.Fatal(err)
	}
	return r.Action + " " + string(text)
}

// Point by point what a person may answer, and what the server gets. What is not right is asked again.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, schema string
		answers      []string
		want         string
	}{
		{"nothing to fill in", `{"type":"object"}`, []string{"Agree"}, `accept {}`},
		{"no schema", `null`, []string{"Agree"}, `accept {}`},
		{"declined", `{"type":"object"}`, []string{"Decline"}, `decline null`},
		{"declined in words", object(`"n":{"type":"string"}`), []string{" decline. "}, `decline null`},
		{"cancelled in words", object(`"n":{"type":"string"}`), []string{"cancel"}, `cancel null`},
		{"text", object(`"n":{"type":"string","minLength":2,"maxLength":4}`), []string{"a", "abcde", "abc"}, `accept {"n":"abc"}`},
		{"e-mail", object(`"n":{"type":"string","format":"email"}`), []string{"nobody", "a@example.com"}, `accept {"n":"a@example.com"}`},
		{"address", object(`"n":{"type":"string","format":"uri"}`), []string{"nothing", "https://a.example"}, `accept {"n":"https://a.example"}`},
		{"date", object(`"n":{"type":"string","format":"date"}`), []string{"tomorrow", "2026-11-22"}, `accept {"n":"2026-11-22"}`},
		{"moment", object(`"n":{"type":"string","format":"date-time"}`), []string{"now", "2026-11-22T10:00:00Z"}, `accept {"n":"2026-11-22T10:00:00Z"}`},
		{"pattern", object(`"n":{"type":"string","pattern":"^[A-Z]+$"}`), []string{"abc", "ABC"}, `accept {"n":"ABC"}`},
		{"integer", object(`"n":{"type":"integer","minimum":1,"maximum":9}`), []string{"0", "2.5", "7"}, `accept {"n":7}`},
		{"number", object(`"n":{"type":"number","maximum":3}`), []string{"many", "4", "2,5"}, `accept {"n":2.5}`},
		{"thousands", object(`"n":{"type":"integer"}`), []string{"1,000", "1.000", "1000"}, `accept {"n":1000}`},
		{"thousand or one", object(`"n":{"type":"number"}`), []string{"-1,500", "-1500"}, `accept {"n":-1500}`},
		{"no infinite number", object(`"n":{"type":"number"}`), []string{"Inf", "NaN", "1"}, `accept {"n":1}`},
		{"boolean", object(`"n":{"type":"boolean"}`), []string{"maybe", "Yes"}, `accept {"n":true}`},
		{"boolean in words", object(`"n":{"type":"boolean"}`), []string{"false"}, `accept {"n":false}`},
		{"choice", object(`"n":{"type":"string","enum":["r","b"],"enumNames":["Red","Blue"]}`), []string{"Green", "blue"}, `accept {"n":"b"}`},
		{"titled choice", object(`"n":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"b","title":"Red"}]}`), []string{"Red (2)"}, `accept {"n":"b"}`},
		{"several", object(`"n":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["r","g","b"]}}`), []string{"x", "r,g,b", "1, b"}, `accept {"n":["r","b"]}`},
		{"left out", object(`"n":{"type":"string"}`), []string{"Skip"}, `accept {}`},
		{"default", object(`"n":{"type":"integer","default":3}`), []string{"skip"}, `accept {"n":3}`},
		{"required", `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`, []string{"Skip", "3"}, `accept {"n":3}`},
		{"required without a default", `{"type":"object","properties":{"n":{"type":"string","minLength":5,"default":""}},"required":["n"]}`, []string{"Skip", "green tea"}, `accept {"n":"green tea"}`},
		{"required list with an empty default", `{"type":"object","properties":{"n":{"type":"array","items":{"enum":["r"]},"default":[]}},"required":["n"]}`, []string{"Skip"}, `accept {"n":[]}`},
		{"empty default", object(`"n":{"type":"string","default":""}`), []string{"Skip"}, `accept {}`},
		{"two values", object(`"a":{"type":"boolean"},"b":{"type":"string"}`), []string{"No", "tea", "Send"}, `accept {"a":false,"b":"tea"}`},
		{"reviewed", object(`"a":{"type":"boolean"},"b":{"type":"string"}`), []string{"No", "tea", "Decline"}, `decline null`},
		{"sent by yes", object(`"a":{"type":"boolean"},"b":{"type":"string"}`), []string{"No", "tea", "what?", "Yes."}, `accept {"a":false,"b":"tea"}`},
		{"agreed by a letter", `{"type":"object"}`, []string{"y"}, `accept {}`},
		{"declined by no", `{"type":"object"}`, []string{"no"}, `decline null`},
		{"neither yes nor no", `{"type":"object"}`, []string{"a", "b", "c", "yes"}, `decline null`},
		{"never right", object(`"n":{"type":"integer"}`), []string{"a", "b", "c", "4"}, `decline null`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := &person{t: t, answers: c.answers}
			if got := p.answer(form(c.schema)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			first := p.asked[0]
			if !strings.Contains(first.Text, "MCP server `shop` asks") || !strings.Contains(first.Text, "> `How many?`") ||
				!strings.Contains(first.Text, "Never give it passwords") {
				t.Errorf("the person reads %q", first.Text)
			}
			for _, r := range p.asked {
				if !r.Ask.Alone || r.Ask.Whom != "7" || !strings.Contains(r.Text, "`shop`") || strings.Contains(r.Text, "``") {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}

// Who answers something else is told what is waited for.
func TestNeitherYesNorNo(t *testing.T) {
	t.Parallel()
	p := &person{t: t, answers: []string{"What is the time?", "Agree"}}
	if got := p.answer(form(`{"type":"object"}`)); got != "accept {}" {
		t.Error(got)
	}
	const want = "**I am waiting for your answer to this. Write “Agree” or “Decline”.**"
	if got := p.asked[1].Text; !strings.HasPrefix(got, want) || strings.HasPrefix(p.asked[0].Text, want) {
		t.Errorf("the person reads %q", got)
	}
}

// Where forms are shown, all values are asked for at once, but for one that is answered by a press. The server
// gets what it would have got for answers given one after another.
func TestForm(t *testing.T) {
	t.Parallel()
	two := `{"type":"object","required":["n"],"properties":{"n":{"type":"integer","minimum":1,"default":1000000},"day":{"type":"string","format":"date","title":"Day","description":"When?"}}}`
	all := object(`"a":{"type":"boolean"},"b":{"type":"array","items":{"anyOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}]},"default":["g"]},` +
		`"c":{"type":"string","enum":["r","g"],"enumNames":["g","r"]},"d":{"type":"number"},"e":{"type":"string"}`)
	for _, c := range []struct {
		name, schema string
		answers      []string
		values       [][][]string
		want         string
		asked        int
	}{
		{"sent", two, []string{"Send"}, [][][]string{{{"7"}, {"2026-11-23"}}}, `accept {"day":"2026-11-23","n":7}`, 1},
		{"left out", two, []string{"Send"}, [][][]string{{{"7"}, {}}}, `accept {"n":7}`, 1},
		{"declined", two, []string{"Decline"}, nil, `decline null`, 1},
		{"cancelled", two, []string{"Cancel"}, nil, `cancel null`, 1},
		{"all kinds", all, []string{"Send"}, [][][]string{{{"false"}, {}, {"g"}, {"2.5"}, {" tea "}}}, `accept {"a":false,"b":[],"c":"g","d":2.5,"e":"tea"}`, 1},
		{"nothing at all", all, []string{"Send"}, [][][]string{{{}, {"g"}, nil, {""}, {" "}}}, `accept {"b":["g"]}`, 1},
		{"not what was checked", two, []string{"Send", "Send"}, [][][]string{{{"0"}, {}}, {{"1"}, {}}}, `accept {"n":1}`, 2},
		{"never right", two, []string{"Send", "Send", "Send"}, [][][]string{{{"0"}, {}}, {}, {{"1"}, {"today"}}}, `decline null`, 3},
		{"one text", object(`"n":{"type":"string"}`), []string{"Send"}, [][][]string{{{"tea"}}}, `accept {"n":"tea"}`, 1},
		{"one choice", object(`"n":{"type":"string","enum":["r","b"]}`), []string{"b"}, nil, `accept {"n":"b"}`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := &person{t: t, answers: c.answers, values: c.values, maxFields: 20}
			if got := p.answer(form(c.schema)); got != c.want || len(p.asked) != c.asked {
				t.Errorf("%s after %d questions, want %s after %d", got, len(p.asked), c.want, c.asked)
			}
			first := p.asked[0]
			if !strings.Contains(first.Text, "MCP server `shop` asks") || !strings.Contains(first.Text, "Never give it passwords") || !first.Ask.Alone || first.Ask.Whom != "7" {
				t.Errorf("the person reads %+v", first)
			}
		})
	}
	p := &person{t: t, answers: []string{"Decline"}, maxFields: 2}
	p.answer(form(two))
	least := 1.0
	want := []chat.Field{
		{Kind: chat.FieldInteger, Label: "n", Hint: "a whole number, at least 1", Required: true, Min: &least, Preset: []string{"1000000"}},
		{Kind: chat.FieldText, Label: "Day", Note: "When?", Hint: "a date such as 2026-11-23", Format: "date"},
	}
	if q := p.asked[0].Ask; !reflect.DeepEqual(q.Fields, want) || q.Free {
		t.Errorf("the form is %+v", q)
	}
	p = &person{t: t, answers: []string{"Skip", "Skip", "Send"}, maxFields: 1}
	if got := p.answer(form(two)); got != `accept {"n":1000000}` || len(p.asked[0].Ask.Fields) != 0 {
		t.Errorf("without a form: %s", got)
	}
}

// Asked for in words, a value of a format says how it is written.
func TestFormats(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{
		"date":      "a date such as 2026-11-23",
		"date-time": "a date and time such as 2026-11-23T18:30:00Z",
		"email":     "an e-mail address such as name@example.com",
		"uri":       "an address such as https://example.com",
		"phone":     "a text of the format phone",
	} {
		p := &person{t: t, answers: []string{"?", "Decline"}}
		p.answer(form(object(`"n":{"type":"string","format":"` + format + `"}`)))
		if !strings.Contains(p.asked[0].Text, want) {
			t.Errorf("%s: %q", format, p.asked[0].Text)
		}
		if format != "phone" && !strings.Contains(p.asked[1].Text, "**This must be "+want+".**") {
			t.Errorf("%s again: %q", format, p.asked[1].Text)
		}
	}
}

// R-S22: what a form shows of a server is cut and plain, and a secret is warned of.
func TestHostileFormFields(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("`x\\u001b[31m\\n", 900)
	p := &person{t: t, answers: []string{"Decline"}, maxFields: 20}
	p.answer(form(object(`"password":{"type":"string","title":"` + strings.Repeat("`x", 500) + `","description":"` + long + `","format":"**a**","default":"` + strings.Repeat("y", 5000) + `"},` +
		`"b":{"type":"array","items":{"enum":["` + strings.Repeat("y", 5000) + `"]}}`)))
	f := p.asked[0].Ask.Fields
	if !strings.Contains(p.asked[0].Text, "It seems to ask for a secret") || len(f) != 2 || len(f[0].Options[0].Label) > 110 ||
		len(f[1].Label) > 110 || len(f[1].Note) > 310 || strings.ContainsAny(f[1].Label+f[1].Note, "`\x1b\n") || f[1].Format != "" || f[1].Preset != nil {
		t.Errorf("%+v", f)
	}
}

// R-S22: what people cannot answer sensibly is declined, and nobody is asked.
func TestHostileForms(t *testing.T) {
	t.Parallel()
	var many, choices []string
	for n := range 60 {
		many = append(many, fmt.Sprintf(`"n%d":{"type":"string"}`, n))
		choices = append(choices, fmt.Sprintf(`"%d"`, n))
	}
	for name, schema := range map[string]string{
		"nested":        object(`"n":{"type":"object","properties":{"m":{"type":"string"}}}`),
		"hidden nest":   object(`"n":{"type":"string","properties":{"m":{"type":"string"}}}`),
		"list":          object(`"n":{"type":"array","items":{"type":"string"}}`),
		"list of what":  object(`"n":{"type":"array"}`),
		"no type":       object(`"n":{}`),
		"several types": object(`"n":{"type":["string","null"]}`),
		"not an object": `{"type":"array"}`,
		"number":        `7`,
		"huge":          object(`"n":{"type":"string","description":"` + strings.Repeat("x", 40<<10) + `"}`),
		"many fields":   object(strings.Join(many, ",")),
		"many choices":  object(`"n":{"type":"string","enum":[` + strings.Join(choices, ",") + `]}`),
		"wrong default": object(`"n":{"type":"string","default":{"a":1}}`),
		"deep":          strings.Repeat(`{"type":"object","properties":{"a":`, 300) + `{}` + strings.Repeat(`}}`, 300),
	} {
		p := &person{t: t, answers: []string{"Yes", "Yes"}}
		if got := p.answer(form(schema)); got != "decline null" || len(p.asked) != 0 {
			t.Errorf("%s: %s, asked %+v", name, got, p.asked)
		}
	}
}

// R-S22: long texts are cut, and nothing in them is markup.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("`[x](https://evil.example) **\x1b[31m", 400)
	asked := form(object(`"password":{"type":"string","title":"` + strings.Repeat("`x", 5000) + `","enum":["` + strings.Repeat("y", 10000) + `"]}`))
	asked.Message = long
	p := &person{t: t, answers: []string{"Decline"}}
	if got := p.answer(asked); got != "decline null" {
		t.Fatal(got)
	}
	text := p.asked[0].Text
	if len(text) > 4000 || len(p.asked[0].Ask.Choices[0]) > 110 || !strings.Contains(text, "It seems to ask for a secret") || strings.Contains(text, "\x1b") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
	for line := range strings.Lines(text) {
		if quoted, ok := strings.CutPrefix(strings.TrimSpace(line), "> "); ok && (strings.Count(quoted, "`") != 2 || !strings.HasPrefix(quoted, "`")) {
			t.Errorf("%q", line)
		}
	}
}

// R-S13: an address is shown with its host, and only one of the web.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for address, shown := range map[string]bool{
		"https://pay.example/order?id=1":                 true,
		"http://pay.example/":                            true,
		"javascript:alert(1)":                            false,
		"file:///etc/passwd":                             false,
		"https://bank.example@evil.example/":             false,
		"https://bаnk.example/":                          false, // the a is Cyrillic
		"https://a.example/`x":                           false,
		"https://a.example/ x":                           false,
		"https:///x":                                     false,
		"https://a.example/" + strings.Repeat("x", 5000): false,
	} {
		p := &person{t: t, answers: []string{"I have opened it"}}
		got := p.answer(&sdk.ElicitParams{Mode: "url", Message: "Please pay.", URL: address, ElicitationID: "1"})
		if shown && (got != "accept null" || !strings.Contains(p.asked[0].Text, "**pay.example**:\n<"+address+">")) || !shown && (got != "decline null" || len(p.asked) > 0) {
			t.Errorf("%s: %s, asked %+v", address, got, p.asked)
		}
	}
}

// Nobody answers in time: the question is withdrawn, and the server is told that it was declined.
func TestTimeoutDeclines(t *testing.T) {
	t.Parallel()
	timetest.Test(t, func(t *testing.T) {
		p := &person{t: t}
		begin := time.Now()
		got := p.answer(form(`{"type":"object"}`))
		if took := time.Since(begin); got != "decline null" || took != 15*time.Minute || len(p.withdrawn) != 1 {
			t.Errorf("after %v: %s, withdrawn %q", took, got, p.withdrawn)
		}
	})
}

// P6: a restart in the middle of the questions goes on with them, under the same IDs. The person has less
// time left, but not none. A /stop ends them.
func TestRestart(t *testing.T) {
	t.Parallel()
	timetest.Test(t, func(t *testing.T) {
		s := mem.New()
		p := &person{t: t, answers: []string{"Yes"}}
		i := p.newInputs(s)
		asked := mcp.Questions{All: sdk.InputRequestMap{"q": form(object(`"a":{"type":"boolean"},"b":{"type":"string"}`))}, State: "state", Round: 1}
		if err := i.Keep(t.Context(), "shop", aCall(), asked); err != nil {
			t.Fatal(err)
		}
		ctx, closeDown := context.WithCancelCause(t.Context())
		time.AfterFunc(14*time.Minute+30*time.Second, func() { closeDown(tools.ErrClosing) })
		if _, err := i.Answer(ctx, aCall()); !errors.Is(err, tools.ErrClosing) || len(p.withdrawn) != 0 {
			t.Fatalf("%v, withdrawn %q", err, p.withdrawn)
		}
		before := p.asked
		p = &person{t: t, answers: []string{"Yes"}}
		i = p.newInputs(s)
		i.Begin(t.Context())
		if !i.Kept(aCall()) {
			t.Fatal("the question is lost")
		}
		begin := time.Now()
		given, err := i.Answer(t.Context(), aCall())
		if r, _ := given.All["q"].(*sdk.ElicitResult); err != nil || r == nil || r.Action != "decline" || time.Since(begin) != time.Minute {
			t.Errorf("after %v: %+v %v", time.Since(begin), given, err)
		}
		for n := range before {
			if before[n].Ask.ID != p.asked[n].Ask.ID || before[n].ID != p.asked[n].ID {
				t.Errorf("question %d has another ID", n)
			}
		}
		if err := i.Keep(t.Context(), "shop", aCall(), asked); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		if _, err := i.Answer(ctx, aCall()); err == nil || i.Kept(aCall()) || len(p.withdrawn) != 2 {
			t.Errorf("%v, withdrawn %q", err, p.withdrawn)
		}
	})
}

// A question of an earlier protocol version that was open when Parley was killed: the person is told, once,
// that it is too late. An answered one leaves nothing behind.
func TestTooLate(t *testing.T) {
	t.Parallel()
	timetest.Test(t, func(t *testing.T) {
		s := mem.New()
		p := &person{t: t, answers: []string{"Agree"}}
		i := p.newInputs(s)
		if r, err := i.AnswerNow(t.Context(), "shop", aCall(), form(`{"type":"object"}`)); err != nil || r.Action != "accept" {
			t.Fatalf("%+v %v", r, err)
		}
		i.Begin(t.Context())
		if len(p.told) != 0 {
			t.Fatalf("told %+v", p.told)
		}
		ctx, kill := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { kill(tools.ErrClosing) })
		if _, err := i.AnswerNow(ctx, "shop", aCall(), form(`{"type":"object"}`)); !errors.Is(err, tools.ErrClosing) {
			t.Fatal(err)
		}
		for range 2 {
			i = p.newInputs(s)
			i.Begin(t.Context())
		}
		if len(p.told) != 1 || !strings.Contains(p.told[0].Text, "too late to answer") || p.told[0].To != aCall().At ||
			len(p.withdrawn) != 1 || p.withdrawn[0] != p.asked[1].Ask.ID {
			t.Errorf("told %+v, withdrawn %q", p.told, p.withdrawn)
		}
	})
}

// read returns what a server asks.
func read(t *testing.T, text string) (all sdk.InputRequestMap) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// R-S22: a server that asks for the model without a rule, for folders, or for too much at once is refused. What a call
// that never went on waits for is forgotten.
func TestKeep(t *testing.T) {
	t.Parallel()
	timetest.Test(t, func(t *testing.T) {
		i := (&person{t: t}).newInputs(mem.New())
		six := sdk.InputRequestMap{}
		for n := range 6 {
			six[fmt.Sprint(n)] = form(`{"type":"object"}`)
		}
		for _, all := range []sdk.InputRequestMap{
			six,
			read(t, `{"q":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":100}}}`),
			read(t, `{"q":{"method":"roots/list","params":{}}}`),
		} {
			if err := i.Keep(t.Context(), "shop", aCall(), mcp.Questions{All: all}); err == nil || i.Kept(aCall()) {
				t.Errorf("%+v: %v", all, err)
			}
		}
		offers, err := json.Marshal(i.Capabilities()) // the SDK writes roots in any case
		if string(offers) != `{"roots":{},"elicitation":{"form":{},"url":{}}}` {
			t.Errorf("Parley offers %s %v", offers, err)
		}
		if err := i.Keep(t.Context(), "shop", aCall(), mcp.Questions{All: sdk.InputRequestMap{"q": form(`{"type":"object"}`)}}); err != nil {
			t.Fatal(err)
		}
		timetest.Sleep(49 * time.Hour)
		if i.Begin(t.Context()); i.Kept(aCall()) {
			t.Error("a call of two days ago still waits")
		}
	})
}
