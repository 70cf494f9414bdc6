package main

import (
	"fmt"

	"parley/store"
)

// reserve is how much of a disk of so many bytes is kept free for what is taken
// already: a hundredth within the bounds above, a quarter of a very small one.
func reserve(total uint64) uint64 {
	return min(max(minReserve, min(total/100, maxReserve)), total/4)
}

// A space watches the disks on which the data and the workspace are.
type space struct {
	folders []string
	look    func(folder string) (free, total uint64, known bool) // freeSpace
}

// room returns store.ErrFull when what is free is less than the reserve. A
// disk that cannot be looked at has room: writing to it will tell.
func (s space) room() error {
	for _, folder := range s.folders {
		if err := s.roomFor(folder, 0); err != nil {
			return err
		}
	}
	return nil
}

// roomFor returns store.ErrFull when folder has less room than the reserve and
// so many bytes more.
func (s space) roomFor(folder string, bytes uint64) error {
	free, total, known := s.look(folder)
	if known && free < reserve(total)+bytes {
		return fmt.Errorf("%w: %d MB are free at %s, %d MB are needed, and %d MB are kept for what was accepted before",
			store.ErrFull, free>>20, folder, bytes>>20, reserve(total)>>20)
	}
	return nil
}
