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
	// The queue file as the transaction found it.
	SeenSize  int64  `json:"seen_size"`
	SeenMtime int64  `json:"seen_mtime_ns"`
	SeenFile  string `json:"seen_file,omitempty"` // its identity, empty for none
	// Lock is the lock file's identity, and Boot the boot of the commit.
	Lock string `json:"lock"`
	Boot string `json:"boot"`
	// SyncedTo is how much of the queue file is known to survive a power loss.
	SyncedTo int64 `json:"synced_to"`

	// InFlight is the exact content of .in-flight.
	InFlight json.RawMessage `json:"in_flight,omitempty"`
	// Redeliver is an entry given back to the queue, a Delivery whose Attempt
	// counts the deliveries it had.
	Redeliver json.RawMessage `json:"redeliver,omitempty"`

	// Session is the one that answered last, and Acknowledged how many entries.
	Session      string          `json:"session"`
	Acknowledged int             `json:"acknowledged"`
	Sessions     json.RawMessage `json:"sessions,omitempty"` // of Session

	// The ends of the append-only files after this transition. A generation
	// goes up when the file turns out to have been rotated away or truncated.
	ResultsEnd     int64 `json:"results_end"`
	ResultsGen     int   `json:"results_generation"`
	DeadLettersEnd int64 `json:"dead_letters_end"`
	DeadLettersGen int   `json:"dead_letters_generation"`
	// QueueGen goes up when the queue file turns out to be another one.
	QueueGen int `json:"queue_generation"`
	// Appends are the lines that this very transition adds to those files, and
	// to the queue.
	Appends []appendRecord `json:"appends,omitempty"`
}

// appendPoint finds the end and the generation of an append-only file.
func (s *state) appendPoint(file string) (end *int64, generation *int) {
	if file == resultsName {
		return &s.ResultsEnd, &s.ResultsGen
	}
	return &s.DeadLettersEnd, &s.DeadLettersGen
}

// appendRecord is one line that belongs at an offset of an append-only file.
type appendRecord struct {
	File       string `json:"file"`
	At         int64  `json:"at"`
	Generation int    `json:"generation"`
	// Newline asks for one before the line, where the file lacks its last.
	Newline bool            `json:"newline,omitempty"`
	Line    json.RawMessage `json:"line"`
}

func (a appendRecord) bytes() []byte {
	b := make([]byte, 0, len(a.Line)+2)
	if a.Newline {
		b = append(b, '\n')
	}
	return append(append(b, a.Line...), '\n')
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
