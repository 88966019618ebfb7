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
	"sync"
	"syscall"
	"time"

	"heartbeat/inbox"
	"heartbeat/internal/cli"
	"heartbeat/internal/disk"
	"heartbeat/internal/screen"
	"heartbeat/internal/supervise/client"
	"heartbeat/internal/supervise/sharing"
	"heartbeat/internal/supervise/terminal"
	"heartbeat/internal/words"
)

// runSession runs a session, and returns an ending if the work ends with it.
func (r *run) runSession() *ending {
	r.endRest()
	if err := r.ready(); err != nil {
		return r.stuck(err)
	}
	given := r.clientSession(r.resume)
	command, err := r.Client.Command(r.stop.asked, given)
	if err != nil {
		return r.stuck(err)
	}
	r.report.Sessions++
	r.publish("it starts a session")
	r.asleep = time.Time{}
	if r.pace.early {
		r.report.Restarts++
	}
	s := newSession(r.Client, r.Terminal.Size)
	s.resumed, s.seq = r.resume != "", r.seq
	o := r.Terminal
	o.Command, o.Env, o.Quit = command, given.Env, s.quit
	o.Timeout = 0 // the timeout covers all sessions together
	if r.SettingsDir == "" {
		o.Then.Remove = r.private.paths()
	}
	o.Idle.Busy = func() bool { return InFlight(r.box.Dir()) }
	r.connect(s, &o)
	r.follow.observe(r.creditTo(s))
	r.current.Store(s)
	// Both watchers may change the inbox, so they end before anything is settled: later they would
	// undo that, or the end of this process would cut off their commit.
	var beside sync.WaitGroup
	for _, watch := range []func(*session){r.guard, r.endWarm} {
		beside.Go(func() { watch(s) })
	}
	outcome, err := r.inTerminal(o)
	r.attach.End("it is over")
	close(s.over)
	beside.Wait()
	r.current.Store(nil)
	r.follow.poll()
	r.follow.observe(nil)
	r.last = s
	return r.afterSession(s, outcome, err)
}

// ready restores what a session needs and may vanish while a supervisor is up for weeks.
func (r *run) ready() error {
	if _, err := terminal.Find(r.Terminal); err != nil {
		return err
	}
	if there, err := disk.Exists(r.private.dir); there || err != nil || r.SettingsDir != "" {
		return err
	}
	made, err := makePrivate(r.box, r.sign.lock)
	if err == nil {
		r.private = made
		r.listen()
	}
	return err
}

// afterSession decides what the end of a session means, counts what the session did, and sets when the next
// one may begin.
func (r *run) afterSession(s *session, o terminal.Outcome, err error) *ending {
	if id := s.name(); id != "" {
		ids := append(r.report.SessionIDs, id)
		r.report.SessionIDs = ids[max(0, len(ids)-maxSessionIDs):]
	}
	e := r.stopped()
	if e != nil && (e.reason == Stopped || r.Warm && e.reason == TimedOut) { // by order: an entry left unanswered is no orphan
		// A service manager may send SIGTERM to every process.
		byTerm := o.Status.Signaled() && o.Status.Signal() == syscall.SIGTERM || o.Status.Exited() && o.Status.ExitStatus() == 128+int(syscall.SIGTERM)
		s.cutShort = s.ended().stopped || o.Cause == terminal.Signalled || byTerm
	}
	s.inOrder = err == nil && intended(s, o)
	switch {
	case err != nil:
		return r.stuck(err)
	case e != nil:
		return e
	case r.Attended && o.Cause == terminal.Ended && o.Status.Exited() && o.Status.ExitStatus() == 0 && s.name() != "": // by hand
		return &ending{reason: Quit, detail: "the session was ended at the terminal"}
	}
	totals, err := readTotals(r.box)
	if err != nil {
		return r.stuck(err)
	}
	d, err := delivered(r.box)
	left := d != nil || err != nil && InFlight(r.box.Dir()) // on a full disk the files may lag behind the last commit
	r.pace.sessionEnded(totals.Answered-r.before.Answered, left || !intended(s, o), r.Mode == Persist && time.Since(s.began) >= mostRest)
	r.excuse(s)
	if s.name() != "" {
		r.trouble = trouble{} // the troubles of a session that started are on disk, where others see them
	}
	r.resume = ""
	switch {
	case s.ended().ending != nil:
		return s.ended().ending
	case !intended(s, o):
		r.Line(time.Now(), describeEnd(s, o))
	case left:
		r.Line(time.Now(), "the session was ended with an entry in flight: no hook reported its answer, so it counts as an orphan")
	}
	if r.Resume && r.pace.early && s.ended().over == nil {
		r.resume = s.name()
	}
	if s.name() == "" && !s.resumed { // a session without the old conversation may start
		return r.failedStart(s, o)
	}
	return nil
}

