package bolt

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"parley/store"
	"parley/store/storetest"
)

// Each bucket is measured once, in several steps. P21: a page that is its own child is an
// error then, and does not end the process.
func TestMeasure(t *testing.T) {
	ctx, dir := t.Context(), storetest.TempDir(t)
	s, err := Open(ctx, Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		if _, err := s.Log("big").Append(ctx, store.Any, make([]byte, 3000)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Log(fmt.Sprint("small", i)).Append(ctx, store.Any, make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
	const large, largeSize = 8, 2 << 20
	for i := range large { // several steps
		if _, err := s.Log(fmt.Sprint("large", i)).Append(ctx, store.Any, make([]byte, largeSize)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	sizes := map[string]int64{}
	add := func(kind, name string, n int64) {
		if sizes[kind+" "+name] != 0 {
			t.Errorf("%s %s was measured twice", kind, name)
		}
		sizes[kind+" "+name] = n
	}
	size, err := s.Measure(ctx, fullSpeed, add)
	if err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	for _, n := range sizes {
		sum += n
	}
	if len(sizes) < 201+large || sum > size || sum < size/2 {
		t.Errorf("%d buckets take %d of %d bytes", len(sizes), sum, size)
	}
	for name, least := range map[string]int64{"log big": 600_000, "log large7": largeSize, "log small3": 100} {
		if n := sizes[name]; n < least || n > 2*least {
			t.Errorf("%s takes %d bytes, want about %d", name, n, least)
		}
	}
	var root int64
	pageSize := int64(os.Getpagesize())
	if err := s.db.bolt().View(func(tx *bbolt.Tx) error {
		root = int64(tx.Bucket([]byte("log")).Bucket(encodeKey("big")).Root())
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, fileName), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const firstChild = 16 + 8 // in the first element, behind the header
	if _, err := f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(root)), root*pageSize+firstChild); err != nil {
		t.Fatal(err)
	}
	nothing := func(string, string, int64) {}
	if size, err := s.Measure(ctx, fullSpeed, nothing); err == nil || size != 0 {
		t.Errorf("a damaged file has %d bytes, %v", size, err)
	}
	if err := s.Close(); err != nil {
		t.Log(err)
	}
}
