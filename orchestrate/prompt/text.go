package prompt

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"heartbeat/internal/words"
)

// Text returns what the agent reads about the effect.
func (e Effect) Text() string {
	var w writer
	title := text(e.get("title"))
	if title != "" {
		title = ": " + strconv.Quote(cut(title, 200))
	}
	w.line("The run ", name(e.RunID), " ", kinds[e.knownKind()], title, " (effect ", name(e.ID), ").")
	w.gap()
	if d := text(e.get("description")); d != "" {
		w.block("", d)
	}
	e.body(&w)
	inputs := e.get("inputs")
	switch {
	case e.Kind == "breakpoint", e.knownKind() == "": // the body has them already
	case e.InputsFile != "":
		w.gap()
		w.line("Its inputs are in ", words.Shell(e.InputsFile), ".")
	case inputs.Type != gjson.Null:
		w.part("Inputs", inputs.Raw)
	}
	if limit := e.TimeLimit(); limit > 0 {
		w.gap()
		w.line("It is to be done within ", limit.String(), ". After that the run is told that it was not.")
	}
	w.gap()
	w.line("The whole task is in ", words.Shell(e.TaskFile), ".")
	w.gap()
	e.writeHandOver(&w)
	return w.String()
}

var kinds = map[string]string{
	"node":              "asks for a program to run with node",
	"shell":             "asks for a command to run",
	"agent":             "asks for a task",
	"skill":             "asks for a skill to use",
	"orchestrator_task": "asks for a task to see to",
	"breakpoint":        "has a question for the person you work for",
	"":                  "asks for a task of a kind of its own",
}

// knownKind returns the kind, or "" if it is unknown or the task lacks what the kind needs.
func (e Effect) knownKind() string {
	known := false
	switch e.Kind {
	case "node", "shell", "agent", "skill":
		known = e.get(e.Kind).Exists()
	case "orchestrator_task":
		known = e.payload().Exists()
	case "breakpoint":
		known = e.question() != ""
	}
	if !known {
		return ""
	}
	return e.Kind
}

func (e Effect) body(w *writer) {
	switch e.knownKind() {
	case "node", "shell":
		e.program(w)
	case "agent":
		e.agent(w)
	case "skill":
		w.line("The skill is called ", name(text(e.get("skill.name"))), ".")
		w.part("Context", text(e.get("skill.context")))
	case "orchestrator_task":
		if prompt := text(e.payload().Get("prompt")); prompt != "" {
			w.block("", prompt)
		} else {
			w.block("json", e.payload().Raw)
		}
	case "breakpoint":
		payload := e.payload()
		w.block("", e.question())
		w.part("Options", list(payload.Get("options")))
		w.part("Context", text(payload.Get("context")))
		w.line("Ask the person, wait for the answer, and hand it over. The answer is theirs, not yours.")
	default:
		w.line("Its kind is ", name(e.Kind), ". The task as it was given:")
		w.block("json", string(e.Task))
	}
}

func (e Effect) program(w *writer) {
	spec := e.get(e.Kind)
	line := text(spec.Get("command"))
	if e.Kind == "node" {
		command := []string{"node", text(spec.Get("entry"))}
		if args := spec.Get("args"); args.IsArray() {
			for _, arg := range args.Array() {
				command = append(command, arg.String())
			}
		}
		line = words.Shell(command...)
	}
	w.block("sh", line)
	if dir := text(spec.Get("cwd")); dir != "" && dir != "." {
		w.line("Run it in ", name(dir), ".")
	}
	if limit := words.Milliseconds(spec.Get("timeoutMs").Num); limit > 0 {
		w.line("Give it ", limit.String(), ".")
	}
	if env := spec.Get("env"); env.IsObject() { // the values may be secrets, and the text is kept in many places
		w.line("Set the environment variables that the task file has under ", e.Kind, ".env: ", cut(env.Get("@keys").Raw, 2000), ".")
	}
	if status := spec.Get("expectedExitCode"); e.Kind == "shell" && status.Type == gjson.Number {
		w.line("It is expected to end with status ", name(status.Raw), ".")
	}
}

func (e Effect) agent(w *writer) {
	agent := e.get("agent")
	if n := text(agent.Get("name")); n != "" {
		w.line("It is meant for an agent called ", name(n), ": have that one do it if you can, or do it yourself.")
	}
	prompt := agent.Get("prompt")
	if !prompt.Get("task").Exists() {
		w.block("", text(prompt))
		return
	}
	w.part("Role", text(prompt.Get("role")))
	w.part("Task", text(prompt.Get("task")))
	w.part("Context", text(prompt.Get("context")))
	w.part("Instructions", list(prompt.Get("instructions")))
	w.part("Form of the answer", text(prompt.Get("outputFormat")))
}

func (e Effect) question() string {
	return cmp.Or(text(e.payload().Get("question")), text(e.get("title")))
}

// payload returns what the process passes on: in the metadata, or under a name that depends on the kind.
func (e Effect) payload() gjson.Result {
	p := e.get("metadata.payload")
	switch {
	case p.Exists():
	case e.Kind == "breakpoint":
		p = e.get("breakpoint.payload")
	case e.Kind == "orchestrator_task":
		p = e.get("orchestratorTask.payload")
	}
	return p
}

// Completion returns the text that has the agent name the run's proof, which no other text contains. output is the
// absolute path of what the run returned, or "" if it returned nothing.
func Completion(runID, proof, output string) string {
	var w writer
	w.line("The run ", name(runID), " is complete.")
	if output != "" {
		w.line("What it returned is in ", output, ".")
	}
	w.gap()
	w.line("Say in a few sentences what came of it, for the person who asked for it, and end your reply with this line:")
	w.gap()
	w.line("<promise>", proof, "</promise>")
	return w.String()
}

// Failure returns the text that asks the agent to fix a process that threw. asks says that a person must accept new code.
func Failure(runID, runDir, thrown string, asks bool) string {
	var w writer
	w.line("The run ", name(runID), " failed:")
	w.fence("", cut(strings.TrimSpace(thrown), maxInline))
	w.line("Its folder is ", runDir, ".")
	w.gap()
	w.line("Find the cause and mend it, in the process or in what it works with. Leave the journal in the run's folder as it is.")
	w.line("Then say what you changed: the run is tried again after your reply. If you cannot mend it, say that, and why.")
	if asks {
		w.line("If you change the process itself, the run is tried again once a person has accepted that.")
	}
	return w.String()
}
