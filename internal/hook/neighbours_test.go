package hook_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/claude"
	"heartbeat/internal/testing/crash"
	"heartbeat/internal/testing/long"
)

// oneStop is a client at one Stop: it starts the hook and the others, each in its own session, and
// writes the words of each to its transcript once that hook has ended.
const oneStop = `
export CLAUDE_PID=$$ CLAUDE_PROJECT_DIR=$PWD CLAUDECODE=1 HOME=$PWD/home
say() { printf '%s\n' "$1" >>transcript.jsonl; }
say '{"uuid":"a","type":"assistant","message":{"id":"'$$'","model":"m","content":[{"type":"text","text":"'"$REPLY"'"}]}}'
i=0 all=
for command in "$@"; do
	i=$((i + 1))
	setsid sh -c "$command" >said.$i 2>error.$i </dev/null &
	all="$all $!"
done
setsid $HOOK <stop.json >hook.out 2>hook.err &
hook=$!
i=0
for one in $all; do
	i=$((i + 1)) status=0 words=
	test "$i" -le "$WAITED" || continue
	wait "$one" || status=$?
	read -r words <said.$i || : # a process more would take its time on a busy machine
	case "$status $words" in
	*'"block"'*) say '{"uuid":"f","type":"user","isMeta":true,"message":{"content":"Stop hook feedback:\nCHECK FAILED"}}' ;;
	*'"continue"'*) say '{"uuid":"s","type":"attachment","attachment":{"type":"hook_stopped_continuation","hookEvent":"Stop"}}' ;;
	2*) say '{"uuid":"f","type":"user","isMeta":true,"message":{"content":"Stop hook feedback:\n[check]: BY STATUS"}}' ;;
	1*) say '{"uuid":"e","type":"attachment","attachment":{"type":"hook_non_blocking_error","hookEvent":"Stop","command":"check"}}' ;;
	esac
done
wait "$hook" || exit 1
say '{"uuid":"z","type":"system","subtype":"stop_hook_summary","hookCount":1,"hookErrors":'"$ERRORS"',"preventedContinuation":false}'
for one in $all; do kill -- -"$one" 2>/dev/null; done
exit 0
`

// besides is a session with an entry in flight whose Stops run other hooks too.
type besides struct {
	*testing.T
	dir    string
	args   []string
	stops  int
	waited int // how many of the others the client waits for, -1 for all
	errors []string
}

func newBesides(t *testing.T, args ...string) *besides {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("a session of its own for each hook needs setsid")
	}
	b := &besides{T: t, dir: t.TempDir(), args: args, waited: -1}
	exe, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(exe, b.path("heartbeat-stop")))
	b.write("client.sh", oneStop)
	b.write("inbox.jsonl", "e1\ne2\n")
	require.NoError(t, os.MkdirAll(b.path(".claude"), 0o700))
	b.wire()
	require.Contains(t, b.stop("ready"), `"e1"`)
	return b
}

func (b *besides) path(name string) string { return filepath.Join(b.dir, name) }

func (b *besides) write(name, text string) {
	b.Helper()
	require.NoError(b, os.WriteFile(b.path(name), []byte(text), 0o600))
}

func (b *besides) read(name string) string {
	b.Helper()
	text, err := os.ReadFile(b.path(name))
	if os.IsNotExist(err) {
		return ""
	}
	require.NoError(b, err)
	return string(text)
}

// wire adds commands to the project's settings, besides the hook itself.
func (b *besides) wire(hooks ...map[string]any) {
	b.Helper()
	hooks = append(hooks, map[string]any{"type": "command", "command": b.path("heartbeat-stop")})
	text, err := json.Marshal(map[string]any{"hooks": map[string]any{"Stop": []any{map[string]any{"hooks": hooks}}}})
	require.NoError(b, err)
	b.write(".claude/settings.json", string(text))
}

func waited(commands ...string) (all []map[string]any) {
	for _, c := range commands {
		all = append(all, map[string]any{"type": "command", "command": c})
	}
	return all
}

