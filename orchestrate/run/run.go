// Package run reads the directory of a babysitter run, and never writes to it.
//
// A run is a process that asks for effects (a shell command, a question to a person, work for an agent) and
// continues when they are answered. The run is its journal, a folder with one file for each event, named
// SEQ.ULID.json. The babysitter command derives everything else from the journal, and so does this package: it
// refuses what the command refuses, and otherwise comes to the same result. It exists because a turn cannot wait a
// quarter of a second for Node to start.
//
// The command writes each event to a temporary file and renames it, so an event in the journal is complete. An
// event that cannot be read is damage, even if it is the last.
package run

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/tidwall/gjson"

	"heartbeat/internal/disk"
)

// Layout is the one version of a run directory that this package reads.
const Layout = "2026.01-storage-preview"

// Faults of a run, for [errors.Is].
var (
	ErrNoRun   = errors.New("there is no such run")                    // no directory, or none with a run.json
	ErrLayout  = errors.New("the run is of a layout that is not read") // a version other than Layout
	ErrCorrupt = errors.New("the run is damaged")                      // babysitter refuses it, too
	ErrNoTask  = errors.New("the run has no such task")                // no tasks/ID/task.json
)

// Run is a run directory as its run.json describes it. It holds no file open. Several goroutines may use it.
type Run struct {
	dir       string
	id        string
	processID string
	proof     string
	prompt    string
	entry     string // module of the process, as in run.json

	mu   sync.Mutex
	last memo // of the last reading
}

// Open reads run.json in dir, which must be absolute. Errors match [ErrNoRun], [ErrLayout] or [ErrCorrupt], or are
// about reading itself.
func Open(dir string) (*Run, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("open run %q: the path is not absolute", dir)
	}
	dir = filepath.Clean(dir)
	path := filepath.Join(dir, "run.json")
	text, err := disk.ReadFile(path, maxFile) // the run belongs to the user, so links are followed
	if gone(err) {
		return nil, fmt.Errorf("open run %s: it has no run.json: %w", dir, ErrNoRun)
	}
	if err != nil {
		return nil, fmt.Errorf("open run %s: %w", dir, err)
	}
	return parseRun(dir, text)
}

func parseRun(dir string, text []byte) (*Run, error) {
	m, err := parseObject(text)
	if err != nil {
		return nil, damagedRun(dir, err.Error())
	}
	if layout := m.Get("layoutVersion").Str; layout != Layout {
		return nil, fmt.Errorf("open run %s: its layoutVersion is %s, and only %s is read: %w", dir, cmp.Or(layout, "unknown"), Layout, ErrLayout)
	}
	proof, id := m.Get("completionProof"), m.Get("runId").Str
	if id == "" {
		return nil, damagedRun(dir, "it has no runId")
	}
	r := &Run{
		dir: dir, id: id, proof: proof.Str, prompt: m.Get("prompt").Str,
		processID: cmp.Or(m.Get("processId").Str, m.Get("request").Str, id),
		entry:     cmp.Or(m.Get("entrypoint.importPath").Str, m.Get("processPath").Str),
	}
	if proof.Type != gjson.String { // babysitter then derives one
		r.proof = fmt.Sprintf("%x", sha256.Sum256([]byte(id+":babysitter-completion-secret-v1")))
	}
	return r, nil
}

func damagedRun(dir, why string) error {
	return fmt.Errorf("open run %s: run.json: %s: restore it, since run:repair-journal only mends the journal: %w", dir, why, ErrCorrupt)
}

// ID returns the run's id, from run.json. The directory may have another name.
func (r *Run) ID() string { return r.id }

// ProcessID returns the id of the process that the run executes.
func (r *Run) ProcessID() string { return r.processID }

// Dir returns the absolute path of the run directory.
func (r *Run) Dir() string { return r.dir }

// Proof returns the secret that an agent has to name once the run is completed. Do not reveal it earlier.
func (r *Run) Proof() string { return r.proof }

// Prompt returns the prompt that the run was created with, or "".
func (r *Run) Prompt() string { return r.prompt }

// maxFile is more than any file of a run needs: larger inputs and results have files of their own.
const maxFile = 64 << 20
