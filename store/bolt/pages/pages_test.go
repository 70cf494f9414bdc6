package pages

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"parley/store/storetest"
)

// contents returns what a commit holds, by the names of the buckets and the key.
func contents(c *Commit) (map[string]string, error) {
	all := map[string]string{}
	err := c.Read(Walk{Value: func(names [][]byte, key, val []byte) error {
		all[fmt.Sprintf("%s/%s", bytes.Join(names, []byte("/")), key)] = string(val)
		return nil
	}})
	return all, err
}

// change makes some changes of a bbolt file, and of what it should hold.
func change(tx *bbolt.Tx, want map[string]string, random *rand.Rand) error {
	for range 1 + random.IntN(60) {
		top := fmt.Sprint("top", random.IntN(3))
		name := fmt.Sprint("part", random.IntN(30))
		outer, err := tx.CreateBucketIfNotExists([]byte(top))
		if err != nil {
			return err
		}
		b, err := outer.CreateBucketIfNotExists([]byte(name))
		if err != nil {
			return err
		}
		key := fmt.Sprint("key", random.IntN(200))
		path := top + "/" + name + "/" + key
		if random.IntN(3) == 0 {
			delete(want, path)
			if err := b.Delete([]byte(key)); err != nil {
				return err
			}
			continue
		}
		val := bytes.Repeat([]byte{byte('a' + random.IntN(26))}, []int{10, 300, 3000, 20_000}[random.IntN(4)])
		want[path] = string(val)
		if err := b.Put([]byte(key), val); err != nil {
			return err
		}
	}
	return nil
}

// makeFile makes a file with that many commits, and calls check after each.
func makeFile(t testing.TB, commits int, random *rand.Rand, check func(path string, want map[string]string)) (path string) {
	t.Helper()
	path = filepath.Join(storetest.TempDir(t), "file")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	want := map[string]string{}
	for range commits {
		if err := db.Update(func(tx *bbolt.Tx) error { return change(tx, want, random) }); err != nil {
			t.Fatal(err)
		}
		check(path, want)
	}
	return path
}

func last(t testing.TB, file io.ReaderAt) (c, former *Commit) {
	t.Helper()
	c, former, err := Last(file)
	if err != nil {
		t.Fatal(err)
	}
	return c, former
}

// Both of the last commits are read as bbolt wrote them, and Written names each page that a
// commit has changed and uses.
func TestCommits(t *testing.T) {
	seed := rand.Uint64()
	var before []byte
	var was map[string]string
	makeFile(t, 20, rand.New(rand.NewPCG(seed, 1)), func(path string, want map[string]string) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		c, former := last(t, bytes.NewReader(data))
		for c, want := range map[*Commit]map[string]string{c: want, former: was} {
			if got, err := contents(c); err != nil || was != nil && !maps.Equal(got, want) {
				t.Fatalf("seed %d, commit %d: %d entries, want %d, %v", seed, c.Tx, len(got), len(want), err)
			}
		}
		checkWrittenPages(t, c, former, before, data)
		before = data
		was = maps.Clone(want)
	})
}

func checkWrittenPages(t *testing.T, c, former *Commit, before, data []byte) {
	t.Helper()
	written, err := c.Written(former)
	if err != nil {
		t.Fatal(err)
	}
	free, err := c.Free()
	if err != nil {
		t.Fatal(err)
	}
	for id := uint64(2); id < c.end; id++ {
		at := int(id) * c.pageSize
		changed := at+c.pageSize > len(before) || !bytes.Equal(before[at:at+c.pageSize], data[at:at+c.pageSize])
		if changed && !free.Has(id) && !written.Has(id) {
			t.Errorf("commit %d has changed page %d", c.Tx, id)
		}
		if written.Has(id) && free.Has(id) {
			t.Errorf("page %d of commit %d is free", id, c.Tx)
		}
	}
	if err := c.Read(Walk{Only: written}); err != nil {
		t.Errorf("commit %d: %v", c.Tx, err)
	}
	again, err := c.ParseSet(written.AppendTo(nil))
	if err != nil || again.Len() != written.Len() {
		t.Errorf("%d pages become %d, %v", written.Len(), again.Len(), err)
	}
	for id := range c.end {
		if again.Has(id) != written.Has(id) {
			t.Errorf("page %d: %v", id, again.Has(id))
		}
	}
}

