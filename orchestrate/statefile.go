package orchestrate

import (
	"cmp"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"heartbeat/internal/disk"
)

var (
	// ErrSessionID says that a session id cannot be part of a file's name.
	ErrSessionID = errors.New("not a session id")
	// ErrBound says that a session is bound to another run, which is not over.
	ErrBound = errors.New("the session is bound to another run")
)

const (
	maxID   = 128
	maxSize = 64 << 20 // no prompt is that long
)

// StateFile is the state file of one orchestrated session, in the format of babysitter's own CLI and hooks:
// the file `{stateDir}/{sessionId}.md`:
//
//	---
//	active: true
//	iteration: 3
//	max_iterations: 256
//	run_id: "r1"
//	started_at: "2026-11-20T23:53:52Z"
//	last_iteration_at: "2026-11-20T23:55:01Z"
//	iteration_times:
//	---
//
//	the person's prompt
//
// A reader finds the old state or the new one, never a part of it. A change that returned nil survives a power
// loss. As with the CLI, no lock keeps changes apart: of two at the same moment the later one stays.
type StateFile struct{ dir, id string }

// StateFileAt returns the state file of a session in a state directory. Neither needs to exist. An id has at most 128
// letters, digits, dots, dashes and underscores, and begins with a letter or digit; the error for any other matches
// [ErrSessionID]. (The CLI accepts any id, and so writes anywhere.)
func StateFileAt(dir, id string) (StateFile, error) {
	if !validID(id) {
		return StateFile{}, fmt.Errorf("session %.200q: its id must be letters, digits, dots, dashes and underscores, %d at most: %w", id, maxID, ErrSessionID)
	}
	return StateFile{dir: dir, id: id}, nil
}

func validID(id string) bool {
	if id == "" || len(id) > maxID || strings.Contains("._-", id[:1]) {
		return false
	}
	return strings.IndexFunc(id, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
	}) < 0
}

func (f StateFile) Path() string { return filepath.Join(f.dir, f.id+".md") }

func (f StateFile) ID() string { return f.id }

// Read reads the state. If there is none, the error matches [fs.ErrNotExist].
func (f StateFile) Read() (State, error) {
	b, err := disk.ReadState(f.Path(), maxSize)
	if err != nil {
		return State{}, err
	}
	return ParseState(b), nil
}

// Write makes s the state. The temporary file's name is unique, since others may write at the same moment.
func (f StateFile) Write(s State) error {
	b, err := s.Format()
	if err == nil {
		err = os.MkdirAll(f.dir, 0o700)
	}
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(f.dir, f.id)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp.Name()) }() // unless it has become the state
	_, err = tmp.Write(b)
	if err = errors.Join(err, tmp.Sync(), tmp.Close()); err == nil {
		err = disk.Rename(tmp.Name(), f.Path())
	}
	return err
}

// Bind binds the session to the run that s names, free or not. It makes s the session's state and returns that state.
// The session keeps its limit of iterations if that of s is [KeepLimit], and its prompt if s has none.
func (f StateFile) Bind(s State) (State, error) {
	was, err := f.Read()
	if errors.Is(err, fs.ErrNotExist) {
		was, err = State{MaxIterations: DefaultMaxIterations}, nil
	}
	if err != nil {
		return s, err
	}
	if s.MaxIterations == KeepLimit {
		s.MaxIterations = was.MaxIterations
	}
	s.Prompt = cmp.Or(s.Prompt, was.Prompt)
	return s, f.Write(s)
}

// CheckFree returns an error that matches [ErrBound] if the session is bound to another run than runID that goes on.
func (f StateFile) CheckFree(runID string, over func(runID string) (bool, error)) error {
	was, err := f.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || was.RunID == "" || was.RunID == runID {
		return err
	}
	is, err := over(was.RunID)
	switch {
	case is:
		return nil
	case err != nil:
		err = fmt.Errorf(", which may not be over (%w)", err)
	default:
		err = errors.New(", which is not over")
	}
	return fmt.Errorf("bind session %s: %w: run %s%w: end that one first, or remove %s", f.id, ErrBound, was.RunID, err, f.Path())
}

// Delete removes the state, if there is one.
func (f StateFile) Delete() error { return disk.Remove(f.Path()) }

// StateDir returns the absolute path of the directory of state files, found as the CLI finds it: the flag,
// $BABYSITTER_STATE_DIR, `state` in $BABYSITTER_GLOBAL_STATE_DIR, `.a5c/state` in the home directory. Relative
// paths start at the working directory.
func StateDir(flag string, getenv func(string) string) (string, error) {
	dir := cmp.Or(flag, getenv("BABYSITTER_STATE_DIR"))
	switch root, home := getenv("BABYSITTER_GLOBAL_STATE_DIR"), getenv("HOME"); {
	case dir != "":
	case trim(root) != "":
		dir = filepath.Join(root, "state")
	case home != "":
		dir = filepath.Join(home, ".a5c", "state")
	default:
		return "", errors.New("find the directory of session states: HOME is not set: give --state-dir")
	}
	return filepath.Abs(dir)
}

// SessionVariable is the environment variable that names the session to the CLI and its hooks.
const SessionVariable = "BABYSITTER_SESSION_ID"

// ExportSession makes the client set [SessionVariable] for the commands of its session. It adds a line to the shell
// script that the client names in CLAUDE_ENV_FILE, unless the script already sets this id last. The file is the
// client's, so a symbolic link is followed; a missing file is made with mode 0600. ExportSession refuses an id that
// [StateFileAt] refuses, so the id needs no quoting.
func ExportSession(envFile, id string) (err error) {
	if !validID(id) {
		return fmt.Errorf("export session %.200q: %w", id, ErrSessionID)
	}
	f, _, err := disk.OpenAppend(envFile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, err := f.ReadUpTo(maxScript)
	if err != nil {
		return err
	}
	script, line, last := string(b), "export "+SessionVariable+`="`+id+`"`, ""
	for l := range strings.Lines(script) {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(strings.TrimPrefix(l, "export "), SessionVariable+"=") {
			last = l
		}
	}
	if last == line {
		return nil
	}
	if script != "" && !strings.HasSuffix(script, "\n") {
		line = "\n" + line
	}
	_, err = f.Append([]byte(line + "\n"))
	return err
}

// maxScript is more than any such script needs, in bytes.
const maxScript = 16 << 20

// PromiseIn returns the text between the first <promise> of a message and the next </promise>, trimmed, with runs of
// white space collapsed to one space. ok is false without such a pair. Like the CLI, it ignores later pairs.
func PromiseIn(message string) (value string, ok bool) {
	_, rest, opened := strings.Cut(message, "<promise>")
	value, _, closed := strings.Cut(rest, "</promise>")
	if !opened || !closed {
		return "", false
	}
	return strings.Join(strings.FieldsFunc(value, isSpace), " "), true
}

// PromiseKept reports whether the message promises the proof. An empty proof is never promised.
func PromiseKept(message, proof string) bool {
	value, ok := PromiseIn(message)
	return ok && proof != "" && subtle.ConstantTimeCompare([]byte(value), []byte(proof)) == 1
}
