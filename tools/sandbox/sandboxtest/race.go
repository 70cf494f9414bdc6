//go:build race

package sandboxtest

// memoryFactor is how much more memory a test gives and takes: the race detector needs some 200 MB
// in each process, such as the launcher of Landlock, before it begins.
const memoryFactor = 4
