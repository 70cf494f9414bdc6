package web

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"parley/branches"
	"parley/chat"
	"parley/response"
)

// A conversation has branches (see package branches) when the person changes a message,
// asks for another answer, or goes back to an earlier version of either. The page shows
// the branch of the log's last entry. So whatever is said, one entry puts it where it
// belongs, and a switch to another branch is an entry, too, which is not shown. A message
// tells the agent where it goes on (chat.Branch); the agent finds that place in its own log.

// maxAncestors is how many messages before it a message names that goes on in a branch.
const maxAncestors = 50

// note notes where e stands. The caller holds writeMu.
func (rm *room) note(e logEntry) {
	rm.last = max(rm.last, e.Seq)
	if e.From != nil {
		rm.tree.GoOn(e.Seq, *e.From)
	}
}

// inItsBranch returns e and, if it answers a message in another branch than that under
// way, the entry that goes on with the latter. The caller holds writeMu.
func (rm *room) inItsBranch(e logEntry) []logEntry {
	if e.Who != whoAgent || e.Replies == "" || e.Edits > 0 || !rm.tree.HasBranches() {
		return []logEntry{e}
	}
	seq := rm.seqs[entryKey{whoPerson, e.Replies}]
	if seq == 0 || rm.tree.Path(rm.last).Has(seq) {
		return []logEntry{e}
	}
	from := seq
	for _, end := range rm.tree.Ends(rm.last) {
		if rm.tree.Path(end).Has(seq) {
			from = end
			break
		}
	}
	e.From = &from
	now := rm.last
	return []logEntry{e, {ID: newID(), Who: whoSwitch, From: &now, Time: e.Time}}
}

// A branchReader reads the entries of a conversation, for one of its branches.
type branchReader struct {
	all      []logEntry     // with later edits applied
	place    map[uint64]int // in all, by number
	tree     branches.Tree
	last     uint64
	versions map[uint64][]uint64 // numbers of the versions of a message or answer, by that of the first
	again    map[string]uint64   // the first version of the answer to an entry that asks for another, by its ID
}

// add adds the next entry of the log.
func (b *branchReader) add(e logEntry) {
	if b.place == nil {
		b.place = map[uint64]int{}
		b.versions = map[uint64][]uint64{}
		b.again = map[string]uint64{}
	}
	b.last = e.Seq
	if e.From != nil {
		b.tree.GoOn(e.Seq, *e.From)
	}
	if i, there := b.place[e.Edits]; there {
		e.Seq, e.Edits = e.Edits, 0
		b.all[i] = e
		return
	}
	if e.Edits != 0 {
		return
	}
	if first := e.Instead; first > 0 {
		if _, there := b.place[first]; there && b.versions[first] == nil {
			b.versions[first] = []uint64{first}
		}
		b.versions[first] = append(b.versions[first], e.Seq)
	}
	if e.Again {
		b.again[e.ID] = e.Instead
	}
	b.place[e.Seq] = len(b.all)
	b.all = append(b.all, e)
}

// entry returns the entry numbered seq, and whether there is one.
func (b *branchReader) entry(seq uint64) (logEntry, bool) {
	i, there := b.place[seq]
	if !there {
		return logEntry{}, false
	}
	return b.all[i], true
}

// shown returns the entries of the branch under way that are shown.
func (b *branchReader) shown() (es []logEntry) {
	path := b.tree.Path(b.last)
	over := map[uint64]bool{} // those of which there is a later version on the path
	for _, e := range b.all {
		if e.Instead == 0 || !path.Has(e.Seq) {
			continue
		}
		for _, v := range b.versions[e.Instead] {
			over[v] = over[v] || v < e.Seq
		}
	}
	for _, e := range b.all {
		if path.Has(e.Seq) && !e.Again && e.Who != whoSwitch && !over[e.Seq] {
			es = append(es, e)
		}
	}
	return es
}

// versionsOf returns the numbers of the versions of e, and which of them it is.
func (b *branchReader) versionsOf(e logEntry) (all []uint64, which int) {
	seq, first := e.Seq, cmp.Or(e.Instead, e.Seq)
	if asked, is := b.again[e.Replies]; is && e.Who == whoAgent {
		first = asked
		i := slices.IndexFunc(b.all, func(a logEntry) bool { return a.Again && a.ID == e.Replies })
		seq = b.all[i].Seq
	}
	all = b.versions[first]
	if len(all) < 2 {
		return nil, 0
	}
	return all, max(slices.Index(all, seq), 0)
}

