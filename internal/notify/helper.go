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

// HelperName is the argv[0] of the process that [Serve] is for, which ps shows.
const HelperName = "heartbeat-notifier"

const (
	// lookEvery is how often an inbox is looked at in which nothing changes.
	lookEvery = time.Minute
	// lookRest is how long changes are collected before a look.
	lookRest = 2 * time.Second
	// stopTime is how long a helper stays for what is to be told at the end.
	stopTime = TimeLimit + TimeLimit/2
)

// Helper is a process of its own that tells about an inbox, for a process that ends all
// its children, and reaps them: it is none of them. Where its keeper is killed it tells what is
// on the disk, and ends.
type Helper struct {
	options Options
	process *guardian.Aside
}

// start is its first order: what would be flags is not shown in the list of processes. Each
// other one is [Words].
type start struct {
	Inbox string
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

// Follow has the helper tell about the inbox at path.
func (h *Helper) Follow(path string) {
	if h != nil {
		h.order(start{path, h.options})
	}
}

// Say has a person told why a launcher has given up.
func (h *Helper) Say(w Words) {
	if h != nil {
		h.order(Words{w.Reason, line(w.Sentence)})
	}
}

// order gives the helper an order, unless it has ended.
func (h *Helper) order(o any) {
	text, _ := json.Marshal(o) // it has a spelling
	h.process.Order(append(text, '\n'))
}

// Stop has the helper look once more and end, and waits for that as long as ctx allows.
// After that the helper goes on for itself.
func (h *Helper) Stop(ctx context.Context) {
	if h == nil {
		return
	}
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

// help tells, until its input ends, which is also at its keeper's death.
func help(in io.Reader, out io.Writer) error {
	orders := json.NewDecoder(in)
	var o start
	if err := orders.Decode(&o); errors.Is(err, io.EOF) {
		return nil // its keeper had nothing to do
	} else if err != nil || o.Inbox == "" {
		return errors.New("this process is for heartbeat-launch and heartbeat-host alone")
	}
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
		for w := (Words{}); orders.Decode(&w) == nil; w = (Words{}) {
			sayings <- w
		}
	}()
	news := box.WatchAll(lookEvery)
	defer func() { _ = news.Close() }() // only read
	watch(ctx, box, o.Options, news.C, sayings, func(text string) {
		_, _ = fmt.Fprintln(out, text) // its keeper may be gone
	})
	return nil
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
