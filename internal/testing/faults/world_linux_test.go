package faults

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/testing/script"
)

// world is an inbox, and the sessions that work on it.
type world struct {
	t     testing.TB
	dir   string
	flags []string // of each hook
	// client is the process of a session that can be woken, 0 for one that can not.
	client int
	lived
}

// lived is what is known of a world outside of its files.
type lived struct {
	session session
	asked   map[string]int // how often the agent got an entry, by its id
	ended   int            // sessions
	lines   int            // of transcripts
}

// session is one as its client sees it.
type session struct {
	id    string
	turns int
	tag   string // of the entry that was delivered last
}

func newWorld(t testing.TB, s situation) *world {
	t.Helper()
	dir, err := os.MkdirTemp(memory(), "heartbeat-faults-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	w := &world{t: t, dir: dir, flags: s.flags, lived: lived{asked: map[string]int{}}}
	require.NoError(t, os.Mkdir(w.path("q"), 0o700))
	if s.queue != "" {
		w.write("q/inbox.jsonl", s.queue)
	}
	w.begin()
	if s.before != nil {
		s.before(w)
	}
	return w
}

// memory is a folder in memory if there is one: no power fails here.
func memory() string {
	if _, err := os.Stat("/dev/shm"); err != nil {
		return ""
	}
	return "/dev/shm"
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) inbox() string { return w.path("q/inbox.jsonl") }

func (w *world) write(name, text string) {
	require.NoError(w.t, os.WriteFile(w.path(name), []byte(text), 0o600))
}

func (w *world) read(name string) string {
	text, err := os.ReadFile(w.path(name))
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(w.t, err)
	}
	return string(text)
}

// box is the inbox as it was some time ago: what was scheduled then may be due by now.
func (w *world) box(ago time.Duration) *inbox.Inbox {
	box, err := inbox.Open(w.inbox(), inbox.Options{Now: func() time.Time { return time.Now().Add(-ago) }})
	require.NoError(w.t, err)
	return box
}

// change is a transaction of that time.
func (w *world) change(ago time.Duration, f func(*inbox.Tx)) {
	tx, err := w.box(ago).Begin(context.Background())
	require.NoError(w.t, err)
	f(tx)
	require.NoError(w.t, tx.Commit())
	require.NoError(w.t, tx.Close())
}

// begin begins a session.
func (w *world) begin() {
	w.ended++
	w.session = session{id: fmt.Sprintf("s%d", w.ended)}
	w.says("user", "begin")
	w.says("assistant", w.reply())
}

// reply is what the agent said last.
func (w *world) reply() string {
	return fmt.Sprintf("turn %d of %s answers %s", w.session.turns, w.session.id, w.session.tag)
}

// says adds a line to the transcript of the session, as its client does.
func (w *world) says(role, text string) {
	message := map[string]any{"role": role, "content": text}
	w.lines++
	if role == "assistant" {
		message["id"], message["content"] = fmt.Sprint("msg_", w.lines), []any{map[string]any{"type": "text", "text": text}}
	}
	line, err := json.Marshal(map[string]any{
		"type": role, "sessionId": w.session.id, "uuid": fmt.Sprint(w.lines), "isSidechain": false,
		"isMeta": role == "user" && w.session.turns > 0, "promptId": "p-" + w.session.id, "message": message,
	})
	require.NoError(w.t, err)
	name := w.session.id + ".jsonl"
	w.write(name, w.read(name)+string(line)+"\n")
}

// stop ends the turn of the session, and reports whether that goes on with an entry.
func (w *world) stop(f *fault) (result, bool) {
	r := w.event(f, "Stop", map[string]any{"stop_hook_active": w.session.turns > 0, "last_assistant_message": w.reply()})
	var d struct{ Decision, Reason string }
	if r.status == 0 && r.stdout != "" { // what a hook says that failed or was killed, the client does not take
		require.NoError(w.t, json.Unmarshal([]byte(r.stdout), &d), r.stdout)
	}
	if d.Decision != "block" {
		return r, false
	}
	w.session.turns++
	text := d.Reason
	if file := inFile.FindString(text); file != "" {
		text = w.read("q/" + file)
	}
	w.session.tag = tags.FindString(text)
	w.asked[w.session.tag]++
	w.says("user", "Stop hook feedback:\n"+d.Reason)
	w.says("assistant", w.reply())
	return r, true
}

