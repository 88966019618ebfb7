package client

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/model"
)

// attacker is a model that makes calls, which it plans when it gets an entry with a command
// that hands over, and that command's file; then it does what the entry asks for.
type attacker struct {
	plan  func(command, file string) []model.Reply
	calls []model.Reply
	made  int
	heard []string // what came of each call
}

func write(path, text string) model.Reply {
	return model.Tool("Write", map[string]any{"file_path": path, "content": text})
}

func bash(command string) model.Reply {
	return model.Tool("Bash", map[string]any{"command": command, "description": "try"})
}

func (a *attacker) reply(r model.Request) model.Reply {
	switch m := handsOver.FindStringSubmatch(r.UserText); {
	case a.calls == nil && m == nil:
		return worker(r)
	case a.calls == nil:
		a.calls = append(a.plan(m[1], m[2]), write(m[2], "as asked"), bash(m[1]))
	case a.made > len(a.calls):
		return worker(r)
	default:
		a.heard = append(a.heard, strings.Join(r.ToolResults, " "))
	}
	a.made++
	if a.made > len(a.calls) {
		return model.Text("handed over")
	}
	return a.calls[a.made-1]
}

// holds are the files below a directory that have a text.
func holds(t *testing.T, dir, text string) (paths []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), text) {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}

// allowing is a run rig whose session may use these tools alone, besides handing results over.
func allowing(t *testing.T, a *attacker, process, tools string) *runRig {
	t.Helper()
	r := newRunRig(t, a.reply, process)
	r.options.Args = []string{"--permission-mode=default", fmt.Sprintf("--allowedTools=%s,Bash(%s result:*)", tools, besideHook(r.stop))}
	return r
}

// With the tools that the documents tell to allow for runs, an agent hands over what it was
// asked for, and gets no further.
func TestHeartbeatAllowedForRuns(t *testing.T) {
	a := &attacker{}
	r := allowing(t, a, `export async function process(inputs, ctx) { return await ctx.task(shell, {q:'true'}); }`, "Edit(/.a5c/runs/*/tasks/*/output.*)")
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte(`{"key":"topsecret"}`), 0o600))
	heartbeat, dir := besideHook(r.stop), filepath.Dir(r.inbox)
	forbidden := []string{
		filepath.Join(r.Project, "p.mjs"), filepath.Join(r.Project, "new.mjs"), filepath.Join(r.Project, "plugins/babysitter/hooks/hook-dispatcher.sh"),
		filepath.Join(r.Project, ".claude/settings.json"), filepath.Join(r.Project, ".npmrc"), filepath.Join(r.run, "run.json"),
		filepath.Join(r.run, "journal/000009.01ZZZZZZZZZZZZZZZZZZZZZZZZ.json"), filepath.Join(dir, ".run-r1.json"), r.inbox,
		filepath.Join(r.Home, ".bashrc"), filepath.Join(r.Home, ".local/state/heartbeat/code/x"),
	}
	a.plan = func(command, file string) (all []model.Reply) {
		for _, path := range append(forbidden, filepath.Join(filepath.Dir(file), "task.json")) {
			all = append(all, write(path, "forged"))
		}
		begin, _, _ := strings.Cut(command, " --")
		effect := command[:strings.LastIndex(command, " --")]
		for _, rest := range []string{"--text-file " + secret, "--value-file " + secret, "--text-file /dev/zero", "--text-file ../../../../../../.." + secret, "- < " + secret} {
			all = append(all, bash(effect+" "+rest))
		}
		return append(all, bash("cat "+secret+" | "+effect+" -"), bash("ln -s "+secret+" "+file), bash(command+" > "+filepath.Join(r.Project, "p.mjs")),
			bash(begin+"; "+heartbeat+" run accept-code r1 --inbox "+r.inbox), bash(heartbeat+" run accept-code r1 --inbox "+r.inbox),
			bash(heartbeat+" send --inbox "+r.inbox+" forged"), bash("HOME=/tmp "+command))
	}
	said := r.session(minutes(t))
	r.completed(said, `"as asked"`)
	require.Len(t, a.heard, len(a.calls))
	for i, heard := range a.heard[:len(a.heard)-2] {
		assert.NotContains(t, heard, "topsecret")
		assert.NotContains(t, heard, "successfully", string(a.calls[i].Tools[0].Input))
		assert.NotContains(t, heard, "was handed over", string(a.calls[i].Tools[0].Input))
	}
	for _, dir := range []string{dir, r.Project} {
		assert.Empty(t, holds(t, dir, "topsecret"))
		assert.Empty(t, holds(t, dir, "forged"))
	}
	assert.Empty(t, holds(t, filepath.Join(r.Home, ".local"), "forged"))
}

