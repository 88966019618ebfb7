package journal

import (
	"errors"
	"fmt"

	"heartbeat/internal/lines"
)

// Kind is a file that commits add lines to.
type Kind uint8

// The append-only files, in the order in which the lines of a commit are written.
const (
	Results Kind = iota
	Events
	DeadLetters
	Scheduled
	Costs
	// Queue is the inbox itself. Others append to it too, so it has rules of its
	// own and no row in the table: see [Store] and queue.go.
	Queue
)

// appendFile is a row of the table: what differs between the append-only files.
type appendFile struct {
	name string
	// end and generation are the members of a record that say how long the file is
	// and how often it was rotated.
	end, generation string
	// synced says that lines are durable before the mark which says that they are
	// there. So a line that is missing although there is a mark was taken out by
	// an operator, and must not come back. Of other files, only a mark of this boot
	// says so.
	synced bool
	// ours says that only heartbeat writes the file and believes what it says. One
	// that a copy or a repository brought along does not count.
	ours bool
	// late says that the members are left out as long as there is no file: records
	// from before the file was known have none.
	late bool
}

var kinds = [...]appendFile{
	Results:     {name: ".results.jsonl", end: "results_end", generation: "results_generation", ours: true},
	Events:      {name: ".events.jsonl", end: "events_end", generation: "events_generation", ours: true},
	DeadLetters: {name: ".dead-letter.jsonl", end: "dead_letters_end", generation: "dead_letters_generation", synced: true},
	Scheduled:   {name: ".scheduled.jsonl", end: "scheduled_end", generation: "scheduled_generation", synced: true, ours: true},
	Costs:       {name: ".costs.jsonl", end: "costs_end", generation: "costs_generation", ours: true, late: true},
}

// recordOrder is the order in which a record names the files.
var recordOrder = [...]Kind{Results, DeadLetters, Events, Scheduled, Costs}

// queueName stands for the queue file in a record.
const queueName = "queue"

// Name is the file's name beside the inbox.
func (k Kind) Name() string {
	if k == Queue {
		return queueName
	}
	return kinds[k].name
}

// Ours are the kinds of files that only heartbeat writes and that it believes: a
// forged result would answer whoever waits for one, a forged schedule would be
// delivered, and forged costs would use up a limit.
func Ours() (all []Kind) {
	for k, row := range kinds {
		if row.ours {
			all = append(all, Kind(k))
		}
	}
	return all
}

func kindOf(name string) (Kind, error) {
	if name == queueName {
		return Queue, nil
	}
	for k, row := range kinds {
		if row.name == name {
			return Kind(k), nil
		}
	}
	return 0, fmt.Errorf("it adds a line to %q, which is not a file of an inbox", name)
}

// Names of the files beside an inbox that are not append-only: see [Kind.Name] for
// those that are.
const (
	CursorName    = ".inbox-offset"
	InFlightName  = ".in-flight"
	RespondedName = ".responded"
	JournalName   = ".inbox-journal"
	LockName      = ".inbox-lock"
)

// Names are the names of all files beside an inbox.
func Names() []string {
	names := []string{CursorName, InFlightName, RespondedName, JournalName, LockName}
	for kind := range kinds {
		names = append(names, Kind(kind).Name())
	}
	return names
}

// ErrCorrupt says that a state file holds what nobody should have written.
var ErrCorrupt = lines.ErrCorrupt

// ErrUncertain says that a commit's sync failed, and so did taking the commit
// back: after a power loss it may or may not have happened.
var ErrUncertain = errors.New("commit uncertain")
