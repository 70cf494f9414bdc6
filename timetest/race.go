//go:build race

package timetest

const raceEnabled = true
