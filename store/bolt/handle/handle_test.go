package handle_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"parley/store/bolt/handle"
	"parley/store/storetest"
)

// What goes wrong while a former file is closed is told once, by whoever uses it last.
func TestClosingErrorOfFormerFile(t *testing.T) {
	for name, c := range map[string]struct {
		spoil bool
		want  int
	}{"sound": {false, 0}, "spoilt": {true, 1}} {
		path := filepath.Join(storetest.TempDir(t), "f")
		var opened *os.File
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{
			OpenFile: func(path string, flag int, mode os.FileMode) (_ *os.File, err error) {
				opened, err = os.OpenFile(path, flag, mode)
				return opened, err
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		f := handle.New(db)
		tx, ok, err := f.Begin()
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		told := 0
		f.Retire(func(error) { told++ })
		if c.spoil {
			if err := opened.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if told > 0 {
			t.Errorf("%s: it was closed while it is read", name)
		}
		if err := f.End(tx); err != nil {
			t.Error(err)
		}
		if told != c.want {
			t.Errorf("%s: told %d times, want %d", name, told, c.want)
		}
	}
}
