package channels

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley/channels/choices"
	"parley/channels/safetext"
	"parley/chat"
	"parley/forms"
	"parley/lazyregexp"
	"parley/store"
	"parley/texts"
)

// keepAnswered is how long a question is kept after its end. An open one is kept for as long as a delivery.
const keepAnswered = 48 * time.Hour

// A Choice is the answer to a question.
type Choice struct {
	Index int         `json:"index"`          // in the question's Choices; -1 for an answer in the person's own words
	Text  string      `json:"text,omitempty"` // the choice, or those words
	By    chat.Sender `json:"by"`

	Values [][]string `json:"values,omitempty"` // of the question's Fields, if the choice takes them
}

// ErrWithdrawn is returned by Ask for a question that nobody can answer any more.
var ErrWithdrawn = errors.New("the question was withdrawn")

// A question is one that was asked, as the store has it.
type question struct {
	Reply   chat.Reply `json:"reply"` // asks the question
	Time    time.Time  `json:"time"`
	Choice  *Choice    `json:"choice,omitempty"`  // nil while it is open, and if it was withdrawn
	Message string     `json:"message,omitempty"` // key of the message that answered
	Ended   time.Time  `json:"ended,omitzero"`    // when it was answered or withdrawn

	Receipt Receipt `json:"receipt,omitempty"` // of the message that asks, once it was sent

	done chan struct{} // closed when it has ended
}

func (q question) isOver() bool { return !q.Ended.IsZero() }

func (q question) isOld() bool {
	if q.isOver() {
		return time.Since(q.Ended) >= keepAnswered
	}
	return time.Since(q.Time) >= keepRecords
}

// outcome returns how q ended.
func (q question) outcome() *chat.Outcome {
	if q.Choice == nil {
		return &chat.Outcome{Choice: -1, Time: q.Ended}
	}
	return &chat.Outcome{
		Choice: q.Choice.Index,
		Answer: choices.Plain(q.Choice.Text),
		By:     safetext.PersonName(q.Choice.By.Name),
		Filled: choices.FilledIn(q.Reply.Ask.Fields, q.Choice.Values),
		Time:   q.Ended,
	}
}

// mayAnswer reports whether the sender of m may answer q where m was written. An ID
// means a person of one channel only.
func (q question) mayAnswer(m chat.Message) bool {
	ask := q.Reply.Ask
	return m.At.Channel == q.Reply.To.Channel && m.At.Chat == q.Reply.To.Chat &&
		(m.From.Role == chat.Owner && !ask.Alone || m.From.ID != "" && m.From.ID == ask.Whom)
}

// choose answers q. This ends it, unless the choice still has to be delivered to
// the agent.
func (q *question) choose(i int, text string, m chat.Message) {
	q.Choice = &Choice{Index: i, Text: text, By: m.From}
	q.Message = m.Key()
	if !q.Reply.Ask.Say {
		q.Ended = time.Now()
	}
}

// Questions are the questions that people were asked in the last days.
type Questions struct {
	table         store.Table[question]
	send          chat.Send
	audit         func(kind, who, what string)
	removeButtons func(question)
	maxFields     func(channel string) int // of a form; 0: the channel shows none
	texts         *texts.Form

	// mu guards all, which is nil until the table was read. It is held while a
	// question changes here and in the table, so that the first of several answers
	// counts.
	mu  sync.Mutex
	all []question // oldest first
}

// find returns the question with that ID, or nil. The caller holds mu.
func (qs *Questions) find(id string) *question {
	i := slices.IndexFunc(qs.all, func(q question) bool { return q.Reply.Ask.ID == id })
	if i < 0 {
		return nil
	}
	return &qs.all[i]
}

var questionID = lazyregexp.New(`^[A-Za-z0-9]{1,32}$`)

