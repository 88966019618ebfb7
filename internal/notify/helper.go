package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/words"
)

// HelperName is the argv[0] that ps shows for the process of [Serve].
const HelperName = "heartbeat-notifier"

const (
	lookEvery = time.Minute             // how often an unchanged inbox is looked at
	lookRest  = 2 * time.Second         // how long changes are collected before a look
	stopTime  = TimeLimit + TimeLimit/2 // how long a helper may take to tell its last occasions
)

// Helper is a separate process that tells about an inbox. A program that ends and reaps all its children uses it,
// because the helper is not one of them. If its keeper is killed, the helper tells what is on disk and ends.
// Without a command there is no process, and every method does nothing.
type Helper struct {
	*guardian.Aside
	options Options
}

// start is the first order to a helper. Every later order is [Words].
type start struct {
	Inbox string
	Options
}

// Words say why a launcher has given up: Reason in a word, Sentence in full.
type Words struct{ Reason, Sentence string }

// StartHelper starts a helper, which waits until [Helper.Follow] names an inbox. Call it before this process starts
// or adopts children. note gets a sentence when something cannot be told.
func StartHelper(o Options, note func(text string)) (h Helper, err error) {
	if h.options = o; o.Command == "" {
		return h, nil
	}
	if h.Aside, err = guardian.StartAside(HelperName, func(text string) { note(words.Line(text)) }); err != nil {
		err = fmt.Errorf("start the process that tells a person: %w", err)
	}
	return h, err
}

// Follow makes the helper tell about the inbox at path.
func (h Helper) Follow(path string) { h.Order(start{path, h.options}) }

// Say tells a person why a launcher has given up.
func (h Helper) Say(w Words) { h.Order(Words{w.Reason, line(w.Sentence)}) }

// Serve must be the first call of a program that uses [StartHelper]. It returns unless this process is a helper.
func Serve() { guardian.ServeAside(HelperName, help) }

// help tells until the orders end.
func help(o start, orders *json.Decoder, note func(string)) error {
	box, err := inbox.Open(o.Inbox, inbox.Options{LockWait: TimeLimit})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	sayings := make(chan Occasion, 1)
	go func() {
		defer close(sayings)
		defer time.AfterFunc(stopTime, cancel)
		for w := (Words{}); orders.Decode(&w) == nil; w = (Words{}) {
			sayings <- occasion(box, Failing, time.Now().UTC(), w.Reason, "", name(box)+": "+line(w.Sentence)) // nothing on disk shows it
		}
	}()
	news := box.WatchAll(lookEvery)
	defer func() { _ = news.Close() }() // only read
	watch(ctx, box, o.Options, news.C, sayings, note)
	return nil
}

// watch tells whenever there is news, and once more when sayings is closed. News that arrives together is told
// together. note gets a sentence when something cannot be told.
func watch(ctx context.Context, box *inbox.Inbox, o Options, news <-chan struct{}, sayings <-chan Occasion, note func(string)) {
	var all []Occasion
	noted := ""
	for open := true; ; {
		r, err := Tell(ctx, box, o, all...)
		if err == nil || ctx.Err() != nil {
			noted = ""
		} else if text := words.Sentence(err.Error()); text != noted {
			note(text)
			noted = text
		}
		if !open {
			return
		}
		all = nil
		rest := lookEvery
		if !r.Next.IsZero() {
			rest = max(lookRest, min(lookEvery, time.Until(r.Next)))
		}
		for changed, due := news, time.After(rest); due != nil && open; {
			var said Occasion
			select {
			case <-due:
				due = nil
				continue
			case <-changed:
			case said, open = <-sayings:
				if open {
					all = append(all, said)
				}
			}
			if changed != nil {
				changed, due = nil, time.After(lookRest)
			}
		}
	}
}
