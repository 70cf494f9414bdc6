// Package elicit asks people what MCP servers want to know in the middle of a call.
//
// Questions are those of the Hub: they are kept in the store, and an answer that was given while Parley
// was down counts. What a server asks is untrusted content: it is shown as a quotation, cut, with the
// server's name above it (R-S22).
package elicit

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/chat"
	"parley/store"
	"parley/texts"
	"parley/tools"
	"parley/tools/mcp"
)

// An Answer is what a person answers a question.
type Answer struct {
	Index  int        // of the choice; -1 for a text of their own
	Text   string     // the choice, or that text
	Values [][]string // of each field, if the choice takes them
}

// Ask asks the person at r.To the question r.Ask and waits for their answer. Asking the same question again,
// as after a restart, continues to wait for the same answer.
type Ask func(ctx context.Context, r chat.Reply) (Answer, error)

// Words are what people are told.
type Words struct {
	Elicit *texts.Elicit
	Form   *texts.Form
}

// A Config is what people are asked with.
type Config struct {
	Log      *slog.Logger
	Store    store.Store
	Words    Words
	Ask      Ask
	Withdraw func(ctx context.Context, question string) error
	Send     chat.Send

	// ShowsForm reports whether people at that address are shown a form of so many fields. Elsewhere they are
	// asked for one value after another.
	ShowsForm func(at chat.Address, fields int) bool

	// Sampler has models answer what servers ask them.
	Sampler Sampler

	// Patience is how long a person may take to answer all that a server asks at once.
	Patience func() time.Duration
}

const (
	maxRequests = 5              // of a server at once
	keepRecords = 48 * time.Hour // of calls that never went on

	// minPatience is what a person has at least after a restart.
	minPatience = time.Minute

	// nowPatience is how long a server of an earlier version waits: longer than that no call is open.
	nowPatience = tools.MaxTimeout - time.Minute

	// nowPrefix begins the keys of questions that are of no use after a restart.
	nowPrefix = "now/"
)

// What a person can do about a request.
const (
	actionAccept  = "accept"
	actionDecline = "decline"
	actionCancel  = "cancel"
)

// A record is what a call waits for, as the store has it.
type record struct {
	Server string        `json:"server"`
	Time   time.Time     `json:"time"` // when the server asked
	Asked  mcp.Questions `json:"asked,omitzero"`

	// Of a question that is asked while a call is open: its ID, and what the person is told if the call
	// was lost.
	Question string      `json:"question,omitempty"`
	Late     *chat.Reply `json:"late,omitempty"`

	// Given is what models have answered already. They are not asked again after a restart.
	Given sdk.InputResponseMap `json:"given,omitempty"`
}

// Inputs implement [mcp.Inputs].
type Inputs struct {
	config Config
	table  store.Table[record]
}

// New returns Inputs that keep what is asked in c.Store.
func New(c Config) *Inputs {
	bucket := c.Store.Bucket(store.BucketMCPQuestions)
	return &Inputs{config: c, table: store.NewTable(bucket, store.Forget[record](c.Log, "question of an MCP server"))}
}

// Begin implements [mcp.Inputs].
func (i *Inputs) Begin(ctx context.Context) {
	var lost []string
	err := i.table.Retain(ctx, func(key string, r record) bool {
		if r.Question != "" {
			lost = append(lost, key)
		}
		return r.Question != "" || time.Since(r.Time) < keepRecords
	})
	for _, key := range lost {
		err = errors.Join(err, i.tellLate(ctx, key))
	}
	if err != nil && ctx.Err() == nil {
		i.config.Log.Error("open questions of MCP servers not withdrawn", "err", err)
	}
}

