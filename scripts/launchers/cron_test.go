package launchers_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var crontabLine = regexp.MustCompile(`(?m)^# +\*/10 \* \* \* \* (.*)$`)

// The crontab lines in the launchers' usage work as they stand, in the small environment
// that cron gives. Only the paths differ.
func TestCrontabLines(t *testing.T) {
	here, err := os.Getwd()
	require.NoError(t, err)
	doc, err := os.ReadFile("../../docs/launch.md")
	require.NoError(t, err)
	for name, folder := range map[string]string{"cron.sh": "/srv/agent", "triage.sh": "/srv/mail"} {
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(name)
			require.NoError(t, err)
			m := crontabLine.FindStringSubmatch(string(raw))
			require.NotNil(t, m)
			assert.NotContains(t, m[1], "%", "cron ends a line there")
			assert.Contains(t, string(doc), "*/10 * * * * "+m[1])
			dir := t.TempDir()
			for _, sub := range []string{"work", "project"} {
				require.NoError(t, os.Mkdir(filepath.Join(dir, sub), 0o700))
			}
			unread := "#!/bin/sh\necho '\"from cron\"'\n"
			require.NoError(t, os.WriteFile(filepath.Join(dir, "unread"), []byte(unread), 0o700))
			inbox := filepath.Join(dir, "work", "inbox.jsonl")
			require.NoError(t, os.WriteFile(inbox, []byte("from cron\n"), 0o600))

			cmd := exec.Command("/bin/sh", "-c", strings.NewReplacer("/opt/heartbeat", here, folder, dir).Replace(m[1]))
			cmd.Dir = t.TempDir()
			cmd.Env = []string{"SHELL=/bin/sh", "HOME=" + cmd.Dir, "LOGNAME=me", "PATH=" + bin + ":/usr/bin:/bin"}
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			asked, err := os.ReadFile(filepath.Join(dir, "project", "asked"))
			require.NoError(t, err)
			assert.Equal(t, "Read CLAUDE.md\nfrom cron\n", string(asked))
		})
	}
}
