//go:build !linux

package mapped

func release(uintptr) error { return nil }