// tellLate withdraws a question that cannot be answered any more, and tells the person if they are to know.
func (i *Inputs) tellLate(ctx context.Context, key string) error {
	r, _, err := i.table.Get(ctx, key)
	if err != nil {
		return err
	}
	if err := i.config.Withdraw(ctx, r.Question); err != nil {
		return err
	}
	if r.Late != nil {
		if err := i.config.Send(ctx, *r.Late); err != nil {
			return err
		}
	}
	return i.table.Delete(ctx, key)
}

// Capabilities implements [mcp.Inputs]. Servers may not see which folders there are.
func (i *Inputs) Capabilities() *sdk.ClientCapabilities {
	return &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{
		Form: &sdk.FormElicitationCapabilities{},
		URL:  &sdk.URLElicitationCapabilities{},
	}}
}

// Keep implements [mcp.Inputs].
func (i *Inputs) Keep(ctx context.Context, server string, c tools.Call, q mcp.Questions) error {
	if len(q.All) > maxRequests {
		return fmt.Errorf("the server asks %d questions at once: nobody was asked", len(q.All))
	}
	for _, r := range q.All {
		switch r := r.(type) {
		case *sdk.ElicitParams:
		case *mcp.SamplingRequest:
			if err := i.config.Sampler.Check(server, r); err != nil {
				return notSampled(server, err)
			}
		default:
			return errors.New("the server asks for what Parley does not offer: only a person or a model can be asked")
		}
	}
	if err := i.table.Set(ctx, c.Key(), record{Server: server, Time: time.Now(), Asked: q}); err != nil {
		return fmt.Errorf("keep what the server %s asks: %w", server, err)
	}
	return nil
}

// Kept implements [mcp.Inputs].
func (i *Inputs) Kept(c tools.Call) bool {
	_, _, err := i.table.Get(context.Background(), c.Key())
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		i.config.Log.Error("question of an MCP server cannot be read", "call", c.Key(), "err", err)
	}
	return err == nil
}

// Answer implements [mcp.Inputs].
func (i *Inputs) Answer(ctx context.Context, c tools.Call) (mcp.Answers, error) {
	r, _, err := i.table.Get(ctx, c.Key())
	if err != nil {
		return mcp.Answers{}, fmt.Errorf("read what the server asks: %w", err)
	}
	given := mcp.Answers{All: sdk.InputResponseMap{}, State: r.Asked.State, Round: r.Asked.Round}
	left := max(i.config.Patience()-time.Since(r.Time), minPatience)
	for _, name := range slices.Sorted(maps.Keys(r.Asked.All)) {
		if asked, ok := r.Asked.All[name].(*mcp.SamplingRequest); ok {
			if given.All[name], err = i.sample(ctx, &r, c, name, asked); err != nil {
				return mcp.Answers{}, err
			}
			continue
		}
		asked, _ := r.Asked.All[name].(*sdk.ElicitParams)
		a := i.newAsking(c, r.Server, fmt.Sprint(r.Asked.Round, " ", name), asked)
		answer, err := a.within(ctx, left)
		if errors.Is(context.Cause(ctx), tools.ErrClosing) {
			return mcp.Answers{}, tools.ErrClosing
		}
		if err != nil {
			return mcp.Answers{}, errors.Join(err, i.table.Delete(context.WithoutCancel(ctx), c.Key()))
		}
		given.All[name] = answer
	}
	if err := i.table.Delete(ctx, c.Key()); err != nil {
		return mcp.Answers{}, fmt.Errorf("note that the server is answered: %w", err)
	}
	return given, nil
}

// AnswerNow implements [mcp.Inputs].
func (i *Inputs) AnswerNow(
	ctx context.Context, server string, c tools.Call, asked *sdk.ElicitParams,
) (*sdk.ElicitResult, error) {
	key := nowPrefix + c.Key()
	a := i.newAsking(c, server, fmt.Sprint("now ", time.Now().UnixNano()), asked)
	a.opened = func(question string) error {
		late := &chat.Reply{ID: "late:" + question, To: c.At, For: c.Whose(), Group: c.Group}
		late.Text = i.config.Words.Elicit.TooLate.With(plain(server, maxLabel))
		return i.table.Set(ctx, key, record{Server: server, Time: time.Now(), Question: question, Late: late})
	}
	answer, err := a.within(ctx, min(i.config.Patience(), nowPatience))
	if errors.Is(context.Cause(ctx), tools.ErrClosing) {
		return nil, tools.ErrClosing // Begin tells the person
	}
	return answer, errors.Join(err, i.table.Delete(context.WithoutCancel(ctx), key))
}

