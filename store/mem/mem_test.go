package mem_test

import (
	"testing"

	"parley/store"
	"parley/store/mem"
	"parley/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, false, func(*testing.T) func() store.Store {
		return func() store.Store { return mem.New() }
	})
}
