package babysitter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heartbeat/orchestrate/effect"
	runs "heartbeat/orchestrate/run"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRecordedIterations(t *testing.T) {
	for recording, check := range map[string]func(t *testing.T, it Iteration){
		"iterate-waiting": func(t *testing.T, it Iteration) {
			require.Len(t, it.NextActions, 1)
			assert.Equal(t, "agent", it.NextActions[0].Kind)
		},
		"iterate-noise": func(t *testing.T, it Iteration) { require.Len(t, it.NextActions, 1) },
		"iterate-parallel": func(t *testing.T, it Iteration) {
			require.Len(t, it.NextActions, 3)
		},
		"iterate-sleep": func(t *testing.T, it Iteration) {
			require.Len(t, it.NextActions, 1)
			assert.Equal(t, 2100, it.NextActions[0].Until.UTC().Year())
		},
		"iterate-completed": func(t *testing.T, it Iteration) { assert.Equal(t, Completed, it.Status) },
		"iterate-failed":    func(t *testing.T, it Iteration) { assert.Equal(t, Failed, it.Status) },
	} {
		t.Run(recording, func(t *testing.T) {
			it, err := fake(t, recording).Iterate(t.Context(), opened(t, emptyRun(t)))
			require.NoError(t, err)
			check(t, it)
			assert.Equal(t, it.Status == Waiting, len(it.NextActions) > 0)
		})
	}
}

func TestAnswerOfAnotherRun(t *testing.T) {
	dir := emptyRun(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "run.json"), []byte(`{"runId":"r2","layoutVersion":"`+runs.Layout+`"}`), 0o600))
	_, err := fake(t, "iterate-waiting").Iterate(t.Context(), opened(t, dir))
	assert.ErrorIs(t, err, ErrOutput, "process code may print such")
}