// end returns the last entry of the branch that was under way last with that version.
func (b *branchReader) end(version uint64, versions []uint64) uint64 {
	for _, end := range b.tree.Ends(b.last) {
		path := b.tree.Path(end)
		later := func(v uint64) bool { return v > version && path.Has(v) }
		if path.Has(version) && !slices.ContainsFunc(versions, later) {
			return end
		}
	}
	return version
}

// read reads all entries of the room.
func (rm *room) read(ctx context.Context) (b branchReader, err error) {
	for e, err := range rm.entriesAfter(ctx, 0) {
		if err != nil {
			return b, err
		}
		b.add(e)
	}
	return b, nil
}

var errNoVersion = response.Problem{
	Status: http.StatusConflict,
	Text:   "This message is not part of the conversation any more. Please load the page again.",
}

// placeInBranch returns e, an entry that is about to be appended, and its message m with
// where they go on: in the place of a message, after what an answer answers, or at the end of
// a branch to which the person has just switched. The caller holds writeMu.
func (rm *room) placeInBranch(
	ctx context.Context, e logEntry, m chat.Message, instead, again uint64,
) (logEntry, chat.Message, error) {
	if err := rm.load(ctx); err != nil {
		return e, m, err
	}
	if instead == 0 && again == 0 && !rm.tree.HasBranches() {
		return e, m, nil
	}
	b, err := rm.read(ctx)
	if err != nil {
		return e, m, err
	}
	place := branchPlace{reader: &b, entry: e, message: m, thread: rm.address.Thread}
	switch {
	case slices.ContainsFunc(b.all, func(old logEntry) bool { return old.Who == e.Who && old.ID == e.ID }):
		place.repeat()
	case instead > 0:
		err = place.change(instead)
	case again > 0:
		err = place.regenerate(again)
	case b.hasSwitched():
		place.goOn()
	}
	if err != nil {
		return e, m, err
	}
	for _, earlier := range place.together {
		for _, link := range earlier.Files {
			f, err := rm.c.getFile(ctx, rm.address.Chat, link.ID)
			if err != nil {
				return e, m, err
			}
			place.message.Files = append(place.message.Files, f)
		}
	}
	place.entry.Branch = place.message.Branch
	return place.entry, place.message, nil
}

// hasSwitched reports whether the person has switched to the branch under way since something
// was said in it. The agent does not go anywhere for a command, but for one to answer again.
func (b *branchReader) hasSwitched() bool {
	path := b.tree.Path(b.last)
	switched := false
	commands := map[string]bool{} // their IDs
	for _, e := range b.all {
		if word, _ := chat.Word(e.Text); e.isCommand() && !e.Again {
			commands[e.ID] = word != "/retry" && word != regenerateCommand
		}
	}
	for _, e := range slices.Backward(b.all) {
		switch {
		case !path.Has(e.Seq), commands[e.ID], commands[e.Replies]:
		case e.Who == whoSwitch:
			switched = true
		case e.Who == whoPerson: // the agent is there already, or will be
			return false
		case e.Who == whoAgent:
			return switched
		}
	}
	return false
}

// A branchPlace finds out where an entry goes on.
type branchPlace struct {
	reader  *branchReader
	entry   logEntry
	message chat.Message
	thread  string // of the conversation

	together []logEntry // what the person had said before that was answered together with the message
}

// isCommand reports whether the person gave a command, which has no place in the agent's log.
func (e logEntry) isCommand() bool { return e.Who == whoPerson && strings.HasPrefix(e.Text, "/") }

// regenerateCommand has the agent answer again.
const regenerateCommand = "/regenerate"

// repeat makes the message what it was when the browser sent it first.
func (p *branchPlace) repeat() {
	for _, old := range p.reader.all {
		if old.Who != whoPerson || old.ID != p.entry.ID {
			continue
		}
		p.message.Branch = old.Branch
		if old.Again {
			p.message.Text = regenerateCommand
		}
	}
}

// change puts the entry in the place of the person's message numbered seq.
func (p *branchPlace) change(seq uint64) error {
	old, there := p.reader.entry(seq)
	if !there || old.Who != whoPerson || old.Again || old.isCommand() {
		return errNoVersion
	}
	if p.entry.isCommand() { // the agent would not go back for it
		return response.Problem{Status: http.StatusConflict, Text: "Please send a command by itself."}
	}
	shown := p.reader.shown()
	orderEntries(shown)
	at := slices.IndexFunc(shown, func(e logEntry) bool { return e.Seq == seq })
	from := p.reader.tree.Before(seq)
	if at > 0 {
		from = shown[at-1].Seq
	} else if at == 0 {
		from = 0
	}
	p.entry.From = &from
	p.entry.Instead = cmp.Or(old.Instead, seq)
	p.message.Branch = &chat.Branch{Instead: p.agentID(old.ID), After: p.ancestors(from)}
	p.joinEarlier(shown, old)
	return nil
}

