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
	"parley/store"
)

// A Choice is how a question was answered.
type Choice struct {
	Index int         `json:"index"`          // in the question's Choices; -1 for words of their own
	Text  string      `json:"text,omitempty"` // the choice, or those words
	By    chat.Sender `json:"by"`
}

// ErrWithdrawn is returned by Ask for a question that nobody can answer any more.
var ErrWithdrawn = errors.New("the question was withdrawn")

const (
	keepAnswered = 48 * time.Hour // an open question is kept as long as a delivery
	maxForget    = 10
)

// A question is one that was asked, as the store has it.
type question struct {
	Reply     chat.Reply `json:"reply"` // that asks
	Time      time.Time  `json:"time"`
	Choice    *Choice    `json:"choice,omitempty"`  // nil while it is open
	Message   string     `json:"message,omitempty"` // key of the message that answered
	Withdrawn bool       `json:"withdrawn,omitempty"`
	Ended     time.Time  `json:"ended,omitzero"` // when it was answered or withdrawn
}

func (q question) over() bool { return q.Choice != nil || q.Withdrawn }

func (q question) old() bool {
	if q.over() {
		return time.Since(q.Ended) >= keepAnswered
	}
	return time.Since(q.Time) >= keepRecords
}

// A poll is what is at hand of a question in the store.
type poll struct {
	question
	done    chan struct{} // closed when it is over
	receipt Receipt       // of the message that asks, if that was sent in this life
}

// polls are the questions of the last days. Each is a copy of what the store
// has; the lock is held while both change, so that one answer is the first.
type polls struct {
	mu  sync.Mutex
	all map[string]*poll // nil until they are read
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
	p, err := h.open(ctx, r)
	if err != nil {
		return Choice{}, fmt.Errorf("ask: %w", err)
	}
	select {
	case <-p.done: // answered in an earlier life
	default:
		if err := h.Send(ctx, r); err != nil {
			return Choice{}, err
		}
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		return Choice{}, ctx.Err()
	}
	h.polls.mu.Lock()
	defer h.polls.mu.Unlock()
	if p.Choice == nil {
		return Choice{}, ErrWithdrawn
	}
	return *p.Choice, nil
}

// Withdraw ends the question with that ID, if it is open: Ask returns
// ErrWithdrawn, its buttons go, and nothing that is written answers it.
func (h *Hub) Withdraw(ctx context.Context, id string) error {
	p, first, err := h.settle(ctx, id, func(p *poll) bool {
		p.Withdrawn = true
		return true
	})
	if err != nil {
		return fmt.Errorf("withdraw question: %w", err)
	}
	if first {
		h.unbutton(p, p.receipt)
	}
	return nil
}

// open stores the question of r, unless it was asked before, and forgets old ones.
func (h *Hub) open(ctx context.Context, r chat.Reply) (*poll, error) {
	h.polls.mu.Lock()
	defer h.polls.mu.Unlock()
	if err := h.recall(ctx); err != nil {
		return nil, err
	}
	h.forget(ctx)
	if p := h.polls.all[r.Ask.ID]; p != nil {
		return p, nil
	}
	p := &poll{question: question{Reply: r, Time: time.Now()}, done: make(chan struct{})}
	if err := write(ctx, h.store.Bucket("questions"), r.Ask.ID, p.question); err != nil {
		return nil, err
	}
	h.polls.all[r.Ask.ID] = p
	return p, nil
}

// forget forgets some of the old questions. The lock is held, so not for long.
func (h *Hub) forget(ctx context.Context) {
	n := 0
	for id, p := range h.polls.all {
		if p.old() && n < maxForget && h.store.Bucket("questions").Delete(ctx, id) == nil {
			delete(h.polls.all, id)
			n++
		}
	}
}

// recall reads the questions of earlier lives, once. The lock is held.
func (h *Hub) recall(ctx context.Context) error {
	if h.polls.all != nil {
		return nil
	}
	all, b := map[string]*poll{}, h.store.Bucket("questions")
	for id, err := range b.Keys(ctx, "") {
		p := &poll{done: make(chan struct{})}
		if err == nil {
			err = read(ctx, b, id, &p.question)
		}
		switch {
		case errors.Is(err, store.ErrDamaged), err == nil && p.Reply.Ask == nil:
			h.log.Error("question is damaged, it is asked anew", "id", id)
			continue
		case err != nil:
			return fmt.Errorf("read questions: %w", err)
		}
		if p.over() {
			close(p.done)
		}
		all[id] = p
	}
	h.polls.all = all
	return nil
}

// settle ends the question with that ID as end says, on disk first, and
// returns how it stands then. It is false if there is no such question, if it
// was over or end refused.
func (h *Hub) settle(ctx context.Context, id string, end func(*poll) bool) (poll, bool, error) {
	h.polls.mu.Lock()
	defer h.polls.mu.Unlock()
	if err := h.recall(ctx); err != nil {
		return poll{}, false, err
	}
	p := h.polls.all[id]
	if p == nil {
		return poll{}, false, nil
	}
	ended := *p
	if p.over() || !end(&ended) {
		return *p, false, nil
	}
	ended.Ended = time.Now()
	if err := write(ctx, h.store.Bucket("questions"), id, ended.question); err != nil {
		return *p, false, fmt.Errorf("store answer: %w", err)
	}
	p.question, p.receipt = ended.question, ended.receipt // not done, which whoever asked reads without the lock
	close(p.done)
	return *p, true, nil
}

