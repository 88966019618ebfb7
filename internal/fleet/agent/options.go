package agent

import (
	"context"
	"io"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"heartbeat/internal/cli"
	"heartbeat/internal/fleet/claims"
	"heartbeat/internal/fleet/settle"
)

// Request is what somebody wants of an agent that runs.
type Request int

// The requests.
const (
	Drain Request = iota // finish what it holds, take no more, and end
	End                  // end: the session too, and give back what waits
	Kill                 // end at once
	Back                 // the connection is there again, after more than an AckWait
	Look                 // something has changed: the connection, for one
)

// Options are an agent.
type Options struct {
	claims.Binding
	Inbox string // path of the queue file
	// Bind finds the consumer, also after somebody removed it. said is a sentence for
	// the log.
	Bind       func(context.Context) (c jetstream.Consumer, said string, err error)
	MaxDeliver func(*jetstream.ConsumerInfo) int // attempts that a message gets
	Upstream   *settle.Upstream
	Agents     jetstream.KeyValue
	// Others are the keys in that bucket of all agents, its own among them.
	Others func(context.Context) ([]string, error)
	// Connected reports whether the server is there.
	Connected func() bool
	// Patiently calls what begins an agent, and calls it anew where the connection was lost
	// meanwhile.
	Patiently func(func() error) error

	// Launcher is the path of heartbeat-launch, "" for no session of ours; Launch are
	// flags for it, and Command is what it runs.
	Launcher string
	Launch   []string
	Command  []string
	// Environ is the launcher's environment, nil for the agent's own.
	Environ []string
	// Persist keeps the launcher up where nothing waits.
	Persist bool
	Orphan  cli.OrphanFlags // as the launcher has them

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
