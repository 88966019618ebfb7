package babysitter

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPostedError(t *testing.T) {
	c, _ := real(t)
	for name, test := range map[string]struct {
		failure Failure
		caught  string
	}{
		"whole":   {Failure{Name: "AgentError", Message: "exit 3", Data: json.RawMessage(`{"code":3}`)}, `{"name":"AgentError","message":"exit 3","data":{"code":3}}`},
		"message": {Failure{Message: "exit 3"}, `{"name":"Error","message":"exit 3"}`},
	} {
		t.Run(name, func(t *testing.T) {
			dir, effect := iterated(t, c, "passes.mjs")
			require.NoError(t, c.Post(t.Context(), opened(t, dir), effect, Result{Failure: &test.failure}))
			assert.JSONEq(t, test.caught, ended(t, c, dir))
			assert.Equal(t, 1, results(t, dir))
		})
	}
}

func TestPostTwice(t *testing.T) {
	c, _ := real(t)
	dir, effect := iterated(t, c, "passes.mjs")
	require.NoError(t, c.Post(t.Context(), opened(t, dir), effect, Result{Value: []byte(`"first"`)}))
	assert.ErrorIs(t, c.Post(t.Context(), opened(t, dir), effect, Result{Value: []byte(`"second"`)}), ErrResolved)
	assert.ErrorIs(t, c.Post(t.Context(), opened(t, dir), effect, Result{Failure: &Failure{Message: "third"}}), ErrResolved)
	assert.Equal(t, 1, results(t, dir))
	assert.JSONEq(t, `"first"`, ended(t, c, dir))
}

func TestPostAtTheSameTime(t *testing.T) {
	c, _ := real(t)
	dir, effect := iterated(t, c, "passes.mjs")
	errs := make([]error, 3)
	var posting sync.WaitGroup
	for i := range errs {
		posting.Go(func() { errs[i] = c.Post(t.Context(), opened(t, dir), effect, Result{Value: []byte(`1`)}) })
	}
	posting.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		assert.ErrorIs(t, err, ErrResolved)
	}
	assert.Equal(t, 1, won)
	assert.Equal(t, 1, results(t, dir))
}

func TestPostWhatIsNotThere(t *testing.T) {
	c, _ := real(t)
	dir, _ := iterated(t, c, "passes.mjs")
	err := c.Post(t.Context(), opened(t, dir), "01ARZ3NDEKTSV4RRFFQ69G5FAV", Result{Value: []byte(`1`)})
	assert.ErrorContains(t, err, "not found at")
}

func TestWhenATaskWasWorkedOn(t *testing.T) {
	c, _ := real(t)
	dir, effect := iterated(t, c, "passes.mjs")
	began := time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.FixedZone("", 3600))
	require.NoError(t, c.Post(t.Context(), opened(t, dir), effect, Result{Value: []byte(`1`), StartedAt: began, FinishedAt: began.Add(time.Second)}))

	b, err := os.ReadFile(filepath.Join(dir, "tasks", effect, "result.json"))
	require.NoError(t, err)
	var stored struct{ StartedAt, FinishedAt string }
	require.NoError(t, json.Unmarshal(b, &stored))
	assert.Equal(t, "2026-01-02T02:04:05.678Z", stored.StartedAt)
	assert.Equal(t, "2026-01-02T02:04:06.678Z", stored.FinishedAt)
}

func TestLargeResult(t *testing.T) {
	t.Parallel()
	c, h := real(t)
	dir, effect := iterated(t, c, "passes.mjs")
	size := 50 << 20
	if testing.Short() {
		size = 5 << 20
	}
	value := append(append([]byte(`"`), bytes.Repeat([]byte("ä"), size/2)...), '"')
	require.NoError(t, c.Post(t.Context(), opened(t, dir), effect, Result{Value: value}))
	assert.Equal(t, string(value)+"\n", ended(t, c, dir))
	assert.Empty(t, h.all())
}
