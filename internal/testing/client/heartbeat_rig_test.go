package client

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/build"
	"heartbeat/internal/testing/guild"
	"heartbeat/internal/testing/model"
)

// binaryVariable names a heartbeat-stop to test instead of one that is built here.
const binaryVariable = "HEARTBEAT_STOP"

// built is the folder of the command that these tests build, if they do.
var built string

func TestMain(m *testing.M) {
	guild.RunIfAsked()
	serveAgent()
	code := m.Run()
	if built != "" {
		_ = os.RemoveAll(built) // best effort: a temporary folder
	}
	os.Exit(code)
}

// buildOnce builds the commands as they are shipped: without cgo, since the client starts
// the hook in every turn.
var buildOnce = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(binaryVariable); path != "" {
		return path, nil
	}
	dir, _, err := build.Commands() // TestMain removes it
	built = dir
	return filepath.Join(dir, "heartbeat-stop"), err
})

// rig is an inbox, the client that works through it with heartbeat-stop as its
// hook, and a model that knows which entry it is asked.
type rig struct {
	*Workspace
	t        *testing.T
	stop     string // the hook
	inbox    string
	settings string // what install wrote, for --settings
	signal   string // for --signal-file
	entries  []entry
}

// heartbeat is the command beside the hook.
func (r *rig) heartbeat() string { return besideHook(r.stop) }

func besideHook(stop string) string { return filepath.Join(filepath.Dir(stop), "heartbeat") }

// answers decides the model's reply when it is asked about a tag for the nth time, from
// 1. The tag is empty for a text that has none.
type answers func(tag string, nth int) model.Reply

// own is a reply that no other tag gets.
func own(tag string, _ int) model.Reply { return model.Text(ownReply(tag)) }

func ownReply(tag string) string { return "answer " + tag }

// first changes the first answer about one tag.
func first(tag string, reply model.Reply) answers {
	return func(asked string, nth int) model.Reply {
		if asked == tag && nth == 1 {
			return reply
		}
		return own(asked, nth)
	}
}

// newRig has an empty inbox and no hook yet. It skips the test where there is no
// client.
func newRig(t *testing.T, how answers) *rig {
	t.Helper()
	return newRigWith(t, how.script())
}

// newRigWith is newRig with a model that decides by the whole request.
func newRigWith(t *testing.T, script model.Script) *rig {
	t.Helper()
	client := Find(t)
	stop, err := buildOnce()
	require.NoError(t, err)
	dir := filepath.Join(t.TempDir(), "queue")
	require.NoError(t, os.Mkdir(dir, 0o700))
	return &rig{
		Workspace: workspace(t, client, script), t: t, stop: stop,
		inbox:    filepath.Join(dir, "inbox.jsonl"),
		settings: filepath.Join(dir, "wired.json"),
		signal:   filepath.Join(dir, "signal"),
	}
}

// tags mark prompts and entries. The last one in a message is what is asked:
// the client merges a prompt into the message before it if nothing was answered
// in between.
var tags = regexp.MustCompile(`\[[a-z]+\d+\]`)

// lastTag is what a request asks about, "" if it has no tag.
func lastTag(r model.Request) string {
	if all := tags.FindAllString(r.UserText, -1); len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

func (how answers) script() model.Script {
	var mu sync.Mutex
	asked := map[string]int{}
	return func(r model.Request) model.Reply {
		tag := lastTag(r)
		mu.Lock()
		asked[tag]++
		nth := asked[tag]
		mu.Unlock()
		return how(tag, nth)
	}
}

// run runs heartbeat-stop with a verb on the rig's inbox.
func (r *rig) run(stdin string, verb string, args ...string) (stdout string) {
	r.t.Helper()
	cmd := exec.Command(r.heartbeat(), append([]string{verb, "--inbox", r.inbox}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	require.NoError(r.t, cmd.Run(), "%s %q: %s", verb, args, &errs)
	return out.String()
}

// install has the product write the settings.
func (r *rig) install(flags ...string) *rig {
	r.t.Helper()
	r.installIn(r.settings, append(flags, "--signal-file", r.signal)...)
	return r
}

func (r *rig) installIn(settings string, flags ...string) {
	r.t.Helper()
	r.run("", "install", append([]string{"--settings", settings}, flags...)...)
}

// edit changes what install wrote, as a person would by hand.
func (r *rig) edit(change func(settings map[string]any)) {
	r.t.Helper()
	raw, err := os.ReadFile(r.settings)
	require.NoError(r.t, err)
	var settings map[string]any
	require.NoError(r.t, json.Unmarshal(raw, &settings))
	change(settings)
	require.NoError(r.t, os.WriteFile(r.settings, []byte(asJSON(settings)), 0o600))
}

// stopHook is what settings say of one command that runs at an event.
func stopHook(command string) []any {
	return []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": command}}}}
}

// projectSettings is a settings file that the client reads unasked.
func (r *rig) projectSettings() string {
	return filepath.Join(r.Project, ".claude", "settings.json")
}

// add appends entries as any program would: echo >> inbox.
func (r *rig) add(all ...entry) *rig {
	r.t.Helper()
	file, err := os.OpenFile(r.inbox, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(r.t, err)
	defer file.Close()
	for _, e := range all {
		_, err := file.WriteString(e.line + "\n")
		require.NoError(r.t, err)
	}
	r.entries = append(r.entries, all...)
	return r
}

// options are those of a client with the installed settings.
func (r *rig) options(env ...string) Options { return Options{Settings: r.settings, Env: env} }

// drain runs one session in print mode, which ends once its stop is approved.
func (r *rig) drain(ctx context.Context, prompt string, o Options) Result {
	r.t.Helper()
	result, err := r.Print(prompt, o).Wait(ctx)
	require.NoError(r.t, err)
	require.Zero(r.t, result.ExitCode, "%s\n%s", result.Stdout, result.Stderr)
	return result
}

// asked waits until the model is asked about a tag for the nth time.
func (r *rig) asked(ctx context.Context, tag string, nth int) {
	r.t.Helper()
	for n, seen := 1, 0; seen < nth; n++ {
		request, err := r.Model.WaitRequests(ctx, n)
		require.NoError(r.t, err, "the model was asked about %s %d times", tag, seen)
		if lastTag(request) == tag {
			seen++
		}
	}
}

// until waits for something that only files or processes show, and says what is there where
// it does not come.
func until(ctx context.Context, t testing.TB, what string, so func() bool, there func() string) {
	t.Helper()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for !so() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			require.FailNow(t, "waited in vain until "+what, "%s", there())
		}
	}
}

func (r *rig) until(ctx context.Context, what string, so func() bool) {
	r.t.Helper()
	until(ctx, r.t, what, so, r.state)
}

// approved reports whether the hook let a turn end, by its signal file.
func (r *rig) approved() bool {
	_, err := os.Stat(r.signal)
	return err == nil
}

// forgetSignal removes the signal file, so that the next signal can be seen.
func (r *rig) forgetSignal() {
	r.t.Helper()
	require.NoError(r.t, os.RemoveAll(r.signal))
}

// send appends an entry with the product's own verb, which gives it an id and
// chooses the form of its line.
func (r *rig) send(e entry) entry {
	r.t.Helper()
	e.id = strings.TrimSpace(r.run(e.text, "send", "-"))
	raw, err := os.ReadFile(r.inbox)
	require.NoError(r.t, err)
	all := strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
	e.line = all[len(all)-1]
	r.entries = append(r.entries, e)
	return e
}
