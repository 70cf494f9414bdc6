package bolt

import (
	"context"
	"errors"
	"os"

	"go.etcd.io/bbolt"

	"parley/store/bolt/pages"
)

// Probe reports whether the file at path can be opened safely. It reads all of it and
// returns the values with a wrong checksum. If the structure of the file is damaged, it
// returns an error and does not change the file. Otherwise a file without a free list, as
// an earlier version leaves it, gets one: whoever opened it would have to walk through it,
// with all of it in memory.
func Probe(ctx context.Context, path string) (damaged []string, err error) {
	db, err := openFile(path, &bbolt.Options{ReadOnly: true, Timeout: lockTimeout}) // locks it
	if err != nil {
		return nil, err
	}
	damaged, hasFreelist, err := readAll(ctx, path)
	if err := errors.Join(err, db.Close()); err != nil || hasFreelist {
		return damaged, err
	}
	db, err = openFile(path, &bbolt.Options{Timeout: lockTimeout}) // writes the free list
	if err != nil {
		return damaged, nil
	}
	_ = db.Close()
	return damaged, nil
}

func readAll(ctx context.Context, path string) (damaged []string, hasFreelist bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	last, _, err := pages.Last(f)
	if err != nil {
		return nil, false, err
	}
	if err := last.CheckSize(f); err != nil {
		return nil, false, err
	}
	if _, err := last.Free(); !errors.Is(err, pages.ErrNoFreelist) {
		hasFreelist = true
	}
	err = last.Read(pages.Walk{Value: func(names [][]byte, key, val []byte) error {
		if where := damageAt(names, key, val); where != "" {
			damaged = append(damaged, where)
		}
		return ctx.Err()
	}})
	return damaged, hasFreelist, err
}
