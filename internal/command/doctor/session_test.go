package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTrust(t *testing.T) {
	trusts := func(w *world, dir string, yes any) {
		w.account(fmt.Sprintf(`{"projects":{%q:{"hasTrustDialogAccepted":%v}}}`, dir, yes))
	}
	t.Run("itself", func(t *testing.T) {
		w := newWorld(t)
		w.says("trust", "ok "+w.Project+" is trusted")
		trusts(w, w.Project, false)
		w.says("trust", "fail hasTrustDialogAccepted is not true")
		assert.Equal(t, "start claude in "+w.Project+" once and answer the dialog yourself", w.checks("trust")[0].Fix)
		trusts(w, w.Project, `"true"`)
		w.says("trust", "fail hasTrustDialogAccepted is not true")
		trusts(w, w.Home, true)
		w.says("trust", "fail does not know "+w.Project)
	})
	t.Run("through a folder above", func(t *testing.T) {
		w := newWorld(t)
		trusts(w, filepath.Dir(w.Project), true)
		w.says("trust", "ok is trusted")
		require.NoError(t, os.Mkdir(filepath.Join(w.Project, ".git"), 0o700))
		w.says("trust", "fail does not know") // a repository of its own
	})
	t.Run("through its repository", func(t *testing.T) {
		w := newWorld(t)
		repo := w.Project
		require.NoError(t, os.MkdirAll(filepath.Join(repo, "a", "b"), 0o700))
		require.NoError(t, os.MkdirAll(filepath.Join(repo, ".git", "worktrees", "w"), 0o700))
		w.Project = filepath.Join(repo, "a", "b")
		w.says("trust", "ok "+w.Project+" is trusted (projects[\""+repo)
		w.Project = filepath.Join(w.Home, "worktree")
		w.write(filepath.Join(w.Project, ".git"), "gitdir: "+repo+"/.git/worktrees/w\n", 0o600)
		w.says("trust", "ok (projects[\""+repo)
		w.write(filepath.Join(w.Project, ".git"), "gitdir: "+repo+"/.git/modules/w\n", 0o600)
		w.says("trust", "fail does not know")
	})
	t.Run("through a link", func(t *testing.T) {
		w := newWorld(t)
		link := filepath.Join(w.Home, "link")
		require.NoError(t, os.Symlink(w.Project, link))
		w.Project = link
		w.says("trust", "ok is trusted")
	})
	t.Run("the file", func(t *testing.T) {
		w := newWorld(t)
		w.account(`{"projects":5}`)
		w.says("trust", "fail could not be looked at: read "+w.Home)
		w.says("onboarding")
		require.NoError(t, os.Remove(filepath.Join(w.Home, ".claude.json")))
		w.says("trust", "fail never started by this user")
		w.says("onboarding")
		w.setenv("CLAUDE_CONFIG_DIR", w.Managed)
		w.write(filepath.Join(w.Managed, ".claude.json"), fmt.Sprintf(`{"projects":{%q:{"hasTrustDialogAccepted":true}}}`, w.Project), 0o600)
		w.says("trust", "ok "+w.Managed)
		w.says("onboarding", "warn hasCompletedOnboarding is not true")
	})
	t.Run("no home", func(t *testing.T) {
		w := newWorld(t)
		t.Chdir(w.Home)
		w.Home = ""
		w.says("trust", "fail there is no home directory")
		assert.Equal(t, "set HOME", w.checks("trust")[0].Fix)
	})
	t.Run("unreadable", func(t *testing.T) {
		plainUser(t)
		w := newWorld(t)
		require.NoError(t, os.Chmod(filepath.Join(w.Home, ".claude.json"), 0))
		w.says("trust", "fail permission denied")
	})
}

func TestOnboarding(t *testing.T) {
	w := newWorld(t)
	w.says("onboarding", "ok hasCompletedOnboarding is true")
	for _, text := range []string{`{}`, `{"hasCompletedOnboarding":false}`, `{"hasCompletedOnboarding":"yes"}`} {
		w.account(text)
		w.says("onboarding", "warn hasCompletedOnboarding is not true")
	}
}

func TestEnvironment(t *testing.T) {
	w := newWorld(t)
	w.says("environment", "ok ")
	w.setenv("CI", "")
	w.says("environment", "ok ")
	w.setenv("CI", "true")
	w.setenv("CLAUDECODE", "1")
	w.setenv("CLAUDE_PID", "7")
	w.says("environment", "warn set: CLAUDECODE, CLAUDE_PID: a session started from here")
	assert.Equal(t, "env -u CLAUDECODE -u CLAUDE_PID -u CI claude", w.checks("environment")[0].Fix)
}

func TestClient(t *testing.T) {
	w := newWorld(t)
	for text, says := range map[string]string{
		"2.1.329 (Claude Code)": "ok is 2.1.329",
		"2.1.196":               "ok is 2.1.196",
		"2.2.0":                 "ok newer than 2.1.329",
		"2.1.195":               "warn it lacks prompt_id",
		"2.1.138":               "fail ignores the args",
		"1.0.0":                 "fail last_assistant_message",
		"what?":                 "warn is no version",
	} {
		w.program("claude", "echo '"+text+"'")
		w.says("client", says)
	}
	w.wire(w.projectSettings(), shell("heartbeat-stop --inbox "+w.Inbox))
	w.program("claude", "echo 2.1.138")
	w.says("client", "warn hooks with args (the hook starts without its inbox), since 2.1.139")
	w.program("claude", "echo broken >&2; exit 3")
	w.says("client", "warn exit status 3: broken")
	t.Setenv("PATH", w.Home)
	w.says("client", "fail no claude on the PATH")
}
