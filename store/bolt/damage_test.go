package bolt_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley/store"
	"parley/store/bolt"
	"parley/store/bolt/refusal"
	"parley/store/storetest"
)

func file(dir string) string { return filepath.Join(dir, "parley.db") }

// fill puts some of everything into a new Store in dir and closes it.
func fill(dir string) error {
	ctx := context.Background()
	s, err := bolt.Open(ctx, bolt.Config{Dir: dir})
	if err != nil {
		return err
	}
	defer s.Close()
	for i := range 40 {
		recs := make([][]byte, 20)
		for j := range recs {
			recs[j] = []byte(bodyOf(j, i))
		}
		if _, err := s.Log(fmt.Sprint("log", i)).Append(ctx, store.Any, recs...); err != nil {
			return err
		}
		if _, err := s.Bucket("b").Put(ctx, fmt.Sprint("key", i), []byte(bodyOf(i, i)), 0); err != nil {
			return err
		}
		if err := s.Queue("q").Push(ctx, fmt.Sprint("id", i), []byte(bodyOf(i, 0))); err != nil {
			return err
		}
	}
	return s.Close()
}

// contents reads everything that can be read, by name, and counts what is damaged.
func contents(s store.Store) (all map[string]string, damaged int, err error) {
	ctx := context.Background()
	all = map[string]string{}
	note := func(name string, val []byte, e error) {
		switch {
		case e == nil:
			all[name] = string(val)
		case errors.Is(e, store.ErrDamaged), errors.Is(e, store.ErrNotFound):
			damaged++
		default:
			err = e
		}
	}
	for i := range 40 {
		log := fmt.Sprint("log", i)
		for r, err := range s.Log(log).Since(ctx, 0) {
			note(fmt.Sprint(log, " ", r.Seq), r.Body, err)
		}
		key := fmt.Sprint("key", i)
		val, _, err := s.Bucket("b").Get(ctx, key)
		note(key, val, err)
	}
	q := s.Queue("q")
	end := fmt.Sprint("the last ", rand.Uint64())
	if e := q.Push(ctx, end, nil); e != nil {
		return all, damaged + 1, err
	}
	for {
		limited, cancel := context.WithTimeout(ctx, 30*time.Second) // what cannot be read is not handed out
		item, e := q.Pull(limited)
		cancel()
		if errors.Is(e, context.DeadlineExceeded) {
			return all, damaged + 1, err
		}
		if item.ID == end {
			e = errors.Join(e, item.Done(ctx))
			return all, damaged, errors.Join(err, e)
		}
		note(item.ID, item.Body, e)
		if e != nil {
			break
		}
	}
	return all, damaged, err
}

func TestNeverEmptyStart(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(path string) error
		want   string
	}{
		{"missing", os.Remove, "missing"},
		{"0 bytes", func(p string) error { return os.Truncate(p, 0) }, "empty"},
		{"0 bytes, no mark", func(p string) error { return errors.Join(os.Truncate(p, 0), os.Remove(p+".mark")) }, "empty"},
		{"1 byte", func(p string) error { return os.Truncate(p, 1) }, ""},
		{"1 page", func(p string) error { return os.Truncate(p, 4096) }, ""},
		{"2 pages", func(p string) error { return os.Truncate(p, 8192) }, "cut off"},
		{"3 pages", func(p string) error { return os.Truncate(p, 3*4096) }, "cut off"},
		{"10 pages", func(p string) error { return os.Truncate(p, 10*4096+100) }, "cut off"},
		{"no head", func(p string) error { return overwrite(p, 0, make([]byte, 8192)) }, ""},
		{"zeros in the middle", func(p string) error { return overwrite(p, 4*4096, make([]byte, 8*4096)) }, ""},
		{"noise in the middle", func(p string) error { return overwrite(p, 4*4096, noise(8*4096)) }, ""},
		{"a size beyond all memory", hugePages, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := storetest.TempDir(t)
			if err := errors.Join(fill(dir), c.damage(file(dir))); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(file(dir))
			for range 2 {
				s, err := bolt.Open(t.Context(), bolt.Config{Dir: dir})
				var d *refusal.DamagedError
				if !errors.As(err, &d) || d.File != file(dir) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "backup") {
					t.Fatalf("Open = %v, %v; want a refusal.DamagedError about %s that says what to do", s, err, c.want)
				}
			}
			if after, _ := os.ReadFile(file(dir)); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

// The probe in this process must not crash it for the most likely kinds of damage.
func TestProbeInProcess(t *testing.T) {
	for _, size := range []int64{0, 1, 4096, 8192, 3 * 4096, 40000} {
		dir := storetest.TempDir(t)
		if err := errors.Join(fill(dir), os.Truncate(file(dir), size)); err != nil {
			t.Fatal(err)
		}
		if s, err := bolt.Open(t.Context(), bolt.Config{Dir: dir}); err == nil {
			t.Errorf("Open of %d bytes = %v, want an error", size, s)
		}
	}
}

func overwrite(path string, at int64, with []byte) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(with, at)
	return errors.Join(err, f.Close())
}

