package orchestrate_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	recovery "heartbeat/recover"
)

// changing is a run whose agent changes a file while it works on the first of two effects.
func changing(t *testing.T, path, text string) *runRig {
	t.Helper()
	r := newProcessRig(t, `import { more } from './more.mjs';
export async function process(inputs, ctx) { more(); await ctx.task(agent, {q:'one'}); return await ctx.task(agent, {q:'two'}); }`)
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, "more.mjs"), []byte("export const more = () => 1;"), 0o600))
	r.babysit("run:create", "--harness", "custom", "--process-id", "p", "--entry", "p.mjs#process", "--run-id", "r1", "--json")
	r.says = func(asked string) string {
		if !strings.Contains(asked, "agent one") {
			return ""
		}
		path := filepath.Join(r.dir, path)
		old, _ := os.ReadFile(path)
		if text == "" { // run.json
			old, text = nil, strings.Replace(string(old), "/p.mjs", "/q.mjs", 1)
		}
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, append(old, text...), 0o600))
		return "done"
	}
	return r
}

// What an agent changes of what a run executes is not executed.
func TestChangedCodeIsNotRun(t *testing.T) {
	const ran = `import fs from 'fs'; fs.writeFileSync('ran', '');`
	for name, c := range map[string][3]string{
		"the process":            {"p.mjs", "\n" + ran, "p.mjs"},
		"what it imports":        {"more.mjs", "\n" + ran, "more.mjs"},
		"which process it is":    {".a5c/runs/r1/run.json", "", "run.json"},
		"a dispatcher of hooks":  {"plugins/babysitter/hooks/hook-dispatcher.sh", "touch ran", "plugins/babysitter/hooks/, plugins/babysitter/hooks/hook-dispatcher.sh"},
		"what npx would take":    {"node_modules/@a5c-ai/babysitter-sdk/package.json", "{}", "node_modules/@a5c-ai/babysitter-sdk/"},
		"the settings of npm":    {".npmrc", "node-options=--require ./evil.cjs", ".npmrc"},
		"a package of a builtin": {"node_modules/fs/index.js", ran, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := changing(t, c[0], c[1])
			require.NoError(t, os.WriteFile(filepath.Join(r.dir, "q.mjs"), []byte(ran+"export const process = () => 1;"), 0o600))
			r.drive()
			if c[2] == "" {
				assert.NotContains(t, r.said, "its code has to be accepted", "nothing names it")
				return
			}
			assert.Contains(t, r.said, "its code has to be accepted: it has changed in "+c[2])
			assert.Contains(t, r.said, "look at it, and `heartbeat run accept-code r1")
			assert.NotContains(t, strings.Join(r.texts, "\n"), "agent two")
			assert.NoFileExists(t, filepath.Join(r.dir, "ran"))
		})
	}
}

// A run that rests says so wherever a person looks, and goes on once one has accepted its code.
func TestAcceptCode(t *testing.T) {
	if recovery.InSession(os.Getpid(), nil) {
		t.Skip("an agent runs this, and so this is no person")
	}
	r := changing(t, "p.mjs", "\n// changed")
	r.drive()
	assert.Len(t, r.texts, 2)
	must := func(args ...string) string {
		t.Helper()
		out, err := r.heartbeat(append(args, "--inbox", r.inbox)...)
		require.NoError(t, err, out)
		return out
	}
	const why = ": its code has to be accepted: it has changed in p.mjs: look at it"
	assert.Contains(t, must("status"), why)
	assert.Contains(t, must("run", "status"), "goes no further: its code has to be accepted")
	assert.Contains(t, must("notify", "--notify", "cat"), why)
	must("send", "something else")
	assert.Contains(t, must("status"), why, "beside what waits")

	agents := exec.Command("heartbeat", "run", "accept-code", "r1", "--inbox", r.inbox, "--babysitter", r.babysitter)
	agents.Dir, agents.Env = r.dir, append(os.Environ(), "CLAUDE_CODE_SESSION_ID=s1")
	out, err := agents.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "accept-code is a person's to say, and this was started from within a session")
	r.drive()
	assert.NotContains(t, strings.Join(r.texts, "\n"), "agent two", "an agent accepts nothing")

	assert.Contains(t, must("run", "accept-code", "r1", "--babysitter", r.babysitter), "what had changed: p.mjs")
	assert.NotContains(t, must("status"), why)
	r.drive()
	assert.Equal(t, "completed", r.state())
}

