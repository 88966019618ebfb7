package faults

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/agent"
	"heartbeat/internal/testing/build"
	"heartbeat/internal/testing/long"
)

// commands is the folder of the commands as they are shipped.
var commands string

// clientVariable has the test binary be the client that a launcher starts, and names the
// world's folder.
const clientVariable = "HEARTBEAT_TEST_CLIENT_IN"

func TestMain(m *testing.M) {
	if dir := os.Getenv(clientVariable); dir != "" {
		os.Exit(agent.InTerminal(os.Args[1:], func(text string) string { return answer(dir, text) }))
	}
	build.Main(m, &commands)
}

// fault is what happens to the nth call of a kind: it fails with an error, or the
// process dies at it (KILL).
type fault struct {
	call  string
	error string
	n     int
}

const kill = "KILL"

func (f fault) String() string { return fmt.Sprintf("%s:%s:%d", f.call, f.error, f.n) }

// strace is the command that has a program meet the fault; alone, that no program meets it
// which that one starts.
func (f fault) strace(log string, alone bool) []string {
	all := []string{"strace", "-f", "-qq", "-o", log, "-e", "trace=" + f.call}
	if alone {
		all = append(all, "-b", "execve")
	} else if f.error != "" && f.error != kill {
		all = append(all, "--seccomp-bpf")
	}
	switch f.error {
	case "":
		return all
	case kill: // where strace has the kernel choose the calls, it sends no signals
		return append(all, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", f.call, f.n))
	}
	return append(all, "-e", fmt.Sprintf("inject=%s:error=%s:when=%d", f.call, f.error, f.n))
}

// kinds are the calls, and what may happen to each. Without memory or a thread the runtime
// ends the program.
var kinds = map[string][]string{
	"openat":     {"EIO", "EMFILE", "ENOSPC", "EINTR", kill},
	"read":       {"EIO", "EINTR", kill},
	"pread64":    {"EIO", "EINTR", kill},
	"write":      {"EIO", "ENOSPC", "EINTR", kill},
	"pwrite64":   {"EIO", "ENOSPC", "EINTR", kill},
	"fsync":      {"EIO", "ENOSPC", "EINTR", kill},
	"fdatasync":  {"EIO", "ENOSPC", "EINTR", kill},
	"ftruncate":  {"EIO", "ENOSPC", "EINTR", kill},
	"fallocate":  {"EIO", "ENOSPC", "EINTR", kill},
	"renameat":   {"EIO", "ENOSPC", kill},
	"renameat2":  {"EIO", "ENOSPC", kill},
	"linkat":     {"EIO", "ENOSPC", kill},
	"unlinkat":   {"EIO", "ENOSPC", kill},
	"mkdirat":    {"EIO", "ENOSPC", kill},
	"fchmod":     {"EIO", kill},
	"fchmodat":   {"EIO", kill},
	"utimensat":  {"EIO", kill},
	"fstat":      {"EIO", kill},
	"newfstatat": {"EIO", kill},
	"statx":      {"EIO", kill},
	"ioctl":      {"EIO", kill},
	"lseek":      {"EIO", kill},
	"getdents64": {"EIO", kill},
	"fcntl":      {"EIO", "EMFILE", kill},
	"flock":      {"EIO", "EINTR", kill},
	"close":      {kill}, // an error of it still closes, and here it would not
	"faccessat2": {"EIO", kill},
	"readlinkat": {"EIO", kill},
	"statfs":     {"EIO", kill},
	"pipe2":      {"EMFILE", kill},
	"mmap":       {"ENOMEM"},
	"clone":      {"EAGAIN"},
}

var injected = regexp.MustCompile(`\(INJECTED\)|killed by SIGKILL`)

// universe is all that can happen to a situation's command.
func (s situation) universe(w *world) (all []fault) {
	names := make([]string, 0, len(kinds))
	for name := range kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	s.act(w, &fault{call: strings.Join(names, ",")})
	calls := map[string]map[string]int{} // by call and thread
	for line := range strings.Lines(w.read("trace")) {
		thread, rest, _ := strings.Cut(line, " ")
		name, _, _ := strings.Cut(strings.TrimSpace(rest), "(")
		if kinds[name] != nil {
			if calls[name] == nil {
				calls[name] = map[string]int{}
			}
			calls[name][thread]++
		}
	}
	for _, name := range names {
		most := 0
		for _, n := range calls[name] {
			most = max(most, n)
		}
		for n := range most {
			for _, e := range kinds[name] {
				if s.launches && name == "read" && e != kill {
					continue // the pipe by which Go starts a process, at whose error it waits for that one
				}
				all = append(all, fault{name, e, n + 1})
			}
		}
	}
	return all
}

// act runs the situation's command, and reports whether its session goes on.
func (s situation) act(w *world, f *fault) (r result, goes bool) {
	switch {
	case s.verb != nil:
		return w.verb(f, s.verb...), false
	case s.event != "":
		return w.event(f, s.event, s.members), false
	case s.launches:
		return w.launch(f), false
	case s.wakes:
		return w.wake(f), false
	}
	return w.stop(f)
}

// happens has the fault happen, goes on without any, and checks what comes of it.
func (s situation) happens(w *world, f *fault) (hit bool) {
	r, goes := s.act(w, f)
	hit = injected.MatchString(w.read("trace")) || r.killed
	assert.True(w.t, r.status != 2 || s.wakes || s.launches, "a status that blocks: %s", r.stderr)
	w.places() // all can be read
	died := !goes && s.verb == nil && s.event == ""
	switch {
	case s.launches && r.status != 0:
		w.launch(nil)
	case s.verb != nil && r.status != 0:
		w.verb(nil, s.verb...) // which may say that it is done
	case goes:
		w.drain()
	}
	if s.after != nil {
		s.after(w)
	}
	opportunities := 2
	if goes {
		opportunities--
	}
	for range opportunities {
		w.begin()
		w.drain()
	}
	s.check(w, r, died || s.dies)
	if s.holds != nil {
		s.holds(w)
	}
	return hit
}

// check holds the end against what is promised.
func (s situation) check(w *world, r result, died bool) {
	places := w.places()
	defer func() {
		if w.t.Failed() {
			w.t.Logf("%+v\nit said: %+v\nplaces: %v", w.lived, r, places)
		}
	}()
	for id, want := range s.ends {
		if got := places[id]; assert.Len(w.t, got, 1, "the entry %s is in one place", id) {
			assert.Regexp(w.t, "^("+want+")$", got[0], "the entry %s: %s", id, w.verb(nil, "status").stdout)
		}
	}
	if r := w.verb(nil, "fsck"); r.status != 0 {
		w.t.Errorf("fsck: %s%s", r.stdout, r.stderr)
	}
	for id := range places {
		assert.Contains(w.t, s.ends, id, "an entry that nobody sent: %v", places[id])
	}
	for line := range strings.Lines(w.read("asked")) { // in a launcher's sessions
		w.asked[strings.TrimSpace(line)]++
	}
	for tag, n := range w.asked {
		most := 1
		if died && strings.Contains(strings.Join(w.flags, " "), "retry") {
			most = 2
		}
		if s.launches {
			most++ // the launcher may be killed while its session is at work
		}
		assert.LessOrEqual(w.t, n, most, "how often %s was asked", tag)
	}
}

// Each call of each command, in each situation, fails or is the last one. Nothing is lost
// or doubled, and what is due comes within two sessions.
//
// HEARTBEAT_FAULTS is how many faults are drawn, all of them in the long rounds, and
// HEARTBEAT_FAULTS_SEED which; HEARTBEAT_FAULT is one fault, such as pread64:EIO:10.
func TestFaults(t *testing.T) {
	if out, err := exec.Command("strace", "-f", "--seccomp-bpf", "-qq", "-o", os.DevNull, "-e", "trace=fsync", "true").CombinedOutput(); err != nil {
		t.Skipf("strace, which has calls fail, is missing here or may trace nothing: %v: %s", err, out)
	}
	n, seed := number(t, "HEARTBEAT_FAULTS", long.Rounds(60, math.MaxInt32)), number(t, "HEARTBEAT_FAULTS_SEED", int(time.Now().UnixNano()&0xffffff))
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	drawn := slices.Clone(situations)
	random.Shuffle(len(drawn), func(i, j int) { drawn[i], drawn[j] = drawn[j], drawn[i] })
	only := os.Getenv("HEARTBEAT_FAULT")
	if only != "" {
		n = math.MaxInt32
	}
	if each := 5; n < each*len(drawn) {
		drawn = drawn[:(n+each-1)/each]
	}
	share := (n + len(drawn) - 1) / len(drawn)
	var met, tried atomic.Int64
	begin := time.Now()
	t.Cleanup(func() {
		t.Logf("%d faults, of which %d were met, in %d situations, in %v: HEARTBEAT_FAULTS_SEED=%d", tried.Load(), met.Load(), len(drawn), time.Since(begin).Round(time.Second), seed)
	})
	for _, s := range drawn {
		random := rand.New(rand.NewPCG(random.Uint64(), 0))
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, s)
			p := w.take()
			all := s.universe(w)
			w.restore(p)
			size := len(all)
			random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			if only != "" {
				all = slices.DeleteFunc(all, func(f fault) bool { return f.String() != only })
			}
			all = all[:min(len(all), share, cmp.Or(s.most, len(all)))]
			for _, f := range all {
				bad := t.Failed()
				hit := false
				passed := t.Run(f.String(), func(t *testing.T) {
					w.t = t
					w.restore(p)
					hit = s.happens(w, &f)
				})
				if w.t = t; hit {
					met.Add(1)
				}
				if tried.Add(1); !passed && !bad {
					t.Logf("again: HEARTBEAT_FAULT=%s go test -run 'TestFaults/%s' ./internal/testing/faults", f, strings.ReplaceAll(s.name, " ", "_"))
				}
			}
			t.Logf("%d of %d faults", len(all), size)
		})
	}
}

func number(t *testing.T, variable string, otherwise int) int {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, variable)
	return n
}
