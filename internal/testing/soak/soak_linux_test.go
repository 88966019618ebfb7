package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"heartbeat/inbox"
	"heartbeat/internal/testing/long"
)

// world is an inbox, the launcher that stays up for it, and what passes by.
type world struct {
	t      *testing.T
	dir    string
	random *rand.Rand
	scale  time.Duration // how long what passes lasts, at most
	unit   *unit
	box    *inbox.Inbox
	sent   int
	amid   int // restarts and kills that came while an entry was in flight
}

// TestWhatPasses has a launcher live through what passes by itself. It is always running or
// started again, each entry is answered once, and none becomes a dead letter.
func TestWhatPasses(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if given, err := strconv.ParseUint(os.Getenv("SOAK_SEED"), 10, 64); err == nil {
		seed = given
	}
	t.Logf("SOAK_SEED=%d", seed)
	w := newWorld(t, seed)
	lasts, whole := long.Rounds(8, 40), time.Duration(0)
	if for_, err := time.ParseDuration(os.Getenv("SOAK_FOR")); err == nil {
		whole = for_
	} else if long.Full() {
		whole = 2 * time.Hour
	}
	if whole > 0 { // what passes takes its real time
		w.scale = time.Minute
	}
	w.answered(2) // a person sees to it that a service begins
	passes := w.passes()
	began := time.Now()
	for n := 0; n < lasts || time.Since(began) < whole; n++ {
		w.send(1 + w.random.IntN(4))
		p := passes[n%len(passes)]
		t.Logf("%s: %s", time.Since(began).Round(time.Millisecond), p.name)
		p.come(w)
		w.wait(max(1, p.lasts)) // while it lasts
		if p.go_ != nil {
			p.go_(w)
		}
		w.send(1)
		w.wait(1)
		require.NoError(t, w.unit.failed, w.unit.said.tail())
	}
	w.settled()
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, dir: t.TempDir(), random: rand.New(rand.NewPCG(seed, 0)), scale: time.Second}
	for _, name := range []string{"bin", "tmp", "project", "project/work"} {
		require.NoError(t, os.Mkdir(w.path(name), 0o700))
	}
	for _, name := range []string{"tmp", "project/work"} {
		w.mount(name)
	}
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, w.path("bin/claude")))
	w.box, err = inbox.Open(w.path("project/work/inbox.jsonl"), inbox.Options{})
	require.NoError(t, err)
	w.send(2)
	w.unit = readUnit(t, w.launcher)
	w.unit.start()
	t.Cleanup(w.stop)
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// mount gives a directory a small file system of its own, where this user may do that.
func (w *world) mount(name string) {
	if os.Geteuid() != 0 || unix.Mount("tmpfs", w.path(name), "tmpfs", 0, "size=24m,mode=700") != nil {
		return
	}
	w.t.Cleanup(func() { _ = unix.Unmount(w.path(name), unix.MNT_DETACH) })
}

// mounted reports whether that was so.
func (w *world) mounted() bool {
	var all, one unix.Statfs_t
	return unix.Statfs(w.dir, &all) == nil && unix.Statfs(w.path("tmp"), &one) == nil && all.Fsid != one.Fsid
}

func (w *world) launcher() *exec.Cmd {
	cmd := exec.Command(commandPath("heartbeat-launch"), "--inbox", w.box.Path(), "--mode", "persist", "--cwd", w.path("project"), "--output", "log",
		"--on-orphan", "retry", "--max-attempts", "1000", "--no-meter", "--", "claude", "say ready")
	cmd.Env = append(os.Environ(), home+"="+w.dir, "TMPDIR="+w.path("tmp"), "XDG_RUNTIME_DIR=", "HOME="+w.dir,
		"PATH="+w.path("bin")+":"+commands+":/usr/bin:/bin")
	return cmd
}

// send appends so many entries. Where there is no room they come later.
func (w *world) send(n int) {
	for range n {
		id := fmt.Sprintf("entry-%d", w.sent+1)
		if _, err := w.box.Append(context.Background(), inbox.Message{ID: id, Text: "do " + id}, time.Second); err == nil {
			w.sent++
		}
	}
}

// wait lets what has come last for a part of so many scales.
func (w *world) wait(scales int) {
	time.Sleep(time.Duration(w.random.Int64N(int64(scales) * int64(w.scale))))
}

// pass is something that comes, lasts and goes.
type pass struct {
	name  string
	come  func(w *world)
	go_   func(w *world)
	lasts int // at most so many scales, 0 for one
}