// stop ends a turn with reply, beside these other hooks. It returns what the hook printed.
func (b *besides) stop(reply string, others ...string) string {
	b.Helper()
	b.stops++
	input, err := json.Marshal(map[string]any{
		"hook_event_name": "Stop", "session_id": "s", "prompt_id": "p", "transcript_path": b.path("transcript.jsonl"),
		"stop_hook_active": b.stops > 1, "last_assistant_message": reply,
	})
	require.NoError(b, err)
	b.write("stop.json", string(input))
	hookErrors, err := json.Marshal(append([]string{}, b.errors...))
	require.NoError(b, err)
	if b.waited < 0 {
		b.waited = 1000
	}
	cmd := exec.Command("sh", append([]string{b.path("client.sh")}, others...)...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), "REPLY="+reply, "ERRORS="+string(hookErrors), fmt.Sprint("WAITED=", b.waited), // others win
		"HOOK="+strings.Join(append([]string{b.path("heartbeat-stop"), "--inbox", b.path("inbox.jsonl"), "--signal-file", b.path("signal")}, b.args...), " "))
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(b, cmd.Run(), "%s%s", &said, b.read("hook.err"))
	return b.read("hook.out")
}

const (
	blocks = `echo '{"decision":"block","reason":"CHECK FAILED"}'`
	ends   = `echo '{"continue":false,"stopReason":"ENOUGH"}'`
)

// A turn that another hook continues is not over, however many other hooks there are and however
// fast they are. Its next Stop brings the answer.
func TestATurnThatAnotherHookHoldsOpen(t *testing.T) {
	for name, others := range map[string][]string{
		"fast":                      {blocks},
		"slow":                      {"sleep 0.7; " + blocks},
		"by its status":             {"echo NO >&2; exit 2"},
		"two":                       {"sleep 0.5; " + blocks, blocks},
		"three":                     {"exit 1", "sleep 0.4; true", "sleep 0.2; exit 2"},
		"beside one that is killed": {"kill -9 $$", "sleep 0.2; " + blocks},
		"beside a long one":         {blocks, "sleep 1"},
	} {
		for _, mode := range []string{"drain", "persist"} {
			if mode == "persist" && !long.Wanted() && name != "two" {
				continue
			}
			t.Run(name+" "+mode, func(t *testing.T) {
				t.Parallel()
				b := newBesides(t, "--mode", mode, "--idle-interval", "20ms")
				b.wire(waited(others...)...)
				for range 2 {
					assert.Empty(t, b.stop("did it", others...))
				}
				assert.Empty(t, b.read(".results.jsonl"))
				assert.Contains(t, b.read(".in-flight"), "e1")
				assert.NoFileExists(t, b.path("signal"), "a launcher would end the session")
				assert.Contains(t, b.read("hook.err"), "another Stop hook has the turn go on")
				approve := make([]string, len(others))
				for i := range approve {
					approve[i] = "true"
				}
				assert.Contains(t, b.stop("repaired", approve...), `"e2"`)
				assert.Contains(t, b.read(".results.jsonl"), `"reply":"repaired"`)
			})
		}
	}
}

// A limit also holds at a Stop after which another hook has the turn go on, since such a turn may use no tools.
func TestALimitOfATurnThatAnotherHookHoldsOpen(t *testing.T) {
	b := newBesides(t, "--max-time-per-entry", "1ms")
	b.wire(waited(blocks)...)
	assert.Contains(t, b.stop("did it", blocks), `"continue":false`)
	assert.Contains(t, b.read(".dead-letter.jsonl"), `"reason":"over_budget"`)
	assert.FileExists(t, b.path("signal"))
	assert.Contains(t, b.stop("did it again", blocks), `"continue":false`)
	assert.Equal(t, 1, strings.Count(b.read(".dead-letter.jsonl"), "\n"))
}

// A hook in the background cannot end the turn. Without a launcher that ends the session, the entry stays the turn's.
func TestALimitOfATurnThatABackgroundHookSees(t *testing.T) {
	for name, launched := range map[string]bool{"launched": true, "installed": false} {
		t.Run(name, func(t *testing.T) {
			b := newBesides(t)
			b.wire(waited(blocks)...)
			b.args = []string{"--rewake", "--max-time-per-entry", "1ms"}
			if !launched {
				b.args = append(b.args, "--signal-file=")
			}
			said := b.stop("did it", blocks)
			if launched {
				assert.Contains(t, b.read(".dead-letter.jsonl"), `"reason":"over_budget"`)
				assert.FileExists(t, b.path("signal"))
				return
			}
			assert.Empty(t, said)
			assert.Empty(t, b.read(".dead-letter.jsonl"))
			assert.Contains(t, b.read(".in-flight"), "e1")
		})
	}
}

