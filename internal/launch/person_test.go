package launch_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hinshun/vt10x"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/testing/long"
	"heartbeat/internal/testing/script"
	"heartbeat/internal/testing/seat"
)

// pieces are what a person types and a terminal reports.
var pieces = []string{
	"please ", "remove the old ", "; touch EXECUTED; ", "ä", "\r", "\x7f", "\x1b", "\x1b[A", "\x1bOD", "\x03", "\x15", "\n",
	"\x1b[200~pasted\rtouch EXECUTED\r\x1b[201~", "\x1b[I", "\x1b[<35;3;4M", "\x1b[?1;2c", "\x1b[97;5u", "exit",
}

// round is one of the fuzzer of [TestNothingReachesTheShell].
type round struct {
	*seat.Seat
	t      *testing.T
	random *rand.Rand
	seed   uint64
}

// ends are how a session ends, and the launcher's status.
var ends = []struct {
	name   string
	status int
	do     func(r round)
}{
	{"the client is killed", 137, func(r round) { r.signal("pid", unix.SIGKILL) }},
	{"the client fails", 1, func(r round) { r.signal("pid", unix.SIGUSR1) }},
	{"the client exits within a line", 0, func(r round) { r.Types("x"); r.got("x"); r.signal("pid", unix.SIGUSR2); r.Prints("is lost") }},
	{"the launcher is terminated", 143, func(r round) { r.signal("launcher", unix.SIGTERM) }},
	{"it is asked for", 0, func(r round) { require.NoError(r.t, os.WriteFile(filepath.Join(r.Cmd.Dir, "stop"), nil, 0o600)) }},
	{"the launcher is killed", 137, func(r round) { r.signal("launcher", unix.SIGKILL) }},
}

// Whatever is typed until the end can be seen reaches no shell, and the terminal is as it
// was: keys, ends and sizes are drawn at random.
func TestNothingReachesTheShell(t *testing.T) {
	for seed := range uint64(long.Rounds(2*len(ends), 300)) {
		end := ends[seed%uint64(len(ends))]
		t.Run(fmt.Sprint(seed, " ", end.name), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 2))
			s := seat.New(t, 5+random.IntN(40), 10+random.IntN(150), "sh", "-c", fmt.Sprintf(`trap : INT; sh -c 'echo $$ > launcher; exec heartbeat-launch --exit-signal stop --grace 300ms -- scene %d'; echo "status $?"
				until test -e over; do sleep 0.01; done; exec cat > reached`, seed))
			s.Cmd.Dir = t.TempDir()
			s.Start()
			s.Prints("begun\r\n")
			r := round{s, t, random, seed}
			mark := r.read("mark")
			require.Eventually(t, func() bool { return guardianOf(mark) != 0 }, script.Patience, time.Millisecond)
			r.types(random.IntN(8))
			end.do(r)
			if end.name != "the launcher is killed" { // from then on keys are the shell's
				r.types(random.IntN(8))
				s.Types("\x03") // whatever is begun is no more; on a busy machine it may already be the shell's
			}
			s.Prints(fmt.Sprintf("status %d", end.status))
			require.Eventually(t, func() bool { return !s.IsRaw() }, script.Patience, time.Millisecond)
			require.Eventually(t, func() bool { return guardianOf(mark) == 0 }, script.Patience, time.Millisecond)
			require.NoError(t, os.WriteFile(filepath.Join(s.Cmd.Dir, "over"), nil, 0o600))
			s.Types("\x04\x04")
			s.Leaves(0)
			assert.Empty(t, r.read("reached"), "it reached the shell, of what the client got %q", r.read("got"))
			assertAtRest(t, s.Printed)
		})
	}
}

// types types so many pieces, with pauses, at a terminal that is resized meanwhile.
func (r round) types(n int) {
	for range n {
		r.Types(pieces[r.random.IntN(len(pieces))])
		if r.random.IntN(6) == 0 {
			r.Resizes(5+r.random.IntN(40), 10+r.random.IntN(150))
		}
		r.Watches(time.Duration(r.random.IntN(200)) * time.Millisecond)
	}
}

func (r round) signal(file string, sig unix.Signal) {
	require.NoError(r.t, unix.Kill(pidIn(r.t, r.Seat, file), sig))
}

func (r round) read(file string) string {
	text, err := os.ReadFile(filepath.Join(r.Cmd.Dir, file))
	require.NoError(r.t, err)
	return strings.TrimSpace(string(text))
}

