package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"parley/backup"
	"parley/llm/llmtest"
	"parley/requiretest"
)

// A node is a file, or a folder, of a disk whose changes were recorded.
type node struct {
	isDir  bool
	before []byte // what a file held
}

// A name is where a node is: a name in a folder.
type name struct {
	dir  *node
	base string
}

// A diskOp is a change of a file or of names, or the sync of a node.
type diskOp struct {
	synced *node

	file *node // that is written
	at   int64
	data []byte // nil: the file is cut to the size at

	from, to name // of the node moved; from is empty if it is new, to if it is removed
	moved    *node
}

func (o diskOp) touches(dir *node) bool {
	return dir != nil && (o.from.dir == dir || o.to.dir == dir)
}

// A recording is what the program did to a folder.
type recording struct {
	root   string
	top    *node
	before map[name]*node
	ops    []diskOp

	now     map[name]*node    // as far as it was read
	offsets map[string]*int64 // by file descriptor
}

// record runs a command line of the program, which must succeed, and records
// what it does to the data folder.
func (w *testGateway) record(args ...string) *recording {
	w.t.Helper()
	strace := requiretest.Program(w.t, "strace")
	r := &recording{root: w.dir, before: map[name]*node{}, now: map[name]*node{}, offsets: map[string]*int64{}}
	r.top = r.load(w.dir)
	traces := filepath.Join(w.t.TempDir(), "trace")
	cmd := w.command(args...)
	cmd.Path = strace
	cmd.Args = slices.Concat([]string{"strace", "-ff", "-ttt", "-y", "-xx", "-qq", "-s", "16777216", "-o", traces,
		"-e", "trace=openat,mkdirat,renameat,unlinkat,linkat,write,pwrite64,ftruncate,fsync,fdatasync,copy_file_range,sendfile", ourselves(w.t)}, cmd.Args[1:])
	if err := cmd.Run(); err != nil {
		w.t.Fatalf("%q: %v", args, err)
	}
	var calls []string
	files, err := filepath.Glob(traces + ".*")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			w.t.Fatal(err)
		}
		calls = slices.AppendSeq(calls, strings.Lines(string(text)))
	}
	slices.Sort(calls) // each begins with its time
	for _, call := range calls {
		if err := r.read(call); err != nil {
			w.t.Fatalf("%.200s: %v", call, err)
		}
	}
	return r
}

// load notes what is in a folder before the program runs.
func (r *recording) load(dir string) *node {
	n := &node{isDir: true}
	entries, _ := os.ReadDir(dir) // one of ours
	for _, e := range entries {
		path, child := filepath.Join(dir, e.Name()), &node{}
		if e.IsDir() {
			child = r.load(path)
		} else if e.Type().IsRegular() {
			child.before, _ = os.ReadFile(path) // one of ours
		}
		r.before[name{n, e.Name()}], r.now[name{n, e.Name()}] = child, child
	}
	return n
}

var (
	callForm  = regexp.MustCompile(`^[0-9.]+ (\w+)\((.*)\) += (\d+)`)
	placeForm = regexp.MustCompile(`(?:AT_FDCWD|(\d+))<([^>]*)>(?:, "([^"]*)")?`)
	textForm  = regexp.MustCompile(`"([^"]*)"`)
)

// unescape decodes what strace prints as \x2f.
func unescape(s string) []byte {
	data := make([]byte, 0, len(s)/4)
	for part := range strings.SplitSeq(s, `\x`) {
		if n, err := strconv.ParseUint(part, 16, 8); err == nil {
			data = append(data, byte(n))
		}
	}
	return data
}

// find returns the name that a path means, and what has it.
func (r *recording) find(path string) (name, *node) {
	rest, inside := strings.CutPrefix(filepath.Clean(path), r.root)
	at, found := name{}, r.top
	for base := range strings.SplitSeq(strings.Trim(rest, "/"), "/") {
		if !inside || found == nil {
			return name{}, nil
		}
		if base != "" {
			at = name{found, base}
			found = r.now[at]
		}
	}
	return at, found
}