// A session that a tool of an entry's turn started lets that turn go on: it does not wait for its end, and has nobody end
// the session around it.
func TestASessionWithinTheTurn(t *testing.T) {
	const outer = `
hook() { CLAUDE_PID=$$ $HOOK <"$1" >"$2" 2>>hook.err; }
printf '%s' '{"hook_event_name":"Stop","session_id":"outer","prompt_id":"p"}' >outer.json
printf '%s' '{"hook_event_name":"Stop","session_id":"inner","prompt_id":"q"}' >inner.json
printf '%s' '{"hook_event_name":"StopFailure","session_id":"inner","prompt_id":"q","error":"server_error"}' >failed.json
hook outer.json outer.out
sh -c 'CLAUDE_PID=$$ $HOOK $INNER <inner.json >inner.out 2>>hook.err; CLAUDE_PID=$$ $HOOK <failed.json >failed.out 2>>hook.err; true'
printf '%s' '{"hook_event_name":"Stop","session_id":"outer","prompt_id":"p","stop_hook_active":true,"last_assistant_message":"did it"}' >outer.json
hook outer.json later.out
`
	for name, c := range map[string]struct{ mode, inner string }{
		"drain": {"drain", ""}, "persist": {"persist", ""}, "launched in the background": {"drain", "--launched"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBesides(t)
			require.NoError(t, os.Mkdir(b.path("own"), 0o700))
			b.write("own/inbox.jsonl", "o1\no2\n")
			cmd := exec.Command("sh", "-c", outer)
			cmd.Dir, cmd.Env = b.dir, append(os.Environ(), "HOOK="+strings.Join([]string{b.path("heartbeat-stop"), "--inbox", b.path("own/inbox.jsonl"), "--signal-file", b.path("signal"), "--mode", c.mode, "--idle-interval", "1s"}, " "), "INNER="+c.inner)
			said, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", said)
			assert.Contains(t, b.read("outer.out"), `"o1"`)
			assert.Empty(t, b.read("inner.out"), "an idle tick, say")
			assert.Empty(t, b.read("failed.out"))
			if c.inner != "" {
				assert.FileExists(t, b.path("signal"), "its own launcher would wait for ever")
			} else {
				assert.NoFileExists(t, b.path("signal"), "a launcher would end the session around it")
			}
			assert.Contains(t, b.read("later.out"), `"o2"`)
			assert.Contains(t, b.read("own/.results.jsonl"), `"reply":"did it"`)
		})
	}
}

// The turn is over if no hook continues it, whatever else the others do.
func TestATurnThatOtherHooksLetEnd(t *testing.T) {
	for name, c := range map[string]struct {
		wired  []map[string]any
		others []string
		waited int
		args   []string
		says   string
	}{
		"approved":                {wired: waited("true"), others: []string{"true", "sleep 0.5"}, waited: -1},
		"failed":                  {wired: waited("exit 1"), others: []string{"exit 1", "sleep 0.3; kill -9 $$"}, waited: -1},
		"leaves a daemon":         {wired: waited("daemon"), others: []string{"setsid sleep 30 & exit 0"}, waited: -1},
		"a server of tools":       {wired: waited("true"), others: []string{"exec env -u CLAUDE_PID sleep 30"}},
		"a task of the turn":      {wired: waited("true"), others: []string{"exec env -u CLAUDE_PROJECT_DIR sleep 30"}},
		"another inbox's":         {wired: waited("true"), others: []string{"exec ./heartbeat-stop --inbox other.jsonl --mode persist --idle-interval 30s <stop.json"}},
		"hangs":                   {wired: waited("sleep 30"), others: []string{"sleep 30"}, args: []string{"--gate-timeout", "5s"}, says: "still runs after"},
		"in the background":       {wired: append(waited("true"), map[string]any{"type": "command", "command": "sleep 30; true", "async": true}), others: []string{"sleep 30; true", "true"}},
		"a judge that approves":   {wired: []map[string]any{{"type": "prompt", "prompt": "done?"}}, args: []string{"--gate-unseen", "400ms"}},
		"nobody is waited for":    {wired: waited(blocks), others: []string{blocks}, waited: -1, args: []string{"--gate-timeout", "0"}},
		"settings of a huge size": {wired: waited(strings.Repeat("x", 2<<20))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBesides(t, c.args...)
			b.wire(c.wired...)
			b.waited = c.waited
			assert.Contains(t, b.stop("did it", c.others...), `"e2"`)
			assert.Contains(t, b.read(".results.jsonl"), `"reply":"did it"`)
			assert.Contains(t, b.read("hook.err"), c.says)
		})
	}
}

