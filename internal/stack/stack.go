// Package stack gives the main goroutine of a command that imports it 32 KB of stack at
// once, before other packages start.
//
// A goroutine begins with 2 KB, and each time that these are too few, Go walks all its
// frames and copies them to a stack of twice the size. In a process that lives for two
// milliseconds this is a twentieth of its time, most of it page faults. Go starts
// packages without imports before those with imports, so this one imports nothing.
package stack

func init() { need(false) }

// need grows the stack to the size of its frame, since that is what its first
// instructions check. It leaves the frame alone: touched pages would cost what is saved.
//
//go:noinline
func need(touch bool) {
	if touch {
		var frame [20 << 10]byte
		keep(&frame)
	}
}

//go:noinline
func keep(*[20 << 10]byte) {}
