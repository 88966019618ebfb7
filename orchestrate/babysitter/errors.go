package babysitter

import "errors"

// What went wrong, for [errors.Is]. The error itself is a sentence: which command,
// of which run, why, and what to do.
var (
	// ErrMissing: the command, or the node that runs it, is not there.
	ErrMissing = errors.New("the babysitter CLI is not installed")
	// ErrNoRun: the folder holds no run.
	ErrNoRun = errors.New("no such run")
	// ErrExists: there is a run, or something else, by that id.
	ErrExists = errors.New("the run exists already")
	// ErrUnknownEffect: the run never requested this effect, or its request was
	// dropped by a repair.
	ErrUnknownEffect = errors.New("no such effect")
	// ErrResolved: the effect has its result, and keeps it.
	ErrResolved = errors.New("the effect is resolved already")
	// ErrLocked: another process works on the run, and did for as long as was waited.
	ErrLocked = errors.New("the run is locked")
	// ErrJournal: the run's journal is damaged. [CLI.Repair] mends it.
	ErrJournal = errors.New("the run's journal is damaged")
	// ErrProcess: the run's process module does not load, or does not export what the
	// run was made with. Somebody has to change the module; nothing was written.
	ErrProcess = errors.New("the process does not load")
	// ErrTimeout: the CLI did not answer in time, also not when it was asked again.
	ErrTimeout = errors.New("the babysitter CLI did not answer in time")
	// ErrOutput: the CLI ended without an answer. Process code that ends the program,
	// or waits for what never comes, does that.
	ErrOutput = errors.New("the babysitter CLI gave no answer")
	// ErrInvalid: what was asked for cannot be asked of the CLI, which was not run.
	ErrInvalid = errors.New("not a valid request")
)

// problem is a sentence for people that also is one of the errors above.
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
