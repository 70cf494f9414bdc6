package bolt_test

import (
	"testing"

	"parley/store"
	"parley/store/bolt"
	"parley/store/storetest"
)

func open(t *testing.T, dir string) *bolt.Store {
	t.Helper()
	s, err := bolt.Open(t.Context(), bolt.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestStore(t *testing.T) {
	storetest.Run(t, true, func(t *testing.T) func() store.Store {
		dir := storetest.TempDir(t)
		return func() store.Store { return open(t, dir) }
	})
}