func (w *world) passes() []pass {
	all := []pass{
		{"the client is updated", (*world).update, rename("bin/.claude", "bin/claude"), 1},
		{"the client crashes at its start", (*world).crash, func(w *world) { _ = os.Remove(w.path(crashFile)) }, 2},
		{"the service is restarted", func(w *world) { w.awaitWork(); w.unit.restart() }, nil, 1},
		{"the client is killed", func(w *world) { w.awaitWork(); w.killClient() }, nil, 1},
		{"the launcher is killed", func(w *world) { w.awaitWork(); w.unit.signal(syscall.SIGKILL) }, nil, 1},
		{"descriptors are short", descriptors(9), descriptors(4096), 1},
	}
	if w.mounted() {
		all = append(all,
			pass{"TMPDIR is full", fill("tmp/ballast"), empty("tmp/ballast"), 1},
			pass{"the inbox's disk is full", fill("project/work/ballast"), empty("project/work/ballast"), 1})
	} else {
		w.t.Log("no disk is full here: only root mounts one")
	}
	w.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func rename(from, to string) func(*world) {
	return func(w *world) { require.NoError(w.t, os.Rename(w.path(from), w.path(to))) }
}

// update has the session that runs die while its client is replaced.
func (w *world) update() {
	rename("bin/claude", "bin/.claude")(w)
	w.killClient()
}

func (w *world) crash() {
	require.NoError(w.t, os.WriteFile(w.path(crashFile), nil, 0o600))
	w.killClient()
}

// awaitWork waits until an entry is in flight, or all are answered already.
func (w *world) awaitWork() {
	for limit := time.Now().Add(10 * time.Minute); len(w.answers()) < w.sent; time.Sleep(time.Millisecond) {
		if _, err := os.Lstat(filepath.Join(w.box.Dir(), ".in-flight")); err == nil {
			w.amid++
			return
		}
		require.NoError(w.t, w.unit.failed, w.unit.said.tail())
		require.True(w.t, time.Now().Before(limit), "no entry is delivered: %s", w.unit.said.tail())
	}
}

func (w *world) killClient() {
	raw, err := os.ReadFile(w.path(pidFile))
	if pid, _ := strconv.Atoi(string(raw)); err == nil && pid > 1 {
		if exe, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); strings.Contains(string(exe), home+"="+w.dir) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	}
}

func descriptors(n uint64) func(*world) {
	return func(w *world) {
		if pid := w.unit.pid(); pid != 0 {
			_ = unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: 4096}, nil) // it may have ended
		}
		w.killClient()
	}
}

func fill(name string) func(*world) {
	return func(w *world) {
		f, err := os.Create(w.path(name))
		require.NoError(w.t, err)
		for err == nil {
			_, err = f.Write(make([]byte, 4096))
		}
		require.ErrorIs(w.t, err, syscall.ENOSPC)
		_ = f.Close() // it holds what it can
		w.killClient()
	}
}

func empty(name string) func(*world) {
	return func(w *world) { require.NoError(w.t, os.Remove(w.path(name))) }
}

// answered waits until so many entries are, and returns how often each of them is.
func (w *world) answered(most int) (answers map[string]int) {
	limit, before := time.Now().Add(10*time.Minute), 0
	for len(answers) < most {
		if len(answers) > before { // it goes on
			limit, before = time.Now().Add(10*time.Minute), len(answers)
		}
		require.NoError(w.t, w.unit.failed, w.unit.said.tail())
		require.True(w.t, time.Now().Before(limit), "%d of %d are answered: %s", len(answers), most, w.unit.said.tail())
		time.Sleep(200 * time.Millisecond)
		answers = w.answers()
	}
	return answers
}

// answers is how often each entry is answered.
func (w *world) answers() map[string]int {
	all := map[string]int{}
	w.each(w.box.ResultsPath(), func(line map[string]any) {
		id, _ := line["id"].(string)
		all[id]++
		assert.Equal(w.t, "did "+id, line["reply"])
	})
	return all
}

// settled waits until everything is answered, and checks what became of it.
func (w *world) settled() {
	answers := w.answered(w.sent)
	w.t.Logf("%d entries, %d restarts and kills amid one", w.sent, w.amid)
	for id, n := range answers {
		assert.Equal(w.t, 1, n, "answers to %s", id)
	}
	w.each(w.box.DeadLetterPath(), func(line map[string]any) { assert.Fail(w.t, "a dead letter", "%v", line) })
	again := map[string]int{} // deliveries after the first one
	w.each(w.box.EventsPath(), func(line map[string]any) {
		if id, _ := line["id"].(string); line["event"] == "redelivered" {
			again[id]++
		}
	})
	raw, err := os.ReadFile(w.path(askedFile))
	require.NoError(w.t, err)
	asked := map[string]int{}
	for line := range strings.Lines(string(raw)) {
		if id := strings.TrimSpace(line); id != "" {
			asked[id]++
		}
	}
	for id, n := range asked {
		assert.LessOrEqual(w.t, n, 1+again[id], "%s was asked twice within one attempt", id)
	}
}

func (w *world) each(path string, visit func(map[string]any)) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	require.NoError(w.t, err)
	for line := range strings.Lines(string(raw)) {
		var fields map[string]any
		if !strings.HasSuffix(line, "\n") {
			return // it is being written
		}
		require.NoError(w.t, json.Unmarshal([]byte(line), &fields), path)
		visit(fields)
	}
}

// stop ends the launcher in order.
func (w *world) stop() {
	w.unit.mu.Lock()
	w.unit.meant = true
	w.unit.mu.Unlock()
	w.unit.signal(syscall.SIGTERM)
	<-w.unit.ended
}
