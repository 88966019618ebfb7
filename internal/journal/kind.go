package journal

import (
	"errors"
	"fmt"

	"heartbeat/internal/lines"
)

// Kind is a file to which commits add lines.
type Kind uint8

// The append-only files, in the order in which a commit's lines are written.
const (
	Results Kind = iota
	Events
	DeadLetters
	Scheduled
	Costs
	// Queue is the inbox itself. Others append to it too, so it has its own rules and no row in the table:
	// see [Store] and queue.go.
	Queue
)

// appendFile is a row of the table: how an append-only file differs from the others.
type appendFile struct {
	name string
	// end and generation are the members of a record that say how long the file is and how often it was
	// rotated.
	end, generation string
	// synced says that lines are durable before their mark. A line that is missing despite a mark was then
	// removed by an operator, and must not come back. For other files, only a mark of this boot shows that.
	synced bool
	// ours says that only heartbeat writes the file and trusts its content. A file from a copy or a
	// repository does not count.
	ours bool
	// late says that a record omits the members while there is no file, as records do that are older than the
	// file.
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

// Name returns the file's name beside the inbox.
func (k Kind) Name() string {
	if k == Queue {
		return queueName
	}
	return kinds[k].name
}

// Ours returns the files that only heartbeat writes and trusts: a forged result would answer whoever waits
// for one, a forged schedule would be delivered, and forged costs would use up a limit.
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

// Names of the files beside an inbox that are not append-only; for the others see [Kind.Name].
const (
	CursorName    = ".inbox-offset"
	InFlightName  = ".in-flight"
	RespondedName = ".responded"
	JournalName   = ".inbox-journal"
	LockName      = ".inbox-lock"
)

// Names returns the names of all files beside an inbox.
func Names() []string {
	names := []string{CursorName, InFlightName, RespondedName, JournalName, LockName}
	for kind := range kinds {
		names = append(names, Kind(kind).Name())
	}
	return names
}

// ErrCorrupt says that a state file has invalid content.
var ErrCorrupt = lines.ErrCorrupt

// ErrUncertain says that a commit's sync failed, and so did undoing the commit: after a power loss it may or
// may not have happened.
var ErrUncertain = errors.New("commit uncertain")
