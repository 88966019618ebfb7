// Package prompt writes what the agent reads about a run: a text for each effect that the run asks for, for the end of
// the run, and for its failure.
//
// A text says what is asked, where the whole task is, and which command hands the result over. Everything from the task
// is in a fence that is longer than any fence in the task, so that no task can pass for heartbeat's own words.
package prompt

import (
	"path/filepath"
	"time"

	"github.com/tidwall/gjson"

	"heartbeat/internal/words"
)

// Effect is something that a run asks for.
type Effect struct {
	Program, Inbox string // paths of heartbeat and of the inbox, for the command that hands the result over
	RunID          string
	ID             string // of the effect; it must not begin with a dash
	Kind           string // node, shell, agent, skill, orchestrator_task, breakpoint, or any other
	Task           []byte // the content of the task file, JSON
	// TaskFile is the absolute path of the task file. The agent writes the result beside it.
	TaskFile string
	// InputsFile is the absolute path of the inputs, or "" if they are in the task file or there are none.
	InputsFile string
	// SchemaFault is why the schema of the result cannot be used, or "".
	SchemaFault string
}

// Schema returns the JSON Schema that the result must fit, nil for none.
func (e Effect) Schema() []byte {
	if e.Kind != "agent" && e.Kind != "skill" {
		return nil
	}
	schema := e.get(e.Kind + ".outputSchema")
	if schema.Type == gjson.Null { // or there is none
		return nil
	}
	return []byte(schema.Raw)
}

func (e Effect) get(path string) gjson.Result { return gjson.GetBytes(e.Task, path) }

// MessageCounts reports whether the last message of the turn is the result, as text, if none was handed over: for an
// agent or a skill that may answer freely.
func (e Effect) MessageCounts() bool {
	return (e.knownKind() == "agent" || e.knownKind() == "skill") && e.Schema() == nil
}

// TimeLimit returns how long an agent, a skill or an orchestrator task may take, or 0 if the task names no limit.
// Processes put the limit in several places.
func (e Effect) TimeLimit() time.Duration {
	var of gjson.Result
	switch e.knownKind() {
	case "agent", "skill":
		of = e.get(e.Kind)
	case "orchestrator_task":
		of = e.payload()
	default:
		return 0
	}
	for _, place := range []gjson.Result{of, of.Get("constraints"), e.get("execution")} {
		for _, name := range []string{"timeoutMs", "timeout"} {
			if limit := words.Milliseconds(place.Get(name).Num); limit > 0 {
				return limit
			}
		}
	}
	return 0
}

// Flags of the command that hands the result over.
const (
	valueFile = "--value-file" // the path of a JSON value
	textFile  = "--text-file"  // the path of a text
	emptyText = "--text"       // a text
	failure   = "--error"      // why there is no result
)

func (e Effect) writeHandOver(w *writer) {
	if schema := e.Schema(); schema != nil {
		w.line("The result is JSON that fits this schema:")
		w.block("json", string(schema))
		if e.SchemaFault != "" {
			w.line("That schema is not valid (", e.SchemaFault, "), so the result is not checked against it: come as near to it as makes sense.")
		}
	}
	value, output := filepath.Join(filepath.Dir(e.TaskFile), "output.json"), filepath.Join(filepath.Dir(e.TaskFile), "output.txt")
	switch e.knownKind() {
	case "shell", "node":
		if e.get(e.Kind+".captureOutput").Type == gjson.False {
			w.line("What it prints is not wanted. Once it has ended, hand that over:")
			w.command(e.result(emptyText, "")...)
		} else {
			w.line("The result is what it prints to stdout. Put that into ", words.Shell(output), ", and hand it over:")
			w.command(e.result(textFile, output)...)
			if e.Kind == "node" {
				w.line("If it prints JSON, use ", valueFile, " in place of ", textFile, ".")
			}
		}
		w.line("If it does not end as it should:")
		w.command(e.result(failure, "what went wrong")...)
	case "breakpoint":
		w.line("Write the answer to ", words.Shell(value), " as JSON:")
		w.fence("json", `{"approved": true, "response": "what the person said", "option": "the option that they chose, if any"}`)
		w.line("A refusal is an answer too, with false. Hand it over:")
		w.command(e.result(valueFile, value)...)
	default:
		if e.MessageCounts() {
			w.line("Your last message of this turn is the result, as text. To hand over JSON instead, write it to ", words.Shell(value), ":")
		} else {
			w.line("Write the result to ", words.Shell(value), " as JSON, and hand it over:")
		}
		w.command(e.result(valueFile, value)...)
		w.line("If it cannot be done, say so instead:")
		w.command(e.result(failure, "what went wrong")...)
	}
	if !e.MessageCounts() {
		w.line("Only what is handed over counts, not what you say.")
	}
}

// result returns the command that hands a result over, with one of its flags.
func (e Effect) result(flag, value string) []string {
	return []string{e.Program, "result", "--inbox", e.Inbox, e.ID, flag, value}
}
