//go:build !linux

package host

// Harden does nothing: only Linux shows a process's memory and environment as files.
func Harden() error { return nil }

// FreeSpace does not know on this system.
func FreeSpace(string) (free, total uint64, known bool) { return 0, 0, false }