// Ask sends r, whose Ask is the question, and waits for the answer. If it is called
// again with the same IDs, as after a restart, nothing is sent twice, and the answer
// that was given counts. When ctx ends, the question stays open: call Withdraw if it
// will not be asked again.
func (qs *Questions) Ask(ctx context.Context, r chat.Reply) (Choice, error) {
	if r.Ask == nil || !questionID.MatchString(r.Ask.ID) || len(r.Ask.Choices) == 0 && !r.Ask.Free {
		return Choice{}, errors.New("ask: a question needs an id of letters and digits, and choices")
	}
	if !qs.ShowsForm(r.To, len(r.Ask.Fields)) {
		return Choice{}, fmt.Errorf("ask: channel %s shows no form of %d fields", r.To.Channel, len(r.Ask.Fields))
	}
	q, err := qs.open(ctx, r)
	if err != nil {
		return Choice{}, fmt.Errorf("ask: %w", err)
	}
	if q.isOver() { // it was answered before a restart, which may have come before its message said so
		qs.removeButtons(q)
	} else if err := qs.send(ctx, r); err != nil {
		return Choice{}, err
	}
	select {
	case <-q.done:
	case <-ctx.Done():
		return Choice{}, ctx.Err()
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q := qs.find(r.Ask.ID); q != nil && q.Choice != nil {
		return *q.Choice, nil
	}
	return Choice{}, ErrWithdrawn
}

// ShowsForm reports whether a question asked at that address can have so many fields.
func (qs *Questions) ShowsForm(at chat.Address, fields int) bool {
	return fields <= qs.maxFields(at.Channel)
}

// Withdraw ends the question with that ID if it is open: Ask returns ErrWithdrawn,
// the buttons disappear, and no message answers it any more.
func (qs *Questions) Withdraw(ctx context.Context, id string) error {
	_, err := qs.update(ctx, func(q *question) bool {
		found := q.Reply.Ask.ID == id
		if found && !q.isOver() {
			q.Ended = time.Now()
		}
		return found
	})
	if err != nil {
		return fmt.Errorf("withdraw question: %w", err)
	}
	return nil
}

// open stores the question of r, unless it was asked before, and deletes old ones.
func (qs *Questions) open(ctx context.Context, r chat.Reply) (question, error) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if err := qs.load(ctx); err != nil {
		return question{}, err
	}
	qs.all = slices.DeleteFunc(qs.all, func(q question) bool {
		return q.isOld() && qs.table.Delete(ctx, q.Reply.Ask.ID) == nil
	})
	if q := qs.find(r.Ask.ID); q != nil {
		return *q, nil
	}
	q := question{Reply: r, Time: time.Now(), done: make(chan struct{})}
	if err := qs.table.Set(ctx, r.Ask.ID, q); err != nil {
		return question{}, err
	}
	qs.all = append(qs.all, q)
	return q, nil
}

// load reads the questions from before the start, once. The caller holds mu.
func (qs *Questions) load(ctx context.Context) error {
	if qs.all != nil {
		return nil
	}
	all := []question{}
	err := qs.table.Retain(ctx, func(_ string, q question) bool {
		if q.Reply.Ask == nil || q.isOld() {
			return false
		}
		q.done = make(chan struct{})
		if q.isOver() {
			close(q.done)
		}
		all = append(all, q)
		return true
	})
	if err != nil {
		return fmt.Errorf("read questions: %w", err)
	}
	slices.SortFunc(all, func(a, b question) int { return a.Time.Compare(b.Time) })
	qs.all = all
	return nil
}

// openAt returns the replies that ask the questions that are open in the chat at,
// oldest first.
func (qs *Questions) openAt(ctx context.Context, at chat.Address) (open []chat.Reply, err error) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if err := qs.load(ctx); err != nil {
		return nil, err
	}
	for _, q := range qs.all {
		if !q.isOver() && q.Reply.To == at {
			open = append(open, q.Reply)
		}
	}
	return open, nil
}

