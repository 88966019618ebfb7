package doctor

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tidwall/gjson"

	"heartbeat/internal/claude"
	"heartbeat/internal/claude/settings"
	"heartbeat/internal/disk"
	"heartbeat/internal/machine/guardian"
)

// account is what the client remembers about this user.
type account struct {
	path    string
	err     error
	content gjson.Result
}

const maxAccount = 256 << 20 // bounds the client's own file, which grows with every project

func readAccount(in Input) account {
	dir := cmp.Or(in.variable("CLAUDE_CONFIG_DIR"), in.Home)
	if dir == "" {
		return account{err: errors.New("find the client's own file: there is no home directory (HOME is not set)")}
	}
	a := account{path: filepath.Join(dir, ".claude.json")}
	text, err := disk.ReadFile(a.path, maxAccount)
	switch a.content = gjson.ParseBytes(text); {
	case err != nil:
		a.err = err
	case !gjson.ValidBytes(text) || !a.content.IsObject():
		a.err = fmt.Errorf("read %s: it is no JSON object", a.path)
	case a.content.Get("projects").Exists() && !a.content.Get("projects").IsObject():
		a.err = fmt.Errorf("read %s: its projects are no object", a.path)
	}
	return a
}

// trust checks whether a session would run hooks here. Only a person may give trust, so the fix is never an edit.
func trust(e *examination) string {
	if e.Codex {
		return e.codexTrust()
	}
	fix := fmt.Sprintf("start claude in %s once and answer the dialog yourself", e.Project)
	const held = "an interactive session holds hooks back until the folder is trusted (claude -p does not need it)"
	a := e.account
	switch {
	case errors.Is(a.err, fs.ErrNotExist):
		return e.fail(fix, "%s is not there, so Claude Code was never started by this user: %s", a.path, held)
	case a.path == "":
		return e.unseen("set HOME", a.err)
	case a.err != nil:
		return e.unseen("make that file readable, or see whether claude itself starts", a.err)
	}
	by, unknown := a.trusts(e.Project)
	if by != "" {
		return fmt.Sprintf("%s is trusted (projects[%q] in %s)", e.Project, by, a.path)
	}
	return e.fail(fix, "%s: %s", unknown, held)
}

// Trusted reports whether a person has trusted a project, so that the client runs the commands in its settings.
func Trusted(in Input) bool {
	by, _ := readAccount(in).trusts(in.Project)
	return by != ""
}

// trusts returns the folder whose trust covers a project, or "" and why there is none.
func (a account) trusts(project string) (by, unknown string) {
	unknown = fmt.Sprintf("%s does not know %s", a.path, project)
	for _, dir := range trustedBy(project) {
		switch of := a.content.Get("projects." + gjson.Escape(dir)); {
		case of.Get("hasTrustDialogAccepted").Type == gjson.True:
			return dir, ""
		case of.Exists():
			unknown = fmt.Sprintf("projects[%q].hasTrustDialogAccepted is not true in %s", dir, a.path)
		}
	}
	return "", unknown
}

// trustedBy returns the folders whose trust covers a project: the project, its parents up to the root of its git
// repository, and for a linked worktree the repository itself. Measured on 2.1.329.
func trustedBy(project string) []string {
	if real, err := filepath.EvalSymlinks(project); err == nil {
		project = real
	}
	var folders []string
	for dir := project; ; dir = filepath.Dir(dir) {
		folders = append(folders, dir)
		git := filepath.Join(dir, ".git")
		info, err := os.Lstat(git)
		switch {
		case err == nil && info.Mode().IsRegular():
			return append(folders, mainWorktree(git)...)
		case err == nil || dir == filepath.Dir(dir):
			return folders
		}
	}
}

// mainWorktree reads the .git file of a linked worktree.
func mainWorktree(path string) []string {
	text, err := disk.ReadFile(path, settings.MaxFile)
	gitdir, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
	if err != nil || !ok {
		return nil
	}
	if !filepath.IsAbs(gitdir) {
		gitdir = filepath.Join(filepath.Dir(path), gitdir)
	}
	worktrees := filepath.Dir(gitdir)
	if filepath.Base(worktrees) != "worktrees" || filepath.Base(filepath.Dir(worktrees)) != ".git" {
		return nil // such as a submodule
	}
	return []string{filepath.Dir(filepath.Dir(worktrees))}
}

