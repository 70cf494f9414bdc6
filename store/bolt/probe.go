package bolt

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"go.etcd.io/bbolt"
)

// Probe reports whether the file at path can be opened safely. It reads all of it and
// returns the values with a wrong checksum. If the structure of the file is damaged, it
// returns an error and does not change the file. Otherwise it prepares the file, so that
// the next to open it need not walk through it, with all of it in memory.
//
// A badly damaged file may crash the process, so Probe should run in a process of its
// own. The crash is then the answer.
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
	// This saves the free list in the file. On a full disk, the next Open walks.
	db, err = openFile(path, &bbolt.Options{Timeout: lockTimeout})
	if err != nil {
		return damaged, nil
	}
	_ = db.Close()
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
		faults := tx.Check()
		first := <-faults
		for range faults { // to their end, otherwise the goroutine of Check remains
		}
		if first != nil {
			return first
		}
		damaged, err = findDamaged(tx) // only now: in a damaged tree it might never end
		return err
	})
	return damaged, err
}

// probeMemory is what Probe may need besides the file.
const probeMemory = 64 << 20 // bytes

// limitMemory makes this process crash if it needs much more memory before unlimit is
// called: bbolt can mistake a flipped bit for a size, and request all the memory of the
// machine.
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
	limit.Cur = min(limit.Cur, data<<10+uint64(info.Size())+probeMemory)
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &limit) // a precaution
	return func() { _ = syscall.Setrlimit(syscall.RLIMIT_DATA, &before) }
}

// findDamaged reads everything and returns where a checksum is wrong.
func findDamaged(tx *bbolt.Tx) (damaged []string, err error) {
	err = tx.ForEach(func(top []byte, all *bbolt.Bucket) error {
		return all.ForEachBucket(func(name []byte) error {
			place := placeChecksum(top, name)
			return all.Bucket(name).ForEach(func(k, v []byte) error {
				if _, ok := stripChecksum(place, k, v); !ok {
					damaged = append(damaged, describeEntry(top, name, k))
				}
				return nil
			})
		})
	})
	return damaged, err
}
