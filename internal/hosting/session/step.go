package session

// The steps of a session's life, in their order. What is on disk before each of them
// is all that a finisher has if the host is killed there.
const (
	stepClaimed  = "claimed"  // it holds the folder's lock
	stepGuarded  = "guarded"  // its guardian is posted
	stepRecorded = "recorded" // state.json is there
	stepServing  = "serving"  // store, proxy and socket are there
	stepQueued   = "queued"   // the prompt is an entry of the inbox
	stepTaken    = "taken"    // the first entry is in flight
	stepStarted  = "started"  // the client runs
	stepUp       = "up"       // its caller knows; the running report is on its way
	stepMessage  = "message"  // a message is stored
	stepResult   = "result"   // the client has printed its result
	stepEnded    = "ended"    // the client has ended
	stepSettled  = "settled"  // its entries are
	stepDecided  = "decided"  // what it came to is known to nobody else
	stepKept     = "kept"     // the terminal report is in its dead letter file
	stepNoted    = "noted"    // state.json says so
	stepReported = "reported" // the guild has it, and the file is gone
	stepCleaned  = "cleaned"  // no temporary file is left
	stepOver     = "over"     // state.json says that nothing is left to do
)

// TestOnlyStep, when set, is called at each step. Only tests set it.
var TestOnlyStep func(step string)

func step(name string) {
	if TestOnlyStep != nil {
		TestOnlyStep(name)
	}
}
