//go:build !race

package sandboxtest

// memoryFactor is how much more memory a test gives and takes.
const memoryFactor = 1
