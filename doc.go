// Package parley is the root of the house. It holds no code, only the tests
// that keep the floors; ARCHITECTURE.md tells what stands where.
package parley
