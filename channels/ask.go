package channels

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/chat"
)

// A Choice is how a question was answered.
type Choice struct {
	Index int         `json:"index"`          // in the question's Choices; -1 for words of their own
	Text  string      `json:"text,omitempty"` // the choice, or those words
	By    chat.Sender `json:"by"`
}

// ErrWithdrawn is returned by Ask for a question that nobody can answer any more.
var ErrWithdrawn = errors.New("the question was withdrawn")

const keepAnswered = 48 * time.Hour // an open question is kept as long as a delivery

// A question is one that was asked, as the store has it.
type question struct {
	Reply   chat.Reply `json:"reply"` // that asks
	Time    time.Time  `json:"time"`
	Choice  *Choice    `json:"choice,omitempty"`  // nil while it is open, and when it was withdrawn
	Message string     `json:"message,omitempty"` // key of the message that answered
	Ended   time.Time  `json:"ended,omitzero"`    // when it was answered or withdrawn

	done    chan struct{} // closed when it is over
	receipt Receipt       // of the message that asks, if that was sent in this life
}

func (q question) over() bool { return !q.Ended.IsZero() }

func (q question) old() bool {
	if q.over() {
		return time.Since(q.Ended) >= keepAnswered
	}
	return time.Since(q.Time) >= keepRecords
}

// polls are the questions of the last days, oldest first. Each is a copy of what
// the store has; the lock is held while both change, so that one answer is the first.
type polls struct {
	mu  sync.Mutex
	all []question // nil until they are read
}

// find returns the question with that ID, or nil. The lock is held.
func (ps *polls) find(id string) *question {
	i := slices.IndexFunc(ps.all, func(q question) bool { return q.Reply.Ask.ID == id })
	if i < 0 {
		return nil
	}
	return &ps.all[i]
}

var questionID = regexp.MustCompile(`^[A-Za-z0-9]{1,32}$`)

// Ask sends r, whose Ask is the question, and waits for the answer. Asked again
// with the same IDs, as after a restart, it sends nothing twice and returns the
// answer there is. When ctx ends, the question stays open: call Withdraw if it
// will not be asked again.
func (h *Hub) Ask(ctx context.Context, r chat.Reply) (Choice, error) {
	if r.Ask == nil || !questionID.MatchString(r.Ask.ID) || len(r.Ask.Choices) == 0 && !r.Ask.Free {
		return Choice{}, errors.New("ask: a question needs an id of letters and digits, and choices")
	}
	q, err := h.open(ctx, r)
	if err != nil {
		return Choice{}, fmt.Errorf("ask: %w", err)
	}
	if !q.over() { // as by an answer in an earlier life
		if err := h.Send(ctx, r); err != nil {
			return Choice{}, err
		}
	}
	select {
	case <-q.done:
	case <-ctx.Done():
		return Choice{}, ctx.Err()
	}
	h.polls.mu.Lock()
	defer h.polls.mu.Unlock()
	if q := h.polls.find(r.Ask.ID); q != nil && q.Choice != nil {
		return *q.Choice, nil
	}
	return Choice{}, ErrWithdrawn
}

// Withdraw ends the question with that ID, if it is open: Ask returns
// ErrWithdrawn, its buttons go, and nothing that is written answers it.
func (h *Hub) Withdraw(ctx context.Context, id string) error {
	_, err := h.settle(ctx, func(q *question) bool {
		found := q.Reply.Ask.ID == id
		if found && !q.over() {
			q.Ended = time.Now()
		}
		return found
	})
	if err != nil {
		return fmt.Errorf("withdraw question: %w", err)
	}
	return nil
}

// open stores the question of r, unless it was asked before, and forgets old ones.
func (h *Hub) open(ctx context.Context, r chat.Reply) (question, error) {
	h.polls.mu.Lock()
	defer h.polls.mu.Unlock()
	if err := h.recall(ctx); err != nil {
		return question{}, err
	}
	h.polls.all = slices.DeleteFunc(h.polls.all, func(q question) bool {
		return q.old() && h.kept.questions.Delete(ctx, q.Reply.Ask.ID) == nil
	})
	if q := h.polls.find(r.Ask.ID); q != nil {
		return *q, nil
	}
	q := question{Reply: r, Time: time.Now(), done: make(chan struct{})}
	if err := h.kept.questions.Set(ctx, r.Ask.ID, q); err != nil {
		return question{}, err
	}
	h.polls.all = append(h.polls.all, q)
	return q, nil
}

// recall reads the questions of earlier lives, once. The lock is held.
func (h *Hub) recall(ctx context.Context) error {
	if h.polls.all != nil {
		return nil
	}
	all := []question{}
	err := h.kept.questions.Retain(ctx, func(_ string, q question) bool {
		if q.Reply.Ask == nil || q.old() {
			return false
		}
		q.done = make(chan struct{})
		if q.over() {
			close(q.done)
		}
		all = append(all, q)
		return true
	})
	if err != nil {
		return fmt.Errorf("read questions: %w", err)
	}
	slices.SortFunc(all, func(a, b question) int { return a.Time.Compare(b.Time) })
	h.polls.all = all
	return nil
}

