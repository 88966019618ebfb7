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

	"heartbeat/orchestrate/babysitter/invocation"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRecordedIterations(t *testing.T) {
	for recording, check := range map[string]func(t *testing.T, it Iteration){
		"iterate-waiting": func(t *testing.T, it Iteration) {
			require.Len(t, it.NextActions, 1)
			assert.Equal(t, "agent", it.NextActions[0].Kind)
			assert.Equal(t, []string{"greet", "b"}, it.NextActions[0].Labels)
		},
		"iterate-noise": func(t *testing.T, it Iteration) { require.Len(t, it.NextActions, 1) },
		"iterate-parallel": func(t *testing.T, it Iteration) {
			require.Len(t, it.NextActions, 3)
			assert.NotEmpty(t, it.NextActions[2].ParallelGroupID)
		},
		"iterate-sleep": func(t *testing.T, it Iteration) {
			require.Len(t, it.NextActions, 1)
			assert.Equal(t, 2100, it.NextActions[0].SleepUntil.UTC().Year())
		},
		"iterate-completed": func(t *testing.T, it Iteration) { assert.Regexp(t, "^[0-9a-f]{32}$", it.CompletionProof) },
		"iterate-failed":    func(t *testing.T, it Iteration) { assert.Equal(t, Failed, it.Status) },
	} {
		t.Run(recording, func(t *testing.T) {
			it, err := fake(t, recording).Iterate(t.Context(), emptyRun(t))
			require.NoError(t, err)
			check(t, it)
			assert.Equal(t, it.Status == Waiting, len(it.NextActions) > 0)
			assert.Equal(t, "r1", it.RunID)
		})
	}
}

func TestAnswerOfAnotherRun(t *testing.T) {
	dir := emptyRun(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "run.json"), []byte(`{"runId":"r2"}`), 0o600))
	_, err := fake(t, "iterate-waiting").Iterate(t.Context(), dir)
	assert.ErrorIs(t, err, ErrOutput, "process code may print such")
}