// read adds a system call that strace printed.
func (r *recording) read(line string) error {
	form := callForm.FindStringSubmatch(line)
	if form == nil { // it failed, or is no call
		return nil
	}
	call, args, result := form[1], form[2], form[3]
	var paths []string
	var fd string
	for _, p := range placeForm.FindAllStringSubmatch(args, 2) {
		path := string(unescape(p[2]))
		if base := string(unescape(p[3])); p[3] != "" && !strings.HasPrefix(call, "write") && call != "pwrite64" {
			if path = filepath.Join(path, base); filepath.IsAbs(base) {
				path = base
			}
		}
		fd, paths = p[1], append(paths, path)
	}
	if len(paths) == 0 {
		return nil
	}
	at, found := r.find(paths[0])
	if at.dir == nil && found == nil {
		return nil
	}
	last := func() int64 { // the last argument
		n, _ := strconv.ParseInt(strings.TrimSpace(args[strings.LastIndexByte(args, ',')+1:]), 10, 64)
		return n
	}
	move := func(o diskOp) {
		if o.moved == nil { // a socket
			return
		}
		delete(r.now, o.from)
		if o.to.dir != nil {
			r.now[o.to] = o.moved
		}
		r.ops = append(r.ops, o)
	}
	switch call {
	case "openat":
		r.offsets[result] = new(int64)
		if strings.Contains(args, "O_APPEND") {
			delete(r.offsets, result)
		}
		if found == nil && strings.Contains(args, "O_CREAT") {
			found = &node{}
			move(diskOp{to: at, moved: found})
		} else if found != nil && strings.Contains(args, "O_TRUNC") {
			r.ops = append(r.ops, diskOp{file: found})
		}
	case "mkdirat":
		move(diskOp{to: at, moved: &node{isDir: true}})
	case "unlinkat":
		move(diskOp{from: at, moved: found})
	case "renameat":
		to, _ := r.find(paths[1])
		move(diskOp{from: at, to: to, moved: found})
	case "linkat":
		to, _ := r.find(paths[1])
		move(diskOp{to: to, moved: found})
	case "fsync", "fdatasync":
		r.ops = append(r.ops, diskOp{synced: found})
	case "ftruncate":
		r.ops = append(r.ops, diskOp{file: found, at: last()})
	case "write", "pwrite64":
		if found == nil { // its name is gone
			return nil
		}
		data := unescape(textForm.FindStringSubmatch(args)[1])
		o := diskOp{file: found, data: data, at: last()}
		if call == "write" {
			if r.offsets[fd] == nil {
				return fmt.Errorf("nobody opened %s", fd)
			}
			o.at = *r.offsets[fd]
			*r.offsets[fd] += int64(len(data))
		}
		r.ops = append(r.ops, o)
	default:
		return fmt.Errorf("what it writes is not recorded")
	}
	return nil
}