// update passes the questions to change, the latest first, until it has found the
// one it is meant for, and returns that as it is then. An answer or an end is on
// disk before anybody learns of it.
func (qs *Questions) update(ctx context.Context, change func(*question) (found bool)) (question, error) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if err := qs.load(ctx); err != nil {
		return question{}, err
	}
	for i, q := range slices.Backward(qs.all) {
		before := q
		if !change(&q) {
			continue
		}
		if before.Choice == q.Choice && before.isOver() == q.isOver() {
			return q, nil
		}
		if err := qs.table.Set(ctx, q.Reply.Ask.ID, q); err != nil {
			return question{}, fmt.Errorf("store answer: %w", err)
		}
		qs.all[i] = q
		if q.isOver() {
			close(q.done)
			qs.reportEnd(q)
		}
		return q, nil
	}
	return question{}, nil
}

// reportEnd audits the answer to q, which has ended, and removes its buttons.
func (qs *Questions) reportEnd(q question) {
	if c := q.Choice; c != nil && !q.Reply.Ask.Say {
		what := fmt.Sprintf("question %s: %s", q.Reply.Ask.ID, choices.Plain(c.Text))
		qs.audit("approval", q.Reply.To.Channel+":"+c.By.ID, what)
	}
	qs.removeButtons(q)
}

// press records the press of a button, m. The first one counts, on the question it
// names, in the chat where that was asked, and by those who may answer it. press
// returns the question if its choice still has to be delivered to the agent, and a
// [*chat.WrongValues] if the values that go with the choice are not right.
func (qs *Questions) press(ctx context.Context, m chat.Message) (*question, error) {
	wasOver := false
	var problems []string
	q, err := qs.update(ctx, func(q *question) bool {
		choices := q.Reply.Ask.Choices
		i := m.Answer.Choice
		if q.Reply.Ask.ID != m.Answer.Question || !q.mayAnswer(m) {
			return false
		}
		q.Receipt = cmp.Or(Receipt(m.Answer.Receipt), q.Receipt)
		wasOver = q.isOver()
		if wasOver || q.Choice != nil || i < 0 || i >= len(choices) {
			return true
		}
		takesValues := q.Reply.Ask.TakesValues(i)
		if takesValues {
			_, problems = forms.CheckAll(qs.texts, q.Reply.Ask.Fields, m.Answer.Values)
		}
		if problems == nil {
			q.choose(i, choices[i], m)
		}
		if problems == nil && takesValues {
			q.Choice.Values = m.Answer.Values
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	if problems != nil {
		return nil, &chat.WrongValues{Problems: problems}
	}
	if wasOver {
		qs.removeButtons(q) // they should be gone
		return nil, nil
	}
	if q.Choice == nil || q.isOver() {
		return nil, nil
	}
	return &q, nil
}

// end ends pressed, whose choice the agent has.
func (qs *Questions) end(ctx context.Context, pressed *question) error {
	_, err := qs.update(ctx, func(q *question) bool {
		found := q.Reply.Ask.ID == pressed.Reply.Ask.ID
		if found && !q.isOver() {
			q.Receipt = pressed.Receipt
			q.Ended = time.Now()
		}
		return found
	})
	return err
}

// answerInWords reports whether m answers a question in words, and records the
// answer. understand answers a question if m is an answer to it.
func (qs *Questions) answerInWords(
	ctx context.Context, m chat.Message, understand func(*question) bool,
) (bool, error) {
	key := m.Key()
	attempts := []func(*question) bool{
		func(q *question) bool { return q.Message == key }, // m is delivered again
		func(q *question) bool { return !q.isOver() && q.Reply.To == m.At && understand(q) },
	}
	for _, change := range attempts {
		if q, err := qs.update(ctx, change); err != nil || q.Message == key {
			return true, err
		}
	}
	return false, nil
}

// receiptOf returns the receipt of the message that asks question id, or "" if it
// is not known.
func (qs *Questions) receiptOf(id string) Receipt {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if q := qs.find(id); q != nil {
		return q.Receipt
	}
	return ""
}

// setReceipt notes which message asks question id, which may have ended by now.
func (qs *Questions) setReceipt(id string, rc Receipt) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.find(id)
	if q == nil {
		return
	}
	q.Receipt = rc
	// It is needed if the question ends after a restart. Without it, the message keeps its buttons.
	_ = qs.table.Set(store.Deferred(context.Background()), id, *q)
	if q.isOver() {
		qs.removeButtons(*q)
	}
}