// hugePages makes each page with values claim to be 4 TiB long.
func hugePages(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for page := range slices.Chunk(data, 4096) {
		if page[8] == 2 {
			page[15] |= 0x40
		}
	}
	return os.WriteFile(path, data, 0o600)
}

func noise(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}

// spoil flips a bit in the only place where the file contains text.
func spoil(t *testing.T, dir, text string) {
	t.Helper()
	data, err := os.ReadFile(file(dir))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := 0; ; n++ {
		at := bytes.Index(data[i:], []byte(text))
		if at < 0 {
			break
		}
		i += at + 1
		data[i] ^= 1
	}
	if n == 0 {
		t.Fatalf("%q is not in the file", text)
	}
	if err := os.WriteFile(file(dir), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// P21: a damaged value, record or piece of work affects only itself.
func TestDamagedValue(t *testing.T) {
	dir, ctx := storetest.TempDir(t), t.Context()
	s := open(t, dir)
	for _, name := range []string{"before", "the victim", "after"} {
		if _, err := s.Bucket("b").Put(ctx, name, []byte("value of "+name), 0); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Log("l").Append(ctx, store.Any, []byte("record of "+name)); err != nil {
			t.Fatal(err)
		}
		if err := s.Queue("q").Push(ctx, name, []byte("work of "+name)); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	for _, kind := range []string{"value", "record", "work"} {
		spoil(t, dir, kind+" of the victim")
	}

	var logged bytes.Buffer
	s, err := bolt.Open(ctx, bolt.Config{Dir: dir, Log: slog.New(slog.NewTextHandler(&logged, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if n := strings.Count(logged.String(), "damaged value in the store"); n != 3 {
		t.Errorf("%d damaged values logged, want 3:\n%s", n, &logged)
	}
	if _, _, err := s.Bucket("b").Get(ctx, "the victim"); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("Get = %v, want ErrDamaged", err)
	}
	if _, err := s.Bucket("b").Put(ctx, "the victim", nil, 1); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("Put at a revision = %v, want ErrDamaged", err)
	}
	if _, err := s.Bucket("b").Put(ctx, "the victim", []byte("new"), store.Any); err != nil {
		t.Errorf("Put over it = %v", err)
	}
	if val, _, err := s.Bucket("b").Get(ctx, "after"); string(val) != "value of after" {
		t.Errorf("Get of the next = %q, %v", val, err)
	}
	var got []string
	for r, err := range s.Log("l").Since(ctx, 0) {
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(r.Seq, string(r.Body), err != nil))
	}
	if want := "[1record of beforefalse 2true 3record of afterfalse]"; fmt.Sprint(got) != want {
		t.Errorf("Since = %v, want %s", got, want)
	}
	for _, want := range []string{"before", "after"} {
		if item, err := s.Queue("q").Pull(ctx); err != nil || item.ID != want {
			t.Errorf("Pull = %q, %v; want %q", item.ID, err, want)
		}
	}
	if n, err := s.Queue("q").Len(ctx); n != 2 || err != nil {
		t.Errorf("Len = %d, %v; want the damaged work counted", n, err)
	}
	if n := strings.Count(logged.String(), "damaged work removed"); n != 1 {
		t.Errorf("logged %d times, want once:\n%s", n, &logged)
	}
	s.Close()
	if data, _ := os.ReadFile(file(dir)); !bytes.Contains(data, []byte("rk of the victim")) {
		t.Error("the damaged work was not kept for the operator")
	}
}

// flipBits is a child: it flips single bits of the Store in its first argument and opens
// the result, from the given number on. It prints each number first, so that its parent
// can go on if a probe crashes the process, and then the result.
func flipBits(args []string) error {
	whole, err := os.ReadFile(file(args[0]))
	if err != nil {
		return err
	}
	s, err := bolt.Open(context.Background(), bolt.Config{Dir: args[0]})
	if err != nil {
		return err
	}
	whole = bytes.TrimRight(whole, "\x00") // what the file may grow into
	whole = append(whole, make([]byte, 4096-len(whole)%4096)...)
	want, _, err := contents(s)
	s.Close()
	if err != nil {
		return err
	}
	from, _ := strconv.Atoi(args[1])
	for n := from; n < flips; n++ {
		say("flip %d", n)
		say("%s", flip(filepath.Join(args[0], fmt.Sprint("flip", n)), bytes.Clone(whole), want, n))
	}
	return nil
}

func flip(dir string, data []byte, want map[string]string, n int) string {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	bit := r.IntN(len(data) * 8)
	data[bit/8] ^= 1 << (bit % 8)
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(file(dir), data, 0o600)); err != nil {
		return err.Error()
	}
	var told []string
	defer os.RemoveAll(dir)
	s, err := bolt.Open(context.Background(), bolt.Config{Dir: dir, Probe: func(ctx context.Context, path string) (_ []string, err error) {
		told, err = bolt.Probe(ctx, path)
		return told, err
	}})
	if err != nil {
		return "refused"
	}
	defer s.Close()
	say("opened")
	got, _, err := contents(s)
	if err != nil {
		return err.Error()
	}
	for name, val := range got {
		if want[name] != val {
			return fmt.Sprintf("bit %d: %s = %.40q, want %.40q", bit, name, val, want[name])
		}
	}
	_, err = s.Log("log1").Append(context.Background(), store.Any, []byte("more"))
	switch {
	case err != nil && !errors.Is(err, store.ErrDamaged):
		return err.Error()
	case len(told) > 0:
		return "damage told"
	case maps.Equal(got, want):
		return "same"
	}
	return fmt.Sprintf("bit %d: something is missing and nobody told", bit)
}

const flips = 200

// P18: a flipped bit is reported or has no effect. It never silently changes or loses
// data.
func TestFlippedBits(t *testing.T) {
	dir := storetest.TempDir(t)
	if err := fill(dir); err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]int{}
	for n := 0; n < flips; {
		cmd := child(t.Context(), "flip", dir, fmt.Sprint(n))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		last := ""
		for said := bufio.NewScanner(out); said.Scan(); {
			last = said.Text()
			if _, err := fmt.Sscanf(last, "flip %d", &n); err != nil && last != "opened" {
				outcomes[last]++
			}
		}
		n++ // it would only end the process again
		if cmd.Wait() != nil {
			outcomes["ended the process, "+strings.Fields(last)[0]]++
		}
	}
	t.Log(outcomes)
	for what := range outcomes {
		switch what {
		case "same", "refused", "damage told", "ended the process, flip":
		default:
			t.Errorf("%s: %d times", what, outcomes[what])
		}
	}
}