func TestRecordedErrors(t *testing.T) {
	iterate := func(f *faked, dir string) error { _, err := f.Iterate(f.t.Context(), opened(f.t, dir)); return err }
	post := func(f *faked, dir string) error {
		return f.Post(f.t.Context(), opened(f.t, dir), "E1", Result{Value: []byte("1")})
	}
	for recording, test := range map[string]struct {
		call func(f *faked, dir string) error
		kind error // nil for those that nobody asks for
		says string
	}{
		"iterate-silent":        {iterate, ErrOutput, "ended with status 0 without an answer: does the process end the program, or wait for a promise"},
		"iterate-status-3":      {iterate, ErrOutput, "ended with status 3 without an answer: does the process end the program"},
		"iterate-rejection":     {iterate, ErrOutput, "ended with status 1 without an answer: Error: left alone: does"},
		"iterate-no-run":        {iterate, nil, "run.json"},
		"iterate-unloadable":    {iterate, nil, "Failed to load process module at @HERE@/testdata/process/broken.mjs"},
		"iterate-export":        {iterate, nil, "#default"},
		"iterate-locked":        {iterate, ErrLocked, "held by pid"},
		"iterate-journal-parse": {iterate, nil, "Failed to parse journal event: mend it with run:repair-journal"},
		"iterate-journal-gap":   {iterate, nil, "sequence gap"},
		"iterate-journal-name":  {iterate, nil, "notes.json"},
		"iterate-journal-ulid":  {iterate, nil, "ULID order regression"},
		"iterate-journal-twice": {iterate, nil, "Duplicate effectId"},
		"post-journal-parse":    {post, nil, "run:repair-journal"},
		"post-journal-gap":      {post, nil, "run:repair-journal"},
		"post-journal-name":     {post, nil, "run:repair-journal"},
		"post-journal-ulid":     {post, nil, "run:repair-journal"},
		"post-journal-twice":    {post, nil, "run:repair-journal"},
		"post-unknown":          {post, nil, "not found at"},
		"post-again":            {post, ErrResolved, "status=resolved_error"},
		"post-locked":           {post, ErrLocked, "held by pid"},
	} {
		t.Run(recording, func(t *testing.T) {
			f := fake(t, recording)
			f.maxWait = time.Nanosecond
			dir := emptyRun(t)
			err := test.call(f, dir)
			require.Error(t, err)
			assert.ErrorContains(t, err, dir)
			assert.ErrorContains(t, err, test.says)
			for _, kind := range []error{ErrResolved, ErrLocked, ErrTimeout, ErrOutput} {
				assert.Equal(t, kind == test.kind, errors.Is(err, kind), "%v", kind)
			}
			assert.Len(t, f.calls(), 1)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}

// The messages for a lost race, which cannot be recorded at will.
const (
	lostRace = "-- stderr --\n[run:iterate] Error: ENOENT: no such file or directory, open '@RUN@/run.lock'\n-- status --\n1\n"
	lostPost = `-- stderr --
{"name":"RunFailedError","message":"Effect E1 is already resolved","category":"RUNTIME","suggestions":[]}
-- status --
1
`
)

func TestLockConflictsAreTriedAgain(t *testing.T) {
	t.Parallel()
	f := fake(t, lostRace, "iterate-locked", "iterate-waiting")
	dir := emptyRun(t)
	it, err := f.Iterate(t.Context(), opened(t, dir))
	require.NoError(t, err)
	assert.Equal(t, Waiting, it.Status)
	assert.Len(t, f.calls(), 3)

	f = fake(t, lostRace)
	f.maxWait = time.Nanosecond
	_, err = f.Iterate(t.Context(), opened(t, dir))
	assert.ErrorIs(t, err, ErrLocked)
}

func TestLockThatTheCLICannotRead(t *testing.T) {
	t.Parallel()
	f := fake(t, "iterate-empty-lock", "iterate-waiting")
	dir := emptyRun(t)
	f.Command = append([]string{"sh", "-c", `[ -e "$0".once ] || { : > "$0".once; touch -t 202601010000 "$5"/run.lock; }; exec "$@"`, filepath.Join(dir, "fake")}, f.Command...)
	it, err := f.Iterate(t.Context(), opened(t, dir))
	require.NoError(t, err)
	assert.Equal(t, Waiting, it.Status)
	assert.Contains(t, f.all(), "removed its run.lock")
}

func TestPostThatLostARace(t *testing.T) {
	f := fake(t, lostPost)
	assert.ErrorIs(t, f.Post(t.Context(), opened(t, emptyRun(t)), "E1", Result{Value: []byte("1")}), ErrResolved)
}

func TestPostedErrorIsASuccess(t *testing.T) {
	f := fake(t, "post-error")
	require.NoError(t, f.Post(t.Context(), opened(t, emptyRun(t)), "E1", Result{Failure: &Failure{Message: "m\n"}}))
	require.Len(t, f.calls(), 1)
	assert.Contains(t, f.calls()[0], "E1 --status error --error - --json\n"+`{"name":"Error","message":"m\n"}`)
}

func TestPostWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	effect := recordedEffect(t, "post-error")
	crashed := "-- status --\n137\n"
	post := func(f *faked, status string) error {
		dir := emptyRun(t)
		events(t, dir, effect, status)
		return f.Post(t.Context(), opened(t, dir), effect, Result{Value: []byte("1")})
	}
	t.Run("it arrived", func(t *testing.T) {
		f := fake(t, crashed)
		require.NoError(t, post(f, "ok"))
		assert.Contains(t, f.all(), "the result was posted, though")
	})
	t.Run("it did not", func(t *testing.T) {
		f := fake(t, crashed, "post-ok")
		require.NoError(t, post(f, ""))
		assert.Len(t, f.calls(), 2)
	})
	t.Run("it never does", func(t *testing.T) {
		f := fake(t, crashed, crashed)
		assert.ErrorIs(t, post(f, ""), ErrOutput)
		assert.Len(t, f.calls(), 2)
	})
	t.Run("nobody can tell", func(t *testing.T) {
		f := fake(t, crashed)
		err := post(f, "odd")
		assert.ErrorIs(t, err, ErrOutput)
		assert.ErrorContains(t, err, "is not known")
	})
	t.Run("it hangs, and arrived", func(t *testing.T) {
		f := fake(t, silence)
		f.patience = 0.05
		require.NoError(t, post(f, "error"))
	})
}

// Of an answer over the limit only the end is kept, which is no answer. The process is not to blame.
func TestAnswerOverTheLimit(t *testing.T) {
	long := "-- stdout --\n{\"nextActions\":[\"" + strings.Repeat("x", outputLimit) + "\"]}\n-- status --\n0\n"
	_, err := fake(t, long).Iterate(t.Context(), opened(t, emptyRun(t)))
	require.ErrorIs(t, err, ErrOutput)
	assert.ErrorContains(t, err, "it printed more than 64 MiB, and its answer was cut off: have the process ask for less at once")
	assert.NotContains(t, err.Error(), "promise")
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	f := fake(t, silence, "iterate-waiting")
	f.patience = 0.02
	it, err := f.Iterate(t.Context(), opened(t, emptyRun(t)))
	require.NoError(t, err)
	assert.Equal(t, Waiting, it.Status)
	assert.Contains(t, f.all(), "no answer in time: asked once more")
}

func TestTwoTimeouts(t *testing.T) {
	t.Parallel()
	f := fake(t, silence, silence)
	f.patience = 0.02
	_, err := f.Iterate(t.Context(), opened(t, emptyRun(t)))
	assert.ErrorIs(t, err, ErrTimeout)
	assert.Len(t, f.calls(), 2)
}

func TestAnswerBeforeATimeout(t *testing.T) {
	t.Parallel()
	stays := strings.Replace(recording(t, "iterate-waiting"), "-- status --\n0", "-- status --\nstays", 1)
	f := fake(t, stays)
	f.patience = 0.2
	it, err := f.Iterate(t.Context(), opened(t, emptyRun(t)))
	require.NoError(t, err)
	assert.Equal(t, Waiting, it.Status)
	assert.Contains(t, f.all(), "answered and kept running")
}

func recording(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", "recorded", name+".txtar"))
	require.NoError(t, err)
	return string(b)
}

func TestRecordedRepair(t *testing.T) {
	repaired, err := fake(t, "repair").Repair(t.Context(), opened(t, emptyRun(t)))
	require.NoError(t, err)
	assert.Equal(t, 2, repaired.Kept)
}

func TestVersions(t *testing.T) {
	f := fake(t, "version", "-- stdout --\nnpm notice\n0.0.188-staging.1\n-- status --\n0\n", "version-unknown-command")
	v, err := f.Version(t.Context())
	require.NoError(t, err)
	assert.Equal(t, effect.MeasuredVersion, v)
	assert.Empty(t, f.all())
	v, err = f.Version(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "0.0.188-staging.1", v)
	assert.Contains(t, f.all(), "npm install -g @a5c-ai/babysitter-sdk@0.0.187")
	_, err = f.Version(t.Context())
	assert.ErrorIs(t, err, ErrOutput)
	assert.ErrorContains(t, err, effect.Install)

	for _, command := range []string{"no-such-command-here", "./no/such/command", t.TempDir()} {
		_, err = (&CLI{Command: []string{command}}).Version(t.Context())
		assert.ErrorContains(t, err, effect.Install)
	}
	_, err = fake(t, "-- stderr --\n/usr/bin/env: 'node': No such file or directory\n-- status --\n127\n").Version(t.Context())
	assert.ErrorContains(t, err, "is node installed?")
}

func TestNothingRunsForWhatIsNotValid(t *testing.T) {
	f := fake(t)
	dir := emptyRun(t)
	post := func(dir, effect, value string) error {
		return f.Post(t.Context(), opened(t, dir), effect, Result{Value: []byte(value)})
	}
	for _, effect := range []string{"", "--help", "-", "a b", "../x", "a\x00", strings.Repeat("a", 200)} {
		assert.Error(t, post(dir, effect, "1"), effect)
	}
	for _, value := range []string{"", " ", "{", "nope", "\"\xff\""} {
		assert.Error(t, post(dir, "E1", value), value)
	}
	assert.Error(t, f.Post(t.Context(), opened(t, dir), "E1", Result{Failure: &Failure{Data: []byte("{")}}))

	for _, o := range []CreateOptions{
		{}, {ProcessID: "p"}, {ProcessID: "-p", Entry: "main_test.go"}, {ProcessID: "p", Entry: "#process"}, {ProcessID: "p", Entry: "main_test.go#"},
		{ProcessID: "p", Entry: "main_test.go", RunID: "../r"}, {ProcessID: "p", Entry: "main_test.go", RunID: "--json"},
		{ProcessID: "p", Entry: "main_test.go", Inputs: []byte("{")}, {ProcessID: "p", Entry: "main_test.go", Prompt: strings.Repeat("x", 1<<20)},
	} {
		o.RunsDir = filepath.Dir(dir)
		_, err := f.Create(t.Context(), o)
		assert.Error(t, err, fmt.Sprintf("%+.100v", o))
	}
	assert.Empty(t, f.calls())
}

func TestCreateThatLeavesAFolder(t *testing.T) {
	runs := t.TempDir()
	o := CreateOptions{ProcessID: "p", Entry: "main_test.go", RunID: "r1", RunsDir: runs}
	f := fake(t, "-- status --\n3\n")
	f.Command = append([]string{"sh", "-c", `: > "` + runs + `"/r1/run.json; exec "$0" "$@"`}, f.Command...)
	_, err := f.Create(t.Context(), o)
	assert.ErrorIs(t, err, ErrOutput)
	assert.ErrorContains(t, err, "the unfinished run is left in "+filepath.Join(runs, "r1"))
	_, err = f.Create(t.Context(), o)
	assert.ErrorContains(t, err, "it is there already")
	require.Len(t, f.calls(), 1)
	assert.Contains(t, f.calls()[0], "/main_test.go#process --runs-dir "+runs+" --run-id r1 --harness custom --json")

	f = fake(t, "create-unloadable")
	o.RunID = "r2"
	_, err = f.Create(t.Context(), o)
	assert.ErrorContains(t, err, "Failed to load process module")
	assert.NoDirExists(t, filepath.Join(runs, "r2"))
}

func TestWorkingDirectory(t *testing.T) {
	dir := emptyRun(t)
	seen := filepath.Join(t.TempDir(), "seen")
	f := fake(t, "iterate-waiting")
	f.Command = append([]string{"sh", "-c", `pwd -P >> "` + seen + `"; exec "$0" "$@"`}, f.Command...)
	_, err := f.Iterate(t.Context(), opened(t, dir))
	require.NoError(t, err)
	b, err := os.ReadFile(seen)
	require.NoError(t, err)
	project, err := filepath.EvalSymlinks(filepath.Dir(filepath.Dir(filepath.Dir(dir))))
	require.NoError(t, err)
	assert.Equal(t, project+"\n", string(b))
}

func TestGivenUpBeforeItBegan(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("told to stop"))
	_, err := fake(t, "iterate-waiting").Iterate(ctx, opened(t, emptyRun(t)))
	assert.ErrorContains(t, err, "told to stop")
}
