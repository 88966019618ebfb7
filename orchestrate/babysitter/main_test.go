package babysitter

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/script"
	runs "heartbeat/orchestrate/run"
)

// The test program also plays the CLI, with answers recorded from the real one.
func TestMain(m *testing.M) {
	if script := os.Getenv("FAKE_BABYSITTER"); script != "" {
		if err := play(script); err != nil {
			panic(err)
		}
	}
	os.Exit(script.Run(m))
}

// play prints the next answer of the script.
func play(script string) error {
	n := 0
	for {
		call, err := os.OpenFile(filepath.Join(script, fmt.Sprint("call", n)), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if os.IsExist(err) {
			n++
			continue
		}
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(call, strings.Join(os.Args[1:], " ")); err != nil {
			return err
		}
		if _, err := io.Copy(call, os.Stdin); err != nil {
			return err
		}
		break
	}
	answer, err := txtar.ParseFile(filepath.Join(script, fmt.Sprint("answer", n)))
	if err != nil {
		return err
	}
	files := map[string]string{}
	for _, f := range answer.Files {
		files[f.Name] = strings.ReplaceAll(string(f.Data), "@RUN@", os.Args[min(2, len(os.Args)-1)])
	}
	fmt.Print(files["stdout"])
	fmt.Fprint(os.Stderr, files["stderr"])
	status, err := strconv.Atoi(strings.TrimSpace(files["status"]))
	if err != nil {
		time.Sleep(time.Hour) // it stays
	}
	os.Exit(status)
	return nil
}

// faked is a CLI that gives a list of answers in turn: names of recordings, or txtar
// archives.
type faked struct {
	*CLI
	heard
	t      *testing.T
	script string
}

// silence is the answer of a CLI that prints nothing and keeps running.
const silence = "-- status --\nstays\n"

func fake(t *testing.T, answers ...string) *faked {
	t.Helper()
	f := &faked{t: t, script: t.TempDir()}
	self, err := os.Executable()
	require.NoError(t, err)
	f.CLI = &CLI{Command: []string{"env", "FAKE_BABYSITTER=" + f.script, self}, Note: f.heard.note, patience: 4}
	for i, answer := range answers {
		if !strings.Contains(answer, "\n") {
			b, err := os.ReadFile(filepath.Join("testdata", "recorded", answer+".txtar"))
			require.NoError(t, err)
			answer = string(b)
		}
		require.NoError(t, os.WriteFile(filepath.Join(f.script, fmt.Sprint("answer", i)), []byte(answer), 0o600))
	}
	return f
}

// calls are the command lines that were run, each followed by its standard input.
func (f *faked) calls() []string {
	f.t.Helper()
	var all []string
	for n := 0; ; n++ {
		b, err := os.ReadFile(filepath.Join(f.script, fmt.Sprint("call", n)))
		if os.IsNotExist(err) {
			return all
		}
		require.NoError(f.t, err)
		all = append(all, string(b))
	}
}

// recordedEffect is an effect in a recording.
func recordedEffect(t *testing.T, recording string) string {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", "recorded", recording+".txtar"))
	require.NoError(t, err)
	return strings.Fields(string(a.Comment))[3]
}

// emptyRun makes the least that this package needs of a run.
func emptyRun(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), ".a5c", "runs", "r1")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "journal"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "run.json"), []byte(`{"runId":"r1","layoutVersion":"`+runs.Layout+`"}`), 0o600))
	return dir
}

// opened is the run in a folder.
func opened(t *testing.T, dir string) *runs.Run {
	t.Helper()
	r, err := runs.Open(dir)
	require.NoError(t, err)
	return r
}

// events writes a journal. Each effect is asked for, and those with a status have a result.
func events(t *testing.T, dir, effect, status string) {
	t.Helper()
	all := []string{`{"type":"RUN_CREATED","data":{}}`, `{"type":"EFFECT_REQUESTED","data":{"effectId":"` + effect + `","invocationKey":"k","stepId":"s","taskId":"t","taskDefRef":"d"}}`}
	if status != "" {
		all = append(all, `{"type":"EFFECT_RESOLVED","data":{"effectId":"`+effect+`","status":"`+status+`"}}`)
	}
	for i, text := range all {
		name := fmt.Sprintf("%06d.01M7ZWJR3K97NXC3V0%08d.json", i+1, i+1)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "journal", name), []byte(text), 0o600))
	}
}
