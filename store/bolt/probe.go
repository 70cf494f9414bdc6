package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"go.etcd.io/bbolt"
)

// Probe says whether the file at path can be opened without danger: it reads
// all of it, and returns an error when what holds it together is damaged. A
// single value with a wrong checksum is no reason: [Open] logs those.
//
// In a badly damaged file the check may end the process, so it is best run in
// one of its own; that the process ended badly is then the answer.
func Probe(path string) error {
	db, err := openFile(path, &bbolt.Options{ReadOnly: true, Timeout: 300 * time.Millisecond})
	if err != nil {
		return err
	}
	err = probe(db)
	return errors.Join(err, db.Close())
}

func probe(db *bbolt.DB) (err error) {
	defer catch(&err)()
	return db.View(func(tx *bbolt.Tx) error {
		info, err := os.Stat(db.Path())
		if err != nil {
			return err
		}
		if info.Size() < tx.Size() {
			return fmt.Errorf("it is cut off at %d of %d bytes", info.Size(), tx.Size())
		}
		err = walk(tx, func(_ string, k, v []byte) { unseal(k, v) }) // touches every byte
		if err != nil {
			return err
		}
		for e := range tx.Check() { // to its end, else its goroutine stays
			if err == nil {
				err = e
			}
		}
		return err
	})
}

// walk calls visit with every sealed value. It returns an error when keys are
// not in their order.
func walk(tx *bbolt.Tx, visit func(where string, k, v []byte)) error {
	return tx.ForEach(func(name []byte, b *bbolt.Bucket) error {
		if bytes.Equal(name, damaged) {
			return nil
		}
		return walkBucket(string(name), b, visit)
	})
}

func walkBucket(where string, b *bbolt.Bucket, visit func(where string, k, v []byte)) error {
	var last []byte
	c := b.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		if last != nil && bytes.Compare(last, k) >= 0 {
			return fmt.Errorf("keys of %s are out of order", where)
		}
		last = k
		if v != nil {
			visit(where, k, v)
			continue
		}
		if in := b.Bucket(k); in != nil {
			if err := walkBucket(where+"/"+strconv.Quote(string(k)), in, visit); err != nil {
				return err
			}
		}
	}
	return nil
}
