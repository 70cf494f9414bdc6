//go:build !linux

package host

// releaseProgram does nothing: it is only known how on Linux.
func releaseProgram() {}
