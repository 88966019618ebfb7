package babysitter

import (
	"context"
	"time"

	"github.com/tidwall/gjson"

	runs "heartbeat/orchestrate/run"
)

// States that an iteration leaves a run in.
const (
	Waiting   = "waiting"   // for the results of NextActions
	Completed = "completed" // do not iterate again: that runs the process once more
	Failed    = "failed"    // the run's journal says with what
	// Executed: hooks of the project carried out tasks themselves, which a plain installation of the measured
	// version never does. Iterate again.
	Executed = "executed"
)

// Iteration is what run:iterate answers.
type Iteration struct {
	Status string // Waiting, Completed, Failed or Executed
	// NextActions are the effects whose results the run waits for, in the order in which the process requested
	// them. There is at least one if Status is Waiting, else none.
	NextActions []Action
}

// Action is an effect that a process requested.
type Action struct {
	EffectID string
	Kind     string // node, agent, skill, shell, breakpoint, sleep, orchestrator_task, or the process's own
	// SleepUntil is when a sleep is over; zero for other effects. Never post the result of a sleep before that.
	SleepUntil time.Time
}

// Iterate runs the process of a run up to the effects that it waits for, or to its end. While results are missing,
// another call returns the same. It writes to the run, and so waits for other writers.
func (c *CLI) Iterate(ctx context.Context, of *runs.Run) (it Iteration, err error) {
	r := run{of.Dir(), of.ID()}
	err = c.writing(ctx, r, func() error {
		answer, err := c.callTwice(ctx, request{
			doing: "iterate the run " + r.dir, command: "run:iterate", args: []string{r.dir, "--json"}, dir: Project(r.dir), timeout: iterateTimeout,
			answer: object(r.isIteration),
		})
		it = iterationOf(answer)
		return err
	})
	return it, err
}

// isIteration tells the answer about r from other output of process code, even from an answer about another run.
func (r run) isIteration(a gjson.Result) bool {
	switch a.Get("status").Str {
	case Waiting:
		if len(a.Get("nextActions").Array()) == 0 {
			return false
		}
	case Executed, Completed, Failed:
	default:
		return false
	}
	return a.Get("reason").Exists() && a.Get("metadata.runId").String() == r.id
}

func iterationOf(a gjson.Result) Iteration {
	it := Iteration{Status: a.Get("status").Str}
	if it.Status != Waiting {
		return it
	}
	for _, n := range a.Get("nextActions").Array() {
		it.NextActions = append(it.NextActions, Action{
			EffectID: n.Get("effectId").String(), Kind: n.Get("kind").String(), SleepUntil: instant(n.Get("schedulerHints.sleepUntilEpochMs")),
		})
	}
	return it
}

// instant returns a number of milliseconds since 1970 as a time, or zero for any other value.
func instant(v gjson.Result) (t time.Time) {
	const most = 1e14 // int64 overflows far beyond
	if ms := v.Num; v.Type == gjson.Number && ms > 0 && ms < most {
		return time.UnixMilli(int64(ms))
	}
	return t
}
