// Package worker is one agent of a fleet: it pulls messages from a stream while its inbox
// has room, puts each into the inbox, has a launcher run sessions, and tells the stream
// what became of the entries.
//
// Nothing is remembered but in the ledger (package upstream), the inbox and the stream:
//
//	pulled -> claim in the ledger, synced -> entry in the inbox, synced -> … outcome in the
//	inbox -> decision, reply and acknowledgement (package upstream) -> claim dropped
//
// So an agent that is killed anywhere goes on from what it finds. One loop owns all state
// but for what keeps messages from being given elsewhere, which may not wait for it.
package worker

import (
	"io"
	"time"

	"heartbeat/internal/fleet/upstream"
	recovery "heartbeat/recover"
)

// Request is what somebody wants of an agent that runs.
type Request int

// The requests.
const (
	Drain Request = iota // finish what it holds, take no more, and end
	End                  // end: the session too, and give back what waits
	Kill                 // end at once
	Back                 // the connection is there again
)

// Options are an agent.
type Options struct {
	upstream.Binding
	Inbox string // path of the queue file

	// Launcher is the path of heartbeat-launch, "" for no session of ours; Launch are
	// flags for it, and Command is what it runs.
	Launcher string
	Launch   []string
	Command  []string
	// Environ is the launcher's environment, nil for the agent's own.
	Environ []string
	// Persist keeps the launcher up where nothing waits.
	Persist bool
	Orphan  recovery.Settings // as the launcher has them

	Slots      int           // how many messages are held at a time
	QueueDepth int           // no message is taken while so many entries are in the inbox
	Stall      time.Duration // without progress for so long a message may go elsewhere; 0: never
	GiveBack   bool          // while the inbox is paused, what waits goes back

	// Requests are read while the agent runs.
	Requests <-chan Request
	// Say gets a sentence for each thing that happens.
	Say func(string)
	// Out and Err are the launcher's.
	Out, Err io.Writer
}

const (
	// Each wake of an agent that waits costs CPU time, so that these are as long as they
	// may be. A request that the server has lost, as with a new leader in a cluster, is
	// found out after two heartbeats.
	pullWait  = 2 * time.Minute  // of one request for a message
	heartbeat = 20 * time.Second // of the server while it has none
	pollInbox = 30 * time.Second // where the file system sends no events
	// longHold is how much of a back-off is left for messages to go elsewhere meanwhile.
	longHold = 10 * time.Second
	// mostDelay is for how long a message that was given back waits on the server at most:
	// an agent that is started meanwhile does not see it.
	mostDelay = 10 * time.Second
	maxDelay  = time.Minute // between tries
)

// TestOnlyStep is called at each step of a message, for tests that kill the agent there.
var TestOnlyStep = func(string) {}

// TestOnlyClock is the machine's clock, for tests of one that is wrong.
var TestOnlyClock = time.Now
