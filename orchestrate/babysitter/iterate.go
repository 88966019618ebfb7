package babysitter

import (
	"context"
	"time"
)

// The states that an iteration leaves a run in.
const (
	Waiting   = "waiting"   // for the results of NextActions
	Completed = "completed" // do not iterate again: that runs the process once more
	Failed    = "failed"    // see [CLI.FailureOf]
	// Executed: hooks of the project worked on tasks themselves, which no installation of
	// the measured version does by itself. Iterate again.
	Executed = "executed"
)

// Iteration is what run:iterate answers.
type Iteration struct {
	Status string // Waiting, Completed, Failed or Executed
	// Reason is the CLI's word for it: node-pending, sleep-waiting,
	// mixed-pending:agent,node, completed …
	Reason string
	// NextActions are the effects whose results the run waits for, in the order that
	// the process requested them; there is at least one where Status is Waiting, and none
	// otherwise.
	NextActions []Action
	// CompletionProof is 32 hex digits where Status is Completed.
	CompletionProof  string
	RunID, ProcessID string
}

// Action is an effect that a process requested. The task itself, with its inputs,
// is in the file TaskDefRef; what the CLI prints of it lacks them.
type Action struct {
	EffectID string
	Kind     string // node, agent, skill, shell, breakpoint, sleep, orchestrator_task, or the process's own
	Label    string
	Labels   []string
	TaskID   string
	StepID   string // S000001 …
	// InvocationKey is PROCESS:STEP:TASK; a repaired run gives it another effect.
	InvocationKey string
	TaskDefRef    string // a path relative to the run
	// InputsRef is the file that has the inputs, relative to the run, where they are
	// larger than 1 MiB; they are in the task otherwise.
	InputsRef   string
	RequestedAt time.Time
	// SleepUntil is when a sleep is over; zero for everything else. Never post its result
	// before.
	SleepUntil time.Time
	// ParallelGroupID is the same for all that is pending together, and another after
	// each of their results; empty where one is pending.
	ParallelGroupID string
}

// Iterate runs the process of the run in runDir up to the effects that it waits
// for, or to its end. While results are missing it may be called at any time, and
// answers the same. It writes to the run, and so waits for its turn.
func (c *CLI) Iterate(ctx context.Context, runDir string) (Iteration, error) {
	r, err := runIn(runDir)
	if err != nil {
		return Iteration{}, err
	}
	var answer iterateAnswer
	err = c.writing(ctx, r, func() (err error) {
		answer, err = callTwice(ctx, c, request{
			doing: "iterate the run " + r.dir, command: "run:iterate", args: []string{r.dir, "--json"}, dir: r.projectOf(), timeout: iterateTimeout,
		}, func(a *iterateAnswer) bool { return a.isOf(r) })
		return err
	})
	if err != nil {
		return Iteration{}, err
	}
	return answer.iteration(), nil
}

// iterateAnswer is the CLI's, as it is printed.
type iterateAnswer struct {
	Status      string
	Reason      *text
	NextActions []struct {
		EffectID, Kind, Label, TaskID, StepID, InvocationKey, TaskDefRef, InputsRef text

		Labels         texts
		RequestedAt    stamp
		SchedulerHints struct {
			ParallelGroupID   text
			SleepUntilEpochMs instant
		}
	}
	CompletionProof text
	Metadata        struct{ RunID, ProcessID text }
}

// isOf tells it from what process code prints, be it of another run.
func (a *iterateAnswer) isOf(r run) bool {
	switch a.Status {
	case Waiting:
		if len(a.NextActions) == 0 {
			return false
		}
	case Executed, Completed, Failed:
	default:
		return false
	}
	return a.Reason != nil && a.Metadata.RunID != "" && (r.id == "" || string(a.Metadata.RunID) == r.id)
}

func (a *iterateAnswer) iteration() Iteration {
	it := Iteration{
		Status: a.Status, Reason: string(*a.Reason), CompletionProof: string(a.CompletionProof),
		RunID: string(a.Metadata.RunID), ProcessID: string(a.Metadata.ProcessID),
	}
	if a.Status != Waiting {
		return it
	}
	for _, n := range a.NextActions {
		it.NextActions = append(it.NextActions, Action{
			EffectID: string(n.EffectID), Kind: string(n.Kind), Label: string(n.Label), Labels: n.Labels, TaskID: string(n.TaskID),
			StepID: string(n.StepID), InvocationKey: string(n.InvocationKey), TaskDefRef: string(n.TaskDefRef), InputsRef: string(n.InputsRef),
			RequestedAt: n.RequestedAt.Time, SleepUntil: n.SchedulerHints.SleepUntilEpochMs.Time, ParallelGroupID: string(n.SchedulerHints.ParallelGroupID),
		})
	}
	return it
}
