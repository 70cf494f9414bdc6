package backup

import (
	"fmt"
	"io"
	"strings"
	"time"

	"parley/chat"
	"parley/texts"
)

// Print tells the operator what a restore did.
func (r Report) Print(w io.Writer, zone *time.Location) {
	fmt.Fprintln(w, "backup of "+r.Made.In(zone).Format(time.DateTime))
	if r.Lost != nil {
		fmt.Fprintf(w, "its latest changes, of about a minute, are lost: %v\n", r.Lost)
	}
	for _, path := range r.Put {
		fmt.Fprintln(w, "restored "+path)
	}
	for _, path := range r.Moved {
		fmt.Fprintln(w, "moved "+path+" to "+r.MovedTo)
	}
	if n := r.Waiting; n.Messages+n.Replies > 0 {
		const waiting = "what waited when the backup was made is now in the dead letters: messages %d, replies %d\n"
		fmt.Fprintf(w, waiting, n.Messages, n.Replies)
	}
}

// Notice tells owners that a copy has taken the place of the store, or that its latest
// changes are lost.
func (r Report) Notice(say texts.OwnerNotices, zone *time.Location) string {
	note := say.StoreReplaced.With(r.Made.In(zone).Format(time.DateTime))
	if r.Lost != nil {
		note = say.StoreLogDamaged.With(r.Made.In(zone).Format(time.DateTime))
	}
	if len(r.Moved) > 0 {
		note += say.DamagedFileIn.With(r.MovedTo)
	}
	if n := r.Waiting; n.Messages+n.Replies > 0 {
		note += say.Abandoned.With(n.Messages, n.Replies)
	}
	return note
}

// DamageNotice tells owners of places in the store of dataDir that cannot be read.
// restore returns the command that restores a file.
func DamageNotice(say texts.OwnerNotices, places []string, dataDir string, restore func(file string) string) string {
	var b strings.Builder
	b.WriteString(say.Damaged.Of(len(places)) + "\n")
	for _, place := range places[:min(len(places), 3)] {
		b.WriteString("- " + chat.OneLine(place) + "\n")
	}
	b.WriteString(say.DamagedAdvice)
	if copies := Copies(dataDir); len(copies) > 0 {
		b.WriteString(say.DamagedRestore.With(restore(copies[0])))
	}
	return b.String()
}
