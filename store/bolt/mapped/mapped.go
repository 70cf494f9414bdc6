// Package mapped gives back the memory that the pages of an open bbolt file take in the process.
package mapped

import (
	"fmt"

	"go.etcd.io/bbolt"
)

// Release unmaps the pages of db that were read. The system still has them for as long as it likes, and maps those
// again that are needed: readers may go on meanwhile. Where the system cannot do that, it does nothing.
func Release(db *bbolt.DB) error {
	err := db.View(func(*bbolt.Tx) error { // meanwhile the file is mapped where it is
		return release(db.Info().Data)
	})
	if err != nil {
		return fmt.Errorf("release the pages of the store: %w", err)
	}
	return nil
}
