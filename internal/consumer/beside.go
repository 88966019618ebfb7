package consumer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/words"
)

// HelperName is the argv[0] of the process that [Serve] is for, which ps shows.
const HelperName = "heartbeat-results"

// lockWait is how long the inbox's own lock may be held by somebody else.
const lockWait = 30 * time.Second

// Helper is a process of its own that hands over the results of an inbox, for a process that
// ends all its children, and reaps them.
type Helper struct{ process *guardian.Aside }

// start is the line that begins its work: what would be flags is not shown in the list of
// processes.
type start struct {
	Inbox string `json:"inbox"`
	Options
}

// StartHelper starts a helper. The consumer is known once it returns, so that what comes from
// now on is handed over. Call it before this process has children, or adopts any.
func StartHelper(ctx context.Context, box *inbox.Inbox, o Options) (*Helper, error) {
	c, err := box.Consume(ctx, o.Name, o.Fresh, time.Nanosecond)
	if err == nil {
		err = c.Close()
	} else if errors.Is(err, inbox.ErrLocked) {
		err = nil // one that ends still hands over, so it is known
	}
	if err != nil {
		return nil, err
	}
	process, err := guardian.StartAside(HelperName, func(line string) { o.Note(words.Line(line)) })
	if err != nil {
		return nil, fmt.Errorf("start the process that hands over results: %w", err)
	}
	o.Follow = true
	order, err := json.Marshal(start{box.Path(), o})
	if err != nil {
		return nil, err
	}
	process.Order(append(order, '\n'))
	return &Helper{process}, nil
}

// Stop has the helper hand over what is left, and waits for that as long as ctx allows. After
// that the helper goes on for itself, for a minute at most.
func (h *Helper) Stop(ctx context.Context) {
	select {
	case <-h.process.End():
	case <-ctx.Done():
	}
}

// Serve must be the first call of a program that uses [StartHelper]. It returns where this
// process is no helper.
func Serve() { guardian.ServeAside(HelperName, help) }

// help hands over until its input ends, which is also at its keeper's death.
func help(in io.Reader, out io.Writer) error {
	orders := bufio.NewReader(in)
	line, err := orders.ReadBytes('\n')
	if err != nil {
		return nil // its keeper had nothing to do
	}
	var s start
	if err := json.Unmarshal(line, &s); err != nil {
		return errors.New("this process is for heartbeat-launch alone")
	}
	box, err := inbox.Open(s.Inbox, inbox.Options{LockWait: lockWait})
	if err != nil {
		return errors.New(words.Sentence(err.Error()))
	}
	end := make(chan struct{})
	go func() {
		defer close(end)
		_, _ = io.Copy(io.Discard, orders)
	}()
	s.End, s.Note = end, func(text string) {
		_, _ = fmt.Fprintln(out, text) // its keeper may be gone
	}
	if _, err := Run(context.Background(), box, s.Options); err != nil {
		return errors.New(words.Sentence(err.Error()))
	}
	return nil
}
