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

	"heartbeat/inbox"
	"heartbeat/internal/cli"
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
	// Commands are the words of the commands of babysitter that steps were taken with. Who accepts may name another one.
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

// readAccepted returns no code if the run was not bound yet.
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

// currentCode is the run's code as it is now, with the commands of babysitter that were taken before.
func (b *Bridge) currentCode(before accepted) (now accepted, err error) {
	words := slices.Concat(before.Commands, b.CLI.Command)
	slices.Sort(words)
	now = accepted{Dir: b.Run.Dir(), At: time.Now(), Commands: slices.Compact(words)}
	now.Code, err = b.Run.Code(babysitter.Project(b.Run.Dir()), now.Commands)
	return now, err
}

// AcceptCode accepts the run's code as it is now, so that steps go on with it. Binding a run does the same.
// AcceptCode returns what differs from the code that was accepted before.
func (b *Bridge) AcceptCode() (changed []string, err error) {
	before, _ := b.readAccepted() // what cannot be read is replaced
	now, err := b.currentCode(before)
	if err != nil {
		return nil, err
	}
	if before.Code != nil {
		changed = b.briefNames(now.Code.Differs(before.Code))
	}
	return changed, b.accept(now)
}

// Bind binds the run to its code, if it is not bound yet. It also has a version of the CLI noted that is not the
// measured one. A run that cannot be bound rests, and says why.
func (b *Bridge) Bind(ctx context.Context) {
	if before, err := b.readAccepted(); before.Code != nil || err != nil {
		return
	}
	if _, err := b.AcceptCode(); err == nil { // else a step tries again
		_, _ = b.CLI.Version(ctx) // the next call says why it cannot be run
	}
}

func (b *Bridge) accept(now accepted) error {
	path, err := b.acceptedPath()
	text, _ := json.Marshal(now) // it always can be
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

// mayRun guards whatever executes the run's code, and refuses with errRests. It binds an unbound run, unless
// another process drives that run.
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

// maxShownCode is how many parts of the code a sentence names.
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

// standstill is why a run stops until a person accepts its code.
type standstill struct {
	Why   string    `json:"why,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

// still keeps the time for as long as the reason is the same.
func (r standstill) still(why error) standstill {
	if r.Why == why.Error() {
		return r
	}
	return standstill{why.Error(), time.Now()}
}

// Resting returns why and since when a run rests until a person accepts its code, or is stuck because its last step
// failed. why is "" for any other run.
func Resting(box *inbox.Inbox, r *run.Run) (why string, stuck bool, since time.Time) {
	l, err := (&Bridge{Box: box, Run: r}).loadLedger()
	switch {
	case err != nil:
		return err.Error(), true, since
	case l.Stuck.Why != "" && !l.Done:
		return l.Stuck.Why, true, l.Stuck.Since
	}
	return l.Rests.Why, false, l.Rests.Since
}

// Stopped says why a run needs a person that can take steps: it was stopped, or no result of an effect will come.
// why is "" for any other run, and for one that rests.
func (b *Bridge) Stopped() (why string, since time.Time) {
	l, err := b.loadLedger()
	if err != nil || l.Done || l.Rests.Why != "" || l.Stuck.Why != "" {
		return "", since
	}
	if l.Guard != "" {
		return cli.Guarded(l.Guard, l.outOfSteps()), since
	}
	st, err := b.Run.State()
	if err != nil {
		return "", since
	}
	for _, w := range l.Wants {
		a := l.Effects[w.Effect]
		switch {
		case st.Effect(w.Effect) != run.Requested:
		case b.handedOver(w.Effect, false):
			if i, err := disk.StatName(answerPath(b.Box, b.Run, w.Effect)); err == nil {
				since = time.Unix(0, i.Mtime)
			}
		case a.Over != "" && !b.waits(a.Entry):
			requeue := words.Shell("heartbeat", "dead-letter", "requeue", "--inbox", b.Box.Path(), a.Entry)
			return "effect " + w.Effect + ": " + a.Over + ": heartbeat result hands its result over, and `" + requeue + "` asks again", a.Since
		}
	}
	if !since.IsZero() && time.Since(since) > untaken && b.idle() {
		return "it has results, and nobody takes its steps: `" + words.Shell("heartbeat", "run", "resume", "--inbox", b.Box.Path(), b.Run.Dir()) + "` takes one, and --run has the launcher or the hook do so", since
	}
	return "", time.Time{}
}

// untaken is how long a result may wait for a step where nothing else is done: a hook or launcher takes one at once.
const untaken = time.Minute

// idle reports whether nothing waits in the inbox or is worked on, nor a step is taken.
func (b *Bridge) idle() bool {
	v, err := b.Box.View()
	if err != nil {
		return false
	}
	next, err := v.Next(1)
	return errors.Join(err, v.Close()) == nil && len(next) == 0 && v.InFlight() == nil && !Stepping(b.Box, []string{b.Run.Dir()})
}
