package recover_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/inbox"
	"heartbeat/internal/machine"
	recovery "heartbeat/recover"
)

// tree starts a process of this name that runs the script. It returns the process's number and the
// number that the script printed.
func tree(t *testing.T, name, script string, env ...string) (top, said int) {
	t.Helper()
	cmd := exec.Command(named(t, name), "-c", script+"; :")
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "CLAUDE=" + named(t, "claude")}, env...)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	said, err = strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err)
	return cmd.Process.Pid, said
}

// named returns a shell under another name.
func named(t *testing.T, name string) string {
	t.Helper()
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	raw, err := os.ReadFile(sh)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, raw, 0o700))
	return path
}

const says = `sh -c "echo \$\$; cat; :"`

func TestMaySpeak(t *testing.T) {
	onlyHere(t)
	const mine, another = "CLAUDE_CODE_SESSION_ID=s1 ", "CLAUDE_CODE_SESSION_ID=s2 "
	inner := func(command string) string { return command + ` -c '` + says + `; :'` }
	for name, c := range map[string]struct {
		script       string
		env          []string
		detached     bool // from its client
		tool, person string
	}{
		"a tool server of the client":     {script: says},
		"a command of the client":         {script: mine + inner("sh")},
		"below a client of another name":  {script: says, env: []string{another}},
		"a session below it":              {script: inner(`"$CLAUDE"`), tool: "a client of its own", person: "a client of its own"},
		"one of a file with another name": {script: mine + `sh -c '` + another + says + `; :'`, tool: "is another session's", person: "session s1 has it, and this is of session s2"},
		"one that goes on with it":        {script: mine + `"$CLAUDE" -c '` + mine + says + `; :'`, tool: "a client of its own", person: "a client of its own"},
		"without the environment":         {script: mine + `sh -c 'env -i ` + says + `; :'`},
		"a person":                        {script: says, detached: true, tool: "is another session's"},
		"a command that left its client":  {script: mine + says, detached: true, tool: "is another session's"},
		"another session's that left its": {script: another + says, detached: true, tool: "is another session's", person: "session s1 has it, and this is of session s2"},
	} {
		t.Run(name, func(t *testing.T) {
			top, caller := tree(t, "client", c.script, c.env...)
			owner := top
			if c.detached {
				owner, _ = tree(t, "client", says)
			}
			d := deliveredTo(t, recovery.Evidence{Process: inbox.ProcessOf(owner)})
			expect(t, c.tool, recovery.MaySpeak(caller, d, nil, false))
			expect(t, c.person, recovery.MaySpeak(caller, d, nil, true))
		})
	}
}

// A hook has reported the session below, whatever its client is called.
func TestMaySpeakBesideASession(t *testing.T) {
	onlyHere(t)
	top, caller := tree(t, "client", `sh -c 'echo $$; cat'`)
	d := deliveredTo(t, recovery.Evidence{Process: inbox.ProcessOf(top)})
	below := inbox.Session{ID: "s2", Process: inbox.ProcessOf(caller)}
	require.NoError(t, recovery.MaySpeak(caller, d, nil, false))
	expect(t, "a client of its own", recovery.MaySpeak(caller, d, []inbox.Session{below}, true))
	assert.True(t, recovery.InSession(caller, []inbox.Session{below}))
	below.ProcessStart--
	require.NoError(t, recovery.MaySpeak(caller, d, []inbox.Session{below}, false), "an earlier process of that number")
	assert.False(t, recovery.InSession(caller, []inbox.Session{below}))
}

func TestMaySpeakOfOneWhoseClientIsGone(t *testing.T) {
	dead := exec.Command("true")
	require.NoError(t, dead.Run())
	_, caller := tree(t, "client", says)
	gone := recovery.Evidence{Process: inbox.Process{Boot: machine.BootID(), Namespace: machine.PIDNamespace(), PID: dead.Process.Pid, ProcessStart: 1}}
	expect(t, "is another session's", recovery.MaySpeak(caller, deliveredTo(t, gone), nil, false))
	require.NoError(t, recovery.MaySpeak(caller, deliveredTo(t, gone), nil, true))
	gone.Namespace = "another"
	expect(t, "is not known", recovery.MaySpeak(caller, deliveredTo(t, gone), nil, false))
	require.NoError(t, recovery.MaySpeak(caller, deliveredTo(t, gone), nil, true))
}

func TestInSession(t *testing.T) {
	onlyHere(t)
	for script, want := range map[string]bool{
		says:                                false,
		`"$CLAUDE" -c '` + says + `; :'`:    true,
		"CLAUDE_CODE_SESSION_ID=s1 " + says: true,
	} {
		_, caller := tree(t, "client", script)
		assert.Equal(t, want, recovery.InSession(caller, nil), script)
	}
}

func onlyHere(t *testing.T) {
	t.Helper()
	switch {
	case runtime.GOOS != "linux":
		t.Skip("a shell has its own name here, and shows no environment")
	case recovery.InSession(os.Getpid(), nil):
		t.Skip("an agent runs this, and so nobody here is a person")
	}
}

// deliveredTo returns an entry in flight in session s1.
func deliveredTo(t *testing.T, e recovery.Evidence) (d *inbox.Delivery) {
	t.Helper()
	in(t, newBox(t), func(tx *inbox.Tx) error {
		next, err := tx.Next(inbox.Mark{})
		require.NoError(t, err)
		d, err = tx.Deliver(next, inbox.Recipient{SessionID: "s1", Evidence: e.Encode()})
		return err
	})
	return d
}

// expect wants an error that contains says, or no error if says is empty.
func expect(t *testing.T, says string, err error) {
	t.Helper()
	if says == "" {
		require.NoError(t, err)
		return
	}
	require.Error(t, err)
	require.Contains(t, fmt.Sprint(err), says)
}
