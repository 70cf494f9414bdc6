//go:build !linux

package wal

import "os"

// syncData returns when the data of f is on disk.
func syncData(f *os.File) error { return f.Sync() }
