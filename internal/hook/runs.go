package hook

import (
	"context"
	"errors"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/orchestrate/effect"
)

// Runs is what a hook does for babysitter runs. The hook that Claude Code starts has none: when a run comes up, it
// becomes the full command, which has.
type Runs interface {
	// Greet sees each event before the hook acts on it. It returns what the person at the terminal is shown as a
	// session starts, "" for nothing.
	Greet() (shown string)
	// Step takes a step of each run, and reports whether that brought entries.
	Step(ctx context.Context) (brought bool)
	// Advance steps the runs of a hook that would end the turn, and waits for what is over soon. It reports whether to
	// look into the inbox again.
	Advance(ctx context.Context) (again bool)
	// Pass tells the runs what was answered, at a Stop that delivers an entry or may deliver none. settled is the id of
	// the entry that the hook settled last.
	Pass(ctx context.Context, settled string)
	// Take accepts the answer to an entry of a run. missing says why the answer does not settle it, "" if it does.
	Take(d *inbox.Delivery, reply string) (missing string)
	// SettledElsewhere says why an entry of a run need not be delivered, "" if it must be.
	SettledElsewhere(e inbox.Entry) (why string)
	// Announce returns what the person at the terminal is shown of an entry of a run.
	Announce(e inbox.Entry) string
}

// Surroundings are what a hook lets its runs know and use.
type Surroundings struct {
	Flags *Flags
	Input *claude.Input // nil with --no-input
	Box   *inbox.Inbox
	// Age returns how long the hook has run.
	Age      func() time.Duration
	Note     func(format string, args ...any)
	Complain func(error)
	// Ask has a person told of the effects that wait for one.
	Ask func(effects []string)
	// ComplainOnce says an error unless it was the last one said.
	ComplainOnce func(error)
	// LookAgainIn has a waiting hook look after that time even if nothing happens.
	LookAgainIn func(time.Duration)
}

// OpenRuns opens the runs that the hook drives.
type OpenRuns func(Surroundings) Runs

// errNeedsRuns leaves the inbox unchanged: its entry needs a hook that knows of runs.
var errNeedsRuns = errors.New("the entry is a babysitter run's")

func (h *hook) openRuns() {
	h.runs = h.open(Surroundings{
		Flags: &h.Flags, Input: h.input, Box: h.box, Age: h.age,
		Note:         func(format string, args ...any) { h.Note(format, args...) },
		Complain:     func(err error) { h.Complain(err) },
		Ask:          h.runsAsk,
		ComplainOnce: func(err error) { h.complainOnce(err) },
		LookAgainIn:  h.lookAgainIn,
	})
}

func (h *hook) passRuns(ctx context.Context) {
	if h.runs != nil {
		h.runs.Pass(ctx, h.lastSettled)
	}
}

// takeResult says why the answer to an entry does not settle it, "" if it does.
func (h *hook) takeResult(d *inbox.Delivery, reply string) (missing string, err error) {
	if m, ofRun := effect.MarkOf(d); !ofRun || m.Effect == "" {
		return "", nil
	}
	if h.runs == nil {
		return "", errNeedsRuns
	}
	return h.runs.Take(d, reply), nil
}

// settledElsewhere says why an entry need not be delivered, "" if it must be.
func (h *hook) settledElsewhere(e inbox.Entry) (why string, err error) {
	if _, ofRun := effect.MarkIn(e.Metadata); !ofRun {
		return "", nil
	}
	if h.runs == nil {
		return "", errNeedsRuns
	}
	return h.runs.SettledElsewhere(e), nil
}
