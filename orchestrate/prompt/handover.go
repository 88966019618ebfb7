package prompt

import "heartbeat/internal/words"

// handOver writes how the result gets to the run.
func (e Effect) handOver(w *writer) {
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
		w.command(e.result("--text-file", e.TextFile())...)
		if e.Kind == "node" {
			w.line("If it prints JSON, use --value-file in place of --text-file.")
		}
		w.line("If it does not end as it should:")
		w.command(e.result("--error", "what went wrong")...)
	case "breakpoint":
		w.line("Write the answer to ", words.Shell(e.ValueFile()), " as JSON:")
		w.fence("json", `{"approved": true, "response": "what the person said", "option": "the option that they chose, if any"}`)
		w.line("A refusal is an answer too, with false. Hand it over:")
		w.command(e.result("--value-file", e.ValueFile())...)
	default:
		if e.MessageCounts() {
			w.line("Your last message of this turn is the result, as text. To hand over JSON instead, write it to ", words.Shell(e.ValueFile()), ":")
		} else {
			w.line("Write the result to ", words.Shell(e.ValueFile()), " as JSON, and hand it over:")
		}
		w.command(e.result("--value-file", e.ValueFile())...)
		w.line("If it cannot be done, say so instead:")
		w.command(e.result("--error", "what went wrong")...)
	}
	if !e.MessageCounts() {
		w.line("Only what is handed over counts, not what you say.")
	}
}

// result is the command that hands a result over.
func (e Effect) result(args ...string) []string {
	program := e.Program
	if program == "" {
		program = "heartbeat"
	}
	return append([]string{program, "result", "--inbox", e.Inbox, e.ID}, args...)
}
