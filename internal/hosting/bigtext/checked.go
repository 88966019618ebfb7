//go:build race

package bigtext

// copies says that SQLite gets a copy: with the race detector goes a check that a pointer of
// Go's is not computed, as the driver does.
const copies = true
