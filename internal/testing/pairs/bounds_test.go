package pairs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/long"
)

// What is beside an inbox may have any size and be anything. The limits are those of
// docs/design.md.
var spoilt = []struct {
	name   string
	spoil  func(t *testing.T, path string)
	memory int64         // at the most, in MiB
	time   time.Duration // of the processor
	slow   bool          // to make: for the long rounds
}{
	{"1 TiB sparse", sparse, 64, 2 * time.Second, false},
	{"a line of 150 MB", longLine, 1024, 10 * time.Second, false},
	{"1,000,000 lines", manyLines, 64, 30 * time.Second, true},
	{"a FIFO", instead(func(path string) error { return unix.Mkfifo(path, 0o600) }), 64, time.Second, false},
	{"a directory", instead(func(path string) error { return os.Mkdir(path, 0o700) }), 64, time.Second, false},
	{"a link to a device", instead(func(path string) error { return os.Symlink("/dev/zero", path) }), 64, time.Second, false},
}

const boundsInbox = "inbox.jsonl"

var boundsFiles = []string{
	boundsInbox, ".inbox-journal", ".inbox-offset", ".in-flight", ".responded", ".results.jsonl", ".dead-letter.jsonl", ".events.jsonl",
	".costs.jsonl", ".scheduled.jsonl", ".results.jsonl.foreign", ".inbox-tries", ".inbox-lock", ".launch-lock", ".notified.json",
	".meter-s1", ".run-x.json", ".exit-signal", ".consumer-mail", ".consumer-mail.lock", ".results.jsonl.1",
}

// lettersMemory is the most that a verb takes with 1,000,000 dead letters, in MiB: which of them are open takes an index
// of all.
const lettersMemory = 400

// boundsVerbs are the words behind the command; "stop" is the hook.
var boundsVerbs = []string{
	"stop", "status", "peek", "results", "results zz99", "costs", "log", "log zz99", "metrics", "notify --stall 1s", "send x", "send --id new x",
	"send --not-before 2999-01-01 x", "cancel zz99", "pause", "resume", "recover", "dead-letter list", "dead-letter show zz99",
	"dead-letter requeue zz99", "dead-letter purge --yes zz99", "compact", "compact --keep 1h", "results --exec false --as mail --patience 0", "results --exec true --as chat --new", "results --forget mail", "doctor", "run list", "breakpoint list",
}

// Whatever a file beside the inbox is, no verb reads it without a bound.
func TestBounds(t *testing.T) {
	type round struct {
		file string
		how  int
	}
	var all []round
	for _, file := range boundsFiles {
		for how := range spoilt {
			if long.Wanted() || !spoilt[how].slow {
				all = append(all, round{file, how})
			}
		}
	}
	verbs := slices.Clone(boundsVerbs)
	if !long.Wanted() {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 0))
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		random.Shuffle(len(verbs), func(i, j int) { verbs[i], verbs[j] = verbs[j], verbs[i] })
		all, verbs = all[:4], verbs[:4]
	}
	for _, r := range all {
		t.Run(r.file+" is "+spoilt[r.how].name, func(t *testing.T) {
			dir, most := workedOn(t), spoilt[r.how].memory
			if spoilt[r.how].slow && r.file == ".dead-letter.jsonl" {
				most = lettersMemory
			}
			for _, verb := range verbs {
				spoilt[r.how].spoil(t, filepath.Join(dir, r.file))
				took, memory, said := boundsRun(t, dir, verb)
				assert.LessOrEqual(t, memory, most, "MiB of %s: %s", verb, said)
				assert.LessOrEqual(t, took, spoilt[r.how].time, "%s: %s", verb, said)
			}
		})
	}
}

// workedOn is the directory of an inbox with an entry in flight.
func workedOn(t *testing.T) string {
	dir := t.TempDir()
	for _, verb := range []string{"send --id a one", "send --id b two", "send --id later --not-before 2998-01-01 three", "stop"} {
		boundsRun(t, dir, verb)
	}
	return dir
}

