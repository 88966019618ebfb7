package run

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// Task is the definition of an effect: tasks/ID/task.json. Babysitter does not check it, so
// a member of an unexpected type reads as zero; Raw has the original. At most one of the
// parts by kind is set, and none for an unknown kind.
type Task struct {
	EffectID      string
	TaskID        string
	StepID        string
	InvocationKey string
	Kind          string
	Title         string
	Description   string
	Labels        []string

	Node         *Node
	Shell        *Shell
	Agent        *Agent
	Skill        *Skill
	Breakpoint   *Breakpoint
	Sleep        *Sleep
	Orchestrator *Orchestrator

	Execution []byte // JSON: with which model, for instance; or nil
	Metadata  []byte // JSON, or nil

	Inputs     []byte // JSON, or nil
	InputsRef  string // where the inputs are, from the run directory, if they are over 1 MiB; or ""
	InputsPath string // InputsRef as an absolute path inside the run directory; or ""

	Raw []byte // all of task.json
}

// Node is a task of kind "node": a script to run.
type Node struct {
	Entry   string
	Args    []string
	Cwd     string
	Env     map[string]string // perhaps with secrets
	Timeout time.Duration     // 0 for none
}

// Shell is a task of kind "shell".
type Shell struct {
	Command  string
	Cwd      string
	ExitCode int           // what counts as success
	Timeout  time.Duration // 0 for none
}

// Agent is a task of kind "agent".
type Agent struct {
	Name         string
	Prompt       []byte // JSON: mostly an object with role, task, context, instructions, outputFormat; or a string
	OutputSchema []byte // JSON, or nil
}

// Skill is a task of kind "skill".
type Skill struct {
	Name    string
	Context []byte // JSON, or nil
}

// Breakpoint is a question to a person.
type Breakpoint struct {
	Question string // never empty: the title, or the kind, where nothing else is there
	Title    string // of the question; or ""
	Options  []byte // JSON, mostly a list of strings; or nil
	Context  []byte // JSON, or nil
	Expert   []byte // JSON: who is asked, a string or a list of them; or nil
	Tags     []string
	Strategy string
	Payload  []byte // JSON: all of what was asked, which may be anything; or nil
}

// Choices are the names by which an answer may choose an option of a breakpoint: the option
// itself if it is a text, or the id, value, name, label or title of an object.
func (b *Breakpoint) Choices() (all []string) {
	for _, o := range gjson.ParseBytes(b.Options).Array() {
		if o.Type == gjson.String {
			all = append(all, o.String())
		}
		for _, name := range []string{"id", "value", "name", "label", "title"} {
			if v := o.Get(name); o.IsObject() && v.Type == gjson.String {
				all = append(all, v.String())
			}
		}
	}
	return all
}

// Sleep is a wait.
type Sleep struct {
	Until time.Time // zero if it is missing
	ISO   string    // the same, as the process wrote it
}

// Orchestrator is a task of kind "orchestrator_task".
type Orchestrator struct {
	Payload       []byte // JSON, or nil
	ResumeCommand string
}

// Task reads the definition of an effect. Errors match [ErrNoTask] or [ErrCorrupt], or come
// from reading the file.
func (r *Run) Task(effectID string) (Task, error) {
	text, err := r.readTask(effectID, "task.json")
	if errors.Is(err, fs.ErrNotExist) {
		return Task{}, fmt.Errorf("read task %s of run %s: there is no task.json: %w", effectID, r.id, ErrNoTask)
	}
	if err != nil {
		return Task{}, fmt.Errorf("read task %q of run %s: %w", effectID, r.id, err)
	}
	t, err := r.parseTask(text)
	if err != nil {
		return Task{}, fmt.Errorf("read task %s of run %s: task.json: %w: %w", effectID, r.id, err, ErrCorrupt)
	}
	return t, nil
}

func (r *Run) readTask(effectID, name string) ([]byte, error) {
	if !isName(effectID) {
		return nil, fmt.Errorf("%q is no effect id: %w", effectID, ErrNoTask)
	}
	return readFile(filepath.Join(r.dir, "tasks", effectID, name))
}

// isName reports whether an id is safe as the name of a folder: ids come from outside.
func isName(id string) bool {
	return id != "" && len(id) <= 255 && id[0] != '.' && !strings.ContainsAny(id, "/\\\x00")
}