// A command that an agent has put in the place of a task's is executed only once a person has accepted it.
func TestChangedCommandIsNotRun(t *testing.T) {
	if recovery.InSession(os.Getpid(), nil) {
		t.Skip("an agent runs this, and so this is no person")
	}
	r := newRunRig(t, `export async function process(inputs, ctx) {
  return await ctx.parallel.all([() => ctx.task(odd, {q:'one'}), () => ctx.task(shell, {q:'echo asked'})]); }`)
	queued := r.step().Queued
	require.Len(t, queued, 2)
	_, effect, _ := strings.Cut(queued[1], "/")
	path := filepath.Join(r.run, "tasks", effect, "task.json")
	task, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(task), "echo asked", "touch ran", 1)), 0o600))
	refused := func() {
		t.Helper()
		out, err := r.heartbeat("orchestrate", "--inbox", r.inbox, "--run", r.run, "--once", "--babysitter", r.babysitter, "--execute", "shell")
		require.Error(t, err)
		assert.Contains(t, out, "its code has to be accepted: the task.json of effect "+effect+" is not what its process asked for")
		assert.NoFileExists(t, filepath.Join(r.dir, "ran"))
	}
	refused()
	out, err := r.heartbeat("result", "--inbox", r.inbox, queued[0], "--text", "ok")
	require.NoError(t, err, out)
	refused() // nor after the process has asked for it again
	out, err = r.heartbeat("run", "accept-code", "r1", "--inbox", r.inbox, "--babysitter", r.babysitter)
	require.NoError(t, err, out)
	r.step("--execute", "shell")
	assert.FileExists(t, filepath.Join(r.dir, "ran"))
}

// The code that was accepted for a session with a command of the project is looked at as such by who names no command.
func TestAcceptCodeOfAnotherCommand(t *testing.T) {
	if recovery.InSession(os.Getpid(), nil) {
		t.Skip("an agent runs this, and so this is no person")
	}
	r := newRunRig(t, `export async function process(inputs, ctx) { return [await ctx.task(agent,{q:'a'}), await ctx.task(agent,{q:'b'})]; }`)
	common := r.babysitter
	r.babysitter = filepath.Join(r.dir, "own")
	own := func(more string) {
		t.Helper()
		require.NoError(t, os.WriteFile(r.babysitter, []byte("#!/bin/sh\n"+more+"exec '"+common+"' \"$@\"\n"), 0o700))
	}
	own("")
	r.step()
	own("# changed\n")
	_, said := r.fire("Stop", "s", "hello", false, os.Getpid())
	require.Empty(t, said)
	_, said = r.fire("Stop", "s", "answer a", true, os.Getpid())
	assert.Contains(t, said, "it has changed in own")
	out, err := r.heartbeat("run", "accept-code", "r1", "--inbox", r.inbox, "--babysitter", common)
	require.NoError(t, err, out)
	assert.Contains(t, out, "what had changed: own")
	assert.Contains(t, out, "1 entry queued")
	got, said := r.fire("Stop", "s", "hello", false, os.Getpid())
	assert.Contains(t, got.Get("reason").String(), "agent b", said)
	_, said = r.fire("Stop", "s", "answer b", true, os.Getpid())
	assert.NotContains(t, said, "has to be accepted")
}

// Whoever trusts the agent with the code says so, and no file beside the inbox can.
func TestCodeChangesAllowed(t *testing.T) {
	r := changing(t, "p.mjs", "\n// changed")
	r.drive()
	require.Len(t, r.texts, 2)
	r.edit(func(ledger map[string]any) { ledger["options"].(map[string]any)["AnyCode"] = true })
	r.drive()
	require.NotContains(t, strings.Join(r.texts, "\n"), "agent two")
	require.NoError(t, os.Remove(r.ledger()))
	r.drive()
	require.NotContains(t, strings.Join(r.texts, "\n"), "agent two", "a lost ledger binds nothing anew")
	r.drive("--code-changes", "allow")
	assert.Equal(t, "completed", r.state())
}

// A module that the accepted code does not use any more is no part of it.
func TestUnusedModuleIsNoCode(t *testing.T) {
	if recovery.InSession(os.Getpid(), nil) {
		t.Skip("an agent runs this, and so this is no person")
	}
	r := changing(t, "unused", "")
	r.says = nil
	write := func(name, text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600))
	}
	r.step()
	text, err := os.ReadFile(filepath.Join(r.dir, "p.mjs"))
	require.NoError(t, err)
	write("p.mjs", strings.Replace(string(text), "import { more } from './more.mjs';", "const more = () => 1;", 1))
	out, err := r.heartbeat("run", "accept-code", "r1", "--inbox", r.inbox, "--babysitter", r.babysitter)
	require.NoError(t, err, out)
	write("more.mjs", "// another file of the project")
	r.drive()
	assert.Equal(t, "completed", r.state(), r.said)
}

// Nor does a person's answer run what an agent has changed: it is taken once the code is accepted.
func TestChangedCodeTakesNoAnswer(t *testing.T) {
	r := newRunRig(t, `export async function process(inputs, ctx) { return await ctx.breakpoint({question:'Ship it?'}); }`)
	held := r.step().Held
	require.Len(t, held, 1)
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, ".npmrc"), []byte("node-options=--require ./evil.cjs"), 0o600))
	out, err := r.heartbeat("breakpoint", "approve", held[0].Effect, "--inbox", r.inbox, "--babysitter", r.babysitter)
	require.Error(t, err)
	assert.Contains(t, out, "its code has to be accepted: it has changed in .npmrc: look at it, and `heartbeat run accept-code r1 --inbox ")
	assert.Equal(t, held[0].Effect, r.effect(), "it still waits")
}
