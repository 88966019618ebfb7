// Package charging brings what the meters of sessions say into the account of their
// inbox.
package charging

import (
	"errors"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/agent"
	"heartbeat/internal/machine"
	"heartbeat/internal/meter"
)

// Load returns what reads the meters in dir, the folder of an inbox, for
// [inbox.Inbox.Prices]. A meter that cannot be read says nothing.
func Load(dir string) func(session string) *inbox.Reading {
	return func(session string) *inbox.Reading {
		s, err := meter.Load(dir, session)
		if err != nil || s == nil {
			return nil
		}
		r := Reading(s)
		return &r
	}
}

// Reading is what a meter says.
func Reading(s *meter.State) inbox.Reading {
	return inbox.Reading{
		Session: s.Session, Meter: s.ID, Spent: s.Spent, Told: !s.At.IsZero(), Read: s.Read, Model: s.Model, ContextPercent: s.ContextPercent, Models: s.Models,
		Boundary: func(position int64) (inbox.Boundary, bool) {
			m, ok := s.Mark(position)
			return inbox.Boundary(m), ok
		},
	}
}

// maxPending is how many parts of a session's transcript wait for the meter until it is
// advanced, and how often that is tried: where the client has no status line, nobody else
// does that. With twice as many it is tried each time.
const maxPending = 8

// lockedWait is how long a reading is waited for that goes on, by who has the inbox's lock.
const lockedWait = 200 * time.Millisecond

// Turn charges what a session has spent, at a moment of which its own hook tells. The
// transcript is only read if nobody else seems to: now and then, or always if limited,
// where what was spent is held against a limit.
func Turn(tx *inbox.Tx, box *inbox.Inbox, session, transcript string, limited bool) error {
	a, err := tx.Account()
	if err != nil {
		return err
	}
	known := a.Session(session)
	due := known != nil && (len(known.Spans) >= maxPending && tx.Seq()%maxPending == 0 || len(known.Spans) >= 2*maxPending)
	if known != nil && known.Silent() && !due && !limited {
		return nil
	}
	s, err := meter.Load(box.Dir(), session)
	if err != nil {
		return err
	}
	due = due || s != nil && tx.IsCut(session, s.Read) // what follows is counted from its end on
	if silent := s == nil || s.At.IsZero(); due || limited && (silent || tx.Uncounted(session) != "") {
		var now *meter.State
		now, err = meter.Advance(box.Dir(), meter.Reading{Session: session, Transcript: transcript, ContextPercent: -1, Wait: lockedWait})
		if now != nil {
			s = now
		}
	}
	if s == nil {
		return err
	}
	return errors.Join(err, tx.Charge(Reading(s)))
}

// End charges what a session has spent when its own hook tells of its end: nobody may
// come later who could.
func End(tx *inbox.Tx, box *inbox.Inbox, session, transcript string) error {
	s, err := meter.Advance(box.Dir(), meter.Reading{Session: session, Transcript: transcript, ContextPercent: -1})
	if s == nil {
		return err
	}
	r := Reading(s)
	r.Over = true
	return errors.Join(err, tx.Charge(r))
}

// Total is what a client said of a session when it ended.
type Total struct {
	// Client names the process: see [meter.ClientName].
	Client string
	Nanos  int64 // billionths of a dollar
}

// Gone counts to their end the transcripts of the sessions whose client is gone, without
// the inbox's lock: they may be long. ended is one whose client certainly is, "" for none,
// and said what that told when it ended, nil for nothing. Call [Note] afterwards.
func Gone(box *inbox.Inbox, ended string, said *Total) error {
	v, err := box.View()
	if err != nil {
		return err
	}
	defer func() { _ = v.Close() }() // only read
	a, err := v.Account()
	if err != nil {
		return err
	}
	known, err := v.Sessions()
	if err != nil {
		return err
	}
	var all error
	for i := range a.Sessions {
		id := a.Sessions[i].ID
		r := meter.Reading{Session: id, Transcript: transcriptOf(known, id), ContextPercent: -1, Final: true}
		switch {
		case id == ended && said != nil:
			r.Client, r.Total, r.HasTotal = said.Client, said.Nanos, true
		case id != ended && !isGone(known, id):
			continue
		}
		_, err := meter.Advance(box.Dir(), r)
		all = errors.Join(all, err)
	}
	return all
}

