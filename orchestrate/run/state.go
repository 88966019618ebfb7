package run

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/words"
)

// Status is the state of a run.
type Status string

// The states of a run, as run:status names them. A run is completed or failed if the last of the events RUN_CREATED,
// RUN_COMPLETED and RUN_FAILED says so. Otherwise it is waiting while an effect is pending, and else created. Created
// is also the state between the last answer and the next run:iterate, so it means: call run:iterate.
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

// State is the result of a run's journal up to an event.
type State struct {
	Status  Status
	LastSeq int // of the last event; 0 for an empty journal
	// Moved is the seq of the last event that changed the run. Notes, such as those of babysitter's hook, do not count.
	Moved int

	// Pending are the effects without an answer, in the order of their requests. An effect that the process no longer
	// asks for, because it was edited or took another branch, stays here for ever: only run:iterate tells those apart.
	Pending []Effect

	Failure *Failure // the last one, even if the run continued after it, or nil

	life    string                  // the kind of the last of RUN_CREATED, RUN_COMPLETED and RUN_FAILED
	effects map[string]EffectStatus // of every effect
	keys    map[string]bool         // invocation keys, none of which may occur twice
}

// Effect is one thing that a process asked for. Its [Task] has the details.
type Effect struct {
	ID          string
	Seq         int    // of its EFFECT_REQUESTED
	Kind        string // "node", "agent", ...; any string, perhaps empty
	Label       string // for people; perhaps empty
	RequestedAt time.Time
}

// Failure is an error that ended the process. If a failed run is iterated again and fails again, that is another
// RUN_FAILED: deliver each Seq once.
type Failure struct {
	Seq                  int // of the RUN_FAILED event
	Name, Message, Stack string
}

func (s State) Effect(id string) EffectStatus { return s.effects[id] }

// State reads the journal. Errors match [ErrCorrupt] if babysitter refuses the journal. An empty journal belongs to
// a run that is being created. A missing journal folder is [ErrCorrupt], too: babysitter would request every effect
// again.
func (r *Run) State() (State, error) {
	for n := 1; ; n++ {
		s, err := r.read()
		if err == nil {
			return s, nil
		}
		if again := errors.Is(err, errMoved) || errors.Is(err, fs.ErrNotExist); !again || n == tries {
			return State{}, r.explain(err)
		}
		time.Sleep(pause)
	}
}

// fresh is how long events that were read are not read again. Babysitter never changes an event, and a person who
// mends a journal takes longer than the readings of one step.
const fresh = 5 * time.Second

// memo is what the last reading of a journal returned.
type memo struct {
	names []string
	state State
	since time.Time // when the first event was read
}

// read reads the journal, or only the new events if it has grown since the last reading.
func (r *Run) read() (s State, err error) {
	f := folder(filepath.Join(r.dir, "journal"))
	names, err := f.names()
	if err != nil {
		return s, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	m := memo{since: time.Now(), state: State{Status: Created, effects: map[string]EffectStatus{}, keys: map[string]bool{}}}
	if old := r.last; time.Since(old.since) < fresh && len(names) >= len(old.names) && slices.Equal(names[:len(old.names)], old.names) {
		m = old
	}
	if s = m.state; len(names) > len(m.names) {
		// A state that was returned before must not change.
		s.Pending, s.effects, s.keys = slices.Clone(s.Pending), maps.Clone(s.effects), maps.Clone(s.keys)
	}
	for i := len(m.names); i < len(names); i++ {
		e, err := f.event(i+1, names[i])
		if err != nil {
			return s, err
		}
		if err := s.apply(e); err != nil {
			return s, fault(e.seq, names[i], err)
		}
	}
	r.last = memo{names, s, m.since}
	s.Pending = slices.Clone(s.Pending) // the caller's own
	return s, nil
}

// A journal that changes while it is read is read again. During run:repair-journal there is none for a moment.
const (
	tries = 5
	pause = 2 * time.Millisecond
)

func (r *Run) explain(err error) error {
	var d *damaged
	switch {
	case errors.As(err, &d):
	case errors.Is(err, errMoved):
		d = &damaged{err.Error(), remove}
	case errors.Is(err, fs.ErrNotExist):
		d = &damaged{"there is no journal folder", restore}
	default:
		return fmt.Errorf("read the journal of run %s: %w", r.id, err)
	}
	command := "`" + words.Shell("heartbeat", "orchestrate", "--run", r.dir, "--repair", "--once") + "`"
	d = &damaged{d.why, strings.Replace(d.remedy, "REPAIR", command, 1)}
	return fmt.Errorf("read the journal of run %s: %w: %w", r.id, d, ErrCorrupt)
}

func (s *State) apply(e event) (err error) {
	switch e.kind {
	case runCreated, runCompleted:
		s.life = e.kind
	case runFailed:
		of := object(e.data.Get("error"))
		s.life = e.kind
		s.Failure = &Failure{Seq: e.seq, Name: of.Get("name").Str, Message: of.Get("message").Str, Stack: of.Get("stack").Str}
	case effectRequested:
		err = s.request(e)
	case effectResolved:
		err = s.resolve(e)
	default:
		s.LastSeq = e.seq
		return nil
	}
	s.LastSeq, s.Moved = e.seq, e.seq
	switch {
	case s.life == runCompleted:
		s.Status = Completed
	case s.life == runFailed:
		s.Status = Failed
	case len(s.Pending) > 0:
		s.Status = Waiting
	default:
		s.Status = Created
	}
	return err
}

// errTwice says that an invocation key was requested before.
var errTwice = errors.New("is asked for a second time")

func (s *State) request(e event) error {
	f, key, err := e.effect()
	if err != nil {
		return err
	}
	if s.keys[key] {
		return fmt.Errorf("%s %w", key, errTwice)
	}
	if s.effects[f.ID] != Unknown {
		return fmt.Errorf("the effect %s was asked for before", f.ID)
	}
	s.keys[key], s.effects[f.ID] = true, Requested
	s.Pending = append(s.Pending, f)
	return nil
}

func (s *State) resolve(e event) error {
	id, status, err := e.answer()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(s.Pending, func(f Effect) bool { return f.ID == id })
	if i < 0 {
		return fmt.Errorf("it answers the effect %s, which is not pending", id)
	}
	s.Pending = slices.Delete(s.Pending, i, i+1)
	s.effects[id] = status
	return nil
}
