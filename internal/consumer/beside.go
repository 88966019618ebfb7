package consumer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"heartbeat/inbox"
	"heartbeat/inbox/outcomes"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/words"
)

// HelperName is the argv[0] of the process that [Serve] runs, as ps shows it.
const HelperName = "heartbeat-results"

const lockWait = 30 * time.Second // how long to wait while somebody else holds the inbox's own lock

// start is the first line of the helper's stdin: the order to begin.
type start struct {
	Inbox string `json:"inbox"`
	Options
}

// StartHelper starts a process that hands over an inbox's results, for a caller that ends and reaps all its children.
// Once stopped, the process works for a minute at most. The consumer is known when StartHelper returns, so every later
// result is handed over. Call it before the caller has children or adopts any.
func StartHelper(ctx context.Context, box *inbox.Inbox, o Options) (*guardian.Aside, error) {
	c, err := outcomes.Consume(ctx, box, o.Name, o.Fresh, time.Nanosecond)
	if err == nil {
		err = c.Close()
	} else if errors.Is(err, inbox.ErrLocked) {
		err = nil // a helper that is about to end still works, so the consumer is known
	}
	if err != nil {
		return nil, err
	}
	process, err := guardian.StartAside(HelperName, func(text string) { o.Note(words.Line(text)) })
	if err != nil {
		return nil, fmt.Errorf("start the process that hands over results: %w", err)
	}
	o.Follow = true
	process.Order(start{box.Path(), o})
	return process, nil
}

// Serve must be the first call of a program that uses [StartHelper]. It returns unless this process is the helper.
func Serve() { guardian.ServeAside(HelperName, help) }

// help hands over until the orders end.
func help(s start, others *json.Decoder, note func(string)) error {
	box, err := inbox.Open(s.Inbox, inbox.Options{LockWait: lockWait})
	if err != nil {
		return err
	}
	end := make(chan struct{})
	go func() {
		defer close(end)
		for others.Decode(new(any)) == nil { // there are none
		}
	}()
	s.End, s.Note = end, note
	_, err = Run(context.Background(), box, s.Options)
	return err
}
