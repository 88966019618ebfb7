package platform

// The main goroutine gets 32 KB of stack before other packages start.
//
// A goroutine begins with 2 KB. Each time that is too small, Go walks all its frames and copies them to a stack of
// twice the size. In a process that lives for two milliseconds this takes a twentieth of the time, most of it page
// faults. Go starts packages without imports first, so this one imports nothing.
func init() { need(false) }

// need grows the stack to the size of its frame, which its first instructions check. It must not
// touch the frame: the page faults would cost what the larger stack saves.
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
