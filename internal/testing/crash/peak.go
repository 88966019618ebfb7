package crash

import (
	"os"
	"runtime/debug"
)

// ForgetPeak has the children that this process starts from now on report a peak of their
// own: on Linux that of a child begins at the peak of the process that started it.
func ForgetPeak() {
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // proc(5); there is none elsewhere
}
