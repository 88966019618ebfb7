//go:build !linux

package host

// LockHolder returns 0: this system does not say who holds a lock.
func LockHolder(string) int { return 0 }

// Locks are the locks that were held at a moment.
type Locks struct{}

// ReadLocks returns none: this system does not say who holds a lock.
func ReadLocks() Locks { return Locks{} }

// Holder is [LockHolder] at that moment.
func (Locks) Holder(string) int { return 0 }
