package memory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/texts"
)

// A Dreamer makes knowledge of what was said: it reads what is new in the
// histories and edits the memory files accordingly. Who the agent is and whom it
// works for it never changes by itself: that is asked for. What was made of
// untrusted content is read by itself, and whatever the model makes of it ends up
// in the file of what was heard from others (R-S14).
type Dreamer struct {
	Model    func(chat.Person) llm.Model // thinks about what that person said
	Past     *History
	Versions *Versions
	Zone     *time.Location
	Texts    *texts.Memory                 // what people are told of changes; nil: in English
	Ask      func(context.Context, Change) // tells its person of a Change that asks for others; may be nil
}

// Bounds of a dream.
const (
	maxBatches   = 10 // changes of one person
	maxBatch     = 20 // entries for one change
	maxBatchText = 24_000
	maxHeard     = maxFile / 4
	maxShown     = 4 * maxFile // bytes of a file: more of it no model is to go over
	maxRounds    = 8           // requests for each kind of entries
	maxFails     = 3           // over the same entries before they are passed over
)

// Dream reads what is new in the history of who, in parts, and makes a change
// of each that is worth one. It says how many entries it read. What fails is
// read again by the next dream; the changes before it are made. While a model
// thinks, nothing is held: what others do meanwhile counts.
func (d *Dreamer) Dream(ctx context.Context, who chat.Person) (changes []Change, read int, err error) {
	for range maxBatches {
		var c Change
		var n int
		c, n, err = d.batch(ctx, who)
		if errors.Is(err, errEdited) { // it is thought about once more
			continue
		}
		if c.ID != "" {
			changes = append(changes, c)
		}
		if read += n; err != nil || n == 0 {
			break
		}
	}
	if err != nil {
		err = fmt.Errorf("dream of %s: %w", who, err)
	}
	return changes, read, err
}

var errEdited = errors.New("somebody edited the memory meanwhile")

// say returns what people are told.
func (d *Dreamer) say() texts.Memory {
	if d.Texts == nil {
		return texts.English().Memory
	}
	return *d.Texts
}

// DreamAll is Dream for everybody. It says how many entries it read, and how many
// changes it made.
func (d *Dreamer) DreamAll(ctx context.Context) (read, made int, err error) {
	people, err := d.Past.People(ctx)
	for _, who := range people {
		changes, n, e := d.Dream(ctx, who)
		made += len(changes)
		read += n
		err = errors.Join(err, e)
		if ctx.Err() != nil || e != nil && errors.As(e, new(*llm.Error)) && !theirs(e) {
			break // it would be the same with the others
		}
	}
	return read, made, err
}

// batch makes one change of what is next, and says how many entries that was.
func (d *Dreamer) batch(ctx context.Context, who chat.Person) (c Change, read int, err error) {
	c = Change{Who: who, By: "dream"}
	var was map[string]string
	err = d.Versions.with(ctx, who, func(h *head, texts map[string]string) error {
		c.From, was = h.Cursor, texts
		return nil
	})
	if err != nil {
		return c, 0, err
	}
	entries, err := d.next(ctx, who, c.From)
	if err != nil {
		return c, 0, err
	}
	if len(entries) == 0 && c.From > 0 {
		entries, err = d.anew(ctx, &c)
	}
	if err != nil || len(entries) == 0 {
		return c, 0, err
	}
	c.To = entries[len(entries)-1].Cursor
	texts, err := d.think(ctx, &c, was, entries)
	if err != nil {
		if err = d.failed(ctx, &c, err); err != nil {
			return c, 0, err
		}
		texts = nil
	}
	asked := c.ask(d.say(), was, texts)
	c, err = d.Versions.edit(ctx, c, func(h *head, now map[string]string) error {
		still, err := d.next(ctx, who, c.From)
		if err != nil {
			return err
		}
		if h.Cursor != c.From || !maps.Equal(now, was) || forgotten(entries, still) {
			return errEdited
		}
		for _, text := range asked {
			if err := d.Versions.keep(ctx, who, text); err != nil {
				return err
			}
		}
		maps.Copy(now, texts)
		h.Fails = 0
		return nil
	})
	if err != nil {
		return c, len(entries), err
	}
	if len(c.Asks) > 0 && c.ID != "" && d.Ask != nil {
		d.Ask(ctx, c)
	}
	return c, len(entries), nil
}

// ask has c ask for what texts change of who the agent is and whom it works for:
// texts say of that what they did. It returns the texts that c names then.
func (c *Change) ask(say texts.Memory, was, texts map[string]string) (named []string) {
	for _, name := range []string{soulFile, userFile} {
		if text, there := texts[name]; there && text != was[name] {
			if c.Asks == nil {
				c.Asks = map[string]Edit{}
			}
			c.Asks[name] = Edit{Before: digest(was[name]), After: digest(text)}
			named = append(named, was[name], text)
			texts[name] = was[name]
		}
	}
	if c.Asks != nil && c.Why == "" {
		c.Why = say.ChangeProposed
	}
	return named
}