func TestRecordedErrors(t *testing.T) {
	iterate := func(f *faked, dir string) error { _, err := f.Iterate(f.t.Context(), dir); return err }
	status := func(f *faked, dir string) error { _, err := f.Status(f.t.Context(), dir); return err }
	list := func(f *faked, dir string) error { _, err := f.Effects(f.t.Context(), dir); return err }
	post := func(f *faked, dir string) error {
		return f.PostOK(f.t.Context(), dir, "E1", []byte("1"), Attachments{})
	}
	for recording, test := range map[string]struct {
		call func(f *faked, dir string) error
		kind error
		says string
	}{
		"iterate-silent":        {iterate, ErrOutput, "ended with status 0 without an answer: does the process wait for a promise"},
		"iterate-status-3":      {iterate, ErrOutput, "ended with status 3 without an answer: does the process end the program"},
		"iterate-rejection":     {iterate, ErrOutput, "ended with status 1 without an answer: Error: left alone: does"},
		"iterate-no-run":        {iterate, ErrNoRun, "run.json"},
		"iterate-unloadable":    {iterate, ErrProcess, "Failed to load process module at @HERE@/testdata/process/broken.mjs"},
		"iterate-export":        {iterate, ErrProcess, "#default"},
		"iterate-locked":        {iterate, ErrLocked, "held by pid"},
		"iterate-journal-parse": {iterate, ErrJournal, "Failed to parse journal event: mend it with run:repair-journal"},
		"iterate-journal-gap":   {iterate, ErrJournal, "sequence gap"},
		"iterate-journal-name":  {iterate, ErrJournal, "notes.json"},
		"iterate-journal-ulid":  {iterate, ErrJournal, "ULID order regression"},
		"iterate-journal-twice": {iterate, ErrJournal, "Duplicate effectId"},
		"status-journal-parse":  {status, ErrJournal, "Failed to parse journal file"},
		"status-journal-gap":    {status, ErrJournal, "sequence gap"},
		"status-journal-name":   {status, ErrJournal, "notes.json"},
		"status-journal-ulid":   {status, ErrJournal, "ULID order regression"},
		"status-journal-twice":  {status, ErrJournal, "Duplicate effectId"},
		"status-no-run":         {status, ErrNoRun, "unable to read run metadata"},
		"list-journal-parse":    {list, ErrJournal, ""},
		"list-journal-gap":      {list, ErrJournal, ""},
		"list-journal-name":     {list, ErrJournal, ""},
		"list-journal-ulid":     {list, ErrJournal, ""},
		"list-journal-twice":    {list, ErrJournal, ""},
		"post-journal-parse":    {post, ErrJournal, ""},
		"post-journal-gap":      {post, ErrJournal, ""},
		"post-journal-name":     {post, ErrJournal, ""},
		"post-journal-ulid":     {post, ErrJournal, ""},
		"post-journal-twice":    {post, ErrJournal, ""},
		"post-unknown":          {post, ErrUnknownEffect, "not found at"},
		"post-again":            {post, ErrResolved, "status=resolved_error"},
		"post-locked":           {post, ErrLocked, "held by pid"},
	} {
		t.Run(recording, func(t *testing.T) {
			f := fake(t, recording)
			f.Wait = time.Nanosecond
			dir := emptyRun(t)
			err := test.call(f, dir)
			require.ErrorIs(t, err, test.kind)
			assert.ErrorContains(t, err, dir)
			assert.ErrorContains(t, err, test.says)
			for _, kind := range []error{ErrMissing, ErrNoRun, ErrUnknownEffect, ErrResolved, ErrLocked, ErrJournal, ErrProcess, ErrTimeout, ErrOutput} {
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
	f := fake(t, lostRace, "iterate-locked", "iterate-waiting")
	dir := emptyRun(t)
	it, err := f.Iterate(t.Context(), dir)
	require.NoError(t, err)
	assert.Equal(t, Waiting, it.Status)
	assert.Len(t, f.calls(), 3)

	f = fake(t, lostRace)
	f.Wait = time.Nanosecond
	_, err = f.Iterate(t.Context(), dir)
	assert.ErrorIs(t, err, ErrLocked)
	assert.NotErrorIs(t, err, ErrNoRun)
}

func TestLockThatTheCLICannotRead(t *testing.T) {
	f := fake(t, "iterate-empty-lock", "iterate-waiting")
	dir := emptyRun(t)
	f.Command = append([]string{"sh", "-c", `[ -e "$0".once ] || { : > "$0".once; : > "$3"/run.lock; }; exec "$1" "$2" "$3" --json`, filepath.Join(dir, "fake")}, f.Command...)
	it, err := f.Iterate(t.Context(), dir)
	require.NoError(t, err)
	assert.Equal(t, Waiting, it.Status)
	assert.Contains(t, f.all(), "removed its run.lock")
}

func TestPostThatLostARace(t *testing.T) {
	f := fake(t, lostPost)
	assert.ErrorIs(t, f.PostOK(t.Context(), emptyRun(t), "E1", []byte("1"), Attachments{}), ErrResolved)
}

func TestPostedErrorIsASuccess(t *testing.T) {
	f := fake(t, "post-error")
	require.NoError(t, f.PostError(t.Context(), emptyRun(t), "E1", Failure{Message: "m\n"}, Attachments{}))
	require.Len(t, f.calls(), 1)
	assert.Contains(t, f.calls()[0], "E1 --status error --error - --json\n"+`{"name":"Error","message":"m\n"}`)
}

func TestPostWithoutAnAnswer(t *testing.T) {
	effect := recordedEffect(t, "post-error")
	crashed := "-- status --\n137\n"
	t.Run("it arrived", func(t *testing.T) {
		f := fake(t, crashed, "list-resolved")
		require.NoError(t, f.PostOK(t.Context(), emptyRun(t), effect, []byte("1"), Attachments{}))
		assert.Contains(t, f.all(), "the result was posted, though")
	})
	t.Run("it did not", func(t *testing.T) {
		f := fake(t, crashed, "list", "post-ok")
		require.NoError(t, f.PostOK(t.Context(), emptyRun(t), effect, []byte("1"), Attachments{}))
		assert.Len(t, f.calls(), 3)
	})
	t.Run("it never does", func(t *testing.T) {
		f := fake(t, crashed, "list", crashed, "list")
		err := f.PostOK(t.Context(), emptyRun(t), effect, []byte("1"), Attachments{})
		assert.ErrorIs(t, err, ErrOutput)
		assert.Len(t, f.calls(), 4)
	})
	t.Run("nobody can tell", func(t *testing.T) {
		f := fake(t, crashed, "list-journal-gap")
		err := f.PostOK(t.Context(), emptyRun(t), effect, []byte("1"), Attachments{})
		assert.ErrorIs(t, err, ErrOutput)
		assert.ErrorContains(t, err, "is not known")
	})
	t.Run("it hangs, and arrived", func(t *testing.T) {
		f := fake(t, silence, "list-resolved")
		f.Patience = 0.1
		require.NoError(t, f.PostOK(t.Context(), emptyRun(t), effect, []byte("1"), Attachments{}))
	})
}

func TestTimeouts(t *testing.T) {
	f := fake(t, silence, "iterate-waiting")
	f.Patience = 0.02
	it, err := f.Iterate(t.Context(), emptyRun(t))
	require.NoError(t, err)
	assert.Equal(t, Waiting, it.Status)
	assert.Contains(t, f.all(), "no answer in time: asked once more")

	f = fake(t, silence, silence)
	f.Patience = 0.02
	_, err = f.Status(t.Context(), emptyRun(t))
	assert.ErrorIs(t, err, ErrTimeout)
	assert.Len(t, f.calls(), 2)
}

func TestAnswerBeforeATimeout(t *testing.T) {
	stays := strings.Replace(recording(t, "iterate-waiting"), "-- status --\n0", "-- status --\nstays", 1)
	f := fake(t, stays)
	f.Patience = 0.2
	it, err := f.Iterate(t.Context(), emptyRun(t))
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

func TestRecordedLooks(t *testing.T) {
	dir := emptyRun(t)
	s, err := fake(t, "status-created").Status(t.Context(), dir)
	require.NoError(t, err)
	assert.Equal(t, CreatedState, s.State)
	s, err = fake(t, "status-completed").Status(t.Context(), dir)
	require.NoError(t, err)
	assert.NotEmpty(t, s.CompletionProof)
	assert.Equal(t, "RUN_COMPLETED", s.LastEvent.Type)
	failure, found, err := fake(t, "events-failed").FailureOf(t.Context(), dir)
	require.NoError(t, err)
	assert.True(t, found)
	assert.Equal(t, "no good", failure.Message)
	_, found, err = fake(t, "events-none").FailureOf(t.Context(), dir)
	require.NoError(t, err)
	assert.False(t, found)
	effects, err := fake(t, "list-resolved").Effects(t.Context(), dir)
	require.NoError(t, err)
	require.Len(t, effects, 1)
	assert.Equal(t, ResolvedError, effects[0].Status)
	repaired, err := fake(t, "repair").Repair(t.Context(), dir)
	require.NoError(t, err)
	assert.Equal(t, 2, repaired.Kept)
}

func TestVersions(t *testing.T) {
	f := fake(t, "version", "-- stdout --\nnpm notice\n0.0.188-staging.1\n-- status --\n0\n", "version-unknown-command")
	v, err := f.Version(t.Context())
	require.NoError(t, err)
	assert.Equal(t, invocation.MeasuredVersion, v)
	assert.Empty(t, f.all())
	v, err = f.Version(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "0.0.188-staging.1", v)
	assert.Contains(t, f.all(), "npm install -g @a5c-ai/babysitter-sdk@0.0.187")
	_, err = f.Version(t.Context())
	assert.ErrorIs(t, err, ErrOutput)
	assert.ErrorContains(t, err, invocation.Install)

	for _, command := range []string{"no-such-command-here", "./no/such/command", t.TempDir()} {
		_, err = (&CLI{Command: []string{command}}).Version(t.Context())
		assert.ErrorIs(t, err, ErrMissing, command)
		assert.ErrorContains(t, err, invocation.Install)
	}
	_, err = fake(t, "-- stderr --\n/usr/bin/env: 'node': No such file or directory\n-- status --\n127\n").Version(t.Context())
	assert.ErrorIs(t, err, ErrMissing)
	assert.ErrorContains(t, err, "is node installed?")
}

func TestNothingRunsForWhatIsNotValid(t *testing.T) {
	f := fake(t)
	dir := emptyRun(t)
	post := func(dir, effect, value string) error {
		return f.PostOK(t.Context(), dir, effect, []byte(value), Attachments{})
	}
	for _, effect := range []string{"", "--help", "-", "a b", "../x", "a\x00", strings.Repeat("a", 200)} {
		assert.ErrorIs(t, post(dir, effect, "1"), ErrInvalid, effect)
	}
	for _, value := range []string{"", " ", "{", "nope", "\"\xff\""} {
		assert.ErrorIs(t, post(dir, "E1", value), ErrInvalid, value)
	}
	assert.ErrorIs(t, f.PostError(t.Context(), dir, "E1", Failure{Data: []byte("{")}, Attachments{}), ErrInvalid)
	assert.ErrorIs(t, f.PostOK(t.Context(), dir, "E1", []byte("1"), Attachments{Stdout: dir}), ErrInvalid)
	assert.ErrorIs(t, f.PostOK(t.Context(), dir, "E1", []byte("1"), Attachments{Stderr: dir + "/none"}), os.ErrNotExist)
	assert.ErrorIs(t, post("", "E1", "1"), ErrInvalid)
	assert.ErrorIs(t, post("a\nb", "E1", "1"), ErrInvalid)
	assert.ErrorIs(t, post("/x/.a5c/runs/.a5c/runs/r1", "E1", "1"), ErrInvalid)
	assert.ErrorIs(t, post(filepath.Dir(dir), "E1", "1"), ErrNoRun)
	assert.ErrorIs(t, post(filepath.Join(dir, "run.json"), "E1", "1"), ErrNoRun)

	for _, o := range []CreateOptions{
		{}, {ProcessID: "p"}, {ProcessID: "-p", Entry: "main_test.go"}, {ProcessID: "p", Entry: "#process"}, {ProcessID: "p", Entry: "main_test.go#"},
		{ProcessID: "p", Entry: "main_test.go", RunID: "../r"}, {ProcessID: "p", Entry: "main_test.go", RunID: "--json"},
		{ProcessID: "p", Entry: "main_test.go", Inputs: []byte("{")}, {ProcessID: "p", Entry: "main_test.go", Prompt: strings.Repeat("x", 1<<20)},
	} {
		o.RunsDir = filepath.Dir(dir)
		_, err := f.Create(t.Context(), o)
		assert.ErrorIs(t, err, ErrInvalid, fmt.Sprintf("%+.100v", o))
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
	assert.ErrorIs(t, err, ErrExists)
	require.Len(t, f.calls(), 1)
	assert.Contains(t, f.calls()[0], "/main_test.go#process --runs-dir "+runs+" --run-id r1 --harness custom --json")

	f = fake(t, "create-unloadable")
	o.RunID = "r2"
	_, err = f.Create(t.Context(), o)
	assert.ErrorIs(t, err, ErrProcess)
	assert.NoDirExists(t, filepath.Join(runs, "r2"))
}

func TestWorkingDirectory(t *testing.T) {
	dir := emptyRun(t)
	wd, err := os.Getwd()
	require.NoError(t, err)
	seen := filepath.Join(t.TempDir(), "seen")
	f := fake(t, "status-created", "status-created")
	f.Command = append([]string{"sh", "-c", `pwd -P >> "` + seen + `"; exec "$0" "$@"`}, f.Command...)
	_, err = f.Status(t.Context(), dir)
	require.NoError(t, err)
	f.Dir = wd
	_, err = f.Status(t.Context(), dir)
	require.NoError(t, err)
	b, err := os.ReadFile(seen)
	require.NoError(t, err)
	project, err := filepath.EvalSymlinks(filepath.Dir(filepath.Dir(filepath.Dir(dir))))
	require.NoError(t, err)
	assert.Equal(t, project+"\n"+wd+"\n", string(b))
}

func TestGivenUpBeforeItBegan(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("told to stop"))
	_, err := fake(t, "iterate-waiting").Iterate(ctx, emptyRun(t))
	assert.ErrorContains(t, err, "told to stop")
}
