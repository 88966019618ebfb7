package platform_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/testing/long"
)

const sentence = "undefined: heartbeat_runs_on_Linux_and_macOS_only__on_Windows_use_WSL__see_docs_install_md"

func build(system string, packages ...string) (string, error) {
	cmd := exec.Command("go", append([]string{"build", "-o", os.DevNull}, packages...)...)
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestTheBuildRefusesInASentence(t *testing.T) {
	for _, system := range []string{"windows", "freebsd", "netbsd", "openbsd"} {
		out, err := build(system, "heartbeat/internal/platform")
		require.Error(t, err)
		assert.Contains(t, out, sentence)
	}
	for _, system := range []string{"linux", "darwin"} {
		out, err := build(system, "heartbeat/internal/platform")
		assert.NoError(t, err, out)
	}
}

// The build says nothing else: packages that would fail for another reason come later.
func TestTheBuildSaysNothingElse(t *testing.T) {
	long.Only(t, "compiles much for other systems")
	out, err := build("windows", "heartbeat/cmd/heartbeat-stop", "heartbeat/orchestrate/babysitter")
	require.Error(t, err)
	assert.Regexp(t, `^# heartbeat/internal/platform\n.*`+sentence+`\n$`, out)
}
