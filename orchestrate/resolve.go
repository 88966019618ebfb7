package orchestrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"heartbeat/inbox"
	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/schema"
)

// ErrMismatch says that a result is not what the task asks for.
var ErrMismatch = errors.New("the result does not match the task's schema")

// Resolve hands over the result of an effect, any JSON value that the task's
// schema allows.
func (b *Bridge) Resolve(ctx context.Context, effect string, value []byte) error {
	if !json.Valid(value) {
		return fmt.Errorf("result of %s: it is not JSON: hand a text over with --text or --text-file", effect)
	}
	task, err := b.Run.Task(effect)
	if err != nil {
		return err
	}
	if of := b.wording(effect, task).Schema(); of != nil {
		err := schema.Check(of, value)
		if err != nil && !errors.Is(err, schema.ErrSchema) {
			return fmt.Errorf("result of %s: %w: %w", effect, ErrMismatch, err)
		}
	}
	return b.CLI.PostOK(ctx, b.Run.Dir(), effect, value, babysitter.Attachments{})
}

// Fail hands over that an effect failed.
func (b *Bridge) Fail(ctx context.Context, effect string, f babysitter.Failure) error {
	return b.CLI.PostError(ctx, b.Run.Dir(), effect, f, babysitter.Attachments{})
}

// EffectOf is the effect that a person or an agent means: its id, or the id of its
// entry.
func EffectOf(name string) string {
	if _, rest, found := strings.Cut(name, "/"); found {
		name = rest
	}
	name, _, _ = strings.Cut(name, "#")
	return name
}

// Driver is a run that was driven by way of an inbox.
type Driver struct {
	Dir string
	Options
}

// Driven are the runs that were driven by way of an inbox.
func Driven(box *inbox.Inbox) (all []Driver, err error) {
	names, err := os.ReadDir(box.Dir())
	for _, n := range names {
		if !strings.HasPrefix(n.Name(), ".run-") || !strings.HasSuffix(n.Name(), ".json") {
			continue
		}
		var l ledger
		text, err := os.ReadFile(filepath.Join(box.Dir(), n.Name()))
		if err == nil && json.Unmarshal(text, &l) == nil && l.Dir != "" {
			all = append(all, Driver{l.Dir, l.Options})
		}
	}
	return all, err
}