func (e *examination) codexTrust() string {
	var off, untrusted []string
	for _, w := range e.wires {
		switch {
		case e.relate(w) == other:
		case !w.codex.Enabled:
			off = append(off, w.Event)
		case !w.codex.Trusted():
			untrusted = append(untrusted, w.Event)
		}
	}
	names := func(all []string) string {
		slices.Sort(all)
		return strings.Join(slices.Compact(all), ", ")
	}
	if len(off) > 0 {
		e.fail("start codex in the project, and enable them in /hooks", "hooks are switched off: %s", names(off))
	}
	if len(untrusted) > 0 {
		e.fail("start codex in the project, and trust them in /hooks",
			"nobody has trusted hooks, or they were changed since: %s: Codex does not run them, and under exec says nothing of it", names(untrusted))
	}
	if len(e.wires) == 0 {
		return ""
	}
	return "Codex runs the hooks without asking"
}

func onboarding(e *examination) string {
	a := e.account
	switch {
	case a.err != nil: // the check of trust reports it
		return ""
	case a.content.Get("hasCompletedOnboarding").Type != gjson.True:
		e.warn("start claude once and answer its questions yourself", "hasCompletedOnboarding is not true in %s: an interactive session starts with questions", a.path)
	}
	return "hasCompletedOnboarding is true in " + a.path
}

func environment(e *examination) string {
	names := claude.Identity(e.Environ)
	var why []string
	if len(names) > 0 {
		why = append(why, strings.Join(names, ", ")+": a session started from here takes itself for another one's child and writes no transcript")
	}
	if e.variable("CI") != "" {
		names = append(names, "CI")
		why = append(why, "CI: a session started from here takes itself for one of a pipeline")
	}
	if len(names) > 0 {
		e.warn("env -u "+strings.Join(names, " -u ")+" claude", "set: %s", strings.Join(why, "; "))
	}
	return "it has nothing of another session, and no CI"
}

// program is the client that a session started from here would run.
type program struct {
	path    string // "" for none
	version string // as the client prints it
	release settings.Release
	err     error // why release is unknown, or Codex did not list its hooks
	hooks   int   // how many hooks of any kind Codex has
}

const versionWait = 10 * time.Second // how long a client may take to print its version

func (in Input) programOf(name string) (p program) {
	var err error
	if p.path, err = exec.LookPath(name); err != nil {
		return program{}
	}
	ctx, cancel := context.WithTimeout(context.Background(), versionWait)
	defer cancel()
	cmd := guardian.Group(ctx, syscall.SIGKILL, p.path, "--version") // a wrapper's child ends with it
	cmd.Env = claude.WithoutIdentity(in.Environ)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	switch p.version = strings.TrimSpace(string(out)); {
	case ctx.Err() != nil:
		p.err = fmt.Errorf("run %s --version: it took too long", p.path)
	case err != nil:
		p.err = fmt.Errorf("run %s --version: %w: %s", p.path, err, bytes.TrimSpace(stderr.Bytes()))
	case !in.Codex:
		p.release, p.err = settings.ParseRelease(p.version)
	}
	return p
}

func clientRelease(e *examination) string {
	p := e.program
	switch {
	case p.path == "" && e.Codex:
		return e.fail("install Codex (npm install -g @openai/codex), or put it on the PATH", "there is no codex on the PATH")
	case p.path == "":
		return e.fail("install Claude Code, or put it on the PATH", "there is no claude on the PATH")
	case e.Codex && p.err != nil:
		e.fail("see to that, then look again", "%s: %v", cmp.Or(p.version, p.path), p.err)
	case e.Codex:
		return fmt.Sprintf("%s is %s, and says which hooks it has", p.path, cmp.Or(p.version, "of an unknown release"))
	case p.err != nil:
		e.warn("see what `"+quote(p.path, "--version")+"` says", "the release of %s is not known: %v", p.path, p.err)
	}
	// Without a known inbox any hook may serve it.
	args := slices.ContainsFunc(e.wires, func(w *wire) bool { return len(w.Args) > 0 && e.relate(w) != other })
	switch lacks := strings.Join(p.release.Lacks(), "; "); {
	case p.err != nil:
	case p.release.Before(settings.ExecForm) && args:
		e.fail("claude update", "%s is %s, which ignores the args of a hook, so the hook starts without its inbox; it lacks %s", p.path, p.release, lacks)
	case lacks != "":
		e.warn("claude update", "%s is %s; it lacks %s", p.path, p.release, lacks)
	case settings.Measured.Before(p.release):
		return fmt.Sprintf("%s is %s, newer than %s, on which its behaviour was measured", p.path, p.release, settings.Measured)
	}
	return fmt.Sprintf("%s is %s", p.path, p.release)
}