// settle shows end the questions, the last one first, until it says which one
// it means, and returns that as it is then. If end has answered or ended it,
// that is on disk before anybody hears of it.
func (h *Hub) settle(ctx context.Context, end func(*question) (found bool)) (question, error) {
	h.polls.mu.Lock()
	defer h.polls.mu.Unlock()
	if err := h.recall(ctx); err != nil {
		return question{}, err
	}
	for i, q := range slices.Backward(h.polls.all) {
		was := q
		if !end(&q) {
			continue
		}
		if was.Choice == q.Choice && was.over() == q.over() {
			return q, nil
		}
		if err := h.kept.questions.Set(ctx, q.Reply.Ask.ID, q); err != nil {
			return question{}, fmt.Errorf("store answer: %w", err)
		}
		if h.polls.all[i] = q; q.over() {
			close(q.done)
			h.ended(q)
		}
		return q, nil
	}
	return question{}, nil
}

// ended tells of the end of q and takes its buttons away.
func (h *Hub) ended(q question) {
	if c := q.Choice; c != nil && !q.Reply.Ask.Say {
		h.cfg.Audit("approval", q.Reply.To.Channel+":"+c.By.ID, fmt.Sprintf("question %s: %s", q.Reply.Ask.ID, plainly(c.Text, maxName)))
	}
	h.unbutton(q)
}

// press takes in the press of a button, which counts once, on the question it
// names, in the chat where that was asked, by those who may answer.
func (l *line) press(ctx context.Context, m chat.Message, deliver chat.Deliver) error {
	if m.From.Role == chat.Unknown {
		l.dropped.Add(1)
		return nil
	}
	late := false
	q, err := l.hub.settle(ctx, func(q *question) bool {
		choices, i := q.Reply.Ask.Choices, m.Answer.Choice
		if q.Reply.Ask.ID != m.Answer.Question || !q.mayAnswer(m) {
			return false
		}
		q.receipt = cmp.Or(Receipt(m.Answer.Receipt), q.receipt)
		if late = q.over(); !late && q.Choice == nil && i >= 0 && i < len(choices) {
			q.choose(i, choices[i], m)
		}
		return true
	})
	switch {
	case err != nil:
		return err
	case late: // the buttons should have gone
		l.hub.unbutton(q)
	case q.Choice != nil && !q.over():
		return l.heed(ctx, q, m, deliver)
	}
	return nil
}

// typed takes m for the answer of the question it answers in words, if any.
func (l *line) typed(ctx context.Context, m chat.Message) (bool, error) {
	if m.Edits != "" || len(m.Files) > 0 || m.Text == "" {
		return false, nil
	}
	key := m.Key()
	for _, end := range []func(*question) bool{
		func(q *question) bool { return q.Message == key }, // it comes again
		func(q *question) bool { return !q.over() && q.Reply.To == m.At && l.understand(q, m) },
	} {
		if q, err := l.hub.settle(ctx, end); err != nil || q.Message == key {
			return true, err
		}
	}
	return false, nil
}

// understand answers asked by what m says and tells whether that is an answer. The
// words of a choice are one beside buttons, too, unless others read along: they
// may be said to somebody else.
func (l *line) understand(asked *question, m chat.Message) bool {
	q, text := asked.Reply.Ask, strings.TrimSpace(m.Text)
	if q.Say || !asked.mayAnswer(m) {
		return false
	}
	numbered := !l.buttons(q)
	i := slices.IndexFunc(q.Choices, func(c string) bool { return strings.EqualFold(bare(c), bare(text)) })
	if i < 0 && numbered {
		i = initial(q.Choices, text)
	}
	if n, err := strconv.Atoi(strings.TrimRight(text, ".)")); err == nil && numbered && n >= 1 && n <= len(q.Choices) {
		i = n - 1
	}
	switch own := q.Free && !strings.HasPrefix(text, "/") && m.From.ID == cmp.Or(q.Whom, m.From.ID); {
	case i >= 0 && (numbered || own || !asked.Reply.Group):
		asked.choose(i, q.Choices[i], m)
	case own:
		asked.choose(-1, text, m)
	default:
		return false
	}
	return true
}

// mayAnswer says whether the sender of m may answer q where m was said. An ID
// is a person of one channel only.
func (q question) mayAnswer(m chat.Message) bool {
	return m.At.Channel == q.Reply.To.Channel && m.At.Chat == q.Reply.To.Chat &&
		(m.From.Role == chat.Owner || m.From.ID != "" && m.From.ID == q.Reply.Ask.Whom)
}

// choose answers q, and ends it unless the choice is still to be heard.
func (q *question) choose(i int, text string, m chat.Message) {
	q.Choice, q.Message = &Choice{Index: i, Text: text, By: m.From}, m.Key()
	if !q.Reply.Ask.Say {
		q.Ended = time.Now()
	}
}

// questionReceipt returns the message that asks question id, "" if that is not known.
func (h *Hub) questionReceipt(id string) Receipt {
	h.polls.mu.Lock()
	defer h.polls.mu.Unlock()
	if q := h.polls.find(id); q != nil {
		return q.receipt
	}
	return ""
}

// shown notes which message asks question id, which may be over by now.
func (h *Hub) shown(id string, rc Receipt) {
	h.polls.mu.Lock()
	defer h.polls.mu.Unlock()
	if q := h.polls.find(id); q != nil {
		if q.receipt = rc; q.over() {
			h.unbutton(*q)
		}
	}
}

// unbutton takes the buttons of q away and shows what was chosen. It is tried
// once and delays nobody.
func (h *Hub) unbutton(q question) {
	l := h.lines[q.Reply.To.Channel]
	if l == nil || q.receipt == "" || !l.buttons(q.Reply.Ask) {
		return
	}
	l.errand("take buttons away", func(ctx context.Context) error {
		r, err := l.closing(q)
		if err != nil {
			return err
		}
		return l.Channel.(Asker).Edit(ctx, q.receipt, r)
	})
}
