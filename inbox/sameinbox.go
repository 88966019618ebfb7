package inbox

import "path/filepath"

// SameInbox reports whether two absolute paths name one inbox. Links in the last
// element count, since the state is kept beside the name.
func SameInbox(a, b string) bool {
	if a == b {
		return true
	}
	dirA, errA := filepath.EvalSymlinks(filepath.Dir(a))
	dirB, errB := filepath.EvalSymlinks(filepath.Dir(b))
	return errA == nil && errB == nil && dirA == dirB && filepath.Base(a) == filepath.Base(b)
}
