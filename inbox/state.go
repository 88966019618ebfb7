package inbox

import (
	"bytes"
	"encoding/json"
	"fmt"
)

const stateVersion = 1

// state is all that an inbox knows: what a journal record holds, whole. It is
// read and written at every turn, by a process that does so once, so it is flat
// and keeps what a turn seldom needs undecoded.
type state struct {
	Version int    `json:"v"`
	Seq     int64  `json:"seq"`
	Inbox   string `json:"inbox"` // base name of the queue file
	Cursor  int64  `json:"cursor"`

	// The bytes from AnchorStart to the cursor had this hash: see recognise.
	AnchorStart int64  `json:"anchor_start"`
	AnchorSum   string `json:"anchor_sha256,omitempty"`
	// The bytes from DigestStart to DigestEnd had this hash, kept so that it can
	// go on: see extendDigest.
	DigestStart int64  `json:"digest_start"`
	DigestEnd   int64  `json:"digest_end"`
	Digest      string `json:"digest,omitempty"`
	// The queue file as the transaction found it.
	SeenSize  int64  `json:"seen_size"`
	SeenMtime int64  `json:"seen_mtime_ns"`
	SeenFile  string `json:"seen_file,omitempty"` // its identity, empty for none
	// SeenYoung says that the time was so fresh that a later change may get it
	// again, and SeenPlace is the file's place on the disk, if that is known.
	SeenYoung bool   `json:"seen_young,omitempty"`
	SeenPlace string `json:"seen_place,omitempty"`
	// The bytes from TailStart to SeenSize, which wait, had this hash.
	TailStart int64  `json:"tail_start,omitempty"`
	TailSum   string `json:"tail_sha256,omitempty"`
	// The bytes from OwnStart to OwnEnd, which this very transition appends to the
	// queue file, have this hash.
	OwnStart int64  `json:"own_start,omitempty"`
	OwnEnd   int64  `json:"own_end,omitempty"`
	OwnSum   string `json:"own_sha256,omitempty"`
	// Lock is the lock file's identity, and Boot the boot of the commit.
	Lock string `json:"lock"`
	// LockMtime is the lock file's time of change: see known and copied.
	LockMtime int64  `json:"lock_mtime_ns,omitempty"`
	Boot      string `json:"boot"`
	// SyncedTo is how much of the queue file is known to survive a power loss.
	SyncedTo int64 `json:"synced_to"`

	// InFlight is the exact content of .in-flight.
	InFlight json.RawMessage `json:"in_flight,omitempty"`
	// Handed says that it was handed over: see [Tx.HandedOver].
	Handed bool `json:"handed,omitempty"`
	// Redeliver is an entry given back to the queue, a Delivery whose Attempt
	// counts the deliveries it had.
	Redeliver json.RawMessage `json:"redeliver,omitempty"`

	// Session is the one that answered last, and Acknowledged how many entries.
	Session      string          `json:"session"`
	Acknowledged int             `json:"acknowledged"`
	Sessions     json.RawMessage `json:"sessions,omitempty"` // of Session

	// Paused is a Pause while nothing is to be delivered, and Totals what was
	// counted so far.
	Paused json.RawMessage `json:"paused,omitempty"`
	Totals json.RawMessage `json:"totals,omitempty"`
	// Backoff is the last Backoff, until an entry is answered.
	Backoff json.RawMessage `json:"backoff,omitempty"`
	// Waiter is the Waiter, if there is one.
	Waiter json.RawMessage `json:"waiter,omitempty"`
	// Punching is the end of the hole that is being made in the queue file, 0
	// for none: see Compact.
	Punching int64 `json:"punching_to,omitempty"`
	// Canceled are the canceledSpans, in one string.
	Canceled json.RawMessage `json:"canceled,omitempty"`
	// Scheduled is what was last seen of .scheduled.jsonl: see scheduleSeen.
	Scheduled json.RawMessage `json:"scheduled,omitempty"`

	// The ends of the append-only files after this transition. A generation
	// goes up when the file turns out to have been rotated away or truncated.
	ResultsEnd     int64 `json:"results_end"`
	ResultsGen     int   `json:"results_generation"`
	DeadLettersEnd int64 `json:"dead_letters_end"`
	DeadLettersGen int   `json:"dead_letters_generation"`
	EventsEnd      int64 `json:"events_end"`
	EventsGen      int   `json:"events_generation"`
	ScheduledEnd   int64 `json:"scheduled_end"`
	ScheduledGen   int   `json:"scheduled_generation"`
	// QueueGen goes up when the queue file turns out to be another one.
	QueueGen int `json:"queue_generation"`
	// Appends are the lines that this very transition adds to those files, and
	// to the queue.
	Appends []appendRecord `json:"appends,omitempty"`
}

// appendPoint finds the end and the generation of an append-only file.
func (s *state) appendPoint(file string) (end *int64, generation *int) {
	switch file {
	case resultsName:
		return &s.ResultsEnd, &s.ResultsGen
	case eventsName:
		return &s.EventsEnd, &s.EventsGen
	case scheduledName:
		return &s.ScheduledEnd, &s.ScheduledGen
	}
	return &s.DeadLettersEnd, &s.DeadLettersGen
}

// syncedOnFollow reports whether lines of the file are durable before the follow
// mark is written. Only those that an operator may take away again are, since
// they must not come back after a power loss.
func syncedOnFollow(file string) bool { return file == deadLetterName || file == scheduledName }

// mayBeRotated reports whether an operator takes away what he likes of the file.
func mayBeRotated(file string) bool { return file == resultsName || file == eventsName }

// appendRecord is one line that belongs at an offset of an append-only file.
type appendRecord struct {
	File       string `json:"file"`
	At         int64  `json:"at"`
	Generation int    `json:"generation"`
	// Newline asks for one before the line, where the file lacks its last.
	Newline bool `json:"newline,omitempty"`
	// Promoted says that the line comes from .scheduled.jsonl, and is to be
	// taken out there.
	Promoted bool `json:"promoted,omitempty"`
	// Unschedule is the entry_id of the line of .scheduled.jsonl that this line
	// settles, and that is to be taken out there.
	Unschedule string `json:"unschedule,omitempty"`
	// Line is the line where it is JSON, and Data where it need not be.
	Line json.RawMessage `json:"line,omitempty"`
	Data []byte          `json:"data,omitempty"`
}

func (a appendRecord) content() []byte {
	if a.Data != nil {
		return a.Data
	}
	return a.Line
}

// bytes is the line as it is written, with its end.
func (a appendRecord) bytes() []byte {
	l := a.content()
	b := make([]byte, 0, len(l)+2)
	if a.Newline {
		b = append(b, '\n')
	}
	return append(append(b, l...), '\n')
}

// encodeJSON writes v on one line, leaving <, > and & readable.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