// joinEarlier adds to the message what the person had said before old that was answered
// together with it: the turn of all of it is left.
func (p *branchPlace) joinEarlier(shown []logEntry, old logEntry) {
	i := slices.IndexFunc(shown, func(e logEntry) bool { return e.answers(old.ID) })
	if i < 0 {
		return
	}
	var texts []string
	for _, e := range shown {
		if e.Who == whoPerson && e.Seq < old.Seq && shown[i].answers(e.ID) {
			texts = append(texts, e.Text)
			p.together = append(p.together, e)
		}
	}
	p.message.Text = strings.Join(append(texts, p.message.Text), "\n\n")
}

// answers reports whether e answers the person's message with that ID.
func (e logEntry) answers(id string) bool {
	return e.Who == whoAgent && (e.Replies == id || slices.Contains(e.Also, id))
}

// regenerate makes the entry one that asks for another answer than that numbered seq.
func (p *branchPlace) regenerate(seq uint64) error {
	answer, there := p.reader.entry(seq)
	if !there || answer.Who != whoAgent || answer.Replies == "" {
		return errNoVersion
	}
	var from uint64
	for _, e := range p.reader.all {
		if e.Who == whoPerson && answer.answers(e.ID) {
			from = max(from, e.Seq)
		}
	}
	if from == 0 {
		return errNoVersion
	}
	first := seq
	if asked, is := p.reader.again[answer.Replies]; is {
		first = asked
		i := slices.IndexFunc(p.reader.all, func(e logEntry) bool { return e.Again && e.ID == answer.Replies })
		from = *p.reader.all[i].From
	}
	p.entry.Again = true
	p.entry.Text = ""
	p.entry.From = &from
	p.entry.Instead = first
	p.message.Text = regenerateCommand
	after := []string{p.agentID(answer.Replies)}
	for _, id := range answer.Also {
		after = append(after, p.agentID(id))
	}
	p.message.Branch = &chat.Branch{After: after}
	return nil
}

// goOn has the message go on at the end of the branch under way.
func (p *branchPlace) goOn() {
	p.message.Branch = &chat.Branch{After: p.ancestors(p.reader.last)}
}

// agentID returns the ID that the agent knows the message by.
func (p *branchPlace) agentID(id string) string { return p.thread + "." + id }

// ancestors returns the IDs of the messages up to the entry numbered seq, the latest first,
// without commands.
func (p *branchPlace) ancestors(seq uint64) (ids []string) {
	path := p.reader.tree.Path(seq)
	for _, e := range slices.Backward(p.reader.all) {
		if len(ids) == maxAncestors {
			break
		}
		if e.Who == whoPerson && path.Has(e.Seq) && !e.isCommand() {
			ids = append(ids, p.agentID(e.ID))
		}
	}
	return ids
}

// switchVersion goes on with another version of a message or of an answer.
func switchVersion(req request) error {
	var in struct{ Version uint64 }
	if err := req.readJSON(&in); err != nil {
		return err
	}
	rm := req.room
	rm.writeMu.Lock()
	defer rm.writeMu.Unlock()
	if err := rm.load(req.r.Context()); err != nil {
		return err
	}
	b, err := rm.read(req.r.Context())
	if err != nil {
		return err
	}
	e, there := b.entry(in.Version)
	if !there {
		return errNoVersion
	}
	versions := b.versions[cmp.Or(e.Instead, e.Seq)]
	end := b.end(in.Version, versions)
	seq := b.last
	if end != b.last {
		choice := logEntry{ID: newID(), Who: whoSwitch, From: &end, Time: time.Now()}
		if seq, err = rm.writeEntry(req.r.Context(), choice); err != nil {
			return err
		}
	}
	return req.writeJSON(http.StatusOK, acceptedResponse{seq})
}

// versionData returns what scripts read of the versions of e.
func (e renderedEntry) versionData() g.Node {
	if len(e.Versions) == 0 {
		return nil
	}
	all := make([]string, len(e.Versions))
	for i, v := range e.Versions {
		all[i] = strconv.FormatUint(v, 10)
	}
	return g.Group{h.Data("versions", strings.Join(all, " ")), h.Data("version", strconv.Itoa(e.Version))}
}
