package mapped

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"

	"parley/store/bolt/mapped/mappedtest"
)

// The pages that were read leave the memory, also while somebody reads them, and can be read again.
func TestRelease(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const values, size = 8000, 4096
	err = db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("b"))
		for i := uint64(0); i < values && err == nil; i++ {
			err = b.Put(binary.BigEndian.AppendUint64(nil, i), bytes.Repeat([]byte{byte(i)}, size))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	read := func(tx *bbolt.Tx) error {
		n := byte(0)
		return tx.Bucket([]byte("b")).ForEach(func(_, v []byte) error {
			if len(v) != size || v[0] != n || v[size-1] != n {
				t.Errorf("value %d is wrong", n)
			}
			n++
			return nil
		})
	}
	err = db.View(func(tx *bbolt.Tx) error {
		if err := read(tx); err != nil {
			return err
		}
		if kB := mappedtest.Resident(t, path); kB < values*size/2/1024 {
			t.Errorf("only %d kB were read: the test is of no use", kB)
		}
		if err := Release(db); err != nil {
			return err
		}
		if kB := mappedtest.Resident(t, path); kB > values*size/4/1024 { // the system maps more at once than one page
			t.Errorf("%d kB are in memory after they were released", kB)
		}
		return read(tx)
	})
	if err != nil {
		t.Error(err)
	}
}
