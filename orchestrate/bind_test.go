package orchestrate_test

import (
	"errors"
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
		if err := file.Free(id, over); err != nil {
			return err
		}
		_, err := file.Bind(orchestrate.NewState(id, prompt, limit, now))
		return err
	}
	require.NoError(t, file.Free("r1", nil))
	require.NoError(t, bind("r1", "do it", orchestrate.KeepLimit, nil))
	s, err := file.Read()
	require.NoError(t, err)
	assert.Equal(t, orchestrate.DefaultMaxIterations, s.MaxIterations)
	require.NoError(t, bind("r1", "", 9, nil), "the same one again")

	for _, err := range []error{
		file.Free("r2", over(false, nil)),
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
