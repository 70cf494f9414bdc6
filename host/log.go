package host

import (
	"fmt"
	"os"
	"path/filepath"
)

// OpenLog opens parley.log in folder, which is made if it is missing, to append to
// it. Only this user can read it.
func OpenLog(folder string) (*os.File, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(folder, "parley.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return f, nil
}
