package inbox

import (
	"fmt"
	"os"
	"time"

	"heartbeat/internal/flat"
	"heartbeat/internal/machine"
)

// Stopping is the process that has sessions work on the inbox, and is about to end: until
// it has, nothing is delivered. It is no [Pause]: it is over with that process, however
// that ends, and a person's pause is kept beside it.
type Stopping struct {
	At time.Time `json:"at"`
	// PID and the members after it identify the process, as in [Session].
	PID          int    `json:"pid"`
	Boot         string `json:"boot,omitempty"`
	Namespace    string `json:"pid_namespace,omitempty"`
	ProcessStart int64  `json:"process_start,omitempty"`
}

// String says who it is.
func (s Stopping) String() string {
	return fmt.Sprintf("held back, since process %d, which has sessions work on the inbox, is about to end", s.PID)
}

// StoppingEnds is what has delivery go on, for people.
const StoppingEnds = "it has ended"

// Stopping is the process that is about to end, nil if none is certain to live that said so.
func (t *Tx) Stopping() (*Stopping, error) {
	s, err := recorded[Stopping](t.st.Stopping, "stop")
	if s == nil || err != nil {
		return nil, err
	}
	if alive, _ := machine.Lives(s.Boot, s.Namespace, s.PID, s.ProcessStart); !alive {
		return nil, nil
	}
	return s, nil
}

// BeginStop has nothing delivered from the commit on, until this process has ended, or
// [Tx.EndStop]. It does not affect the entry in flight.
func (t *Tx) BeginStop() (err error) {
	pid := os.Getpid()
	t.st.Stopping, err = flat.JSON(Stopping{
		At: t.box.utcNow(), PID: pid, Boot: t.boot, Namespace: machine.PIDNamespace(), ProcessStart: machine.ProcessStart(pid),
	})
	t.dirty = true
	return err
}

// EndStop has delivery go on: the process that was to end has no session any more.
func (t *Tx) EndStop() {
	if len(t.st.Stopping) > 0 {
		t.st.Stopping, t.dirty = nil, true
	}
}