// Note charges what the meters of all sessions say, and closes the accounts of those
// whose client is gone; ended is one that certainly is, "" for none.
func Note(tx *inbox.Tx, box *inbox.Inbox, ended string) error {
	a, err := tx.Account()
	if err != nil || len(a.Sessions) == 0 {
		return err
	}
	known, err := tx.Sessions()
	if err != nil {
		return err
	}
	var all error
	for i := range a.Sessions {
		id := a.Sessions[i].ID
		gone := id == ended || isGone(known, id)
		s, err := meter.Load(box.Dir(), id)
		if gone {
			s, err = last(box, id, transcriptOf(known, id))
		}
		if all = errors.Join(all, err); s == nil {
			continue
		}
		r := Reading(s)
		r.Gone = gone
		all = errors.Join(all, tx.Charge(r))
	}
	return all
}

// lastReadings bounds how often a transcript is read on by who has the inbox's lock.
const lastReadings = 4

// last counts what the transcript of a client that is gone has beyond its meter, unless [Gone] did:
// a killed client's status line may not have come to that, and nobody counts it afterwards.
func last(box *inbox.Inbox, session, transcript string) (s *meter.State, err error) {
	read := int64(-1)
	for range lastReadings {
		s, err = meter.Advance(box.Dir(), meter.Reading{Session: session, Transcript: transcript, ContextPercent: -1, Wait: lockedWait})
		if s == nil || err != nil || s.Read == read {
			break
		}
		read = s.Read
	}
	return s, err
}

// Resumed charges what a session spent before a process took it up, of which no hook could tell.
// Without a meter of that time it is nobody's: the session was not here.
func Resumed(tx *inbox.Tx, box *inbox.Inbox, session string) error {
	s, err := meter.Load(box.Dir(), session)
	if s == nil {
		return err
	}
	return errors.Join(err, tx.Charge(Reading(s)))
}

// Orphan charges what the session of the entry in flight has spent, whoever finds it: the
// entry is settled then, and its next attempt begins with what this one cost.
func Orphan(tx *inbox.Tx, box *inbox.Inbox) error {
	d := tx.InFlight()
	if d == nil || d.SessionID == "" {
		return nil
	}
	known, err := tx.Sessions()
	if err != nil {
		return err
	}
	gone := isGone(known, d.SessionID)
	s, err := meter.Advance(box.Dir(), meter.Reading{
		Session: d.SessionID, Transcript: transcriptOf(known, d.SessionID), ContextPercent: -1, Final: gone,
	})
	if s == nil {
		return err
	}
	r := Reading(s)
	r.Over = gone
	return errors.Join(err, tx.Charge(r))
}

// Prune removes the meters of which nothing was heard since, but for those of sessions that
// may still have something to charge.
func Prune(box *inbox.Inbox, before time.Time) error {
	v, err := box.View()
	if err != nil {
		return err
	}
	a, err := v.Account()
	if err = errors.Join(err, v.Close()); err != nil {
		return err
	}
	var keep []string
	for i := range a.Sessions {
		keep = append(keep, a.Sessions[i].ID)
	}
	return meter.Prune(box.Dir(), before, keep)
}

func isGone(known []inbox.Session, id string) bool {
	for _, s := range known {
		if s.ID == id {
			life := s.Life()
			return s.EndedAt != nil || life == machine.Gone || life == machine.Rebooted
		}
	}
	return false
}

// transcriptOf is the transcript that a hook named at the session's start, "" if the meter
// has to know it.
func transcriptOf(known []inbox.Session, id string) string {
	for _, s := range known {
		if s.ID == id {
			path, _ := agent.StartOf(s.StartNote)
			return path
		}
	}
	return ""
}