// wake ends the turn of an idle session whose hook waits in the background. Whether it wakes
// the session or not, that dies.
func (w *world) wake(f *fault) result {
	client := exec.Command("sleep", "1h")
	require.NoError(w.t, client.Start())
	flags := w.flags
	defer func() {
		w.client, w.flags = 0, flags
		_ = client.Process.Kill()
		_ = client.Wait()
	}()
	w.client, w.flags = client.Process.Pid, append(slices.Clone(flags), "--rewake")
	r := w.event(f, "Stop", map[string]any{"stop_hook_active": false, "last_assistant_message": w.reply()})
	if r.status == 2 {
		tag := tags.FindString(r.stderr)
		assert.NotEmpty(w.t, tag, "it wakes for nothing: %s", r.stderr)
		w.asked[tag]++
	}
	return r
}

// client leaves the client that a launcher is to start.
func client(w *world) {
	self, err := os.Executable()
	require.NoError(w.t, err)
	w.write("claude", fmt.Sprintf("#!/bin/sh\n%s='%s' exec '%s' \"$@\"\n", clientVariable, w.dir, self))
	require.NoError(w.t, os.Chmod(w.path("claude"), 0o700))
}

// launch has a launcher drain the inbox.
func (w *world) launch(f *fault) result {
	return w.run(f, "", "heartbeat-launch", append([]string{"--inbox", w.inbox(), "--cwd", w.dir}, append(slices.Clone(w.flags), "--", w.path("claude"), "begin")...)...)
}

