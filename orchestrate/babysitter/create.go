package babysitter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/tidwall/gjson"

	"heartbeat/internal/machine"
)

// CreateOptions describe a run to create.
type CreateOptions struct {
	ProcessID string
	// Entry is the process module and the export that is the process: PATH#EXPORT. Without #EXPORT the export is
	// process, never the default export: the CLI would accept a module that only has that, and fail every iteration.
	Entry string
	// Inputs of the process, any JSON value; nil is none.
	Inputs []byte
	// RunID consists of letters, digits and . _ -. If it is empty, one is drawn.
	RunID string
	// Prompt is kept for people. The CLI takes it only as an argument, which other users of the machine can see.
	Prompt string
	// Revision is the process's, and Request names what asked for the run. Both are optional and kept with the run.
	Revision, Request string
	// RunsDir is the folder to create the run in. Empty means .a5c/runs.
	RunsDir string
	// NonInteractive has the CLI approve every breakpoint by itself.
	NonInteractive bool
	// DryRun has the CLI check the run. It writes nothing, and does not load the process module.
	DryRun bool
}

// Created is a new run, or the one that a dry run would create.
type Created struct {
	RunID    string `json:"run_id"`
	RunDir   string `json:"run_dir"` // absolute
	Process  string `json:"process"`
	Entry    string `json:"entry"`
	Request  string `json:"request"`
	Revision string `json:"process_revision,omitempty"`
}

// longestPrompt fits into one argument on every system.
const longestPrompt = 100 << 10

var (
	runIDs     = lazily(`^[0-9A-Za-z][0-9A-Za-z._-]{0,127}$`)
	processIDs = lazily(`^[^-\pC][^\pC]{0,255}$`)
)

// Create makes a run. It loads the process module, but does not run the process. It refuses an existing run, which the
// CLI would overwrite. If an error leaves a folder behind, its sentence names the folder.
func (c *CLI) Create(ctx context.Context, options CreateOptions) (made Created, err error) {
	r, args, err := planFor(options)
	if err != nil {
		return made, err
	}
	q := request{
		doing: "make the run " + r.dir, command: "run:create", args: args, dir: Project(r.dir), timeout: createTimeout,
		answer: answerWhere(func(a gjson.Result) bool { return a.Get("runId").Str == r.id && a.Get("runDir").Str != "" }),
	}
	if options.Inputs != nil {
		file, err := writeTemp(options.Inputs)
		if err != nil {
			return made, fmt.Errorf("make the run %s: keep its inputs: %w", r.dir, err)
		}
		defer os.Remove(file)
		q.args = append(q.args, "--inputs", file)
	}
	call := c.call
	if options.DryRun {
		if _, err := os.Lstat(r.dir); err == nil {
			return made, r.errTaken()
		}
		q.doing, q.args = "preview the run "+r.dir, append(q.args, "--dry-run")
		call, q.answer = c.callTwice, answerWhere(func(a gjson.Result) bool { return a.Get("dryRun").Bool() })
	} else if err := r.claim(); err != nil {
		return made, err
	}
	a, err := call(ctx, q)
	made = Created{r.id, r.dir, options.ProcessID, a.Get("entry").String(), a.Get("request").String(), a.Get("processRevision").String()}
	if err != nil && !options.DryRun && os.Remove(r.dir) != nil { // it is not empty
		err = fmt.Errorf("%w: the unfinished run is left in %s: remove it", err, r.dir)
	}
	return made, err
}

// planFor returns the run to create, and the CLI's arguments for that.
func planFor(o CreateOptions) (r run, args []string, err error) {
	if !processIDs().MatchString(o.ProcessID) {
		return r, nil, fmt.Errorf("%.200q is no id of a process", o.ProcessID)
	}
	for _, label := range [][2]string{{o.Revision, "revision of a process"}, {o.Request, "name of a request"}} {
		if label[0] != "" && !processIDs().MatchString(label[0]) {
			return r, nil, fmt.Errorf("%.200q is no %s: it has 256 characters at most, does not begin with a dash, and is one line", label[0], label[1])
		}
	}
	if len(o.Prompt) > longestPrompt || strings.Contains(o.Prompt, "\x00") {
		return r, nil, fmt.Errorf("the prompt of a run has at most %d bytes, none of them 0", longestPrompt)
	}
	if o.Inputs != nil && !json.Valid(o.Inputs) {
		return r, nil, fmt.Errorf("the inputs of the run are not JSON")
	}
	entry, err := explicitEntry(o.Entry)
	if err != nil {
		return r, nil, err
	}
	if r, err = placeFor(o); err != nil {
		return r, nil, err
	}
	args = []string{
		"--process-id", o.ProcessID, "--entry", entry, "--runs-dir", filepath.Dir(r.dir), "--run-id", r.id, "--harness", "custom", "--json",
	}
	for _, of := range [][2]string{{"--prompt", o.Prompt}, {"--process-revision", o.Revision}, {"--request", o.Request}} {
		if of[1] != "" {
			args = append(args, of[0], of[1])
		}
	}
	if o.NonInteractive {
		args = append(args, "--non-interactive")
	}
	return r, args, nil
}