// failedStart returns why a session ended before it started. An unknown reason may go away by itself.
func (r *run) failedStart(s *session, o terminal.Outcome) *ending {
	what := "the session ended before it started"
	e, known := r.notStarted(s, what)
	if !known && r.Mode == Drain && !r.hasWorked() && r.pace.fruitless > r.MaxRestarts {
		what = "no session started in " + words.Count(r.report.Sessions, "try", "tries")
		e, _ = r.notStarted(s, what)
	}
	if !known && o.Cause == terminal.Ended { // its status says more than an empty screen
		e.detail = what + ": " + describeEnd(s, o)
	}
	e.logged = !known
	return e
}

// intended reports whether the session ended as it should: its hook asked for it, or it exited with
// status 0, as in print mode with nothing left.
func intended(s *session, o terminal.Outcome) bool {
	return o.Cause == terminal.Asked && !s.failed.Load() || o.Cause == terminal.Ended && o.Status.Exited() && o.Status.ExitStatus() == 0
}

// describeEnd describes an end that was not intended.
func describeEnd(s *session, o terminal.Outcome) string {
	switch {
	case s.ended().text != "":
		return "the session was ended: " + s.ended().text
	case o.Cause == terminal.GaveUp:
		return "the session was ended: it printed nothing for too long"
	case o.Cause == terminal.Asked:
		return "the session was ended after an error"
	case o.Status.Signaled():
		return fmt.Sprintf("the session was ended by signal %d (%v)", o.Status.Signal(), o.Status.Signal())
	}
	last := "" // the last words of a program that gave up; a recognised screen has none
	if text := strings.TrimSpace(s.screen.Text()); text != "" && s.client.Recognise(text) == (screen.Sight{}) {
		last = strings.TrimSuffix(": "+words.Brief(s.client.LastWords(text)), ": ")
	}
	return fmt.Sprintf("the session ended with status %d%s", o.Status.ExitStatus(), last)
}

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
		info, err := disk.StatDir(base)
		if err == nil && disk.OthersWrite(info) && !info.Sticky() { // somebody else could replace a directory made there
			err = fmt.Errorf("%s: others may write there (mode %04o)", base, info.Mode)
		}
		if err == nil {
			removePrivate(base, prefix)
			var dir string
			if dir, err = os.MkdirTemp(base, prefix); err == nil {
				return &private{dir}, nil
			}
		}
		failed = errors.Join(failed, err)
	}
	return nil, fmt.Errorf("find a private directory for the session's settings: %w: name one in TMPDIR", failed)
}

func (r *run) endRest() {
	r.resting.Dismiss()
	r.resting = nil
}

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

// clientSession returns what the next session gets. resume names the conversation to continue, "" for a new one.
func (r *run) clientSession(resume string) client.Session {
	args := []string{"--inbox", r.box.Path(), "--launched", "--lock", r.box.LockIdentity(), "--signal-file", r.Terminal.ExitSignal} // of the hook
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
	return client.Session{
		Wishes: client.Wishes{Command: r.Terminal.Command, Persist: r.Mode == Persist, Limits: r.Settings.Limits},
		Env:    r.Client.Environ(r.Terminal.Env, r.box.Path(), r.Background), Dir: r.Terminal.Dir,
		Hook: r.Hook, Args: append(args, r.Runs.HookArguments()...),
		Inbox: r.box.Path(), Private: r.private.dir, Tools: r.Tools, Resume: resume, Checks: r.Settings.Checks.Longest(),
	}
}
