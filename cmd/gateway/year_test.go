package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/chat"
	"parley/sizes"
	"parley/store"
	"parley/timetest"
)

// A year is a life of that many days, with so many messages on each of them.
type year struct {
	*life
	days, messages, chats int
	day                   int
	page                  *visitor
	rooms                 []string // of the page, the latest last
	measured              []measurement
}

// A measurement is what there is on one day.
type measurement struct {
	day    int
	bytes  map[string]int64 // on the disk, by part
	heap   uint64           // after a collection
	opened time.Duration
}

// TestTortureYear lets a year pass, of which everything is kept for a quarter: from then on
// what it takes of the disk stays what it is (P28), but for what Parley is to remember and the
// archive that its owner wished for. It has a hundredth of the messages of a busy gateway, and
// prints the table for docs/performance.md. Without PARLEY_TORTURE the year is short.
func TestTortureYear(t *testing.T) {
	t.Parallel()
	kept := fmt.Sprint(bouts(10, 90), "d")
	periods := map[string]any{
		"conversations": kept, "files": kept, "audit": kept, "deadLetters": kept, "results": "7d",
		"usage": fmt.Sprint(bouts(40, 90), "d"), "keep": "archive",
	}
	inLife(t, map[string]any{"retention": periods}, func(l *life) {
		y := &year{life: l, days: bouts(48, 365), messages: bouts(10, 200), chats: bouts(5, 40)}
		flat := bouts(42, 180)
		for y.day = 1; y.day <= y.days; y.day++ {
			y.live()
			if slices.Contains([]int{30, 90, flat, 270, y.days}, y.day) {
				y.measure()
			}
		}
		y.print()
		i := slices.IndexFunc(y.measured, func(m measurement) bool { return m.day == flat })
		before, after := y.measured[i].used(), y.measured[len(y.measured)-1].used()
		if after > before+before/10 {
			y.Errorf("day %d has %d bytes, day %d has %d", flat, before, y.days, after)
		}
	})
}

// live is a day and its night.
func (y *year) live() {
	if y.day%20 == 1 {
		y.page = y.visit()
	}
	if y.day == 1 {
		for _, job := range []string{`"every_seconds": 21600, "isolated": true`, `"cron_expr": "0 9 * * *"`} {
			y.net.say(0, "0", `call cron {"action": "add", "message": "Look whether something is new", `+job+`}`)
		}
	}
	if y.day%3 == 1 {
		y.rooms = append(y.rooms, y.page.conversation())
	}
	for n := range y.messages {
		y.say(n)
		if n%20 == 19 {
			timetest.Sleep(time.Minute)
		}
	}
	y.pass(20 * time.Hour) // until it is two
	y.stamp(filepath.Join(y.dir, "workspace"))
	y.pass(4 * time.Hour)
	y.stamp(filepath.Join(y.dir, "workspace"))
}

// say is message n of a day.
func (y *year) say(n int) {
	who := n % y.chats
	room := fmt.Sprint(who)
	words := fmt.Sprintf("What is to be said about number %d of day %d, apart from what was said before?", n, y.day)
	daily := words // in chats that would fill the model's window for a year, one message a day
	if y.day%7 == 0 {
		daily = "/new"
	}
	switch {
	case n == 0:
		y.net.say(0, "0", fmt.Sprintf(`call spawn {"task": "Look at day %d", "label": "day"}`, y.day))
	case n == 1 && y.day == 1:
		y.net.say(1, "1", `call write_file {"path": "all.txt", "content": "`+strings.Repeat(`so long\n`, 3000)+`"}`)
	case n == 1:
		y.net.say(1, "1", `call multi_agent {"tasks": [{"name": "a", "instruction": "Look at it"}]}`)
	case n == 2:
		y.net.say(1, "1", `call grep {"pattern": "long", "output_mode": "content"}`+"\n"+`call read_file {"path": "all.txt"}`)
	case n == 3:
		y.net.say(who, room, "keep this", chat.File{Name: "a.txt", Type: "text/plain", Ref: fmt.Sprint("file of day ", y.day)})
	case n == 4:
		y.net.say(1, "refused", daily)
	case n == 5:
		y.net.say(y.day%7, fmt.Sprint(y.day%7), "/new")
	case n == 6:
		y.net.say(who, "group", daily)
	case n == 7:
		y.net.say(1000+y.day, fmt.Sprint(1000+y.day), words) // somebody who never comes again
	case n%7 == 1:
		y.page.say(y.rooms[len(y.rooms)-1-n%min(5, len(y.rooms))], fmt.Sprintf("message-%d-%d", y.day, n), words)
	case n%3 == 0:
		y.net.say(who, room, fmt.Sprintf("%s\n"+`call write_file {"path": "notes-%d.txt", "content": "noted on day %d"}`+"\ncall get_time {}", words, who, y.day))
	default:
		y.net.say(who, room, words)
	}
}

// measure notes what there is, and starts the gateway anew.
func (y *year) measure() {
	y.Helper()
	samples, err := sizes.Samples(y.Context(), y.gateway.store)
	if err != nil || len(samples) == 0 {
		y.Fatal("no sizes", err)
	}
	m := measurement{day: y.day, bytes: maps.Clone(samples[len(samples)-1].Bytes)}
	y.stop()
	m.bytes["parley.db"] = y.onDisk("parley.db")
	m.bytes["memory"] = y.onDisk("workspace/memory")
	m.bytes["workspace"] = y.onDisk("workspace")
	runtime.GC() // and none while it starts
	y.start()
	m.opened = y.opened
	y.page = y.visit()
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	m.heap = memory.HeapAlloc
	y.measured = append(y.measured, m)
}

// used returns what everything takes that is not kept for ever: copies and files of the store
// follow from that.
func (m measurement) used() (sum int64) {
	for part, n := range m.bytes {
		if !slices.Contains([]string{"archive", "backups", "free in the store", "log of the store", "parley.db", "workspace", "memory"}, part) {
			sum += n
		}
	}
	return sum
}

// onDisk returns the bytes of a file, or of all files in a folder, as the disk has them.
func (y *year) onDisk(name string) (sum int64) {
	y.Helper()
	err := filepath.WalkDir(filepath.Join(y.dir, name), func(_ string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Sys().(*syscall.Stat_t).Blocks * 512
		}
		return err
	})
	if err != nil {
		y.Error(err)
	}
	return sum
}

// print prints the measurements, a row for each part.
func (y *year) print() {
	parts := map[string]bool{}
	for _, m := range y.measured {
		for part := range m.bytes {
			parts[part] = true
		}
	}
	row := func(name string, cell func(measurement) string) {
		text := "| " + name + " |"
		for _, m := range y.measured {
			text += " " + cell(m) + " |"
		}
		y.Log(text)
	}
	row("day", func(m measurement) string { return fmt.Sprint(m.day) })
	for _, part := range slices.Sorted(maps.Keys(parts)) {
		row(part+", KB", func(m measurement) string { return fmt.Sprint(m.bytes[part] / 1000) })
	}
	row("all that has a period, KB", func(m measurement) string { return fmt.Sprint(m.used() / 1000) })
	row("heap after the start, KB", func(m measurement) string { return fmt.Sprint(m.heap / 1000) })
	row("start, ms of processor time", func(m measurement) string { return fmt.Sprint(m.opened.Milliseconds()) })
	expected := []string{"reply became a dead letter", "context canceled", store.ErrFull.Error()} // the last is about the machine
	for line := range strings.Lines(y.log.String()) {
		if !slices.ContainsFunc(expected, func(text string) bool { return strings.Contains(line, text) }) {
			y.Error("logged: " + line)
		}
	}
}
