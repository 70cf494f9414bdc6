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
	storetest.Run(t, storetest.Driver{Durable: true, Open: func(t *testing.T, dir string) store.Store { return open(t, dir) }})
}
