package notify

import (
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

const (
	// HelperName and StarterName are the argv[0] of the processes that [Serve] is for,
	// which ps shows.
	HelperName  = "heartbeat-notifier"
	StarterName = HelperName + "-start"
)

const (
	// lookEvery is how often an inbox is looked at in which nothing changes.
	lookEvery = time.Minute
	// lookRest is how long changes are collected before a look.
	lookRest = 2 * time.Second
	// stopTime is how long a helper stays for what is to be told at the end.
	stopTime = TimeLimit + TimeLimit/2
	// afterDeath is how long a helper goes on looking after its keeper was killed: others
	// settle meanwhile what that left.
	afterDeath = 10 * time.Second
)

// Helper is a process of its own that tells about an inbox, for a process that ends all
// its children, and reaps them: it is none of them. It tells also what a process that is
// killed cannot: that it was, and what it left.
type Helper struct {
	options Options
	process *guardian.Aside
}

// order is a line to the helper.
type order struct {
	Start *start `json:"start,omitempty"`
	Say   *Words `json:"say,omitempty"`
	End   bool   `json:"end,omitempty"`
}

// start is the first line: what would be flags is not shown in the list of processes.
type start struct {
	Inbox, Keeper string
	Options
}

// Words are why a launcher has given up, in a word and in a sentence.
type Words struct{ Reason, Sentence string }

// StartHelper starts a helper, which waits until [Helper.Follow] names an inbox. Call it
// before this process has children, or adopts any. note gets a sentence where something
// cannot be told. Without a command there is no helper, and the methods of the nil that
// is returned do nothing.
func StartHelper(o Options, note func(text string)) (*Helper, error) {
	if o.Command == "" {
		return nil, nil
	}
	process, err := guardian.StartAside(HelperName, func(line string) { note(words.Line(line)) })
	if err != nil {
		return nil, fmt.Errorf("start the process that tells a person: %w", err)
	}
	return &Helper{o, process}, nil
}

// Follow has the helper tell about the inbox at path. keeper says who this process is, for the
// message on its death.
func (h *Helper) Follow(path, keeper string) {
	if h != nil {
		h.order(order{Start: &start{path, keeper, h.options}})
	}
}

// Say has a person told why a launcher has given up.
func (h *Helper) Say(w Words) {
	if h != nil {
		h.order(order{Say: &Words{w.Reason, line(w.Sentence)}})
	}
}

// order gives the helper an order, unless it has ended.
func (h *Helper) order(o order) {
	text, _ := json.Marshal(o) // it has a spelling
	h.process.Order(append(text, '\n'))
}

// Stop has the helper look once more and end, and waits for that as long as ctx allows.
// After that the helper goes on for itself.
func (h *Helper) Stop(ctx context.Context) {
	if h == nil {
		return
	}
	h.order(order{End: true})
	select {
	case <-h.process.End():
	case <-ctx.Done():
	}
}

// Serve must be the first call of a program that uses [StartHelper]. It returns where
// this process is no helper.
func Serve() {
	guardian.ServeAside(HelperName, func(in io.Reader, out io.Writer) error {
		if err := help(in, out); err != nil {
			return errors.New(words.Sentence(err.Error()))
		}
		return nil
	})
}

// help tells, until its input ends.
func help(in io.Reader, out io.Writer) error {
	orders := json.NewDecoder(in)
	var first order
	if err := orders.Decode(&first); errors.Is(err, io.EOF) || err == nil && first.End {
		return nil // its keeper had nothing to do
	} else if err != nil || first.Start == nil {
		return errors.New("this process is for heartbeat-launch and heartbeat-host alone")
	}
	o := first.Start
	box, err := inbox.Open(o.Inbox, inbox.Options{LockWait: TimeLimit})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	sayings := make(chan Words, 1)
	go func() {
		defer close(sayings)
		defer time.AfterFunc(stopTime, cancel)
		if !obey(orders, sayings) {
			sayings <- Words{"killed", o.Keeper + " ended without a word: it was killed, or the machine is out of memory"}
			time.Sleep(afterDeath)
		}
	}()
	news := box.WatchAll(lookEvery)
	defer func() { _ = news.Close() }() // only read
	watch(ctx, box, o.Options, news.C, sayings, func(text string) {
		_, _ = fmt.Fprintln(out, text) // its keeper may be gone
	})
	return nil
}

// obey passes on what is to be said until the orders end, and reports whether the last
// one said so.
func obey(orders *json.Decoder, sayings chan<- Words) (orderly bool) {
	for {
		var o order
		switch err := orders.Decode(&o); {
		case err != nil:
			return false
		case o.End:
			return true
		case o.Say != nil:
			sayings <- *o.Say
		}
	}
}

// watch tells whenever there is news, and once more when sayings is closed. What comes
// together is told together. note gets a sentence where something cannot be told.
func watch(ctx context.Context, box *inbox.Inbox, o Options, news <-chan struct{}, sayings <-chan Words, note func(string)) {
	var all []Occasion
	said := ""
	for open := true; ; {
		r, err := Tell(ctx, box, o, all...)
		text := ""
		if all = nil; err != nil && ctx.Err() == nil {
			text = words.Sentence(err.Error())
		}
		if text != "" && text != said {
			note(text)
		}
		said = text
		if !open {
			return
		}
		rest := lookEvery
		if !r.Next.IsZero() {
			rest = max(lookRest, min(lookEvery, time.Until(r.Next)))
		}
		changed, due := news, time.After(rest)
		for due != nil && open {
			var w Words
			select {
			case <-due:
				due = nil
				continue
			case <-changed:
			case w, open = <-sayings:
				if open {
					all = append(all, says(box, w))
				}
			}
			if changed != nil {
				changed, due = nil, time.After(lookRest)
			}
		}
	}
}
