package orchestrate_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/orchestrate"
)

// A session is bound to one run at a time, and to another one when that run is over.
func TestBind(t *testing.T) {
	file, err := orchestrate.StateFileAt(t.TempDir(), "s1")
	require.NoError(t, err)
	over := func(is bool, err error) func(string) (bool, error) {
		return func(id string) (bool, error) {
			assert.Equal(t, "r1", id)
			return is, err
		}
	}
	now := time.Now()
	bind := func(id, prompt string, limit int, over func(string) (bool, error)) error {
		if err := file.CheckFree(id, over); err != nil {
			return err
		}
		_, err := file.Bind(orchestrate.NewState(id, prompt, limit, now))
		return err
	}
	require.NoError(t, file.CheckFree("r1", nil))
	require.NoError(t, bind("r1", "do it", orchestrate.KeepLimit, nil))
	s, err := file.Read()
	require.NoError(t, err)
	assert.Equal(t, orchestrate.DefaultMaxIterations, s.MaxIterations)
	require.NoError(t, bind("r1", "", 9, nil), "the same one again")

	for _, err := range []error{
		file.CheckFree("r2", over(false, nil)),
		bind("r2", "", orchestrate.KeepLimit, over(false, nil)),
		bind("r2", "", orchestrate.KeepLimit, over(false, errors.New("it is gone"))),
	} {
		require.ErrorIs(t, err, orchestrate.ErrBound)
		assert.ErrorContains(t, err, "run r1")
		assert.ErrorContains(t, err, "remove "+file.Path())
	}

	require.NoError(t, bind("r2", "", orchestrate.KeepLimit, over(true, nil)))
	s, err = file.Read()
	require.NoError(t, err)
	assert.Equal(t, orchestrate.NewState("r2", "do it", 9, now), s, "with the limit and the prompt that it had")
	require.NoError(t, bind("r2", "", 0, nil))
	s, err = file.Read()
	require.NoError(t, err)
	assert.Zero(t, s.MaxIterations, "0 is no limit")
}

// boundMeanwhile stands in for babysitter's command: while it makes the run r2, the session is bound to r1.
const boundMeanwhile = `#!/bin/sh
[ "$1" = run:create ] || exit 1
echo '{"runId":"r2","processId":"p","entrypoint":{"importPath":"../../../p.mjs"},"layoutVersion":"2026.01-storage-preview"}' >.a5c/runs/r2/run.json
mkdir states
printf -- '---\nactive: true\niteration: 7\nrun_id: "r1"\n---\n\nthe other\n' >states/s1.md
echo '{"runId":"r2","runDir":".a5c/runs/r2"}'
`

// A run that is made while another one binds its session leaves the session to that one.
func TestBoundMeanwhile(t *testing.T) {
	r := &runRig{t: t, dir: t.TempDir()}
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "babysitter"), []byte(boundMeanwhile), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "p.mjs"), nil, 0o600))
	out, err := r.heartbeat("run", "start", "--inbox", "inbox.jsonl", "--babysitter", "./babysitter", "--entry", "p.mjs", "--process-id", "p",
		"--run-id", "r2", "--session-id", "s1", "--state-dir", "states")
	require.Error(t, err)
	assert.Contains(t, out, "run r2 is made: bind session s1: the session is bound to another run: run r1")
	assert.Contains(t, out, "(go on with `heartbeat run resume r2 --inbox "+filepath.Join(r.dir, "inbox.jsonl")+"`)")
	file, err := orchestrate.StateFileAt(filepath.Join(r.dir, "states"), "s1")
	require.NoError(t, err)
	is, err := file.Read()
	require.NoError(t, err)
	assert.Equal(t, "r1", is.RunID)
	assert.Equal(t, 7, is.Iteration)
}