// An asking is a request of a server that a person is asked about.
type asking struct {
	inputs *Inputs
	call   tools.Call
	server string
	id     string // tells the request from others of the call
	asked  *sdk.ElicitParams

	// opened notes the ID of a question before it is asked; it may be nil.
	opened func(question string) error
}

func (i *Inputs) newAsking(c tools.Call, server, id string, asked *sdk.ElicitParams) *asking {
	return &asking{inputs: i, call: c, server: server, id: id, asked: asked}
}

// errRefused says that the person does not answer.
type errRefused string

// Error implements error.
func (e errRefused) Error() string { return "the person answered: " + string(e) }

// within asks the person, who has so much time, and returns what the server is answered. The error is that
// of ctx, or of a question that could not be asked.
func (a *asking) within(ctx context.Context, limit time.Duration) (*sdk.ElicitResult, error) {
	limited, stop := context.WithTimeout(ctx, limit)
	defer stop()
	content, err := a.run(limited)
	refused, isRefusal := errors.AsType[errRefused](err)
	switch {
	case err == nil:
		return &sdk.ElicitResult{Action: actionAccept, Content: content}, nil
	case isRefusal:
		return &sdk.ElicitResult{Action: string(refused)}, nil
	case ctx.Err() == nil && limited.Err() != nil: // nobody answered in time
		return &sdk.ElicitResult{Action: actionDecline}, nil
	}
	return nil, err
}

// run asks the person, and returns the content of the answer.
func (a *asking) run(ctx context.Context) (map[string]any, error) {
	log := a.inputs.config.Log.With("server", a.server, "call", a.call.Key())
	if a.call.At.Channel == "" || a.call.From.ID == "" {
		log.Warn("question of an MCP server declined: there is nobody to ask")
		return nil, errRefused(actionDecline)
	}
	if a.asked == nil {
		return nil, errRefused(actionDecline)
	}
	if a.asked.Mode == "url" || a.asked.URL != "" {
		return nil, a.showAddress(ctx, log)
	}
	fields, err := fieldsOf(a.inputs.config.Words, a.asked.RequestedSchema)
	if err != nil {
		log.Warn("question of an MCP server declined", "err", err)
		return nil, errRefused(actionDecline)
	}
	return a.askFields(ctx, fields)
}

// put asks the question q, which name tells from the others of the request.
func (a *asking) put(ctx context.Context, name, text string, q chat.Question) (Answer, error) {
	request, err := json.Marshal(a.asked)
	if err != nil {
		return Answer{}, err
	}
	digest := sha256.Sum256([]byte(strings.Join([]string{a.call.Key(), a.id, string(request), name}, "\x00")))
	id := fmt.Sprintf("%.12x", digest)
	if a.opened != nil {
		if err := a.opened(id); err != nil {
			return Answer{}, err
		}
	}
	c := a.call
	q.ID = id
	q.Whom = c.From.ID
	q.Alone = true
	q.Asker = plain(a.server, maxLabel)
	r := chat.Reply{ID: "ask:" + id, To: c.At, For: c.Whose(), Group: c.Group, Text: text, Ask: &q}
	answer, err := a.inputs.config.Ask(ctx, r)
	if err != nil && !errors.Is(context.Cause(ctx), tools.ErrClosing) {
		err = errors.Join(err, a.inputs.config.Withdraw(context.WithoutCancel(ctx), id))
	}
	return answer, err
}
