package run

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"heartbeat/internal/disk"
	"heartbeat/internal/words"
)

// Task is the definition of an effect: tasks/ID/task.json. Babysitter does not check it, so a member of an
// unexpected type reads as zero. Raw has the original.
type Task struct {
	Kind, Title, StepID string
	// Command is what a task of kind "node" or "shell" runs, or nil if it names none.
	Command *Command
	// Question is what a breakpoint asks a person, or else its title or kind. Choices are the names by which an
	// answer may choose one of its options.
	Question string
	Choices  []string
	// InputsPath is the absolute path of the inputs if they are over 1 MiB, else "".
	InputsPath string
	Raw        []byte // all of task.json
}

// Command is a command of a task.
type Command struct {
	Argv    []string
	Cwd     string        // from the project
	Env     []string      // NAME=VALUE, perhaps with secrets
	Timeout time.Duration // 0 for none
	Success int           // the exit status that counts as success
	Silent  bool          // what it prints is not its result
}

// Task reads the definition of an effect. Errors match [ErrNoTask] or [ErrCorrupt], or come from reading the file.
func (r *Run) Task(effectID string) (Task, error) {
	if !isName(effectID) {
		return Task{}, fmt.Errorf("read task %q of run %s: %q is no effect id: %w", effectID, r.id, effectID, ErrNoTask)
	}
	text, err := disk.ReadFile(filepath.Join(r.dir, "tasks", effectID, "task.json"), maxFile)
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

// isName reports whether an id, which comes from outside, is safe as the name of a folder.
func isName(id string) bool {
	return id != "" && len(id) <= 255 && id[0] != '.' && !strings.ContainsAny(id, "/\\\x00")
}

func (r *Run) parseTask(text []byte) (Task, error) {
	m, err := parseObject(text)
	if err != nil {
		return Task{}, err
	}
	t := Task{Kind: m.Get("kind").Str, Title: m.Get("title").Str, StepID: m.Get("stepId").Str, Raw: text}
	if ref := m.Get("inputsRef").Str; ref != "" {
		if !filepath.IsLocal(ref) {
			return Task{}, fmt.Errorf("its inputsRef %q leads out of the run", ref)
		}
		t.InputsPath = filepath.Join(r.dir, ref)
	}
	switch t.Kind {
	case "node":
		node := object(m.Get("node"))
		if entry := node.Get("entry").Str; entry != "" {
			t.Command = commandOf(node, "node", entry)
			for _, arg := range list(node.Get("args")) {
				t.Command.Argv = append(t.Command.Argv, arg.String())
			}
		}
	case "shell":
		shell := object(m.Get("shell"))
		if line := shell.Get("command").Str; line != "" {
			t.Command = commandOf(shell, "sh", "-c", line)
			t.Command.Success = int(shell.Get("expectedExitCode").Num)
		}
	case "breakpoint":
		// The process's ctx.breakpoint puts the question into the metadata, a task defined as a breakpoint into its own
		// payload.
		asked, own := m.Get("metadata.payload"), m.Get("breakpoint.payload")
		t.Question = cmp.Or(object(asked).Get("question").Str, object(own).Get("question").Str, t.Title, t.Kind)
		if !asked.Exists() {
			asked = own
		}
		t.Choices = choices(object(asked).Get("options"))
	}
	return t, nil
}

// commandOf reads the members that both kinds of commands have.
func commandOf(m gjson.Result, argv ...string) *Command {
	c := &Command{
		Argv: argv, Cwd: m.Get("cwd").Str, Silent: m.Get("captureOutput").Type == gjson.False, Timeout: words.Milliseconds(m.Get("timeoutMs").Num),
	}
	for name, value := range object(m.Get("env")).Map() {
		if value.Type != gjson.Null {
			c.Env = append(c.Env, name+"="+value.String())
		}
	}
	return c
}

// choices returns a text option itself, and the id, value, name, label and title of an object.
func choices(options gjson.Result) (all []string) {
	for _, o := range list(options) {
		if o.Type == gjson.String {
			all = append(all, o.Str)
		}
		for _, name := range []string{"id", "value", "name", "label", "title"} {
			if s := object(o).Get(name); s.Type == gjson.String {
				all = append(all, s.Str)
			}
		}
	}
	return all
}