// answer is what the agent of a launcher's session says. It notes what it was asked.
func answer(dir, text string) string {
	tag := tags.FindString(text)
	f, err := os.OpenFile(filepath.Join(dir, "asked"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil && tag != "" {
		_, err = f.WriteString(tag + "\n")
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err.Error()
	}
	return "answers " + tag
}

// tags are the names of entries, as their texts have them.
var tags = regexp.MustCompile(`\[\w+\]`)

// inFile names the file that a long text is in.
var inFile = regexp.MustCompile(`\.entry-[\w-]+\.txt`)

// event has the hook told of what happened.
func (w *world) event(f *fault, name string, members map[string]any) result {
	in := map[string]any{
		"hook_event_name": name, "session_id": w.session.id, "prompt_id": "p-" + w.session.id,
		"transcript_path": w.path(w.session.id + ".jsonl"), "cwd": w.dir,
	}
	maps.Copy(in, members)
	stdin, err := json.Marshal(in)
	require.NoError(w.t, err)
	return w.run(f, string(stdin), "heartbeat-stop", append([]string{"--inbox", w.inbox(), "--settle", "0"}, w.flags...)...)
}

// drain has the session go on as long as it is given entries.
func (w *world) drain() {
	for range 12 {
		if _, goes := w.stop(nil); !goes {
			return
		}
	}
	w.t.Errorf("the session does not end")
}

// verb runs a verb, DIR in whose arguments is the world's folder.
func (w *world) verb(f *fault, args ...string) result {
	all := []string{args[0], "--inbox", w.inbox()}
	for _, a := range args[1:] {
		all = append(all, strings.ReplaceAll(a, "DIR", w.dir))
	}
	return w.run(f, "", "heartbeat", all...)
}

// result is how a command ended.
type result struct {
	status         int // -1 after a signal
	killed         bool
	stdout, stderr string
}

// patience is how long a command may take, and hangs after how much of it a command is looked at that may wait for ever
// by a fault of the rig's own.
const (
	patience = 5 * time.Minute
	hangs    = 30 * time.Second
)

// startFailed is a fault on the pipe by which Go starts a process, of which it reads 8 bytes.
// A pipe has no such fault.
var startFailed = regexp.MustCompile(`(?m) read\(\d+, 0x[0-9a-f]+, 8\) += -1 .*\(INJECTED\)$`)

// run runs a command to its end, under the fault if there is one.
func (w *world) run(f *fault, stdin, name string, args ...string) result {
	w.t.Helper()
	line := append([]string{filepath.Join(commands, name)}, args...)
	if f != nil {
		line = append(f.strace(w.path("trace"), name == "heartbeat-launch"), line...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	var out, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Dir = strings.NewReader(stdin), &out, &stderr, w.dir
	// With one processor, a call is made by the same thread each time.
	cmd.Env = []string{"PATH=" + commands + ":/usr/bin:/bin", "HOME=" + w.dir, "TMPDIR=" + w.dir, "GOMAXPROCS=1"}
	if w.client > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprint("CLAUDE_PID=", w.client), "CLAUDE_CODE_ENTRYPOINT=cli")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	look := time.AfterFunc(hangs, func() {
		if trace, err := os.ReadFile(w.path("trace")); err == nil && startFailed.Match(trace) {
			cancel()
		}
	})
	defer look.Stop()
	err := cmd.Run()
	if ctx.Err() != nil && startFailed.MatchString(w.read("trace")) {
		w.t.Skip("the fault was on the pipe by which Go starts a process, at whose error it waits for that one")
	}
	if ctx.Err() != nil {
		w.t.Errorf("%q does not end: stdout:\n%s\nstderr:\n%s\ncalls:\n%s", args, out.String(), stderr.String(), w.read("trace"))
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(w.t, err)
	}
	return result{cmd.ProcessState.ExitCode(), cmd.ProcessState.ExitCode() < 0, out.String(), stderr.String()}
}

// places are the places of each entry, by its id.
func (w *world) places() map[string][]string {
	w.t.Helper()
	all := map[string][]string{}
	put := func(id, place string) { all[id] = append(all[id], place) }
	box := w.box(0)
	v, err := box.View()
	require.NoError(w.t, err)
	defer func() { require.NoError(w.t, v.Close()) }()
	if d := v.InFlight(); d != nil {
		put(d.ID(), "in flight")
	}
	require.NoError(w.t, v.Waits(nil, func(e inbox.Waiting) bool { put(e.ID, "queued"); return true }))
	scheduled, err := box.Scheduled()
	require.NoError(w.t, err)
	for _, s := range scheduled {
		put(cmp.Or(s.ID, s.EntryID), "scheduled")
	}
	letters, _, err := script.Letters(box)
	require.NoError(w.t, err)
	for _, l := range letters {
		if l.Open() {
			put(l.ID, "letter: "+string(l.Reason))
		}
	}
	for line := range strings.Lines(w.read("q/.results.jsonl")) {
		var r struct{ ID, Reply, Result string }
		require.NoError(w.t, json.Unmarshal([]byte(line), &r), line)
		reply := "answered"
		if r.Result == "" && !strings.Contains(r.Reply, "["+r.ID+"]") {
			reply += " with what is another's: " + r.Reply
		}
		put(r.ID, reply)
	}
	return all
}

// picture is a world's files, to be put back in place: what an inbox is recognised by
// has to stay.
type picture struct {
	files map[string]file
	lived lived
}

type file struct {
	content      []byte
	inode        uint64
	atime, mtime time.Time
}

func (w *world) each(f func(name string, info os.FileInfo, inode uint64, atime time.Time)) {
	err := filepath.Walk(w.dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			stat := info.Sys().(*syscall.Stat_t)
			f(strings.TrimPrefix(path, w.dir+"/"), info, stat.Ino, time.Unix(stat.Atim.Unix()))
		}
		return err
	})
	require.NoError(w.t, err)
}

func (w *world) take() picture {
	p := picture{map[string]file{}, w.lived}
	p.lived.asked = maps.Clone(w.asked)
	w.each(func(name string, info os.FileInfo, inode uint64, atime time.Time) {
		p.files[name] = file{[]byte(w.read(name)), inode, atime, info.ModTime()}
	})
	return p
}

func (w *world) restore(p picture) {
	w.lived = p.lived
	w.asked = maps.Clone(p.lived.asked)
	there := map[string]bool{}
	w.each(func(name string, _ os.FileInfo, inode uint64, _ time.Time) {
		if was, ok := p.files[name]; ok && was.inode == inode {
			there[name] = true
			return
		}
		require.NoError(w.t, os.Remove(w.path(name)))
	})
	for name, was := range p.files {
		if !there[name] || w.read(name) != string(was.content) {
			w.write(name, string(was.content))
		}
		if !there[name] {
			var stat syscall.Stat_t
			require.NoError(w.t, syscall.Stat(w.path(name), &stat))
			was.inode = stat.Ino
			p.files[name] = was
		}
		require.NoError(w.t, os.Chtimes(w.path(name), was.atime, was.mtime))
	}
}
