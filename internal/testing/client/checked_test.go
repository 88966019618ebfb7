package client

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
)

// lieDetector is a check that fails while the reply claims something that is not so. It prints
// control sequences, which reach nobody.
const lieDetector = `case "$HEARTBEAT_REPLY" in *claim*) printf '\033[2J%s is not done\n' "$HEARTBEAT_PROMPT"; exit 1;; esac`

// lying is a model that claims to be done with each third entry: with half of these for good,
// and with the others until it is told.
func lying(tag string, nth int) model.Reply {
	var n int
	_, _ = fmt.Sscanf(tag, "[e%d]", &n)
	if n%3 == 0 && (n%6 == 0 || nth == 1) {
		return model.Text(fmt.Sprintf("claim %d of %s", nth, tag))
	}
	return own(tag, nth)
}

// checked holds that a third was lied about, and that no lie counts as an answer.
func (r *rig) checked(all []entry) {
	r.t.Helper()
	var want, got, dead []string
	for i, e := range all {
		switch n := i + 1; {
		case n%6 == 0:
			dead = append(dead, e.tag)
		case n%3 == 0:
			want = append(want, ownReply(e.tag)+" passed 2")
		default:
			want = append(want, ownReply(e.tag)+" passed 1")
		}
	}
	for _, l := range r.lines(".results.jsonl") {
		require.NotNil(r.t, l.Check, l.Reply)
		got = append(got, fmt.Sprintf("%s %s %d", l.Reply, l.Check.Status, l.Check.Tries))
	}
	assert.Equal(r.t, want, got)
	var aside []string
	for _, l := range r.lines(".dead-letter.jsonl") {
		assert.Equal(r.t, "check_failed", l.Reason)
		require.NotNil(r.t, l.Check)
		assert.Equal(r.t, 3, l.Check.Tries)
		assert.Contains(r.t, l.Check.Tail, "is not done")
		assert.NotContains(r.t, l.Check.Tail, "\033")
		at := slices.IndexFunc(all, func(e entry) bool { return strings.Contains(l.Check.Tail, e.tag) })
		require.GreaterOrEqual(r.t, at, 0, l.Check.Tail)
		aside = append(aside, all[at].tag)
	}
	assert.Equal(r.t, dead, aside)
	assert.Nil(r.t, r.flying())
}

// A model that lies about a third of its work: what it mends when it is told counts as
// answered, and what it does not is set aside, however the session is run.
func TestManagedChecked(t *testing.T) {
	for name, c := range map[string]struct {
		flags, client []string
		persists      bool
	}{
		"in a terminal": {},
		"printing":      {client: []string{"-p"}},
		"woken":         {flags: []string{"--mode", "persist"}, persists: true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := minutes(t)
			all := some(30)
			r := newRig(t, lying).add(all...)
			m := r.managingWith(ctx, append(c.flags, "--check", lieDetector), c.client...)
			if c.persists {
				r.until(ctx, "all are settled", func() bool {
					return len(r.lines(".results.jsonl"))+len(r.lines(".dead-letter.jsonl")) == len(all)
				})
				require.NoError(t, m.cmd.Process.Signal(syscall.SIGTERM))
			}
			w, log := m.wait()
			assert.Equal(t, []int{25, 5}, []int{w.Answered, w.DeadLettered}, "%q", log)
			r.checked(all)
		})
	}
}

func TestCodexChecked(t *testing.T) {
	for name, command := range map[string][]string{"exec": inExec, "terminal": inTerminal} {
		t.Run(name, func(t *testing.T) {
			ctx := minutes(t)
			all := some(12)
			r := bareCodexRig(t, answers(lying).script())
			r.add(all...)
			w, log := r.launching(ctx, []string{"--check", lieDetector}, command...).wait()
			assert.Equal(t, []int{10, 2}, []int{w.Answered, w.DeadLettered}, "%q", log)
			r.checked(all)
		})
	}
}

// A hosted session is checked likewise.
func TestHostedChecked(t *testing.T) {
	all := some(11, verbatim)
	h := newHosting(t, answers(lying).script())
	r := &rig{Workspace: h.Workspace, t: t, inbox: filepath.Join(t.TempDir(), "inbox.jsonl")}
	var text strings.Builder
	for _, e := range all[:len(all)-1] {
		text.WriteString(e.line + "\n")
	}
	require.NoError(t, os.WriteFile(r.inbox, []byte(text.String()), 0o600))
	h.config["prompt"] = all[len(all)-1].text
	h.run("--inbox", r.inbox, "--check", lieDetector)
	r.checked(all)
}

// A pipeline's step ends as its check does.
func TestPipelineChecked(t *testing.T) {
	p := inPipeline(minutes(t), t, lying)
	all := some(6, verbatim)
	reply := p.ran(p.step(all[2], "--check", lieDetector), 0)
	assert.Equal(t, ownReply(all[2].tag)+"\n", reply)
	p.ran(p.step(all[5], "--check", lieDetector, "--check-tries", "2"), 3, "check_failed", "its check failed: exit status 1")
	assert.Empty(t, p.ran(p.step(all[0], "--check", "exit 75", "--timeout", unhurried(t, 20*time.Second, clients).String()), 124, "was not answered in time"))
}
