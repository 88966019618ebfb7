package inbox

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"heartbeat/internal/flat"
	"heartbeat/internal/host"
)

// Waiter is the consumer that waits for the next entry while its session is idle.
// There is at most one: a later one takes its place, which the earlier one
// notices when it looks.
type Waiter struct {
	Name      string    `json:"name"` // unique
	SessionID string    `json:"session_id,omitempty"`
	Since     time.Time `json:"since"`
	// PID and the members after it identify the process that waits, as in
	// [Session].
	PID          int    `json:"pid"`
	Boot         string `json:"boot,omitempty"`
	Namespace    string `json:"pid_namespace,omitempty"`
	ProcessStart int64  `json:"process_start,omitempty"`
}

// Life is whether its process runs.
func (w Waiter) Life() host.Life { return host.LifeOf(w.Boot, w.Namespace, w.PID, w.ProcessStart) }

// Waiter is the consumer that waits, or nil. Its process may be gone.
func (t *Tx) Waiter() (*Waiter, error) {
	if len(t.st.Waiter) == 0 {
		return nil, nil
	}
	w := new(Waiter)
	if err := json.Unmarshal(t.st.Waiter, w); err != nil {
		return nil, fmt.Errorf("read journal: waiter: %w: %w", ErrCorrupt, err)
	}
	return w, nil
}

// Wait makes this process the waiter, under that name, in place of any other.
func (t *Tx) Wait(name, session string) error {
	pid := os.Getpid()
	var err error
	t.st.Waiter, err = flat.JSON(Waiter{
		Name: name, SessionID: session, Since: t.box.utcNow(),
		PID: pid, Boot: t.boot, Namespace: host.PIDNamespace(), ProcessStart: host.ProcessStart(pid),
	})
	t.dirty = true
	return err
}

// StopWaiting removes the waiter, whichever it is.
func (t *Tx) StopWaiting() {
	if len(t.st.Waiter) > 0 {
		t.st.Waiter, t.dirty = nil, true
	}
}
