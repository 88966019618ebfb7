package run_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/orchestrate/run"
)

// files writes files below a directory, each with its path.
func files(t *testing.T, dir string, all map[string]string) {
	t.Helper()
	for name, text := range all {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

// project is a run and what its process is made of.
func project(t *testing.T) (dir string, code func() (run.Code, error)) {
	t.Helper()
	dir = t.TempDir()
	files(t, dir, map[string]string{
		".a5c/runs/r1/run.json": `{"runId":"r1","layoutVersion":"` + run.Layout + `","entrypoint":{"importPath":"../../../lib/p.mjs","exportName":"process"}}`,
		"lib/p.mjs": `import { a } from './a.mjs'; import "./b.mjs?v=1"; export * from "../up.mjs"
			const c = require( './c' ), d = require("./d"); const e = await import(/* late */ './e.mjs');
			import '#mapped'; import dep from 'dep/sub'; import fs from 'fs'; const text = './data.txt';`,
		"lib/a.mjs": `import './p.mjs'; import './deeper/f.mjs'`, "lib/b.mjs": "", "up.mjs": "", "lib/c.js": "", "lib/e.mjs": "", "lib/deeper/f.mjs": "",
		"lib/d/package.json": `{"main":"main.js"}`, "lib/d/main.js": "", "lib/d/index.js": "", "lib/data.txt": "", "other.mjs": "",
		"package.json": `{"imports":{"#mapped":{"node":["./mapped.mjs"]}}}`, "mapped.mjs": "",
		"node_modules/dep/package.json": `{"dependencies":{"needed":"*"}}`, "node_modules/dep/sub.js": "",
		"node_modules/needed/index.js": "", "node_modules/unused/index.js": "",
	})
	return dir, func() (run.Code, error) {
		r, err := run.Open(filepath.Join(dir, ".a5c/runs/r1"))
		require.NoError(t, err)
		return r.Code(dir, []string{"npx", filepath.Join(dir, "tool.js")})
	}
}

// Each change of what a process is made of shows, and no other does.
func TestCodeDiffers(t *testing.T) {
	for name, differs := range map[string]bool{
		"lib/p.mjs": true, "lib/a.mjs": true, "lib/b.mjs": true, "up.mjs": true, "lib/c.js": true, "lib/e.mjs": true, "lib/deeper/f.mjs": true,
		"lib/d/main.js": true, "lib/d/package.json": true, "package.json": true, "mapped.mjs": true, "node_modules/dep/sub.js": true,
		"node_modules/dep/new.js": true, "node_modules/needed/index.js": true, ".npmrc": true, "tool.js": true,
		"lib/c": true, "lib/package.json": true, "lib/node_modules/dep/sub.js": true, "node_modules/fs/index.js": true,
		"node_modules/dep/node_modules/needed/index.js": true, "node_modules/@a5c-ai/babysitter-sdk/x.js": true,
		"plugins/babysitter/hooks/hook-dispatcher.sh": true,

		"other.mjs": false, "lib/data.txt": false, "lib/new.mjs": false, "node_modules/unused/index.js": false, "node_modules/new/index.js": false,
		".a5c/runs/r1/state/state.json": false, ".a5c/hooks/on-run-start/x.sh": false,
	} {
		dir, code := project(t)
		before, err := code()
		require.NoError(t, err)
		same, err := code()
		require.NoError(t, err)
		require.Empty(t, same.Differs(before))
		files(t, dir, map[string]string{name: "// changed"})
		after, err := code()
		require.NoError(t, err, name)
		assert.Equal(t, differs, len(after.Differs(before)) > 0, "%s: %v", name, after.Differs(before))
		assert.Equal(t, differs, len(before.Differs(after)) > 0, "%s and back", name)
	}
}

// A link in place of a module differs, and so does what it leads to.
func TestCodeOfLinks(t *testing.T) {
	dir, code := project(t)
	before, err := code()
	require.NoError(t, err)
	at := filepath.Join(dir, "lib", "a.mjs")
	text, err := os.ReadFile(at)
	require.NoError(t, err)
	elsewhere := filepath.Join(t.TempDir(), "a.mjs")
	require.NoError(t, os.WriteFile(elsewhere, text, 0o600))
	require.NoError(t, os.Remove(at))
	require.NoError(t, os.Symlink(elsewhere, at))
	after, err := code()
	require.NoError(t, err)
	assert.Contains(t, after.Differs(before), at, "the same text, and other files beside it")
	require.NoError(t, os.WriteFile(elsewhere, append(text, ' '), 0o600))
	last, err := code()
	require.NoError(t, err)
	assert.Equal(t, []string{at}, last.Differs(after))
}

// What is no module, or more than any process has, is not read, and nothing waits for it.
func TestCodeIsBounded(t *testing.T) {
	dir, code := project(t)
	require.NoError(t, os.Truncate(filepath.Join(dir, "up.mjs"), 1<<40))
	_, err := code()
	require.ErrorContains(t, err, "too large")
	require.NoError(t, os.Remove(filepath.Join(dir, "up.mjs")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "up.mjs"), 0o600))
	_, err = code()
	require.ErrorContains(t, err, "not a regular file")
}
