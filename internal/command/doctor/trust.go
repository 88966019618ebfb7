package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"heartbeat/internal/claude"
)

// account is what the client remembers about this user.
type account struct {
	path     string
	err      error
	onboard  bool
	projects map[string]bool // whether each is trusted
}

// readAccount reads two answers from the client's own file.
func readAccount(in Input) account {
	dir := in.variable("CLAUDE_CONFIG_DIR")
	if dir == "" {
		dir = in.Home
	}
	a := account{path: filepath.Join(dir, ".claude.json"), projects: map[string]bool{}}
	if dir == "" {
		a.err = errors.New("find the client's own file: there is no home directory (HOME is not set)")
		return a
	}
	text, err := readFile(a.path, maxAccount)
	if err != nil {
		a.err = err
		return a
	}
	var file struct {
		Onboarded json.RawMessage            `json:"hasCompletedOnboarding"`
		Projects  map[string]json.RawMessage `json:"projects"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		a.err = fmt.Errorf("read %s: %w", a.path, err)
		return a
	}
	a.onboard = string(file.Onboarded) == "true"
	for path, text := range file.Projects {
		var project struct {
			Trusted any `json:"hasTrustDialogAccepted"`
		}
		err := json.Unmarshal(text, &project)
		a.projects[path] = err == nil && project.Trusted == true
	}
	return a
}

// never reports whether this user never started the client.
func (a account) never() bool { return errors.Is(a.err, fs.ErrNotExist) }

// checkTrust checks whether an interactive session would run hooks here. Only a person
// may give trust, so the fix is never an edit.
func checkTrust(e *examination) []Check {
	fix := fmt.Sprintf("start claude in %s once and answer the dialog yourself", e.Project)
	const held = "an interactive session holds hooks back until the folder is trusted (claude -p does not need it)"
	a := e.account
	switch {
	case a.never():
		return []Check{fail("trust", fix, "%s is not there, so Claude Code was never started by this user: %s", a.path, held)}
	case a.err != nil:
		return []Check{unseen("trust", "make that file readable, or see whether claude itself starts", a.err)}
	}
	folders := trustedBy(e.Project)
	for _, dir := range folders {
		if a.projects[dir] {
			return []Check{ok("trust", "%s is trusted (projects[%q] in %s)", e.Project, dir, a.path)}
		}
	}
	for _, dir := range folders {
		if _, known := a.projects[dir]; known {
			return []Check{fail("trust", fix, "projects[%q].hasTrustDialogAccepted is not true in %s: %s", dir, a.path, held)}
		}
	}
	return []Check{fail("trust", fix, "%s does not know %s: %s", a.path, folders[0], held)}
}

// trustedBy returns the folders whose trust covers a project: the project, those above
// it up to the root of its git repository, and for a linked worktree the repository
// itself. Measured on 2.1.329.
func trustedBy(project string) []string {
	if real, err := filepath.EvalSymlinks(project); err == nil {
		project = real
	}
	var folders []string
	for dir := project; ; dir = filepath.Dir(dir) {
		folders = append(folders, dir)
		if info, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			if info.Mode().IsRegular() {
				folders = append(folders, mainWorktree(filepath.Join(dir, ".git"))...)
			}
			return folders
		}
		if dir == filepath.Dir(dir) {
			return folders
		}
	}
}

// mainWorktree reads the .git file of a linked worktree.
func mainWorktree(path string) []string {
	text, err := readFile(path, maxSettings)
	gitdir, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
	if err != nil || !ok {
		return nil
	}
	if !filepath.IsAbs(gitdir) {
		gitdir = filepath.Join(filepath.Dir(path), gitdir)
	}
	worktrees := filepath.Dir(gitdir)
	if filepath.Base(worktrees) != "worktrees" || filepath.Base(filepath.Dir(worktrees)) != ".git" {
		return nil // a submodule, for one
	}
	return []string{filepath.Dir(filepath.Dir(worktrees))}
}

// checkOnboarding checks whether an interactive session starts with questions.
func checkOnboarding(e *examination) []Check {
	a := e.account
	switch {
	case a.err != nil:
		return nil // checkTrust reports it
	case !a.onboard:
		return []Check{warn("onboarding", "start claude once and answer its questions yourself",
			"hasCompletedOnboarding is not true in %s: an interactive session starts with questions", a.path)}
	}
	return []Check{ok("onboarding", "hasCompletedOnboarding is true in %s", a.path)}
}

// checkEnvironment looks for variables that a session started from here should not
// inherit.
func checkEnvironment(e *examination) []Check {
	names := claude.Identity(e.Environ)
	var why []string
	if len(names) > 0 {
		why = append(why, strings.Join(names, ", ")+": a session started from here takes itself for another one's child and writes no transcript")
	}
	if e.variable("CI") != "" {
		names = append(names, "CI")
		why = append(why, "CI: a session started from here takes itself for one of a pipeline")
	}
	if len(names) == 0 {
		return []Check{ok("environment", "it has nothing of another session, and no CI")}
	}
	return []Check{warn("environment", "env -u "+strings.Join(names, " -u ")+" claude", "set: %s", strings.Join(why, "; "))}
}

const versionLimit = 10 * time.Second

// client is the Claude Code that a session started from here would run.
type client struct {
	path    string // "" when there is none
	release claude.Release
	known   bool
	err     error
}

func readClient(in Input) client {
	path, there := in.lookPath("claude")
	if !there {
		return client{}
	}
	ctx, cancel := context.WithTimeout(context.Background(), versionLimit)
	defer cancel()
	c := client{path: path}
	text, err := in.Version(ctx, path)
	if err == nil {
		c.release, err = claude.ParseRelease(text)
	}
	c.known, c.err = err == nil, err
	return c
}

// checkClient compares the client's release with what heartbeat needs.
func checkClient(e *examination) []Check {
	const fix = "claude update"
	c := e.client
	if c.path == "" {
		return []Check{fail("client", "install Claude Code, or put it on the PATH", "there is no claude on the PATH")}
	}
	if c.err != nil {
		return []Check{warn("client", "see what `"+quote(c.path, "--version")+"` says", "the release of %s is not known: %v", c.path, c.err)}
	}
	lacks := strings.Join(c.release.Lacks(), "; ")
	switch {
	case c.release.Before(claude.ExecForm) && e.execWired():
		return []Check{fail("client", fix, "%s is %s, which ignores the args of a hook, so the hook starts without its inbox; it lacks %s", c.path, c.release, lacks)}
	case lacks != "":
		return []Check{warn("client", fix, "%s is %s; it lacks %s", c.path, c.release, lacks)}
	case claude.Measured.Before(c.release):
		return []Check{ok("client", "%s is %s, newer than %s, on which its behaviour was measured", c.path, c.release, claude.Measured)}
	}
	return []Check{ok("client", "%s is %s", c.path, c.release)}
}

// execWired reports whether a hook depends on args. Any hook counts if it is not known
// which inbox is meant.
func (e *examination) execWired() bool {
	for _, w := range e.wires {
		if len(w.Args) > 0 && e.relate(w) != other {
			return true
		}
	}
	return false
}
