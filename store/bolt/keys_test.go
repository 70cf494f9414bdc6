package bolt

import (
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"parley/store"
	"parley/store/bolt/layer"
)

// Names and keys of any bytes stay apart in a layer, and the file gets what the layer has.
func TestKeysOfLayers(t *testing.T) {
	names := []string{"", "a", "ab", "\x00", "\x00\x00", "a\x00", "\xff\xff\xff", strings.Repeat("n", 300)}
	s, err := Open(t.Context(), Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		for _, key := range names {
			if _, err := s.Bucket(name).Put(t.Context(), key, []byte(name+"|"+key), 0); err != nil {
				t.Fatal(err)
			}
			top, in, k, err := layer.SplitKey(layer.JoinKey("bucket", name) + string(encodeKey(key)))
			if top != "bucket" || in != name || decodeKey([]byte(k)) != key || err != nil {
				t.Errorf("%q %q becomes %q %q %q, %v", name, key, top, in, k, err)
			}
		}
	}
	check := func(what string) {
		t.Helper()
		for _, name := range names {
			var keys []string
			for key, err := range s.Bucket(name).Keys(t.Context(), "") {
				if err != nil {
					t.Fatal(err)
				}
				keys = append(keys, key)
			}
			if !slices.Equal(keys, slices.Sorted(slices.Values(names))) {
				t.Errorf("%s: the keys of %q are %q", what, name, keys)
			}
			for _, key := range names {
				if val, _, err := s.Bucket(name).Get(t.Context(), key); err != nil || string(val) != name+"|"+key {
					t.Errorf("%s: %q in %q is %q, %v", what, key, name, val, err)
				}
			}
		}
	}
	check("in the log")
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	check("in the file")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// What the file cannot take is refused before it is acknowledged.
func TestTooLongForTheFile(t *testing.T) {
	s, err := Open(t.Context(), Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("k", bbolt.MaxKeySize)
	if _, err := s.Bucket("b").Put(t.Context(), long, nil, 0); err == nil {
		t.Error("a key was accepted that is too long")
	}
	if _, err := s.Bucket(long).Put(t.Context(), "k", nil, 0); err == nil {
		t.Error("a name was accepted that is too long")
	}
	if _, err := s.Log(long).Append(t.Context(), store.Any, nil); err == nil {
		t.Error("a log was accepted whose name is too long")
	}
	if _, err := s.Bucket("b").Put(t.Context(), long[1:], nil, store.Any); err != nil {
		t.Errorf("the longest key: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Probe(t.Context(), s.db.path); err != nil {
		t.Error(err)
	}
}
