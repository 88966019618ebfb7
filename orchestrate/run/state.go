package run

import (
	"time"
)

// Status is how a run stands.
type Status string

// The states of a run, as run:status names them. The last of the events
// RUN_CREATED, RUN_COMPLETED and RUN_FAILED decides between completed, failed and
// the other two; of those it is waiting while an effect is pending. Created
// is also the state between the last answer and the next run:iterate, so it
// means: call run:iterate.
const (
	Created   Status = "created"
	Waiting   Status = "waiting"
	Completed Status = "completed"
	Failed    Status = "failed"
)

// EffectStatus is what became of an effect, in the words of task:list.
type EffectStatus string

// The states of an effect. Unknown is one that the journal does not have.
const (
	Unknown       EffectStatus = ""
	Requested     EffectStatus = "requested"
	ResolvedOK    EffectStatus = "resolved_ok"
	ResolvedError EffectStatus = "resolved_error"
)

// State is what a run's journal comes to.
type State struct {
	Status  Status
	LastSeq int // of the last event; 0 for an empty journal
	// Moved is the seq of the last event by which the run got on. Notes beside it, such as
	// those of babysitter's own hook, are none.
	Moved int

	// Pending are the effects without an answer, in the order they were asked for.
	// An effect that the process no longer asks for, since it was edited or went
	// another way, stays here for ever: only run:iterate tells those apart.
	Pending []Effect

	ResolvedOK    int // effects that were answered
	ResolvedError int // effects that were answered with an error

	Failure *Failure // the last one, also where the run went on after it; nil for none

	run   *Run
	index *index
}

// Effect is one thing that a process asked for. What it asks is in its [Task].
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

// Failure is an error that ended the process. Iterating a failed run again fails
// again, as a RUN_FAILED of its own: deliver each Seq once.
type Failure struct {
	Seq     int // of the RUN_FAILED event
	At      time.Time
	Name    string
	Message string
	Stack   string
	Data    []byte // JSON, or nil
}

// Effect says what became of an effect. Of one that is not pending that may take
// reading; errors are those of [Run.State].
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
	if x.load() != nil { // the cache is another by now
		var err error
		if x, err = s.run.index(""); err != nil {
			return Unknown, err
		}
	}
	return x.effects.status(id), nil
}

// State reads the journal.
//
// cache is the path of a file that makes this cheap however long the journal is,
// or "" for none. It holds what the events up to some point came to, and then
// only later ones are read. It is a copy that may be deleted, and nothing is
// believed in it that the journal's directory does not bear out; see cache. A
// cache that cannot be written costs time, and is no error.
//
// Errors match [ErrCorrupt] where babysitter refuses the journal. An empty one is
// that of a run which is being created. Where there is no journal folder,
// babysitter would begin anew, with every effect; that, too, is [ErrCorrupt].
func (r *Run) State(cache string) (State, error) {
	x, err := r.index(cache)
	if err != nil {
		return State{}, err
	}
	s := x.state()
	s.run = r
	return s, nil
}
