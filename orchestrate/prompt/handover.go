package prompt

import (
	"slices"

	"heartbeat/internal/words"
)

// ResultCommand is the command by which an agent hands over the result of an effect.
type ResultCommand struct {
	Words []string // up to the effect's id, which comes next
	// The flags after the id, each of which takes a value: the path of a JSON value, the
	// path of a text, and the reason why there is no result.
	ValueFile, TextFile, Failure string
}

// writeHandOver writes how the result gets to the run.
func (e Effect) writeHandOver(w *writer) {
	if schema := e.Schema(); schema != nil {
		w.line("The result is JSON that fits this schema:")
		w.block("json", string(schema))
		if e.SchemaFault != "" {
			w.line("That schema is not valid (", e.SchemaFault, "), so the result is not checked against it: come as near to it as makes sense.")
		}
	}
	switch e.known() {
	case "shell", "node":
		w.line("The result is what it prints to stdout. Put that into ", words.Shell(e.TextFile()), ", and hand it over:")
		w.command(e.result(e.ResultCommand.TextFile, e.TextFile())...)
		if e.Kind == "node" {
			w.line("If it prints JSON, use ", e.ResultCommand.ValueFile, " in place of ", e.ResultCommand.TextFile, ".")
		}
		w.line("If it does not end as it should:")
		w.command(e.result(e.ResultCommand.Failure, "what went wrong")...)
	case "breakpoint":
		w.line("Write the answer to ", words.Shell(e.ValueFile()), " as JSON:")
		w.fence("json", `{"approved": true, "response": "what the person said", "option": "the option that they chose, if any"}`)
		w.line("A refusal is an answer too, with false. Hand it over:")
		w.command(e.result(e.ResultCommand.ValueFile, e.ValueFile())...)
	default:
		if e.MessageCounts() {
			w.line("Your last message of this turn is the result, as text. To hand over JSON instead, write it to ", words.Shell(e.ValueFile()), ":")
		} else {
			w.line("Write the result to ", words.Shell(e.ValueFile()), " as JSON, and hand it over:")
		}
		w.command(e.result(e.ResultCommand.ValueFile, e.ValueFile())...)
		w.line("If it cannot be done, say so instead:")
		w.command(e.result(e.ResultCommand.Failure, "what went wrong")...)
	}
	if !e.MessageCounts() {
		w.line("Only what is handed over counts, not what you say.")
	}
}

// result is the command that hands a result over, with one of its flags.
func (e Effect) result(flag, value string) []string {
	return append(slices.Clone(e.ResultCommand.Words), e.ID, flag, value)
}
