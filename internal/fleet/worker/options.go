// Package worker is one agent of a fleet. It pulls messages from a stream while its inbox has room, puts each into
// the inbox, has a launcher run sessions, and tells the stream what became of the entries.
//
// All state that has to survive is in the ledger (package upstream), the inbox and the stream:
//
//	pulled -> claim in the ledger, synced -> entry in the inbox, synced -> … outcome in the
//	inbox -> decision, reply and acknowledgement (package upstream) -> claim dropped
//
// So an agent that was killed anywhere continues from there. One loop owns all other state, except that of the
// [keeper], which keeps the server from handing messages out again and cannot wait for the loop.
package worker

import (
	"io"
	"time"

	"heartbeat/internal/fleet/upstream"
	recovery "heartbeat/recover"
)

// Options configure an agent.
type Options struct {
	upstream.Binding
	Inbox string // path of the queue file

	// Launcher is the path of heartbeat-launch, or "" to run no sessions. It gets the flags Launch, and runs Command.
	Launcher string
	Launch   []string
	Command  []string
	// Environ is the launcher's environment, nil for the agent's own.
	Environ []string
	// Persist keeps the launcher up while nothing waits.
	Persist bool
	Orphan  recovery.Settings // as the launcher has them

	Slots      int           // how many messages the agent holds at a time
	QueueDepth int           // the agent takes no message while the inbox has this many entries
	Stall      time.Duration // time without progress until a message may go elsewhere; 0: never
	GiveBack   bool          // while the inbox is paused, give back what waits

	Drain <-chan struct{} // closed: finish what it holds, take no more, and end
	End   <-chan struct{} // closed: end the session too, and give back what waits
	Kill  <-chan struct{} // closed: end at once
	// Say gets a sentence for each event.
	Say func(string)
	// Out and Err are the launcher's.
	Out, Err io.Writer
}

const (
	// Each wake of a waiting agent costs CPU time, so these are as long as possible. Two missed heartbeats reveal that
	// the server has lost a request, as after a change of leader in a cluster.
	pullWait  = 2 * time.Minute  // of one request for a message
	heartbeat = 20 * time.Second // of the server while it has none
	pollInbox = 30 * time.Second // where the file system sends no events
	// longHold is how long a back-off must still last for waiting messages to be given back.
	longHold = 10 * time.Second
	maxDelay = time.Minute // between tries
	failing  = 5           // launchers in a row that end without an answer: then the agent takes no more messages
)

// What an agent does again later: see [retry].
const (
	asking      = "ask"             // for a message
	taking      = "take"            // it, and make an entry of it
	launching   = "launch"          // a launcher, after one that ended without an answer
	beginning   = "begin"           // with messages, after one that no session began with
	reconciling = "reconcile"       // what it holds
	publishing  = "publish "        // the outcome of an entry, whose name follows
	forgetting  = "forget"          // settled claims in the ledger's file, if nothing else wrote it
	checking    = "check for drain" // requests
	showing     = "tell"            // others what it does
)

// TestOnlyStep is called at each step of a message, for tests that kill the agent there.
var TestOnlyStep = func(string) {}

// TestOnlyClock is the machine's clock. Tests set it wrong.
var TestOnlyClock = time.Now
