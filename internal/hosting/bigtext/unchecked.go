//go:build !race

package bigtext

// copies says that SQLite gets no copy.
const copies = false
