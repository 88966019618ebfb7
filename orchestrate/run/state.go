package run

import (
	"time"
)

// Status is the state of a run.
type Status string

// The states of a run, as run:status names them. A run is completed or failed if the last
// of the events RUN_CREATED, RUN_COMPLETED and RUN_FAILED says so; otherwise it is waiting
// while an effect is pending, and else created. Created is also the state between the last
// answer and the next run:iterate, so it means: call run:iterate.
const (
	Created   Status = "created"
	Waiting   Status = "waiting"
	Completed Status = "completed"
	Failed    Status = "failed"
)

// EffectStatus is the state of an effect, in the words of task:list.
type EffectStatus string

// The states of an effect. Unknown means that the journal does not have the effect.
const (
	Unknown       EffectStatus = ""
	Requested     EffectStatus = "requested"
	ResolvedOK    EffectStatus = "resolved_ok"
	ResolvedError EffectStatus = "resolved_error"
)

// State is the result of a run's journal.
type State struct {
	Status  Status
	LastSeq int // of the last event; 0 for an empty journal
	// Moved is the seq of the last event that changed the run. Notes, such as those of
	// babysitter's own hook, do not count.
	Moved int

	// Pending are the effects without an answer, in the order of their requests. An effect
	// that the process no longer asks for, because it was edited or took another branch,
	// stays here for ever: only run:iterate tells those apart.
	Pending []Effect

	ResolvedOK    int // effects that were answered
	ResolvedError int // effects that were answered with an error

	Failure *Failure // the last one, even if the run continued after it; nil for none

	run   *Run
	index *index
}

// Effect is one thing that a process asked for. Its [Task] has the details.
type Effect struct {
	ID            string
	Seq           int // of its EFFECT_REQUESTED
	InvocationKey string
	StepID        string
	TaskID        string
	Kind          string   // "node", "agent", ...; any string, perhaps empty
	Label         string   // for people; perhaps empty
	Labels        []string // trimmed and without repetitions, in the process's order
	TaskDefRef    string   // the path of the task, from the run directory
	InputsRef     string   // the path of inputs over 1 MiB, likewise, or ""
	RequestedAt   time.Time
}

// Failure is an error that ended the process. If a failed run is iterated again and fails
// again, that is another RUN_FAILED: deliver each Seq once.
type Failure struct {
	Seq     int // of the RUN_FAILED event
	At      time.Time
	Name    string
	Message string
	Stack   string
	Data    []byte // JSON, or nil
}

// Effect is the state of an effect. If the effect is not pending, the journal may have to be
// read; errors are those of [Run.State].
func (s State) Effect(id string) (EffectStatus, error) {
	for _, p := range s.Pending {
		if p.ID == id {
			return Requested, nil
		}
	}
	x := s.index
	if x == nil {
		return Unknown, nil
	}
	if x.load() != nil { // the cache was replaced meanwhile
		var err error
		if x, err = s.run.index(""); err != nil {
			return Unknown, err
		}
	}
	return x.effects.status(id), nil
}

// State reads the journal.
//
// cache is the path of a file that makes this cheap however long the journal is, or "" for
// none. It holds the result of the events up to some point, so that only later events are
// read. The file may be deleted, and is trusted only as far as it agrees with the
// journal's directory; see the type cache. It is no error if the cache cannot be written.
//
// Errors match [ErrCorrupt] if babysitter refuses the journal. An empty journal is that of
// a run which is being created. If there is no journal folder, babysitter would begin
// again with every effect; that is [ErrCorrupt], too.
func (r *Run) State(cache string) (State, error) {
	x, err := r.index(cache)
	if err != nil {
		return State{}, err
	}
	s := x.state()
	s.run = r
	return s, nil
}
