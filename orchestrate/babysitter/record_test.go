package babysitter

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
)

var record = flag.String("record", "", "record into testdata/recorded what the real CLI answers to the calls whose names match")

// recorder runs the real CLI, and keeps its answers.
type recorder struct {
	t   *testing.T
	c   *CLI
	dir string // the run
}

// keep records one call. It writes @RUN@ for the run's folder.
func (r recorder) keep(name, stdin string, args ...string) {
	r.t.Helper()
	if ok, err := regexp.MatchString(*record, name); err != nil || !ok {
		return
	}
	cmd := exec.Command(r.c.Command[0], append(r.c.Command[1:], args...)...)
	var stdout, stderr strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	_ = cmd.Run() // the status is kept
	wd, err := os.Getwd()
	require.NoError(r.t, err)
	hide := strings.NewReplacer(r.dir, "@RUN@", filepath.Dir(r.dir), "@RUNS@", filepath.Dir(filepath.Dir(filepath.Dir(r.c.Command[0]))), "@CLI@", wd, "@HERE@")
	file := func(name, s string) txtar.File { return txtar.File{Name: name, Data: []byte(hide.Replace(s))} }
	b := txtar.Format(&txtar.Archive{
		Comment: []byte("babysitter " + hide.Replace(strings.Join(args, " ")) + "\n\n"),
		Files:   []txtar.File{file("stdout", stdout.String()), file("stderr", stderr.String()), file("status", fmt.Sprintln(cmd.ProcessState.ExitCode()))},
	})
	require.NoError(r.t, os.WriteFile(filepath.Join("testdata", "recorded", name+".txtar"), b, 0o644))
}

func (r recorder) write(name, content string) {
	r.t.Helper()
	require.NoError(r.t, os.WriteFile(filepath.Join(r.dir, name), []byte(content), 0o600))
}

// TestRecord makes the recordings for the other tests: go test -run TestRecord -record .
func TestRecord(t *testing.T) {
	if *record == "" {
		t.Skip("nothing is to be recorded")
	}
	c, _ := real(t)
	require.NoError(t, os.MkdirAll("testdata/recorded", 0o755))
	at := func(process string) recorder {
		dir := newRun(t, c, process, "")
		return recorder{t, c, dir}
	}
	waiting := func(process string) (recorder, string) {
		dir, effect := iterated(t, c, process)
		return recorder{t, c, dir}, effect
	}

	r := at("basic.mjs")
	r.keep("version", "", "version")
	r.keep("version-unknown-command", "", "version:nope", "--json")
	r.keep("iterate-waiting", "", "run:iterate", r.dir, "--json")
	r.keep("repair", "", "run:repair-journal", r.dir, "--json")
	r.keep("post-unknown", "1", "task:post", r.dir, "01ARZ3NDEKTSV4RRFFQ69G5FAV", "--status", "ok", "--value", "-", "--json")
	r.write("run.lock", "")
	r.keep("iterate-empty-lock", "", "run:iterate", r.dir, "--json")
	r.write("run.lock", fmt.Sprintf(`{"pid":%d,"owner":"somebody"}`, anotherNode(t)))
	r.keep("iterate-locked", "", "run:iterate", r.dir, "--json")

	r, effect := waiting("passes.mjs")
	r.write("run.lock", fmt.Sprintf(`{"pid":%d,"owner":"somebody"}`, anotherNode(t)))
	r.keep("post-locked", "1", "task:post", r.dir, effect, "--status", "ok", "--value", "-", "--json")
	require.NoError(t, os.Remove(filepath.Join(r.dir, "run.lock")))
	r.keep("post-error", `{"name":"E","message":"m"}`, "task:post", r.dir, effect, "--status", "error", "--error", "-", "--json")
	r.keep("post-again", "1", "task:post", r.dir, effect, "--status", "ok", "--value", "-", "--json")
	r.keep("iterate-completed", "", "run:iterate", r.dir, "--json")

	r, effect = waiting("throws.mjs")
	r.keep("post-ok", "1", "task:post", r.dir, effect, "--status", "ok", "--value", "-", "--json")
	r.keep("iterate-failed", "", "run:iterate", r.dir, "--json")

	r = at("parallel.mjs")
	r.keep("iterate-parallel", "", "run:iterate", r.dir, "--json")
	for name, process := range map[string]string{"noise": "noisy", "silent": "never", "status-3": "exits", "rejection": "rejects", "sleep": "sleeps"} {
		r := at(process + ".mjs")
		r.keep("iterate-"+name, "", "run:iterate", r.dir, "--json")
	}
	recordDamage(t, c)
	recordModules(t, c)
}

func recordDamage(t *testing.T, c *CLI) {
	for name, damage := range map[string]func(r recorder, event string){
		"parse": func(r recorder, event string) { r.write("journal/"+event, "{") },
		"gap": func(r recorder, event string) {
			require.NoError(t, os.Rename(filepath.Join(r.dir, "journal", event), filepath.Join(r.dir, "journal", "000005."+event[7:])))
		},
		"name": func(r recorder, _ string) { r.write("journal/notes.json", "{}") },
		"ulid": func(r recorder, event string) {
			require.NoError(t, os.Rename(filepath.Join(r.dir, "journal", event), filepath.Join(r.dir, "journal", "000002.01ARZ3NDEKTSV4RRFFQ69G5FAV.json")))
		},
		"twice": func(r recorder, event string) {
			b, err := os.ReadFile(filepath.Join(r.dir, "journal", event))
			require.NoError(t, err)
			r.write("journal/000003.7ZZZZZZZZZZZZZZZZZZZZZZZZZ.json", string(b))
		},
	} {
		dir, effect := iterated(t, c, "passes.mjs")
		r := recorder{t, c, dir}
		events, err := os.ReadDir(filepath.Join(dir, "journal"))
		require.NoError(t, err)
		damage(r, events[1].Name())
		r.keep("iterate-journal-"+name, "", "run:iterate", r.dir, "--json")
		r.keep("post-journal-"+name, "1", "task:post", r.dir, effect, "--status", "ok", "--value", "-", "--json")
	}
}

func recordModules(t *testing.T, c *CLI) {
	for name, process := range map[string]string{"unloadable": "broken.mjs", "export": "default.mjs"} {
		r := recorder{t, c, newRun(t, c, "basic.mjs", "")}
		b, err := os.ReadFile(filepath.Join(r.dir, "run.json"))
		require.NoError(t, err)
		r.write("run.json", strings.ReplaceAll(string(b), "basic.mjs", process))
		r.keep("iterate-"+name, "", "run:iterate", r.dir, "--json")
		require.NoError(t, os.Remove(filepath.Join(r.dir, "run.json")))
		r.keep("iterate-no-run", "", "run:iterate", r.dir, "--json")
	}
	r := recorder{t, c, filepath.Join(t.TempDir(), "r1")}
	r.keep("create-unloadable", "", "run:create", "--process-id", "p", "--entry", "testdata/process/broken.mjs#process", "--runs-dir", filepath.Dir(r.dir), "--run-id", "r1", "--harness", "custom", "--json")
	r.keep("create-export", "", "run:create", "--process-id", "p", "--entry", "testdata/process/gone.js#process", "--runs-dir", filepath.Dir(r.dir), "--run-id", "r1", "--harness", "custom", "--json")
	r.keep("create", "", "run:create", "--process-id", "p", "--entry", "testdata/process/basic.mjs#process", "--runs-dir", filepath.Dir(r.dir), "--run-id", "r1", "--harness", "custom", "--json")
}
