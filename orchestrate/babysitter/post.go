package babysitter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
	"unicode/utf8"
)

// Attachments are further facts about a result. All of them are optional.
type Attachments struct {
	// Stdout and Stderr are files whose content is copied into the run, as text.
	Stdout, Stderr string
	// StartedAt and FinishedAt are when the task was worked on; zero is now.
	StartedAt, FinishedAt time.Time
}

// Failure is an error as a run keeps it. The process that awaits the task catches an error
// with these members.
type Failure struct {
	Name    string          `json:"name"` // empty is Error
	Message string          `json:"message"`
	Stack   string          `json:"stack,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"` // any JSON, or nothing
}

// PostOK gives the effect its result, any JSON value. The CLI does not check whether the
// process expects such a value. An effect has one result: if it has one already, the error
// is [ErrResolved].
//
// If the CLI does not say whether it took the result, the run is asked, and the result is
// posted again if it is missing.
func (c *CLI) PostOK(ctx context.Context, runDir, effectID string, value []byte, with Attachments) error {
	if !json.Valid(value) || !utf8.Valid(value) {
		return invalid("the result for the effect %.200s is not JSON: encode it", effectID)
	}
	return c.post(ctx, runDir, effectID, posting{"ok", "--value", value, with})
}

// PostError gives the effect a failure as its result. If the process does not catch it, the
// next iteration fails. Otherwise it is like PostOK.
func (c *CLI) PostError(ctx context.Context, runDir, effectID string, failure Failure, with Attachments) error {
	if failure.Name == "" {
		failure.Name = "Error" // without one the CLI makes the whole object a message
	}
	payload, err := json.Marshal(failure)
	if err != nil {
		return invalid("the failure for the effect %.200s is not JSON: encode its data: %v", effectID, err)
	}
	return c.post(ctx, runDir, effectID, posting{"error", "--error", payload, with})
}

type posting struct {
	status, flag string
	payload      []byte
	with         Attachments
}

func (c *CLI) post(ctx context.Context, runDir, effectID string, p posting) error {
	r, err := runIn(runDir)
	if err != nil {
		return err
	}
	if err := checkEffectID(effectID); err != nil {
		return err
	}
	args, err := p.with.args()
	if err != nil {
		return err
	}
	q := request{
		doing: fmt.Sprintf("post the result of the effect %s of the run %s", effectID, r.dir), command: "task:post", dir: r.projectOf(),
		args:  append([]string{r.dir, effectID, "--status", p.status, p.flag, "-", "--json"}, args...),
		stdin: p.payload, timeout: postTimeout + time.Duration(len(p.payload)>>20)*time.Second,
	}
	return c.writing(ctx, r, func() error {
		err := c.postOnce(ctx, r, q, effectID, p.status)
		if errors.Is(err, ErrTimeout) || errors.Is(err, ErrOutput) {
			c.note("%v: it has no result, so it is posted again", err)
			q.timeout *= longer
			err = c.postOnce(ctx, r, q, effectID, p.status)
		}
		return err
	})
}

// postOnce posts a result. It fails with [ErrTimeout] or [ErrOutput] only if the effect has
// no result.
func (c *CLI) postOnce(ctx context.Context, r run, q request, effectID, status string) error {
	type answer struct {
		Status    string
		Committed *struct{}
	}
	_, err := call(ctx, c, q, func(a *answer) bool { return a.Status == status && a.Committed != nil })
	if !errors.Is(err, ErrTimeout) && !errors.Is(err, ErrOutput) {
		return err
	}
	resolved, doubt := c.resolved(ctx, r, effectID)
	if doubt != nil {
		return fmt.Errorf("%w; and whether the result was posted is not known: %w", err, doubt)
	}
	if resolved {
		c.note("%v: the result was posted, though", err)
		return nil
	}
	return err
}

func (a Attachments) args() ([]string, error) {
	var args []string
	for _, file := range [][2]string{{"--stdout-file", a.Stdout}, {"--stderr-file", a.Stderr}} {
		if file[1] == "" {
			continue
		}
		path, err := absolute("attachment", file[1])
		if err != nil {
			return nil, err
		}
		if info, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("attach %s: %w", path, err)
		} else if !info.Mode().IsRegular() {
			return nil, invalid("the attachment %s is not a regular file", path)
		}
		args = append(args, file[0], path)
	}
	for _, at := range []struct {
		flag string
		time time.Time
	}{{"--started-at", a.StartedAt}, {"--finished-at", a.FinishedAt}} {
		if !at.time.IsZero() {
			args = append(args, at.flag, at.time.UTC().Format("2006-01-02T15:04:05.000Z"))
		}
	}
	return args, nil
}
