package main

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tiny is enough to run every measure, with its checks, once.
var tiny = plan{
	orchestrated: 1, watched: 3, watchedEntries: 10,
	asleep: 50 * time.Millisecond,
	pairs:  3, alone: 2, bigLines: 40, rounds: 2, sends: 80, waits: 2,
	notices: 1, floods: 1, flood: 1_000_000,
	before: 10, stored: 2, hosts: 1,
	crowds: 1, crowd: 8, idle: 100 * time.Millisecond, million: 5_000, looks: 1, drain: 30, day: 60, killEvery: 20,
	fleet: fleetPlan{agents: 2, messages: 4, alone: 2, whole: 2, rounds: 2, asleep: 50 * time.Millisecond},
}

// built are the programs that all tests run.
var built programs

func TestMain(m *testing.M) {
	var err error
	if built, err = build(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	_ = built.remove() // it is in the temporary directory
	os.Exit(status)
}

// newTestBench returns a tiny bench in a scratch directory of its own.
func newTestBench(t *testing.T) *bench {
	t.Helper()
	return &bench{ctx: t.Context(), plan: tiny, programs: built, dir: t.TempDir(), log: t.Output()}
}

func TestEveryMeasure(t *testing.T) {
	for _, m := range measures {
		t.Run(m.name, func(t *testing.T) {
			if (m.name == "persist" || m.name == "rewake" || m.name == "waiters" || m.name == "launch" || m.name == "fleet") && !canSeeWaiting {
				t.Skip("this system does not show what a process waits for")
			}
			if _, err := findBabysitter(); m.name == "run" && err != nil {
				t.Skip(err)
			}
			got, err := m.take(newTestBench(t))
			require.NoError(t, err)
			assert.NotEmpty(t, got.rows)
			for _, row := range got.rows {
				assert.Len(t, row, len(got.header))
			}
		})
	}
}

func TestRunPrintsTheMachineAndTheTable(t *testing.T) {
	dir := t.TempDir()
	var out, log outputs
	require.NoError(t, run(t.Context(), []string{"-quick", "-only", "size", "-dir", dir}, &out, &log))
	assert.Regexp(t, `(?s)^Machine: .+ cores, .+ go1\..+\n\n## Size of the binary\n.*\| heartbeat-stop \| \d+\.\d MB \|`, out.text)
	assert.Equal(t, "bench: size ...\n", log.text)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

// outputs keeps what is written.
type outputs struct{ text string }

func (o *outputs) Write(b []byte) (int, error) {
	o.text += string(b)
	return len(b), nil
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"size", "start", "meter", "tick", "codex", "bigfile", "send", "persist", "rewake", "waiters", "watch", "launch", "transcript", "host", "mcp"}},
		{[]string{"-full"}, names()},
		{[]string{"-only", "drain"}, []string{"drain"}},
		{[]string{"-only", "fleet"}, []string{"fleet"}},
	} {
		o, err := parse(c.args, t.Output())
		require.NoError(t, err)
		var got []string
		for _, m := range measures {
			if o.wants(m) {
				got = append(got, m.name)
			}
		}
		assert.Equal(t, c.want, got, c.args)
	}
	_, err := parse([]string{"-only", "nothing"}, t.Output())
	require.ErrorContains(t, err, "it is one of size, start, meter, tick")
	_, err = parse([]string{"tick"}, t.Output())
	require.ErrorContains(t, err, "unexpected argument")
}
