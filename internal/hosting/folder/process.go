package folder

import (
	"os"

	"heartbeat/internal/host"
)

// Process identifies a process for good, also after its pid was given to another.
type Process struct {
	PID       int    `json:"pid"`
	Start     int64  `json:"start"`               // clock ticks since boot, see [host.ProcessStart]
	Boot      string `json:"boot,omitempty"`      // see [host.BootID]
	Namespace string `json:"namespace,omitempty"` // see [host.PIDNamespace]
}

// ProcessOf identifies the process that has this pid now. Its Start is 0 if there
// is none.
func ProcessOf(pid int) Process {
	return Process{PID: pid, Start: host.ProcessStart(pid), Boot: host.BootID(), Namespace: host.PIDNamespace()}
}

// Alive reports whether the process still runs. known is false if that cannot be
// told from here: the pid belongs to another namespace, or was not recorded.
func (p Process) Alive() (alive, known bool) {
	return host.Lives(p.Boot, p.Namespace, p.PID, p.Start)
}

// isSelf reports whether this is the process. It may be nil.
func (p *Process) isSelf() bool { return p != nil && *p == ProcessOf(os.Getpid()) }
