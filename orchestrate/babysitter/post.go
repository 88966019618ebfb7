package babysitter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	runs "heartbeat/orchestrate/run"
)

// Result is what becomes of an effect.
type Result struct {
	Value   []byte   // any JSON value, unless there is a failure
	Failure *Failure // nil if there is a value
	// StartedAt and FinishedAt are when the task was worked on. Both zero means now.
	StartedAt, FinishedAt time.Time
	// Metadata is a JSON object that the run keeps beside the value; nil is none. Where there is no room for its file,
	// the result is posted without it.
	Metadata []byte
}

// Failure is an error as a run keeps it. The process that awaits the task catches an error with these members.
type Failure struct {
	Name    string          `json:"name"` // empty is Error
	Message string          `json:"message"`
	Stack   string          `json:"stack,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"` // any JSON, or nothing
}

// Post gives the effect its result. The CLI does not check whether the process expects such a value. If the process
// does not catch a failure, the next iteration fails. If the effect has a result already, the error is [ErrResolved].
//
// If the CLI does not report whether it took the result, Post reads the run's journal, and posts a missing result again.
func (c *CLI) Post(ctx context.Context, of *runs.Run, effectID string, result Result) (err error) {
	r := run{of.Dir(), of.ID()}
	if err := checkEffectID(effectID); err != nil {
		return err
	}
	status, flag, payload := "ok", "--value", result.Value
	if result.Failure != nil {
		failure := *result.Failure
		if failure.Name == "" {
			failure.Name = "Error" // without one the CLI makes the whole object a message
		}
		status, flag = "error", "--error"
		if payload, err = json.Marshal(failure); err != nil {
			return fmt.Errorf("the failure for the effect %.200s is not JSON: encode its data: %v", effectID, err)
		}
	} else if !json.Valid(payload) || !utf8.Valid(payload) {
		return fmt.Errorf("the result for the effect %.200s is not JSON: encode it", effectID)
	}
	args := []string{r.dir, effectID, "--status", status, flag, "-", "--json"}
	if !result.StartedAt.IsZero() {
		const form = "2006-01-02T15:04:05.000Z"
		args = append(args, "--started-at", result.StartedAt.UTC().Format(form), "--finished-at", result.FinishedAt.UTC().Format(form))
	}
	if result.Metadata != nil {
		if file, err := writeTemp(result.Metadata); err != nil {
			c.note("the result of the effect %s of the run %s is posted without its metadata: %v: free that folder, or name another one in TMPDIR", effectID, r.dir, err)
		} else {
			defer os.Remove(file)
			args = append(args, "--metadata", file)
		}
	}
	q := request{
		doing: fmt.Sprintf("post the result of the effect %s of the run %s", effectID, r.dir), command: "task:post", dir: Project(r.dir),
		args: args, stdin: payload, timeout: postTimeout + time.Duration(len(payload)>>20)*time.Second,
		answer: answerWhere(func(a gjson.Result) bool { return a.Get("status").Str == status && a.Get("committed").IsObject() }),
	}
	return c.underLock(ctx, r, func() error {
		err := c.postOnce(ctx, of, q, effectID)
		if errors.Is(err, ErrTimeout) || errors.Is(err, ErrOutput) {
			c.note("%v: it has no result, so it is posted again", err)
			q.timeout *= longer
			err = c.postOnce(ctx, of, q, effectID)
		}
		return err
	})
}

// postOnce posts a result. It fails with [ErrTimeout] or [ErrOutput] only if the effect has no result.
func (c *CLI) postOnce(ctx context.Context, of *runs.Run, q request, effectID string) error {
	_, err := c.call(ctx, q)
	if !errors.Is(err, ErrTimeout) && !errors.Is(err, ErrOutput) {
		return err
	}
	st, doubt := of.State()
	if doubt != nil {
		return fmt.Errorf("%w; and whether the result was posted is not known: %w", err, doubt)
	}
	if status := st.Effect(effectID); status == runs.ResolvedOK || status == runs.ResolvedError {
		c.note("%v: the result was posted, though", err)
		return nil
	}
	return err
}
