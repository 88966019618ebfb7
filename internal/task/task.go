// Package task records what an agent says about its entry: that it is done, is to be tried again, or cannot be done,
// and how far it is.
//
// The statement is committed with the entry, and whoever settles the entry carries it out. Only a process of the
// session that has the entry may speak. A tool server that an earlier session left behind, or that serves another
// session, is refused.
package task

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/words"
	"heartbeat/orchestrate"
	recovery "heartbeat/recover"
)

// Caller is the process that speaks, such as a tool server that the client started.
type Caller struct {
	PID int
	// Means is the id or entry id of the entry that the caller speaks about, "" for whichever its session works on. It
	// keeps a late statement of a background process away from the next entry.
	Means string
}

// About returns the caller with Means set to entry.
func (c Caller) About(entry string) Caller {
	c.Means = entry
	return c
}

// ErrNone is the error if the caller's session has no entry: no entry began its turn, or the entry was settled since.
var ErrNone = errors.New("this session works on no entry of the inbox")

// Current is an entry as its agent sees it.
type Current struct {
	ID          string                     `json:"id,omitempty"` // the sender's
	EntryID     string                     `json:"entry_id"`
	Text        string                     `json:"prompt"`
	Metadata    map[string]json.RawMessage `json:"metadata,omitempty"`
	Attempt     int                        `json:"attempt"`
	DeliveredAt time.Time                  `json:"delivered_at"`
	Session     string                     `json:"session_id,omitempty"`
	Hops        int                        `json:"hops"`
	Verdict     *inbox.Verdict             `json:"verdict,omitempty"`
	Progress    *inbox.Progress            `json:"progress,omitempty"`
}

// InFlight returns the entry that the caller's session works on.
func InFlight(box *inbox.Inbox, c Caller) (Current, error) {
	v, err := box.View()
	if err != nil {
		return Current{}, err
	}
	d := v.InFlight()
	if err := errors.Join(c.maySpeak(d, v.Sessions), v.Close()); err != nil {
		return Current{}, err
	}
	return Current{
		ID: d.ID(), EntryID: d.EntryID, Text: d.Text(), Metadata: d.Metadata(), Attempt: d.Attempt, DeliveredAt: d.DeliveredAt,
		Session: d.SessionID, Hops: hopsOf(d.Metadata()), Verdict: d.Verdict, Progress: d.Progress,
	}, nil
}

// maySpeak returns why the caller may not speak for a delivery, or nil.
func (c Caller) maySpeak(d *inbox.Delivery, sessions func() ([]inbox.Session, error)) error {
	if d == nil {
		return ErrNone
	}
	all, err := sessions()
	if err != nil {
		return err
	}
	if err := recovery.MaySpeak(c.PID, d, all, false); err != nil {
		return fmt.Errorf("%w: %w", ErrNone, err)
	}
	if c.Means != "" && c.Means != d.ID() && c.Means != d.EntryID {
		return fmt.Errorf("the entry %s is not worked on any more, and nothing was said of it: this session works on %s now", words.Brief(c.Means), words.Name(d.ID(), d.EntryID))
	}
	return nil
}

// Done says that the entry is done. result is at most [inbox.MaxResult] bytes, or "". If the entry is a task of a
// run, the result is handed to the run at once.
func Done(ctx context.Context, box *inbox.Inbox, c Caller, result string) (Current, error) {
	v := inbox.Verdict{Kind: inbox.VerdictDone, Text: result}
	if err := v.Check(time.Now()); err != nil {
		return Current{}, err
	}
	view, err := box.View()
	if err != nil {
		return Current{}, err
	}
	d := view.InFlight()
	if err = errors.Join(c.maySpeak(d, view.Sessions), view.Close()); err == nil {
		err = orchestrate.HandOverReported(box, d, result)
	}
	if err != nil {
		return Current{}, err
	}
	return record(ctx, box, c, v, d.DeliveredSeq)
}

