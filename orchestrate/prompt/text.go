package prompt

import (
	"strconv"
	"strings"
	"time"

	"heartbeat/internal/words"
)

// Text is what the agent reads about the effect.
func (e Effect) Text() string {
	var w writer
	e.head(&w)
	e.body(&w)
	e.inputs(&w)
	e.limit(&w)
	w.gap()
	w.line("The whole task is in ", words.Shell(e.TaskFile), ".")
	w.gap()
	e.writeHandOver(&w)
	return w.String()
}

// head writes who asks, and for what kind of work.
func (e Effect) head(w *writer) {
	title := text(e.Task, "title")
	if title != "" {
		title = ": " + strconv.Quote(cut(title, 200))
	}
	w.line("The run ", name(e.RunID), " ", kinds[e.known()], title, " (effect ", name(e.ID), ").")
	w.gap()
	if d := text(e.Task, "description"); d != "" {
		w.block("", d)
	}
}

// kinds are the words for the kinds of effects.
var kinds = map[string]string{
	"node":              "asks for a program to run with node",
	"shell":             "asks for a command to run",
	"agent":             "asks for a task",
	"skill":             "asks for a skill to use",
	"orchestrator_task": "asks for a task to see to",
	"breakpoint":        "has a question for the person you work for",
	"":                  "asks for a task of a kind of its own",
}

// known is the kind, or "" if the kind is unknown or the task lacks what the kind needs.
func (e Effect) known() string {
	switch e.Kind {
	case "node", "shell", "agent", "skill":
		if len(member(e.Task, e.Kind)) > 0 {
			return e.Kind
		}
	case "orchestrator_task":
		if len(e.payload()) > 0 {
			return e.Kind
		}
	case "breakpoint":
		if e.question() != "" {
			return e.Kind
		}
	}
	return ""
}

func (e Effect) body(w *writer) {
	switch e.known() {
	case "node":
		e.node(w)
	case "shell":
		e.shell(w)
	case "agent":
		e.agent(w)
	case "skill":
		e.skill(w)
	case "orchestrator_task":
		e.orchestratorTask(w)
	case "breakpoint":
		e.breakpoint(w)
	default:
		w.line("Its kind is ", name(e.Kind), ". The task as it was given:")
		w.block("json", string(e.Task))
	}
}

func (e Effect) node(w *writer) {
	node := member(e.Task, "node")
	w.block("sh", words.Shell(append([]string{"node", text(node, "entry")}, texts(member(node, "args"))...)...))
	e.circumstances(w, node)
	if len(member(node, "env")) > 0 {
		w.line("Set the environment variables that the task file has under node.env.")
	}
}

func (e Effect) shell(w *writer) {
	shell := member(e.Task, "shell")
	w.block("sh", text(shell, "command"))
	e.circumstances(w, shell)
	if status := text(shell, "expectedExitCode"); status != "" {
		w.line("It is expected to end with status ", name(status), ".")
	}
}

// circumstances writes how a program has to be run.
func (e Effect) circumstances(w *writer, spec []byte) {
	if dir := text(spec, "cwd"); dir != "" && dir != "." {
		w.line("Run it in ", name(dir), ".")
	}
	if ms, err := strconv.ParseInt(text(spec, "timeoutMs"), 10, 64); err == nil && ms > 0 {
		w.line("Give it ", (time.Duration(ms) * time.Millisecond).String(), ".")
	}
}

func (e Effect) agent(w *writer) {
	agent := member(e.Task, "agent")
	if n := text(agent, "name"); n != "" {
		w.line("It is meant for an agent called ", name(n), ": have that one do it if you can, or do it yourself.")
	}
	prompt := member(agent, "prompt")
	if member(prompt, "task") == nil {
		w.block("", text(agent, "prompt"))
		return
	}
	w.part("Role", text(prompt, "role"))
	w.part("Task", text(prompt, "task"))
	w.part("Context", text(prompt, "context"))
	w.part("Instructions", list(member(prompt, "instructions")))
	w.part("Form of the answer", text(prompt, "outputFormat"))
}

func (e Effect) skill(w *writer) {
	skill := member(e.Task, "skill")
	w.line("The skill is called ", name(text(skill, "name")), ".")
	w.part("Context", text(skill, "context"))
}

func (e Effect) orchestratorTask(w *writer) {
	payload := e.payload()
	if prompt := text(payload, "prompt"); prompt != "" {
		w.block("", prompt)
		return
	}
	w.block("json", string(payload))
}

func (e Effect) breakpoint(w *writer) {
	payload := e.payload()
	w.block("", e.question())
	w.part("Options", list(member(payload, "options")))
	w.part("Context", text(payload, "context"))
	w.line("Ask the person, wait for the answer, and hand it over. The answer is theirs, not yours.")
}

func (e Effect) question() string {
	if q := text(e.payload(), "question"); q != "" {
		return q
	}
	return text(e.Task, "title")
}

// payload is what a process passes on. The SDK puts it into the metadata, or under a name
// that depends on the kind.
func (e Effect) payload() []byte {
	own := map[string]string{"breakpoint": "breakpoint", "orchestrator_task": "orchestratorTask"}
	if p := member(member(e.Task, "metadata"), "payload"); p != nil {
		return p
	}
	return member(member(e.Task, own[e.Kind]), "payload")
}

func (e Effect) inputs(w *writer) {
	inputs := member(e.Task, "inputs")
	switch {
	case e.Kind == "breakpoint", e.known() == "": // the text has them already
	case e.InputsFile != "":
		w.gap()
		w.line("Its inputs are in ", words.Shell(e.InputsFile), ".")
	case len(inputs) > 0 && string(inputs) != "null":
		w.part("Inputs", string(inputs))
	}
}

// part writes a fenced text with a name.
func (w *writer) part(name, s string) {
	if s == "" {
		return
	}
	w.gap()
	w.line(name, ":")
	language := ""
	if strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[") {
		language = "json"
	}
	w.block(language, s)
}

// block writes a fenced text, or only its beginning if it is too long.
func (w *writer) block(language, s string) {
	if s == "" {
		return
	}
	if len(s) > maxInline {
		w.fence("", cut(s, maxInline/4))
		w.line("That is only the beginning: the rest of these ", strconv.Itoa(len(s)), " bytes is in the task file.")
		w.gap()
	} else if language == "json" {
		w.json([]byte(s))
	} else {
		w.fence(language, s)
	}
}

// list has one line for each item of a list. Any other value is as it is written.
func list(raw []byte) string {
	items := texts(raw)
	if items == nil {
		return strings.Trim(string(raw), `"`)
	}
	for i, item := range items {
		items[i] = "- " + item
	}
	return strings.Join(items, "\n")
}
