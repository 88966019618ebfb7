package action

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Job is a job of a workflow that uses actions.
type Job struct {
	Checkout string   // the folder that its steps run in
	Temp     string   // emptied when the job begins
	Env      []string // all that its steps inherit, the PATH among it
	SHA      string
	Event    any // what started it
	Run      int
	Attempt  int
	Cache    *Cache
	Ref      string // of the action
}

// Used is what came of an action.
type Used struct {
	Outputs  map[string]string
	Status   int    // of the first step that failed
	Failed   string // its id
	Log      string
	Commands []Command
	Summary  string
	Ran      []string // the ids of the steps that ran
}

// Begin empties what is a job's own.
func (j *Job) Begin() error {
	return errors.Join(os.RemoveAll(j.Temp), os.MkdirAll(j.Temp, 0o700))
}

// Use runs the action in a folder.
func (j *Job) Use(folder string, with map[string]string) (u Used, err error) {
	m, err := Read(folder)
	if err != nil {
		return u, err
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return u, err
	}
	known := values{
		"github.token": "job-token", "github.run_id": fmt.Sprint(j.Run), "github.run_attempt": fmt.Sprint(j.Attempt),
		"github.action_ref": j.Ref, "github.action_repository": "someone/heartbeat",
	}
	for name, input := range m.Inputs {
		if known["inputs."+name], err = known.fill(input.Default); err != nil {
			return u, err
		}
	}
	for name, value := range with {
		if _, is := m.Inputs[name]; !is {
			return u, fmt.Errorf("action: there is no input %s", name)
		}
		known["inputs."+name] = value
	}
	at := &place{Job: j, action: folder, known: known, files: filepath.Join(j.Temp, "_runner_file_commands"), used: &u}
	if err := at.prepare(); err != nil {
		return u, err
	}
	for i, step := range m.Runs.Steps {
		if err := at.step(i, step); err != nil {
			return u, fmt.Errorf("%w\n%s", err, u.Log)
		}
	}
	u.Outputs, u.Commands = map[string]string{}, commands(u.Log)
	for name, output := range m.Outputs {
		if u.Outputs[name], err = known.fill(output.Value); err != nil {
			return u, err
		}
	}
	summary, err := os.ReadFile(filepath.Join(at.files, "summary"))
	u.Summary = string(summary)
	return u, err
}

// place is where the steps of one action run.
type place struct {
	*Job
	action string
	known  values
	files  string
	path   []string
	used   *Used
}

func (p *place) prepare() error {
	event, err := json.Marshal(p.Event)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(p.files, 0o700), os.WriteFile(filepath.Join(p.files, "event.json"), event, 0o600),
		os.WriteFile(filepath.Join(p.files, "summary"), nil, 0o600))
}

func (p *place) step(i int, s Step) error {
	runs, err := p.known.holds(s.If, p.used.Status != 0)
	if err != nil || !runs {
		return err
	}
	p.used.Ran = append(p.used.Ran, s.ID)
	filled := map[string]string{}
	for _, given := range []map[string]string{s.With, s.Env} {
		for name, value := range given {
			if filled[name], err = p.known.fill(value); err != nil {
				return err
			}
		}
	}
	switch name, _, _ := strings.Cut(s.Uses, "@"); name {
	case "actions/cache/restore":
		return p.Cache.restore(filled["key"], filled["restore-keys"], filled["path"])
	case "actions/cache/save":
		return p.Cache.save(filled["key"], filled["path"])
	case "":
		return p.run(i, s, filled)
	}
	return fmt.Errorf("action: this runner has no %s", s.Uses)
}

// run has bash run a step's script as a runner does.
func (p *place) run(i int, s Step, env map[string]string) error {
	if s.Shell != "bash" || expression.MatchString(s.Run) {
		return fmt.Errorf("action: the step %s is no script for bash, or has an expression in it", s.ID)
	}
	file := func(kind string) string { return filepath.Join(p.files, fmt.Sprintf("%s_%d", kind, i)) }
	for _, kind := range []string{"output", "path", "env", "state"} {
		if err := os.WriteFile(file(kind), nil, 0o600); err != nil {
			return err
		}
	}
	if err := os.WriteFile(file("script"), []byte(s.Run+"\n"), 0o600); err != nil {
		return err
	}
	cmd := exec.Command("bash", "--noprofile", "--norc", "-eo", "pipefail", file("script"))
	cmd.Dir = p.Checkout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = append(cmd.Env, p.Env...)
	cmd.Env = append(cmd.Env, "CI=true", "GITHUB_ACTIONS=true", "GITHUB_SHA="+p.SHA, "GITHUB_REPOSITORY=someone/project", "RUNNER_TEMP="+p.Temp,
		"GITHUB_WORKSPACE="+p.Checkout, "GITHUB_ACTION_PATH="+p.action, "GITHUB_EVENT_PATH="+filepath.Join(p.files, "event.json"),
		"GITHUB_OUTPUT="+file("output"), "GITHUB_PATH="+file("path"), "GITHUB_ENV="+file("env"), "GITHUB_STATE="+file("state"),
		"GITHUB_STEP_SUMMARY="+filepath.Join(p.files, "summary"), "PATH="+p.pathOf())
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	p.used.Log += string(out)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	if status := cmd.ProcessState.ExitCode(); status != 0 && p.used.Status == 0 {
		p.used.Status, p.used.Failed = status, s.ID
	}
	return p.take(s.ID, file)
}

// take reads what a step has left for later ones.
func (p *place) take(id string, file func(string) string) error {
	outputs, err := outputsIn(file("output"))
	if err != nil {
		return err
	}
	for name, value := range outputs {
		p.known["steps."+id+".outputs."+name] = value
	}
	added, err := os.ReadFile(file("path"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(added)) {
		p.path = append([]string{strings.TrimSpace(line)}, p.path...)
	}
	return nil
}

func (p *place) pathOf() string {
	all := p.path
	for _, kv := range p.Env {
		if path, is := strings.CutPrefix(kv, "PATH="); is {
			all = append(all[:len(all):len(all)], path)
		}
	}
	return strings.Join(all, string(filepath.ListSeparator))
}
