package prompt

import (
	"encoding/json"
	"path/filepath"
	"strings"
)

// Effect is something that a run asks for.
type Effect struct {
	ResultCommand ResultCommand
	RunID         string
	ID            string // of the effect; it must not begin with a dash
	Kind          string // node, shell, agent, skill, orchestrator_task, breakpoint, or any other
	Task          []byte // the content of the task file, JSON
	// TaskFile is the absolute path of the task file. The agent writes the result beside it.
	TaskFile string
	// InputsFile is the absolute path of the inputs if they have a file of their own; empty
	// if they are in the task file, or if there are none.
	InputsFile string
	// SchemaFault is why the schema of the result cannot be used; empty if it can.
	SchemaFault string
}

// ValueFile is the path where the agent is told to write its result, beside the task.
func (e Effect) ValueFile() string {
	return filepath.Join(filepath.Dir(e.TaskFile), "output.json")
}

// TextFile is the path where the agent is told to put the output of a program, beside the
// task.
func (e Effect) TextFile() string {
	return filepath.Join(filepath.Dir(e.TaskFile), "output.txt")
}

// Schema is the JSON Schema that the result must fit, or nil if any result will do.
func (e Effect) Schema() []byte {
	if e.Kind != "agent" && e.Kind != "skill" {
		return nil
	}
	schema := member(member(e.Task, e.Kind), "outputSchema")
	if len(schema) == 0 || string(schema) == "null" {
		return nil
	}
	return schema
}

// MessageCounts reports whether the last message of the turn is the result, as text, if
// none was handed over. This holds for an agent or a skill that may answer freely.
func (e Effect) MessageCounts() bool {
	return (e.known() == "agent" || e.known() == "skill") && e.Schema() == nil
}

// member is a member of a JSON object, or nil.
func member(object []byte, name string) json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(object, &m) != nil {
		return nil
	}
	return m[name]
}

// text is a member of a JSON object: a string without its quotes, any other value as JSON.
func text(object []byte, name string) string {
	raw := member(object, name)
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return strings.TrimSpace(s)
	}
	return string(raw)
}

// texts are the items of a list: strings without their quotes, other values as JSON.
func texts(list []byte) (all []string) {
	var raw []json.RawMessage
	if json.Unmarshal(list, &raw) != nil {
		return nil
	}
	for _, r := range raw {
		var s string
		if json.Unmarshal(r, &s) != nil {
			s = string(r)
		}
		all = append(all, s)
	}
	return all
}
