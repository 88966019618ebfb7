package babysitter

import "errors"

// What went wrong, for [errors.Is]. The error itself is a sentence: which command failed,
// for which run, why, and what to do.
var (
	// ErrMissing: the command, or the node that runs it, is not there.
	ErrMissing = errors.New("the babysitter CLI is not installed")
	// ErrNoRun: the folder holds no run.
	ErrNoRun = errors.New("no such run")
	// ErrExists: a run, or something else, of that id exists.
	ErrExists = errors.New("the run exists already")
	// ErrUnknownEffect: the run never requested this effect, or its request was
	// dropped by a repair.
	ErrUnknownEffect = errors.New("no such effect")
	// ErrResolved: the effect has its result, and keeps it.
	ErrResolved = errors.New("the effect is resolved already")
	// ErrLocked: another process works on the run, and did not end within the wait.
	ErrLocked = errors.New("the run is locked")
	// ErrJournal: the run's journal is damaged. [CLI.Repair] mends it.
	ErrJournal = errors.New("the run's journal is damaged")
	// ErrProcess: the run's process module does not load, or lacks the export that the run
	// was made with. Somebody has to change the module; nothing was written.
	ErrProcess = errors.New("the process does not load")
	// ErrTimeout: the CLI did not answer in time, not even the second time.
	ErrTimeout = errors.New("the babysitter CLI did not answer in time")
	// ErrOutput: the CLI ended without an answer. Process code causes that if it ends the
	// program, or waits for something that never comes.
	ErrOutput = errors.New("the babysitter CLI gave no answer")
	// ErrInvalid: the request is not possible, and the CLI was not called.
	ErrInvalid = errors.New("not a valid request")
)

// problem is a sentence for people that matches one of the errors above.
type problem struct {
	kind     error // may be nil
	sentence string
	cause    error // may be nil
}

func (p *problem) Error() string { return p.sentence }

func (p *problem) Unwrap() []error {
	var all []error
	for _, err := range []error{p.kind, p.cause} {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}