// explicitEntry returns the entry with an absolute path and an export.
func explicitEntry(entry string) (string, error) {
	path, export := entry, "process"
	if i := strings.LastIndexByte(entry, '#'); i >= 0 {
		path, export = entry[:i], entry[i+1:]
	}
	if path == "" || export == "" {
		return "", fmt.Errorf("%.200q is no process: give PATH#EXPORT", entry)
	}
	path, err := absolute("process module", path)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() {
		return "", fmt.Errorf("there is no process module %s", path)
	}
	return path + "#" + export, nil
}

func placeFor(o CreateOptions) (run, error) {
	if o.RunID == "" {
		name, err := machine.RandomName()
		if err != nil {
			return run{}, err
		}
		o.RunID = time.Now().UTC().Format("20060102-150405-") + name[:10]
	}
	if !runIDs().MatchString(o.RunID) {
		return run{}, fmt.Errorf("%.200q is no id of a run: those are letters, digits and . _ -", o.RunID)
	}
	if o.RunsDir == "" {
		o.RunsDir = filepath.Join(".a5c", "runs")
	}
	dir, err := absolute("run", filepath.Join(o.RunsDir, o.RunID))
	return run{dir, o.RunID}, err
}

// claim makes the run's folder. Only one process can succeed.
func (r run) claim() error {
	if err := os.MkdirAll(filepath.Dir(r.dir), 0o777); err != nil {
		return fmt.Errorf("make the run %s: %w", r.dir, err)
	}
	err := os.Mkdir(r.dir, 0o777)
	if errors.Is(err, fs.ErrExist) {
		return r.errTaken()
	}
	if err != nil {
		return fmt.Errorf("make the run %s: %w", r.dir, err)
	}
	return nil
}

func (r run) errTaken() error {
	return fmt.Errorf("make the run %s: it is there already: choose another id, or remove it", r.dir)
}

// writeTemp writes JSON to a file for the CLI, which the caller removes. The path is absolute, since the CLI looks for a
// relative one in the run's folder.
func writeTemp(text []byte) (path string, err error) {
	dir, err := filepath.Abs(os.TempDir())
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, "heartbeat-*.json") // mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

type run struct {
	dir string // absolute; links are not resolved
	id  string
}

// absolute makes a path absolute, so that the CLI does not interpret it.
func absolute(what, path string) (string, error) {
	switch {
	case path == "":
		return "", fmt.Errorf("the folder of the %s is empty", what)
	case strings.ContainsFunc(path, unicode.IsControl):
		return "", fmt.Errorf("the path %q of the %s has control characters", path, what)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find the %s %s: %w", what, path, err)
	}
	if strings.Contains(abs+"/", "/.a5c/runs/.a5c/runs/") {
		return "", fmt.Errorf("the %s %s has .a5c/runs twice in a row, which the CLI takes for a mistake and works elsewhere", what, abs)
	}
	return abs, nil
}

var effectIDs = lazily(`^[0-9A-Za-z][0-9A-Za-z_-]{0,127}$`)

func checkEffectID(id string) error {
	if !effectIDs().MatchString(id) {
		return fmt.Errorf("%.200q is no effect id: those are letters, digits and _ -", id)
	}
	return nil
}

// Project returns P for a run in P/.a5c/runs, where process code expects to run, and "" for a run anywhere else.
func Project(runDir string) string {
	all := filepath.Dir(runDir)
	dot := filepath.Dir(all)
	if filepath.Base(all) == "runs" && filepath.Base(dot) == ".a5c" {
		return filepath.Dir(dot)
	}
	return ""
}