// anew begins again with the history if it ends before c: somebody took it away
// or made it shorter, and counts from there.
func (d *Dreamer) anew(ctx context.Context, c *Change) ([]Entry, error) {
	err := d.Versions.with(ctx, c.Who, func(h *head, _ map[string]string) error {
		last, err := d.Past.last(ctx, c.Who)
		if err != nil || last >= h.Cursor {
			return err
		}
		h.Cursor = 0
		h.Fails = 0
		c.From = 0
		return d.Versions.save(ctx, h)
	})
	if err != nil || c.From > 0 {
		return nil, err
	}
	return d.next(ctx, c.Who, 0)
}

// forgotten reports whether any of the entries is not there still.
func forgotten(entries, still []Entry) bool {
	return !slices.EqualFunc(entries, still[:min(len(entries), len(still))],
		func(a, b Entry) bool { return a.Cursor == b.Cursor })
}

// next returns the entries behind the cursor that are dreamt together.
func (d *Dreamer) next(ctx context.Context, who chat.Person, cursor int64) (all []Entry, err error) {
	size := 0
	for e, err := range d.Past.Since(ctx, who, cursor) {
		if err != nil {
			return nil, err
		}
		if e.Cursor <= cursor { // out of order, by hand
			continue
		}
		e.Text = clip(e.Text, maxBatchText)
		size += len(e.Text)
		if len(all) == maxBatch || len(all) > 0 && size > maxBatchText {
			break
		}
		all, cursor = append(all, e), e.Cursor
	}
	return all, nil
}

// think returns what the files are to say after the entries, and writes into c
// what it tells of that.
func (d *Dreamer) think(
	ctx context.Context,
	c *Change,
	was map[string]string,
	entries []Entry,
) (map[string]string, error) {
	texts := maps.Clone(was)
	for _, tainted := range []bool{false, true} {
		s := &stage{was: maps.Clone(texts), most: maxFile}
		main := memoryFile
		system := dreamInstructions
		if tainted {
			s.most = maxHeard
			main = heardFile
			system = hearsayInstructions
		}
		maps.DeleteFunc(s.was, func(name, _ string) bool { return (name == heardFile) != tainted })
		told := d.told(entries, tainted)
		if told == "" {
			continue
		}
		if _, there := s.was[main]; !there {
			return nil, errors.New(main + " cannot be read")
		}
		for name, text := range s.was {
			if len(text) > maxShown {
				return nil, errors.New(name + " is too long to be gone over: make it shorter")
			}
		}
		if err := s.run(ctx, d.Model(c.Who), system, told); err != nil {
			return nil, err
		}
		switch {
		case maps.Equal(s.was, s.now):
			continue
		case !tainted:
			c.Why = s.why
		default: // whatever the model says of it
			c.Why, c.Tainted = strings.TrimPrefix(c.Why+"; "+d.say().HeardFromOthers, "; "), true
		}
		maps.Copy(texts, s.now)
	}
	return texts, nil
}

// told is what a model is shown of the entries that are tainted, or are not.
func (d *Dreamer) told(entries []Entry, tainted bool) string {
	var all []string
	for _, e := range entries {
		if e.Tainted == tainted {
			by := ""
			if tainted {
				by = ", hearsay: strangers had a word in it"
			}
			all = append(
				all,
				fmt.Sprintf("Entry %d, %s, in %s%s:\n%s", e.Cursor, e.Time.In(d.Zone).Format("Monday 2006-01-02 15:04"),
					e.Session, by, quote(e.Text)),
			)
		}
	}
	return strings.Join(all, "\n\n")
}

// failed counts how often the entries of c could not be read, and returns why.
// After enough of that it returns nil: c passes them over.
func (d *Dreamer) failed(ctx context.Context, c *Change, cause error) error {
	if ctx.Err() != nil || !theirs(cause) {
		return cause
	}
	return d.Versions.with(ctx, c.Who, func(h *head, _ map[string]string) error {
		if h.Cursor != c.From {
			return cause
		}
		if h.Fails++; h.Fails < maxFails {
			return errors.Join(cause, d.Versions.save(ctx, h))
		}
		d.Versions.log.Warn("dreams pass over what they cannot read", "who", c.Who, "from", c.From, "to", c.To, "err",
			cause)
		c.Why = d.say().PassedOver.With(maxFails, c.From+1, c.To)
		return nil
	})
}

// theirs reports whether it is for the entries that a model failed.
func theirs(err error) bool {
	var e *llm.Error
	return errors.As(err, &e) && slices.Contains([]llm.Kind{llm.BadRequest, llm.TooLong, llm.Cut, llm.TimedOut}, e.Kind)
}