// boundsRun runs a verb, and returns its processor time and its peak in MiB.
func boundsRun(t *testing.T, dir, verb string) (took time.Duration, memory int64, said string) {
	t.Helper()
	words := strings.Fields(verb)
	name := "heartbeat"
	if verb == "stop" {
		name, words = "heartbeat-stop", nil
	}
	words = append(words, "--inbox", boundsInbox)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(commands, name), words...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(`{"session_id":"s1","prompt_id":"p1","hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"done"}`)
	var out tail
	cmd.Stdout, cmd.Stderr = io.Discard, &out
	crash.ForgetPeak()
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit)
	}
	require.NoError(t, ctx.Err(), "%s does not end", verb)
	state := cmd.ProcessState
	assert.Contains(t, []int{0, 1}, state.ExitCode(), "%s: %s", verb, out.b)
	return state.UserTime() + state.SystemTime(), state.SysUsage().(*syscall.Rusage).Maxrss >> 10, string(out.b)
}

// tail keeps the end of what is written.
type tail struct{ b []byte }

func (o *tail) Write(b []byte) (int, error) {
	o.b = append(o.b, b...)
	o.b = o.b[max(0, len(o.b)-400):]
	return len(b), nil
}

func instead(make func(path string) error) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		require.NoError(t, os.RemoveAll(path))
		require.NoError(t, make(path))
	}
}

func sparse(t *testing.T, path string) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	require.NoError(t, err)
	require.NoError(t, errors.Join(f.Truncate(1<<40), f.Close()))
}

// grown appends to a file unless that was done before.
func grown(t *testing.T, path string, write func(w *bufio.Writer)) {
	if info, err := os.Stat(path); err == nil && info.Size() > 40<<20 {
		return
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	require.NoError(t, err)
	w := bufio.NewWriterSize(f, 1<<20)
	write(w)
	require.NoError(t, errors.Join(w.Flush(), f.Close()))
}

func longLine(t *testing.T, path string) {
	grown(t, path, func(w *bufio.Writer) {
		for range 150 {
			_, _ = w.Write(bytes.Repeat([]byte("x"), 1e6)) // Flush returns the error
		}
		_ = w.WriteByte('\n')
	})
}

func manyLines(t *testing.T, path string) {
	line := `{"id":"job-%[1]d","prompt":"do number %[1]d"}`
	switch filepath.Base(path) {
	case ".scheduled.jsonl":
		line = `{"id":"job-%[1]d","prompt":"do number %[1]d","sent_at":"2026-11-20T10:00:00Z","not_before":"2999-01-01T00:00:00Z"}`
	case ".dead-letter.jsonl":
		line = `{"entry_id":"%064[1]x","id":"job-%[1]d","raw_line":"do %[1]d","start_offset":%[1]d,"end_offset":%[1]d,"attempts":1,"reason":"orphaned","delivered_at":"2026-11-20T10:00:00Z","session_id":"s9","first_seq":1,"dead_lettered_at":"2026-11-20T11:00:00Z"}`
	case ".results.jsonl":
		line = `{"entry_id":"%064[1]x","id":"job-%[1]d","prompt":"do %[1]d","start_offset":%[1]d,"end_offset":%[1]d,"attempt":1,"delivered_at":"2026-11-20T10:00:00Z","acknowledged_at":"2026-11-20T11:00:00Z","session_id":"s9","reply":"done","first_seq":1}`
	case ".events.jsonl":
		line = `{"at":"2026-11-20T10:00:00Z","event":"redelivered","entry_id":"%064[1]x","id":"job-%[1]d","attempt":1,"reason":"orphaned"}`
	case ".costs.jsonl":
		line = `{"at":"2026-11-20T10:00:00Z","session_id":"s9","entry_id":"%064[1]x","id":"job-%[1]d","start_offset":%[1]d,"first_seq":1,"attempt":1,"from":0,"to":10,"cost_usd":0.001,"input_tokens":5,"output_tokens":6,"requests":1}`
	}
	grown(t, path, func(w *bufio.Writer) {
		for i := range 1_000_000 {
			_, _ = fmt.Fprintf(w, line+"\n", i) // likewise
		}
	})
}
