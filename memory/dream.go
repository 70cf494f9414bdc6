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

// A Dreamer turns what was said into lasting knowledge: it reads new history
// entries and edits the memory files. It only proposes changes to who the agent is
// and whom it works for. Entries made from untrusted content are read separately,
// and whatever the model makes of them goes into the file of what was heard from
// others (R-S14).
type Dreamer struct {
	Model    func(chat.Person) llm.Model // the model that reads this person's history
	Past     *History
	Versions *Versions
	Zone     *time.Location
	Texts    *texts.Memory                 // messages for people; nil is English
	Ask      func(context.Context, Change) // tells the person of a Change with proposals; may be nil
}

// Limits for a dream.
const (
	maxBatches   = 10          // changes of one person per dream
	maxBatch     = 20          // entries per change
	maxBatchText = 24_000      // characters of an entry, and of all entries of a change
	maxHeard     = maxFile / 4 // bytes of the file of what was heard from others
	maxShown     = 4 * maxFile // bytes of a file: a longer one is not given to a model
	maxRounds    = 8           // requests per kind of entries
	maxFails     = 3           // failures with the same entries before they are skipped
)

// Dream reads the new entries in the history of who, in parts, and makes a change
// for each part that is worth one. It returns how many entries it read. After a
// failure, the changes before it are kept, and the next dream reads the rest
// again. Nothing is locked while a model works: changes that others make in the
// meantime count.
func (d *Dreamer) Dream(ctx context.Context, who chat.Person) (changes []Change, read int, err error) {
	for range maxBatches {
		var c Change
		var n int
		c, n, err = d.batch(ctx, who)
		if errors.Is(err, errEdited) { // try again with the new texts
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

var errEdited = errors.New("the memory was edited in the meantime")

// say returns the texts for people.
func (d *Dreamer) say() texts.Memory {
	if d.Texts == nil {
		return texts.English().Memory
	}
	return *d.Texts
}

// DreamAll dreams for everybody. It returns how many entries it read, and how many
// changes it made.
func (d *Dreamer) DreamAll(ctx context.Context) (read, made int, err error) {
	people, err := d.Past.People(ctx)
	for _, who := range people {
		changes, n, e := d.Dream(ctx, who)
		made += len(changes)
		read += n
		err = errors.Join(err, e)
		if ctx.Err() != nil || e != nil && errors.As(e, new(*llm.Error)) && !isInputError(e) {
			break // it would fail for the others too
		}
	}
	return read, made, err
}

// batch makes one change from the next entries, and returns how many those were.
func (d *Dreamer) batch(ctx context.Context, who chat.Person) (c Change, read int, err error) {
	c = Change{Who: who, By: byDream, origins: map[mark]Origin{}}
	var was map[string]string
	err = d.Versions.with(ctx, who, func(ctx context.Context, h *head, texts map[string]string) error {
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
		entries, err = d.restart(ctx, &c)
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
	c, err = d.Versions.edit(ctx, c, func(ctx context.Context, h *head, now map[string]string) error {
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

// ask turns edits of the files that describe the agent and its person into
// proposals of c: these texts are then as before. It returns the texts that the
// proposals refer to.
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

// restart begins again at the start of the history if it ends before c: somebody
// has removed or shortened it, and entries are counted from the start again.
func (d *Dreamer) restart(ctx context.Context, c *Change) ([]Entry, error) {
	err := d.Versions.with(ctx, c.Who, func(ctx context.Context, h *head, _ map[string]string) error {
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

// forgotten reports whether any of the entries no longer exists.
func forgotten(entries, still []Entry) bool {
	return !slices.EqualFunc(entries, still[:min(len(entries), len(still))],
		func(a, b Entry) bool { return a.Cursor == b.Cursor })
}

// next returns the entries after the cursor that are read together.
func (d *Dreamer) next(ctx context.Context, who chat.Person, cursor int64) (all []Entry, err error) {
	size := 0
	for e, err := range d.Past.Since(ctx, who, cursor) {
		if err != nil {
			return nil, err
		}
		if e.Cursor <= cursor { // out of order, after an edit by hand
			continue
		}
		e.Text = chat.Shorten(e.Text, maxBatchText)
		size += len(e.Text)
		if len(all) == maxBatch || len(all) > 0 && size > maxBatchText {
			break
		}
		all = append(all, e)
		cursor = e.Cursor
	}
	return all, nil
}

// think returns the files' texts after the entries, and sets the reason in c.
func (d *Dreamer) think(
	ctx context.Context,
	c *Change,
	was map[string]string,
	entries []Entry,
) (map[string]string, error) {
	texts := maps.Clone(was)
	for _, tainted := range []bool{false, true} {
		s := &draft{was: maps.Clone(texts), most: maxFile}
		main := memoryFile
		system := dreamInstructions
		if tainted {
			s.most = maxHeard
			main = heardFile
			system = hearsayInstructions
		}
		maps.DeleteFunc(s.was, func(name, _ string) bool { return (name == heardFile) != tainted })
		read := slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return e.Tainted != tainted })
		told := d.describe(read)
		if told == "" {
			continue
		}
		if _, there := s.was[main]; !there {
			return nil, errors.New(main + " cannot be read")
		}
		for name, text := range s.was {
			if len(text) > maxShown {
				return nil, errors.New(name + " is too long for a model: make it shorter")
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
		default: // the model's own reason may be untrusted
			c.Why = strings.TrimPrefix(c.Why+"; "+d.say().HeardFromOthers, "; ")
			c.Tainted = true
		}
		for name, text := range s.now {
			for _, m := range newMarks(name, s.was[name], text) {
				c.origins[m] = derive(m.line, read, s.from[m])
			}
		}
		maps.Copy(texts, s.now)
	}
	return texts, nil
}

// describe formats the entries for a model.
func (d *Dreamer) describe(entries []Entry) string {
	var all []string
	for _, e := range entries {
		by := ""
		if e.Tainted {
			by = ", hearsay: it contains untrusted content"
		}
		all = append(
			all,
			fmt.Sprintf("Entry %d, %s, in %s%s:\n%s", e.Cursor, e.Time.In(d.Zone).Format("Monday 2006-01-02 15:04"),
				e.Session, by, quote(e.Text)),
		)
	}
	return strings.Join(all, "\n\n")
}

// failed counts how often the entries of c could not be processed, and returns the
// cause. After maxFails it returns nil: c skips them.
func (d *Dreamer) failed(ctx context.Context, c *Change, cause error) error {
	if ctx.Err() != nil || !isInputError(cause) {
		return cause
	}
	return d.Versions.with(ctx, c.Who, func(ctx context.Context, h *head, _ map[string]string) error {
		if h.Cursor != c.From {
			return cause
		}
		if h.Fails++; h.Fails < maxFails {
			return errors.Join(cause, d.Versions.save(ctx, h))
		}
		d.Versions.log.Warn("dreams skip entries that failed repeatedly",
			"who", c.Who, "from", c.From, "to", c.To, "err", cause)
		c.Why = d.say().PassedOver.With(maxFails, c.From+1, c.To)
		return nil
	})
}

// isInputError reports whether a model failed because of the entries it was given.
func isInputError(err error) bool {
	var e *llm.Error
	return errors.As(err, &e) && slices.Contains([]llm.Kind{llm.BadRequest, llm.TooLong, llm.Cut, llm.TimedOut}, e.Kind)
}