// An agent that may write changes the process, and nothing of that is run until a person has
// accepted it.
func TestHeartbeatAllowedToWrite(t *testing.T) {
	a := &attacker{}
	r := allowing(t, a, `export async function process(inputs, ctx) { await ctx.task(shell, {q:'true'}); return await ctx.task(shell, {q:'true'}); }`, "Write")
	ran, process := filepath.Join(t.TempDir(), "ran"), filepath.Join(r.Project, "p.mjs")
	code, err := os.ReadFile(process)
	require.NoError(t, err)
	a.plan = func(string, string) []model.Reply {
		return []model.Reply{
			model.Tool("Read", map[string]any{"file_path": process}), write(process, string(code)+"\nimport fs from 'fs'; fs.writeFileSync('"+ran+"', '');"),
			model.Tool("Read", map[string]any{"file_path": filepath.Join(r.run, "run.json")}),
			write(filepath.Join(r.Project, "plugins/babysitter/hooks/hook-dispatcher.sh"), "cat; touch "+ran),
			bash(besideHook(r.stop) + " run accept-code r1 --inbox " + r.inbox),
		}
	}
	r.session(minutes(t))
	require.Contains(t, a.heard[1], "has been updated successfully")
	assert.NoFileExists(t, ran)
	assert.Contains(t, r.verb("status"), "its code has to be accepted: it has changed in ")
	out, err := exec.Command(besideHook(r.stop), "run", "accept-code", r.run, "--inbox", r.inbox, "--babysitter", r.babysitter).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "what had changed: p.mjs")
	assert.FileExists(t, ran, "the person has said so")
	r.options.Args = []string{"--allowedTools=Bash"}
	r.completed(r.session(minutes(t)), `"{\"ok\":true}"`)
}

// Without a rule an agent reads below its folder alone; with Read it reads every file.
func TestHeartbeatAllowedToRead(t *testing.T) {
	for tools, elsewhere := range map[string]bool{"": false, "Read": true} {
		t.Run("with "+tools, func(t *testing.T) {
			secret := filepath.Join(t.TempDir(), "secret")
			require.NoError(t, os.WriteFile(secret, []byte("topsecret"), 0o600))
			var heard []string
			var calls []model.Reply
			w := workspace(t, Find(t), func(r model.Request) model.Reply {
				if len(r.ToolResults) > 0 {
					heard = append(heard, strings.Join(r.ToolResults, " "))
				}
				if len(heard) == len(calls) {
					return model.Text("done")
				}
				return calls[len(heard)]
			})
			own := filepath.Join(w.Project, "own.txt")
			require.NoError(t, os.WriteFile(own, []byte("in the open"), 0o600))
			calls = []model.Reply{
				model.Tool("Read", map[string]any{"file_path": own}), bash("cat own.txt"), bash("grep -r open ."), bash("id > " + own),
				model.Tool("Read", map[string]any{"file_path": secret}), bash("cat " + secret), bash("cp " + secret + " ."), write(own, "changed"),
			}
			o := Options{Settings: w.WriteSettings("none", map[string]any{}), Args: []string{"--permission-mode=default"}}
			if tools != "" {
				o.Args = append(o.Args, "--allowedTools="+tools)
			}
			_, err := w.Print("begin", o).Wait(minutes(t))
			require.NoError(t, err)
			require.Len(t, heard, len(calls))
			for _, read := range heard[:3] {
				assert.Contains(t, read, "in the open")
			}
			assert.Equal(t, elsewhere, strings.Contains(strings.Join(heard, " "), "topsecret"))
			assert.Len(t, holds(t, w.Project, "in the open"), 1)
			assert.Empty(t, holds(t, w.Project, "topsecret"))
		})
	}
}
