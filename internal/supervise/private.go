package supervise

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/machine/guardian"
	"heartbeat/internal/supervise/client"
	"heartbeat/internal/supervise/sharing"
)

// private is a directory that only this user can reach. It holds the settings that wire the
// session's hook: anybody who could replace them could run commands as this user.
type private struct{ dir string }

// makePrivate makes the directory in the first suitable system place. It removes one left by a
// killed launcher of the same inbox: lock proves that no other launcher runs.
func makePrivate(box *inbox.Inbox, lock *disk.Lock) (*private, error) {
	sum := sha256.Sum256([]byte(lock.Identity() + " " + box.Path()))
	prefix := "heartbeat-launch-" + hex.EncodeToString(sum[:6]) + "-"
	bases := []string{os.TempDir(), box.Dir()} // the best one first
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		bases = slices.Insert(bases, 0, dir)
	}
	var failed error
	for _, base := range bases {
		if err := keepsNames(base); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		removePrivate(base, prefix)
		dir, err := os.MkdirTemp(base, prefix)
		if err == nil {
			return &private{dir}, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, fmt.Errorf("find a private directory for the session's settings: %w: name one in TMPDIR", failed)
}

// keepsNames returns an error if somebody else could replace a directory made in dir.
func keepsNames(dir string) error {
	info, err := disk.StatDir(dir)
	switch {
	case err != nil:
		return err
	case disk.OthersWrite(info) && !info.Sticky():
		return fmt.Errorf("%s: others may write there (mode %04o)", dir, info.Mode)
	}
	return nil
}

// guardRest has a guardian remove the directory if this process is killed between two sessions.
// During a session the session's guardian does; without one, the next launcher does.
func (r *run) guardRest() {
	if r.Terminal.Guard && r.SettingsDir == "" && r.resting == nil {
		r.resting, _ = guardian.Post("", nil, guardian.Then{Remove: r.private.paths()})
	}
}

func (r *run) endRest() {
	r.resting.Dismiss()
	r.resting = nil
}

// removePrivate removes the directories with the prefix.
func removePrivate(base, prefix string) {
	names, err := os.ReadDir(base)
	if err != nil {
		return // leftovers do no harm
	}
	for _, n := range names {
		if strings.HasPrefix(n.Name(), prefix) && n.IsDir() {
			(&private{filepath.Join(base, n.Name())}).remove()
		}
	}
}

// paths lists the files that the directory may hold, then the directory.
func (p *private) paths() (all []string) {
	for _, name := range []string{client.SettingsName, client.ToolsName, sharing.SocketName} {
		all = append(all, filepath.Join(p.dir, name), filepath.Join(p.dir, name+".tmp"))
	}
	return append(all, p.dir)
}

// remove removes the directory, unless its mode was changed or it holds other files.
func (p *private) remove() {
	if info, err := os.Lstat(p.dir); err != nil || info.Mode().Type() != fs.ModeDir || info.Mode().Perm() != 0o700 {
		return
	}
	for _, path := range p.paths() {
		_ = os.Remove(path) // best effort: the next launcher tries again
	}
}

// given is what the next session gets. resume names the conversation to continue, "" for a new one.
func (r *run) given(resume string) client.Session {
	return client.Session{
		Wishes: client.Wishes{Command: r.Terminal.Command, Persist: r.Mode == Persist, Limits: r.Settings.Limits},
		Env:    r.Client.Environ(r.Terminal.Env, r.box.Path(), r.Background), Dir: r.Terminal.Dir, Hook: r.Hook, Args: r.hookArguments(),
		Inbox: r.box.Path(), Private: r.private.dir, Tools: r.Tools, Resume: resume, Checks: r.Settings.Checks.Longest(),
	}
}

// hookArguments are the hook's flags.
func (r *run) hookArguments() []string {
	args := []string{"--inbox", r.box.Path(), "--launched", "--signal-file", r.Terminal.ExitSignal}
	if r.MaxEntries > 0 {
		args = append(args, "--max-entries", strconv.Itoa(r.MaxEntries))
	}
	if !r.Until.IsZero() {
		args = append(args, "--until", r.Until.Format(time.RFC3339))
	}
	args = append(args, cli.HookArguments(r.Settings)...)
	if r.Mode == Drain {
		args = append(args, "--background-timeout", r.Background.String())
	}
	return append(args, r.Runs.HookArguments()...)
}
