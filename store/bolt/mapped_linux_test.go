package bolt_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"parley/store"
	"parley/store/bolt"
	"parley/store/bolt/mapped/mappedtest"
)

// What a checkpoint has touched of the file does not stay in memory.
func TestCheckpointGivesMemoryBack(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	s, err := bolt.Open(ctx, bolt.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b := s.Bucket("b")
	const values, size = 400, 64 << 10
	touch := func(round byte) {
		for i := range values {
			if _, err := b.Put(store.Deferred(ctx), fmt.Sprint(i), bytes.Repeat([]byte{round}, size), store.Any); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "parley.db")
	touch(1)
	for i := range values {
		if v, _, err := b.Get(ctx, fmt.Sprint(i)); err != nil || len(v) != size {
			t.Fatalf("%d bytes, %v", len(v), err)
		}
	}
	if kB := mappedtest.Resident(t, path); kB < values*size/2/1024 {
		t.Errorf("only %d kB were read: the test is of no use", kB)
	}
	touch(2)
	if kB := mappedtest.Resident(t, path); kB > values*size/3/1024 {
		t.Errorf("%d kB of the file are in memory after a checkpoint", kB)
	}
}