// A changed bit is an error, or it changes nothing but values and keys.
func TestChangedBits(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	path := makeFile(t, 10, random, func(string, map[string]string) {})
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c, _ := last(t, bytes.NewReader(data))
	want, err := contents(c)
	if err != nil {
		t.Fatal(err)
	}
	data = data[:c.Size()]
	free, err := c.Free()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	const changes = 300
	for n := 0; n < changes; {
		page := 2 + random.IntN(int(c.end)-2)
		bit := random.IntN(32 * 8) // of the header, and the first element
		p, _, err := parsePage(data[page*c.pageSize:], uint64(page))
		if err != nil || free.Has(uint64(page)) || bit >= 10*8 && bit < 12*8 && p.count == 1<<(bit-10*8) { // an empty page is right, too
			continue
		}
		n++
		at := page*c.pageSize + bit/8
		data[at] ^= 1 << (bit % 8)
		got, err := contents(c)
		if err != nil {
			found++
		} else if len(got) != len(want) {
			t.Errorf("seed %d, bit %d of page %d: %d entries, want %d", seed, bit, page, len(got), len(want))
		}
		data[at] ^= 1 << (bit % 8)
	}
	if found < changes/2 {
		t.Errorf("%d of the changes were found", found)
	}
}

// A file of which only one head can be read is read by that.
func TestOneHead(t *testing.T) {
	path := makeFile(t, 5, rand.New(rand.NewPCG(1, 1)), func(string, map[string]string) {})
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole, _ := last(t, bytes.NewReader(data))
	for head := range 2 {
		damaged := bytes.Clone(data)
		damaged[head*whole.pageSize+20] ^= 1
		c, former := last(t, bytes.NewReader(damaged))
		if former != nil || c.Tx != whole.Tx-(whole.Tx+head+1)%2 {
			t.Errorf("head %d damaged: commit %d of %d, former %v", head, c.Tx, whole.Tx, former)
		}
		if _, err := c.Written(former); err == nil {
			t.Error("it is known what was written")
		}
		damaged[(1-head)*whole.pageSize+20] ^= 1
		if _, _, err := Last(bytes.NewReader(damaged)); err == nil {
			t.Error("two damaged heads are no error")
		}
	}
}

// A walk reads the buckets that it is told to, and ends when it is told to.
func TestWalk(t *testing.T) {
	path := makeFile(t, 20, rand.New(rand.NewPCG(1, 1)), func(string, map[string]string) {})
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, _ := last(t, f)
	enough := errors.New("enough")
	n := 0
	err = c.Read(Walk{
		Enter: func(names [][]byte) bool { return len(names) < 2 || string(names[1]) == "part7" },
		Value: func(names [][]byte, _, _ []byte) error {
			if string(names[1]) != "part7" {
				t.Errorf("entered %s", names[1])
			}
			n++
			if n == 3 {
				return enough
			}
			return nil
		},
	})
	if !errors.Is(err, enough) || n != 3 {
		t.Errorf("%d values, %v", n, err)
	}
}

// Whatever the pages of a file are, reading them ends, with little memory.
func FuzzPages(f *testing.F) {
	path := makeFile(f, 3, rand.New(rand.NewPCG(1, 1)), func(string, map[string]string) {})
	data, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint32(4096*3+12), []byte{0xff, 0xff, 0xff, 0x7f})
	f.Add(uint32(4096*3+10), []byte{0xff, 0xff})
	f.Add(uint32(4096*5), []byte("noise"))
	f.Fuzz(func(_ *testing.T, at uint32, with []byte) {
		damaged := bytes.Clone(data)
		copy(damaged[2*4096+int(at)%(len(damaged)-2*4096):], with)
		c, former, err := Last(bytes.NewReader(damaged))
		if err != nil {
			return
		}
		_ = c.Read(Walk{})
		if written, err := c.Written(former); err == nil {
			_ = c.Read(Walk{Only: written})
		}
		_, _ = c.ParseSet(with)
	})
}
