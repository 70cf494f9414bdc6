package mem_test

import (
	"testing"

	"parley/store"
	"parley/store/mem"
	"parley/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Driver{Open: func(*testing.T, string) store.Store { return mem.New() }})
}
