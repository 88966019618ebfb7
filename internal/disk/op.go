package disk

import "io/fs"

// Kind names one state-changing system call.
type Kind string

// The state-changing calls that this package makes.
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
	OpNarrow   Kind = "narrow" // to the rights that a state file has
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

// Observer sees every [Op] first. An error that it returns is returned by the
// call in place of making it, except a [Torn], which is written in part.
type Observer func(Op) error

// TestOnlyObserver, when set, sees every state-changing call of this process.
// Only tests set it.
var TestOnlyObserver Observer

// Torn is an [Observer]'s way to have only the first N bytes of a write reach
// the file before Then is called.
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
