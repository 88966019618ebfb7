// Package disk is the only place where heartbeat changes files that hold state.
//
// Every state-changing call is announced as an [Op] before it is made. Tests can then kill the process there, make the
// call fail like a full or broken disk, or record the calls and compute what a power loss leaves.
//
// State files are opened without following symbolic links and are created with mode 0600. A state
// file is refused if it is not regular, belongs to another user or has a second name. Opening one
// for writing narrows its mode to 0600. Errors name the operation and the path and wrap the errno.
//
// Reading a whole file is bounded: see [ReadFile], [ReadState] and [File.ReadUpTo].
package disk

import (
	"io/fs"

	_ "heartbeat/internal/platform" // fails the build on other systems
)

// Kind is a kind of state-changing system call.
type Kind string

const (
	OpCreate   Kind = "create"
	OpWrite    Kind = "write"
	OpTruncate Kind = "truncate"
	OpSync     Kind = "sync"
	OpSyncDir  Kind = "syncdir"
	OpRename   Kind = "rename"
	OpRemove   Kind = "remove"
	OpTouch    Kind = "touch"
	OpPunch    Kind = "punch"
	OpNarrow   Kind = "narrow" // narrow the mode to 0600
)

// Op is one state-changing call, announced before it is made.
type Op struct {
	Kind   Kind
	Path   string
	To     string // the new name, for a rename
	Offset int64  // where a write lands; the new length of a truncate
	Length int64  // of the hole that a punch makes, from Offset
	Data   []byte // what a write writes; valid until the observer returns
}

// Observer sees every [Op] before the call. If it returns an error, the call is not made and fails
// with that error. A [Torn] makes a write partial.
type Observer func(Op) error

// TestOnlyObserver, if set, sees every state-changing call of this process. Only tests set it.
var TestOnlyObserver Observer

// Torn is an error of an [Observer] that lets only the first N bytes of a write reach the file, and then calls Then.
type Torn struct {
	N    int
	Then func() error
}

func (t *Torn) Error() string { return "torn write" }

func announce(op Op) error {
	if TestOnlyObserver == nil {
		return nil
	}
	if err := TestOnlyObserver(op); err != nil {
		if torn, ok := err.(*Torn); ok {
			return torn
		}
		return &fs.PathError{Op: string(op.Kind), Path: op.Path, Err: err}
	}
	return nil
}
