package host

import (
	"fmt"

	"parley/store"
)

// Bounds of the reserve, in bytes.
const (
	minReserve = 64 << 20
	maxReserve = 1 << 30
)

// reserve returns how many bytes of a disk are kept free for what was accepted
// already: a hundredth of it within the bounds, a quarter of a very small one.
func reserve(total uint64) uint64 {
	return min(max(minReserve, min(total/100, maxReserve)), total/4)
}

// A Space watches the disks of some folders (P19).
type Space struct {
	Folders []string

	// Measure is [FreeSpace], or stands for it in a test.
	Measure func(dir string) (free, total uint64, known bool)
}

// Check returns store.ErrFull if one of the disks has less free than the reserve. A
// disk that cannot be measured has room: a write to it will tell.
func (s Space) Check() error {
	for _, dir := range s.Folders {
		if err := s.CheckFor(dir, 0); err != nil {
			return err
		}
	}
	return nil
}

// CheckFor returns store.ErrFull if the disk of dir has less free than the reserve
// and the given number of bytes.
func (s Space) CheckFor(dir string, bytes uint64) error {
	free, total, known := s.Measure(dir)
	if known && free < reserve(total)+bytes {
		return fmt.Errorf("%w: %d MB are free at %s, %d MB are needed, and %d MB are kept for what was accepted before",
			store.ErrFull, free>>20, dir, bytes>>20, reserve(total)>>20)
	}
	return nil
}
