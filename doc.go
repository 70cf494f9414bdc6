// Package parley is the root of the module. It has no code, only the tests of the
// module as a whole: imports, sizes, words and documents. ARCHITECTURE.md describes
// the packages.
package parley