// press takes in the press of a button, which counts once, on the question it
// names, in the chat where that was asked, by those who may answer.
func (l *line) press(ctx context.Context, m chat.Message) error {
	if m.From.Role == chat.Stranger {
		l.dropped.Add(1)
		return nil
	}
	a := m.Answer
	p, first, err := l.hub.settle(ctx, a.Question, func(p *poll) bool {
		q := p.Reply.Ask
		if !p.mayAnswer(m) || a.Choice < 0 || a.Choice >= len(q.Choices) {
			return false
		}
		p.choose(a.Choice, q.Choices[a.Choice], m)
		return true
	})
	if first {
		l.hub.approved(p)
	}
	if p.over() && p.mayAnswer(m) { // also after a press that came too late: the buttons should have gone
		l.hub.unbutton(p, cmp.Or(Receipt(a.Receipt), p.receipt))
	}
	return err
}

// typed takes m for the answer of the question it answers in words, if any.
func (l *line) typed(ctx context.Context, m chat.Message) (bool, error) {
	if m.Edits != "" || len(m.Files) > 0 || m.Text == "" {
		return false, nil
	}
	ids, err := l.hub.asked(ctx, m)
	for _, id := range ids {
		p, first, err := l.hub.settle(ctx, id, func(p *poll) bool { return l.understand(p, m) })
		if first {
			l.hub.approved(p)
			l.hub.unbutton(p, p.receipt)
		}
		if err != nil || p.Message == m.Key() {
			return true, err
		}
	}
	return false, err
}

// asked returns the questions asked where m was said, the last one first, and
// before them the one that m answered already.
func (h *Hub) asked(ctx context.Context, m chat.Message) ([]string, error) {
	h.polls.mu.Lock()
	defer h.polls.mu.Unlock()
	if err := h.recall(ctx); err != nil {
		return nil, err
	}
	var found []*poll
	key := m.Key()
	for _, p := range h.polls.all {
		switch {
		case p.Message == key:
			return []string{p.Reply.Ask.ID}, nil
		case p.Reply.To == m.At && !p.over():
			found = append(found, p)
		}
	}
	slices.SortFunc(found, func(a, b *poll) int { return b.Time.Compare(a.Time) })
	var ids []string
	for _, p := range found {
		ids = append(ids, p.Reply.Ask.ID)
	}
	return ids, nil
}

// understand answers p by what m says and tells whether that is an answer.
func (l *line) understand(p *poll, m chat.Message) bool {
	q, text := p.Reply.Ask, strings.TrimSpace(m.Text)
	if !p.mayAnswer(m) {
		return false
	}
	numbered := !l.buttons(q)
	i := slices.IndexFunc(q.Choices, func(c string) bool { return strings.EqualFold(strings.TrimSpace(c), text) })
	if n, err := strconv.Atoi(strings.TrimRight(text, ".)")); err == nil && numbered && n >= 1 && n <= len(q.Choices) {
		i = n - 1
	}
	switch own := q.Free && !strings.HasPrefix(text, "/") && m.From.ID == cmp.Or(q.Whom, m.From.ID); {
	case i >= 0 && (numbered || own):
		p.choose(i, q.Choices[i], m)
	case own:
		p.choose(-1, text, m)
	default:
		return false
	}
	return true
}

// mayAnswer says whether the sender of m may answer p where m was said. An ID
// is a person of one channel only.
func (p poll) mayAnswer(m chat.Message) bool {
	return m.At.Channel == p.Reply.To.Channel && m.At.Chat == p.Reply.To.Chat &&
		(m.From.Role == chat.Owner || m.From.ID != "" && m.From.ID == p.Reply.Ask.Whom)
}

func (p *poll) choose(i int, text string, m chat.Message) {
	p.Choice, p.Message = &Choice{Index: i, Text: text, By: m.From}, m.Key()
}

// approved tells of the answer of p.
func (h *Hub) approved(p poll) {
	h.audit("approval", p.Reply.To.Channel+":"+p.Choice.By.ID, fmt.Sprintf("question %s: %s", p.Reply.Ask.ID, plainly(p.Choice.Text, maxName)))
}

// shown notes which message asks question id.
func (h *Hub) shown(id string, rc Receipt) {
	h.polls.mu.Lock()
	defer h.polls.mu.Unlock()
	if p := h.polls.all[id]; p != nil {
		p.receipt = rc
	}
}

// unbutton takes the buttons of p, whose message is rc, away and shows what was
// chosen. It is tried once and delays nobody.
func (h *Hub) unbutton(p poll, rc Receipt) {
	l := h.lines[p.Reply.To.Channel]
	if l == nil || rc == "" || !l.buttons(p.Reply.Ask) {
		return
	}
	e, ok := l.Channel.(Editor)
	if !ok {
		return
	}
	l.errand("take buttons away", func(ctx context.Context) error {
		r, err := l.closing(p.question)
		if err != nil {
			return err
		}
		return e.Edit(ctx, rc, r)
	})
}