// Fail gives the entry back. It is delivered again, no sooner than after from now, while attempts are left.
func Fail(ctx context.Context, box *inbox.Inbox, c Caller, reason string, after time.Duration) (Current, error) {
	v := inbox.Verdict{Kind: inbox.VerdictFailed, Text: reason}
	if after > 0 {
		until := time.Now().Add(after).UTC()
		v.Until = &until
	}
	return record(ctx, box, c, v, 0)
}

// Reject makes the entry a dead letter once its turn is over.
func Reject(ctx context.Context, box *inbox.Inbox, c Caller, reason string) (Current, error) {
	return record(ctx, box, c, inbox.Verdict{Kind: inbox.VerdictRejected, Text: reason}, 0)
}

// Extend says how far the agent is, and keeps it from being reported as stalled for that length. The entry's limits
// still hold.
func Extend(ctx context.Context, box *inbox.Inbox, c Caller, length time.Duration, progress string) (Current, error) {
	return change(ctx, box, c, 0, func(tx *inbox.Tx) error { return tx.NoteProgress(progress, length) })
}

// record commits a verdict on the delivery with the sequence number seq, or on whichever the caller has if seq is 0.
func record(ctx context.Context, box *inbox.Inbox, c Caller, v inbox.Verdict, seq int64) (Current, error) {
	return change(ctx, box, c, seq, func(tx *inbox.Tx) error { return tx.Say(v) })
}

func change(ctx context.Context, box *inbox.Inbox, c Caller, seq int64, apply func(*inbox.Tx) error) (Current, error) {
	err := func() (err error) {
		tx, err := box.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, tx.Close()) }()
		d := tx.InFlight()
		if err := c.maySpeak(d, tx.Sessions); err != nil {
			return err
		}
		if seq != 0 && d.DeliveredSeq != seq {
			return fmt.Errorf("%w any more: the entry was settled meanwhile", ErrNone)
		}
		if err := apply(tx); err != nil {
			return err
		}
		return tx.Commit()
	}()
	if err != nil {
		return Current{}, err
	}
	return InFlight(box, c)
}

// MaxHops is how many entries in a row agents may send, each while it works on the one before. The limit ends loops of
// agents that feed each other.
const MaxHops = 8

// Members that [Enqueue] adds to the metadata of an entry.
const (
	HopsMember       = "hops"        // how many agents in a row, from 1
	EnqueuedByMember = "enqueued_by" // the id of the entry that was worked on
)

// ErrHops is the error beyond [MaxHops].
var ErrHops = errors.New("agents have handed this work on too often")

// Enqueue sends an entry into an inbox, the agent's own or another, on behalf of the entry that the agent works on.
// perHour is how many entries that inbox takes from agents in an hour, 0 for any number. Beyond it the error
// matches [inbox.RateError].
func Enqueue(ctx context.Context, own, into *inbox.Inbox, c Caller, m inbox.Message, perHour int) (inbox.Receipt, error) {
	now, err := InFlight(own, c)
	if err != nil {
		return inbox.Receipt{}, err
	}
	for _, name := range []string{HopsMember, EnqueuedByMember} {
		if _, there := m.Metadata[name]; there {
			return inbox.Receipt{}, fmt.Errorf("metadata cannot be named %q: it says which agents sent the entry", name)
		}
	}
	if now.Hops >= MaxHops {
		return inbox.Receipt{}, fmt.Errorf("%w: %d entries in a row were sent by an agent that worked on the one before, and that is the most. Finish the work here, or say in the result what is left to do", ErrHops, now.Hops)
	}
	meta := map[string]any{HopsMember: now.Hops + 1, EnqueuedByMember: cmp.Or(now.ID, now.EntryID)}
	maps.Copy(meta, m.Metadata)
	m.Metadata = meta
	return into.AppendSelf(ctx, m, cli.DefaultSettle, perHour)
}

// hopsOf reads the hops from the metadata. Any value that [Enqueue] does not write counts as the most.
func hopsOf(meta map[string]json.RawMessage) int {
	raw, there := meta[HopsMember]
	if !there {
		return 0
	}
	var n int
	if json.Unmarshal(raw, &n) != nil || n < 0 || string(raw) == "null" {
		return MaxHops
	}
	return n
}
