package supervise

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/claim"
	"heartbeat/internal/cli"
	"heartbeat/internal/machine/signals"
	"heartbeat/internal/supervise/sharing"
	"heartbeat/internal/supervise/terminal"
)

// suffering is a run that has something to suffer from, and the lines that it said.
func suffering(t *testing.T, mode Mode) (*run, *[]string) {
	t.Helper()
	r, _ := newRun(t, mode)
	r.stop.asked = t.Context()
	r.Terminal.Signals = signals.Catch()
	t.Cleanup(r.Terminal.Signals.Stop)
	said := &[]string{}
	r.Line = func(_ time.Time, text string) { *said = append(*said, text) }
	return r, said
}

func missing() error {
	return fmt.Errorf("%w: claude is in no directory of PATH", terminal.ErrNotFound)
}

// An error is sorted by who must act, and by whether a session has worked.
func TestErrorsAreSorted(t *testing.T) {
	at := func(err error) error { return &fs.PathError{Op: "open", Path: "x", Err: err} }
	for name, c := range map[string]struct {
		err          error
		first, later Reason
	}{
		"disk full":      {at(syscall.ENOSPC), Full, Full},
		"no room":        {fmt.Errorf("%w: 3 bytes", inbox.ErrFull), Full, Full},
		"no descriptors": {at(syscall.EMFILE), Trouble, Trouble},
		"no processes":   {fmt.Errorf("start claude: %w", syscall.EAGAIN), Trouble, Trouble},
		"being replaced": {fmt.Errorf("start claude: %w", syscall.ETXTBSY), Trouble, Trouble},
		"lock":           {inbox.ErrLocked, Trouble, Trouble},
		"rights":         {at(syscall.EACCES), SetUp, SetUp},
		"read-only":      {at(syscall.EROFS), SetUp, SetUp},
		"missing":        {missing(), SetUp, Trouble},
		"unknown":        {errors.New("odd"), SetUp, Trouble},
	} {
		r, _ := suffering(t, Persist)
		assert.Equal(t, c.first, r.classify(c.err), name)
		assert.Equal(t, map[bool]int{true: cli.ExitPerson, false: cli.ExitLater}[c.first == SetUp], ReasonOf(c.err).Status(), name)
		r.report.SessionIDs = append(r.report.SessionIDs, "s")
		assert.Equal(t, c.later, r.classify(c.err), name)
	}
	r, _ := suffering(t, Persist)
	r.before.Answered = 1
	assert.Equal(t, Trouble, r.classify(missing()), "a service is started during an update")
	r.Attended = true
	assert.Equal(t, SetUp, r.classify(missing()), "a person sees to it")
	r.Attended, r.Mode = false, Drain
	assert.Equal(t, SetUp, r.classify(missing()))
}

// What passes never ends a supervisor, and its rests grow to five minutes. It is said once,
// and told once it has lasted.
func TestASupervisorEndures(t *testing.T) {
	r, said := suffering(t, Persist)
	r.report.SessionIDs = append(r.report.SessionIDs, "s")
	for range 1000 {
		assert.True(t, r.shouldRetry(r.stuck(missing())))
		assert.LessOrEqual(t, time.Until(r.pace.notBefore), mostRest*6/5)
	}
	assert.Greater(t, time.Until(r.pace.notBefore), mostRest*4/5)
	assert.Equal(t, []string{"trouble: there is no such command: claude is in no directory of PATH: it is tried again, with rests of up to 5m"}, *said)
	assert.True(t, r.shouldRetry(&ending{reason: SetUp, detail: "not trusted"}), "a session has worked")
	assert.False(t, r.shouldRetry(&ending{reason: TimedOut}))

	r, _ = suffering(t, Persist)
	assert.False(t, r.shouldRetry(&ending{reason: SetUp, detail: "not trusted"}))
	assert.True(t, r.shouldRetry(&ending{reason: Exhausted, detail: "it dies as it starts"}))
}

// Draining, what passes is tried as often as sessions may fail, and a person's matter never.
func TestADrainGivesUp(t *testing.T) {
	r, _ := suffering(t, Drain)
	r.MaxRestarts = 3
	r.report.SessionIDs = append(r.report.SessionIDs, "s")
	assert.False(t, r.shouldRetry(&ending{reason: SetUp}))
	tries := 0
	for r.shouldRetry(r.stuck(missing())) {
		tries++
	}
	assert.Equal(t, 3, tries)
}

// A person is told at once of what is theirs, of the rest once it has lasted, and of each once.
func TestTroublesAreToldOnce(t *testing.T) {
	begin := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	tr := trouble{since: begin}
	assert.False(t, tr.mustNotify(Trouble, begin.Add(notifyAfter-time.Second)))
	assert.True(t, tr.mustNotify(SetUp, begin.Add(notifyAfter-time.Second)))
	assert.False(t, tr.mustNotify(SetUp, begin.Add(notifyAfter)))
	assert.True(t, tr.mustNotify(Trouble, begin.Add(notifyAfter)))
	assert.False(t, tr.mustNotify(Trouble, begin.Add(time.Hour)))
}

// The folder for a session's settings and for those who attach is made again where the system cleaned it up.
func TestThePrivateFolderIsMadeAgain(t *testing.T) {
	r, box := newRun(t, Persist)
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv("XDG_RUNTIME_DIR", "")
	r.Terminal.Command, r.Terminal.Dir = []string{"/bin/true"}, t.TempDir()
	lock, err := claim.Take(box)
	require.NoError(t, err)
	defer func() { require.NoError(t, lock.Release()) }()
	r.sign.lock = lock
	r.private, err = makePrivate(box, lock)
	require.NoError(t, err)
	r.listen()
	defer r.attach.Close()
	require.NoError(t, os.RemoveAll(r.private.dir))
	require.NoError(t, r.ready())
	assert.DirExists(t, r.private.dir)
	_, err = sharing.Dial(t.Context(), r.attach.Path(), 0)
	assert.NoError(t, err)
}

// A session that a supervisor had up for long is none that failed.
func TestALongSessionIsNoFailure(t *testing.T) {
	var p pace
	for range 10 {
		p.sessionEnded(0, true, true)
		assert.LessOrEqual(t, time.Until(p.notBefore), firstRest*6/5)
	}
	p.sessionEnded(0, true, false)
	p.fault()
	assert.Equal(t, 2, p.tries())
	p.sessionEnded(1, false, false)
	assert.Zero(t, p.tries())
	assert.False(t, p.early)
}
