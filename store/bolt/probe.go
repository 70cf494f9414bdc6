package bolt

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"go.etcd.io/bbolt"
)

// Probe says whether the file at path can be opened without danger. It reads
// all of it, names the values whose checksum is wrong, and returns an error
// when what holds the file together is damaged: that file it does not change. A
// sound one it makes ready, so that whoever opens it next need not walk through
// it, and have all of it in memory.
//
// In a badly damaged file the check may end the process, so it is best run in
// one of its own; that the process ended badly is then the answer.
func Probe(path string) (damaged []string, err error) {
	defer limitMemory(path)()
	db, err := openFile(path, &bbolt.Options{ReadOnly: true, Timeout: lockTimeout})
	if err != nil {
		return nil, err
	}
	damaged, err = check(db)
	if err := errors.Join(err, db.Close()); err != nil {
		return nil, err
	}
	// This keeps the free list in the file. On a full disk the next Open walks.
	if db, err = openFile(path, &bbolt.Options{Timeout: lockTimeout}); err == nil {
		_ = db.Close()
	}
	return damaged, nil
}

func check(db *bbolt.DB) (damaged []string, err error) {
	defer catch(&err)()
	err = db.View(func(tx *bbolt.Tx) error {
		info, err := os.Stat(db.Path())
		if err != nil {
			return err
		}
		if info.Size() < tx.Size() {
			return fmt.Errorf("it is cut off at %d of %d bytes", info.Size(), tx.Size())
		}
		for e := range tx.Check() { // to its end, else its goroutine stays
			if err == nil {
				err = e
			}
		}
		if err != nil {
			return err
		}
		damaged, err = walk(tx) // only now: in a bad tree it might never end
		return err
	})
	return damaged, err
}

// limitMemory ends this process should it want much more than it has before
// unlimit is called: bbolt can take a flipped bit for a size, and all the
// memory of the machine for its pages.
func limitMemory(path string) (unlimit func()) {
	var data uint64 // kB
	status, _ := os.ReadFile("/proc/self/status")
	_, after, _ := strings.Cut(string(status), "VmData:")
	_, _ = fmt.Sscan(after, &data)
	var before syscall.Rlimit
	info, err := os.Stat(path)
	if err != nil || data == 0 || syscall.Getrlimit(syscall.RLIMIT_DATA, &before) != nil {
		return func() {}
	}
	limit := before
	limit.Cur = min(limit.Cur, data<<10+uint64(info.Size())+64<<20)
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &limit) // it is a precaution
	return func() { _ = syscall.Setrlimit(syscall.RLIMIT_DATA, &before) }
}

// walk reads everything and returns where a checksum is wrong.
func walk(tx *bbolt.Tx) (damaged []string, err error) {
	err = tx.ForEach(func(top []byte, all *bbolt.Bucket) error {
		return all.ForEachBucket(func(name []byte) error {
			place := placeOf(top, name)
			return all.Bucket(name).ForEach(func(k, v []byte) error {
				if _, ok := unseal(place, k, v); !ok {
					damaged = append(damaged, describe(top, name, k))
				}
				return nil
			})
		})
	})
	return damaged, err
}