// A hook that ends the session leaves the entry answered, and nothing more delivered.
func TestASessionThatAnotherHookEnds(t *testing.T) {
	b := newBesides(t)
	b.wire(waited(ends, "true")...)
	assert.Empty(t, b.stop("did it", "sleep 0.4; "+ends, "true"))
	assert.Contains(t, b.read(".results.jsonl"), `"reply":"did it"`)
	assert.Empty(t, b.read(".in-flight"))
	assert.FileExists(t, b.path("signal"))
}

// Objections that show only after the decision make the answer contested.
func TestAnAnswerIsContested(t *testing.T) {
	b := newBesides(t, "--gate-unseen", "0")
	b.wire(map[string]any{"type": "agent", "prompt": "done?"})
	b.errors = []string{"e2", "NOT DONE"}
	require.Contains(t, b.stop("did it"), `"e2"`)
	assert.NotContains(t, b.read(".events.jsonl"), "contested")
	b.errors = nil
	require.Empty(t, b.stop("both"))
	assert.Contains(t, b.read(".events.jsonl"), `"event":"contested"`)
	assert.Contains(t, b.read(".events.jsonl"), `"reason":"NOT DONE"`)
	require.Empty(t, b.stop("idle"))
	assert.Equal(t, 1, strings.Count(b.read(".events.jsonl"), "contested"), "once")
}

// So do they where the Stop looked at the inbox again, and what it then delivered is no objection.
func TestAnAnswerIsContestedAfterAnotherLook(t *testing.T) {
	b := newBesides(t, "--gate-unseen", "0", "--settle", "0.1s")
	b.wire(map[string]any{"type": "agent", "prompt": "done?"})
	b.write("inbox.jsonl", "e1\ne2") // a last line that must stand still first
	b.errors = []string{"e2", "NOT DONE"}
	require.Contains(t, b.stop("did it"), `"e2"`)
	b.errors = nil
	require.Empty(t, b.stop("both"))
	assert.Contains(t, b.read(".events.jsonl"), `"reason":"NOT DONE"`)
}

// A FIFO in place of settings, or a link to one, keeps nobody waiting.
func TestSettingsThatAreNoFile(t *testing.T) {
	b := newBesides(t)
	require.NoError(t, os.Remove(b.path(".claude/settings.json")))
	require.NoError(t, exec.Command("mkfifo", b.path(".claude/settings.json")).Run())
	require.NoError(t, os.Symlink("settings.json", b.path(".claude/settings.local.json")))
	assert.Contains(t, b.stop("did it"), `"e2"`)
}

func init() {
	situations["contested"] = situation{turns: 1, prepare: inDoubt, stdin: crashStop("s0", true, "reply to A"), holds: contestedOrInDoubt}
}

// inDoubt leaves an answer that has been contested since.
func inDoubt(t testing.TB, s situation, dir string) {
	path := filepath.Join(dir, "doubted.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"uuid":"z","type":"system","subtype":"stop_hook_summary","hookErrors":["A","NOT DONE"]}`+"\n"), 0o600))
	s.commit(t, dir, func(_ *inbox.Inbox, tx *inbox.Tx) {
		note, err := json.Marshal(map[string]any{"transcript": path, "from": 0, "own": claude.ReplySum("A")})
		require.NoError(t, err)
		tx.In("s0").LeaveInDoubt(tx.InFlight(), note)
	})
}

// contestedOrInDoubt wants the answer contested or still in doubt, never both.
func contestedOrInDoubt(t *testing.T, s situation, c crash.Crash) {
	doubt := false
	s.settle(t, c.Dir, func(_ *inbox.Inbox, tx *inbox.Tx) { doubt = tx.In("s0").Doubt() != nil })
	events, err := os.ReadFile(filepath.Join(c.Dir, ".events.jsonl"))
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	assert.NotEqual(t, doubt, strings.Contains(string(events), `"reason":"NOT DONE"`))
}
