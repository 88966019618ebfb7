package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/pflag"

	"heartbeat/cmd/heartbeat-stop/why"
	"heartbeat/inbox"
)

func pauseVerb() verb {
	return verb{
		name:  "pause",
		short: "hold delivery, without touching what is in flight",
		long: `Hold delivery: from now on a draining hook approves the stop, and a waiting one
waits. The entry in flight is acknowledged as usual, and producers go on
sending. Pausing again changes the reason and the end.

Exit status: 0 delivery is paused, 1 it is not.`,
		example: `heartbeat-stop pause --inbox work/inbox.jsonl --reason "the build server is down"
heartbeat-stop pause --inbox work/inbox.jsonl --for 30m`,
		build: func() (*pflag.FlagSet, action) {
			var i inboxFlags
			var reason string
			var length span
			f := newFlags("pause")
			i.add(f)
			f.StringVar(&reason, "reason", "", "why, for status and the hook's stderr")
			f.Var(&length, "for", "resume by itself after this time (seconds or a duration)")
			return f, func(args []string, s streams) error {
				if err := noArgs(args); err != nil {
					return err
				}
				if f.Changed("for") && length == 0 {
					return usageError{errors.New("--for 0 would be no pause: give a time, or leave the flag out")}
				}
				return i.pause(reason, time.Duration(length), s)
			}
		},
	}
}

func (i *inboxFlags) pause(reason string, length time.Duration, s streams) error {
	var p inbox.Pause
	err := i.change(s, func(tx *inbox.Tx) (err error) {
		var until *time.Time
		if length > 0 {
			at := time.Now().Add(length).UTC()
			until = &at
		}
		p, err = tx.Pause(reason, until)
		return err
	})
	if err != nil {
		return err
	}
	return i.print(s, p, why.Pause(p))
}

func resumeVerb() verb {
	return verb{
		name:  "resume",
		short: "go on after a pause or a back-off",
		long: `Go on delivering: end a pause, and the back-off after turns that ended in errors,
and forget how many did. A hook that waits notices at once; otherwise the next
Stop does.

With --rewake a turn that ended in an error begins a back-off, which ends by
itself, or a pause, where only a person can help (the login, the bill): mend that
first, then resume.

Exit status: 0 nothing holds delivery, 1 that could not be recorded.`,
		example: `heartbeat-stop resume --inbox work/inbox.jsonl`,
		build: func() (*pflag.FlagSet, action) {
			var i inboxFlags
			f := newFlags("resume")
			i.add(f)
			return f, func(args []string, s streams) error {
				if err := noArgs(args); err != nil {
					return err
				}
				return i.resume(s)
			}
		},
	}
}

// resumed is what resume prints with --json.
type resumed struct {
	// Was is the pause that held until now, null for none.
	Was *inbox.Pause `json:"was"`
	// WasBackingOff is the back-off that held, null for none.
	WasBackingOff *inbox.Backoff `json:"was_backing_off"`
}

func (i *inboxFlags) resume(s streams) error {
	var r resumed
	err := i.change(s, func(tx *inbox.Tx) (err error) {
		if r.Was, err = tx.Paused(); err != nil {
			return err
		}
		if r.WasBackingOff, err = tx.Backoff(); err != nil {
			return err
		}
		return tx.Resume()
	})
	if err != nil {
		return err
	}
	r.WasBackingOff = shownBackoff(r.WasBackingOff)
	return i.print(s, r, r.sentence())
}

func (r resumed) sentence() string {
	switch {
	case r.Was != nil && r.WasBackingOff != nil:
		return "delivery goes on: it was " + why.Pause(*r.Was) + ", and " + why.Backoff(*r.WasBackingOff)
	case r.Was != nil:
		return "delivery goes on: it was " + why.Pause(*r.Was)
	case r.WasBackingOff != nil:
		return "delivery goes on: it was " + why.Backoff(*r.WasBackingOff)
	}
	return "delivery was not paused"
}

// change is one transaction of a verb.
func (i *inboxFlags) change(s streams, change func(*inbox.Tx) error) error {
	box, err := i.open()
	if err != nil {
		return err
	}
	return inTransaction(box, s, func(tx *inbox.Tx) error {
		if err := change(tx); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// inTransaction says what the transaction found, however it ends.
func inTransaction(box *inbox.Inbox, s streams, f func(*inbox.Tx) error) error {
	tx, err := box.Begin(context.Background())
	if err != nil {
		return err
	}
	err = f(tx)
	s.warn(tx.Warnings())
	return errors.Join(err, tx.Close())
}