// got waits until what the client has got ends with a text.
func (r round) got(text string) {
	require.Eventually(r.t, func() bool { return strings.HasSuffix(r.read("got"), text) }, script.Patience, time.Millisecond)
}

// assertAtRest checks what a terminal is set to after some output: by an emulator, and for
// what that does not know by what was set last.
func assertAtRest(t *testing.T, printed string) {
	t.Helper()
	emulator := vt10x.New(vt10x.WithSize(80, 24))
	rest := emulator.Mode()
	_, _ = emulator.Write([]byte(printed)) // it takes everything
	assert.Equal(t, rest, emulator.Mode())
	for set, undo := range map[string]string{
		"\x1b[?2004h": "\x1b[?2004l", "\x1b[?2026h": "\x1b[?2026l", "\x1b[>1u": "\x1b[<1u", "\x1b[>4;2m": "\x1b[>4m", "\x1b[2;5r": "\x1b[r",
		"\x1b[31m": "\x1b[m", "\x1b(0": "\x1b(B", "\x1b]9;4;3;0\x07": "\x1b]9;4;0\x1b\\", "\x1b=": "\x1b>", "\x1b]0;half a title": "\x1b\\",
	} {
		assert.GreaterOrEqual(t, strings.LastIndex(printed, undo), strings.LastIndex(printed, set), "%q stays", set)
	}
}

// What the launcher says while the command draws on the other screen comes after that.
func TestNothingIsSaidOnTheOtherScreen(t *testing.T) {
	for name, leaves := range map[string]string{"left at the end": "sleep 1000", "left by the command": `read line; printf '\033[?1049l'; exec sleep 1000`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sit(t, "heartbeat-launch", "--idle-timeout", "4", "--max-idle-retries", "2", "--", "sh", "-c", `stty -echo; printf '\033[?1049hinside'; `+leaves)
			s.Leaves(125)
			_, after, _ := strings.Cut(s.Printed, "\x1b[?1049l")
			assert.Equal(t, 2, strings.Count(after, "heartbeat-launch: no output for "), s.Printed)
			assert.Equal(t, 2, strings.Count(s.Printed, "heartbeat-launch: no output for "), s.Printed)
			assert.Contains(t, after, "heartbeat-launch: the command was ended: ")
			assertAtRest(t, s.Printed)
		})
	}
}

// A second signal, which kills at once, leaves the terminal as it was, too.
func TestTerminatedTwice(t *testing.T) {
	s := sit(t, "heartbeat-launch", "--", "sh", "-c", `trap "" TERM; printf '\033[?1049h\033[?25lbegun'; while :; do sleep 0.01; done`)
	s.Prints("begun")
	for range 2 {
		require.NoError(t, s.Cmd.Process.Signal(unix.SIGTERM))
		s.Watches(100 * time.Millisecond)
	}
	s.Leaves(143)
	assertAtRest(t, s.Printed)
}

// A line that is begun is not cut by what revives a silent command.
func TestBegunLineIsNotCut(t *testing.T) {
	s := sit(t, "heartbeat-launch", "--idle-timeout", "3", "--max-idle-retries", "1", "--", "sh", "-c", `stty -echo; echo begun; read line; echo "got $line"`)
	s.Prints("begun")
	s.Types("one ")
	s.Watches(4 * time.Second)
	s.Types("line\r")
	s.Prints("got one line")
	s.Leaves(0)
	assert.NotContains(t, s.Printed, "no output for")
}

// What is typed between two sessions, and never read by one, reaches no shell.
func TestTypedBetweenSessions(t *testing.T) {
	t.Parallel()
	s := sit(t, "sh", "-c", `printf 'die\ndie\ndie\ndie\n' > inbox.jsonl
		sh -c 'echo $$ > launcher; exec heartbeat-launch --inbox inbox.jsonl --log log -- claude begin'; echo "status $?"; exec cat > reached`)
	r := round{Seat: s, t: t}
	require.Eventually(t, func() bool {
		s.Watches(10 * time.Millisecond)
		said, _ := os.ReadFile(filepath.Join(s.Cmd.Dir, "log"))
		return strings.Count(string(said), "the session was ended by signal 9") > 2 && !s.IsRaw()
	}, script.Patience, time.Millisecond)
	s.Types("touch EXECUTED\r")
	s.Prints("touch EXECUTED")
	r.signal("launcher", unix.SIGINT)
	s.Prints("status 130")
	s.Types("\x04\x04")
	s.Leaves(0)
	assert.Empty(t, r.read("reached"))
}
