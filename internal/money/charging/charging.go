// Package charging brings what the meters of sessions say into the account of their
// inbox.
package charging

import (
	"errors"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/agent"
	"heartbeat/internal/machine"
	"heartbeat/internal/money/meter"
)

// Load returns what counts the sessions of an inbox up to now, for [inbox.Inbox.Prices], and keeps
// nothing. A session that cannot be counted says nothing.
func Load(box *inbox.Inbox) func(session string) *inbox.Reading {
	var known []inbox.Session
	if v, err := box.View(); err == nil {
		known, _ = v.Sessions() // without it, the count knows the transcripts
		_ = v.Close()           // only read
	}
	return func(session string) *inbox.Reading {
		s, _ := meter.Look(box.Dir(), session, transcriptOf(known, session))
		if s == nil || s.Transcript == "" {
			return nil
		}
		r := Reading(s)
		return &r
	}
}

// Reading is what a meter says.
func Reading(s *meter.State) inbox.Reading {
	return inbox.Reading{
		Session: s.Session, Spent: s.Spent, Read: s.Read, Model: s.Model, Models: s.Models, Late: s.Late,
		Boundary: func(position int64) (inbox.Boundary, bool) {
			m, ok := s.Mark(position)
			return inbox.Boundary(m), ok
		},
	}
}

// lockedWait is how long a reading is waited for that goes on, by who has the inbox's lock.
const lockedWait = 200 * time.Millisecond

// Turn charges what a session has spent, at a moment of which its own hook tells.
func Turn(tx *inbox.Tx, box *inbox.Inbox, session, transcript string) error {
	return charge(tx, box, meter.Reading{Session: session, Transcript: transcript, Wait: lockedWait}, false)
}

// charge counts what a session has spent, and charges it; over says that the session ends.
func charge(tx *inbox.Tx, box *inbox.Inbox, reading meter.Reading, over bool) error {
	s, err := meter.Advance(box.Dir(), reading)
	if s == nil {
		return err
	}
	r := Reading(s)
	r.Over = over
	return errors.Join(err, tx.Charge(r))
}

// End charges what a session has spent when its own hook tells of its end: nobody may
// come later who could.
func End(tx *inbox.Tx, box *inbox.Inbox, session, transcript string) error {
	return charge(tx, box, meter.Reading{Session: session, Transcript: transcript}, true)
}

// Gone counts to their end the transcripts of the sessions whose client is gone, without
// the inbox's lock: they may be long. ended is one whose client certainly is, "" for none.
// Call [Note] afterwards.
func Gone(box *inbox.Inbox, ended string) error {
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
		if id != ended && !isGone(known, id) {
			continue
		}
		_, err := meter.Advance(box.Dir(), meter.Reading{Session: id, Transcript: transcriptOf(known, id), Final: true})
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
// nobody counts it afterwards.
func last(box *inbox.Inbox, session, transcript string) (s *meter.State, err error) {
	read := int64(-1)
	for range lastReadings {
		s, err = meter.Advance(box.Dir(), meter.Reading{Session: session, Transcript: transcript, Wait: lockedWait})
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
	return charge(tx, box, meter.Reading{Session: d.SessionID, Transcript: transcriptOf(known, d.SessionID), Final: gone}, gone)
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