// image makes in dir what a power cut after n operations may leave. Of what was
// not synced, writes are lost or torn at sectors in any order; changes of names
// are lost, but those in one folder in the order in which they were made; a
// rename is made or not.
func (r *recording) image(dir string, n int, rnd *rand.Rand) error {
	kept, torn := make([]bool, n), map[int]int{}
	durable, needed, until := map[*node]bool{}, map[*node]bool{}, map[*node]int{}
	for i, o := range slices.Backward(r.ops[:n]) {
		switch {
		case o.synced != nil:
			durable[o.synced] = true
		case o.file != nil:
			kept[i] = durable[o.file] || rnd.IntN(3) > 0
		default:
			kept[i] = true
			for _, d := range []*node{o.from.dir, o.to.dir} {
				if _, drawn := until[d]; !drawn {
					until[d] = rnd.IntN(n + 1)
				}
				kept[i] = kept[i] && (d == nil || i < until[d])
			}
			for d := range durable {
				kept[i] = kept[i] || o.touches(d)
			}
			for d := range needed {
				kept[i] = kept[i] || o.touches(d)
			}
			if kept[i] {
				needed[o.from.dir], needed[o.to.dir] = true, true
			}
		}
		if o.file != nil && !durable[o.file] && kept[i] && rnd.IntN(2) == 0 && len(o.data) > 512 { // torn
			torn[i] = 512 * (1 + rnd.IntN(len(o.data)/512))
		}
	}
	names, contents := map[name]*node{}, map[*node][]byte{}
	for at, n := range r.before {
		names[at], contents[n] = n, bytes.Clone(n.before)
	}
	for i, o := range r.ops[:n] {
		switch {
		case !kept[i] || o.synced != nil:
		case o.file != nil:
			end := o.at + int64(len(o.data))
			if missing := end - int64(len(contents[o.file])); missing > 0 {
				contents[o.file] = append(contents[o.file], make([]byte, missing)...)
			}
			if size, found := torn[i]; found {
				o.data = o.data[:size]
			}
			copy(contents[o.file][o.at:], o.data)
			if o.data == nil {
				contents[o.file] = contents[o.file][:o.at]
			}
		default:
			delete(names, o.from)
			if o.to.dir != nil {
				names[o.to] = o.moved
			}
		}
	}
	var write func(n *node, dir string) error
	write = func(n *node, dir string) error {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		for at, child := range names {
			if at.dir != n {
				continue
			}
			path := filepath.Join(dir, at.base)
			var err error
			if child.isDir {
				err = write(child, path)
			} else {
				err = os.WriteFile(path, contents[child], 0o600)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return write(r.top, dir)
}

// TestTortureRestoreImages: after a power cut at any moment of a restore, with
// whatever the disk made of what was not synced, there is what was before or what
// was restored, or a second restore succeeds; what was before is never destroyed,
// and a restore that succeeded lasts (P18, P20).
func TestTortureRestoreImages(t *testing.T) {
	t.Parallel()
	rnd := seeded(t)
	w := newTestGateway(t, echo)
	w.config()
	note := func(v *testGateway) string { return filepath.Join(v.dir, "workspace", "notes", "note.txt") }
	say := func(text string) {
		if out, code := w.run("", "chat", "-m", text); code != 0 {
			t.Fatalf("chat: %d: %s", code, out)
		}
		w.file("notes/note.txt", text)
	}
	say("of old")
	archive := filepath.Join(t.TempDir(), "backup")
	if out, code := w.run("", "backup", archive); code != 0 {
		t.Fatalf("backup: %d: %s", code, out)
	}
	say("of late")
	r := w.record("restore", "--force", "--yes", archive)
	restored := 0
	for i := range bouts(6, 300) {
		n := len(r.ops)
		if i%4 > 0 {
			n = rnd.IntN(n)
		}
		v := &testGateway{t: t, dir: t.TempDir(), tg: w.tg, llm: w.llm}
		if err := r.image(v.dir, n, rnd); err != nil {
			t.Fatal(err)
		}
		if v.holding(backup.StoreFile, "heard of late") == 0 {
			t.Errorf("cut at %d of %d: what was before the restore is gone", n, len(r.ops))
		}
		out, code := v.run("", "sessions", "export", "console:local")
		if n == len(r.ops) && (code != 0 || strings.Contains(out, "heard of late")) {
			t.Errorf("what was restored is gone: %d: %s", code, out)
		}
		if code != 0 {
			if out, code := v.run("", "restore", "--force", "--yes", archive); code != 0 {
				t.Fatalf("cut at %d of %d: the second restore: exit code %d: %s", n, len(r.ops), code, out)
			}
			out = v.exported("console:local")
		}
		if !strings.Contains(out, "heard of old") {
			t.Errorf("cut at %d of %d: it began without what was there: %q", n, len(r.ops), out)
		}
		want := "of late"
		if !strings.Contains(out, "heard of late") {
			want = "of old"
			restored++
		}
		if text, err := os.ReadFile(note(v)); string(text) != want {
			t.Errorf("cut at %d of %d: the conversation is %s, the workspace has %q, %v", n, len(r.ops), want, text, err)
		}
	}
	t.Logf("restored %d times", restored)
}

// TestTortureBackupImages: after a power cut while a backup is made, there is
// none or a whole one, and one that was confirmed is there (P20).
func TestTortureBackupImages(t *testing.T) {
	t.Parallel()
	rnd := seeded(t)
	w := newTestGateway(t, echo)
	w.config()
	if out, code := w.run("", "chat", "-m", "hello"); code != 0 {
		t.Fatalf("chat: %d: %s", code, out)
	}
	r := w.record("backup", filepath.Join(w.dir, "the.backup"))
	for i := range bouts(12, 1000) {
		n := len(r.ops)
		if i%4 > 0 {
			n = rnd.IntN(n)
		}
		dir := t.TempDir()
		if err := r.image(dir, n, rnd); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(filepath.Join(dir, "the.backup"))
		if err == nil {
			err = backup.Check(t.Context(), f)
			f.Close()
		} else if os.IsNotExist(err) && n < len(r.ops) {
			err = nil
		}
		if err != nil {
			t.Errorf("cut at %d of %d: %v", n, len(r.ops), err)
		}
	}
}

// TestTortureFileImages: after a power cut while the agent writes a file, it
// holds all that it held before or all that was written; once the call's result
// is in the journal, it is the latter (P6, P18).
func TestTortureFileImages(t *testing.T) {
	t.Parallel()
	rnd := seeded(t)
	text := func(c string) string { return strings.Repeat(c, map[string]int{"x": 5000, "y": 6000}[c]) }
	w := newTestGateway(t, func(ctx context.Context, q llmtest.Request) llmtest.Reply {
		if used(q) {
			return echo(ctx, q)
		}
		return llmtest.Reply{Calls: call("write_file", fmt.Sprintf(`{"path": "a/b/c.txt", "content": %q}`, text(spokenLast(q))))}
	})
	w.config()
	var r *recording
	for _, c := range []string{"x", "y"} { // a new file, and one in its place
		before := text("x")
		if r = w.record("chat", "-m", c); c == "x" {
			before = ""
		}
		journalled := slices.IndexFunc(r.ops, func(o diskOp) bool {
			return bytes.Contains(o.data, fmt.Appendf(nil, "Successfully wrote %d ", len(text(c))))
		})
		if journalled < 0 {
			t.Fatal("no result was journalled")
		}
		for i := range bouts(8, 500) {
			n := len(r.ops)
			if i%4 > 0 {
				n = rnd.IntN(n)
			}
			dir := t.TempDir()
			if err := r.image(dir, n, rnd); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(dir, "workspace", "a", "b", "c.txt"))
			if s := string(got); s != text(c) && (n > journalled || s != before || c == "y" && err != nil) {
				t.Errorf("%s: cut at %d of %d, journalled at %d: %d bytes, %v", c, n, len(r.ops), journalled, len(got), err)
			}
		}
	}
}
