package orchestrate

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"heartbeat/internal/disk"
	"heartbeat/internal/words"
	"heartbeat/orchestrate/babysitter"
	"heartbeat/orchestrate/run"
)

// accepted is the code of a run as it was bound or last accepted. It is kept outside the folders of agents.
type accepted struct {
	Dir  string    `json:"run_dir"`
	Code run.Code  `json:"code"`
	At   time.Time `json:"at"`
	// Commands are the words of the babysitter commands that steps used. A person who accepts code may use another one.
	Commands []string `json:"commands,omitempty"`
}

func (b *Bridge) acceptedPath() (string, error) {
	dir, err := disk.UserState("code")
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(b.Run.Dir())
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, fmt.Sprintf("%x", sha256.Sum256([]byte(real)))[:32]), nil
}

// readAccepted returns the accepted code, the zero value if the run was not bound yet.
func (b *Bridge) readAccepted() (a accepted, err error) {
	path, err := b.acceptedPath()
	if err != nil {
		return a, err
	}
	text, err := disk.ReadState(path, disk.MaxWhole)
	if errors.Is(err, fs.ErrNotExist) {
		return a, nil
	}
	if err == nil && (json.Unmarshal(text, &a) != nil || a.Code == nil) {
		err = fmt.Errorf("%s is damaged", path)
	}
	return a, err
}

// currentCode returns the run's code as it is now, with the babysitter commands that were used before.
func (b *Bridge) currentCode(before accepted) (now accepted, err error) {
	words := slices.Concat(before.Commands, b.CLI.Command)
	slices.Sort(words)
	now = accepted{Dir: b.Run.Dir(), At: time.Now(), Commands: slices.Compact(words)}
	now.Code, err = b.Run.Code(babysitter.Project(b.Run.Dir()), now.Commands)
	return now, err
}

// AcceptCode accepts the run's code as it is now, so that steps continue with it, and returns what differs from the
// code accepted before. Binding a run does the same.
func (b *Bridge) AcceptCode() (changed []string, err error) {
	before, _ := b.readAccepted() // an unreadable file is replaced
	now, err := b.currentCode(before)
	if err != nil {
		return nil, err
	}
	if before.Code != nil {
		changed = b.briefNames(now.Code.Differs(before.Code))
	}
	return changed, b.accept(now)
}

// Bind binds the run to its code, if it is not bound yet, and has a CLI noted whose version is not the measured one. A
// run that cannot be bound rests, and its report says why.
func (b *Bridge) Bind(ctx context.Context) {
	if before, err := b.readAccepted(); before.Code != nil || err != nil {
		return
	}
	if _, err := b.AcceptCode(); err == nil { // else a step tries again
		_, _ = b.CLI.Version(ctx) // the next call returns why it cannot be run
	}
}

func (b *Bridge) accept(now accepted) error {
	path, err := b.acceptedPath()
	text, _ := json.Marshal(now) // strings and a time always encode
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = disk.Publish(path, append(text, '\n'), true)
	}
	if err != nil {
		return fmt.Errorf("keep which code of run %s was accepted: %w", b.Run.ID(), err)
	}
	return nil
}

// errUnaccepted says that the run's code is not what it was when the run was bound.
var errUnaccepted = errors.New("its code has to be accepted")

// toAccept adds to such an error what a person does about it.
func (b *Bridge) toAccept(err error) error {
	return fmt.Errorf("%w: look at it, and `%s` has the run go on", err, words.Shell("heartbeat", "run", "accept-code", b.Run.ID(), "--inbox", b.Box.Path()))
}

// mayRun returns an error that matches errUnaccepted if the run's code may not be executed. It binds an unbound run,
// unless another process drives that run.
func (b *Bridge) mayRun() error {
	if b.AnyCode {
		return nil
	}
	before, err := b.readAccepted()
	var now accepted
	if err == nil {
		now, err = b.currentCode(before)
	}
	if err == nil && before.Code == nil {
		if b.follows {
			return fmt.Errorf("%w: nobody has done so yet", errUnaccepted)
		}
		before, err = now, b.accept(now)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errUnaccepted, err)
	}
	if changed := b.briefNames(now.Code.Differs(before.Code)); len(changed) > 0 {
		return fmt.Errorf("%w: it has changed in %s", errUnaccepted, strings.Join(changed, ", "))
	}
	if len(now.Commands) > len(before.Commands) {
		_ = b.accept(now) // it only adds a command, and the next step tries again
	}
	return nil
}

// maxShownCode bounds how many parts of the code a sentence names.
const maxShownCode = 3

func (b *Bridge) briefNames(names []string) (all []string) {
	for i, name := range names {
		if i == maxShownCode {
			return append(all, fmt.Sprintf("%d more", len(names)-i))
		}
		if project := babysitter.Project(b.Run.Dir()); project != "" {
			name = strings.TrimPrefix(name, project+"/")
		}
		all = append(all, name)
	}
	return all
}

// standstill is why a run does not move, and since when.
type standstill struct {
	Why   string    `json:"why,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// still returns the standstill for why, which began earlier if the reason is the same.
func (r standstill) still(why error) standstill {
	if r.Why == why.Error() {
		return r
	}
	return standstill{why.Error(), time.Now()}
}
