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
	// Executed: hooks of the project carried out tasks themselves, which a plain
	// installation of the measured version never does. Iterate again.
	Executed = "executed"
)

// Iteration is what run:iterate answers.
type Iteration struct {
	Status string // Waiting, Completed, Failed or Executed
	// Reason is the CLI's word for the status: node-pending, sleep-waiting,
	// mixed-pending:agent,node, completed …
	Reason string
	// NextActions are the effects whose results the run waits for, in the order that
	// the process requested them. There is at least one if Status is Waiting, and none
	// otherwise.
	NextActions []Action
	// CompletionProof is 32 hex digits if Status is Completed.
	CompletionProof  string
	RunID, ProcessID string
}

// Action is an effect that a process requested. The task itself, with its inputs,
// is in the file TaskDefRef; the CLI prints the task without inputs.
type Action struct {
	EffectID string
	Kind     string // node, agent, skill, shell, breakpoint, sleep, orchestrator_task, or the process's own
	Label    string
	Labels   []string
	TaskID   string
	StepID   string // S000001 …
	// InvocationKey is PROCESS:STEP:TASK. After a repair it may belong to another effect.
	InvocationKey string
	TaskDefRef    string // a path relative to the run
	// InputsRef is the file with the inputs, relative to the run, if they are larger than
	// 1 MiB. Smaller inputs are in the task.
	InputsRef   string
	RequestedAt time.Time
	// SleepUntil is when a sleep is over; zero for other effects. Never post the result of
	// a sleep before.
	SleepUntil time.Time
	// ParallelGroupID is the same for all effects that are pending together, and changes
	// with each of their results. It is empty if only one is pending.
	ParallelGroupID string
}

// Iterate runs the process of the run in runDir up to the effects that it waits for, or to
// its end. While results are missing, another call returns the same. It writes to the run,
// and so waits for other writers.
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

// iterateAnswer is the answer as the CLI prints it.
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

// isOf tells the answer about r from other output of process code, even from an answer
// about another run.
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
