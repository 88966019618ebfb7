package nodes

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// otherVariable names the folder of another build's commands, for a rolling upgrade, and of its nats-server if that is
// there.
const otherVariable = "NODES_OTHER"

// clockVariable is by how much the clock of [wrongClocks] is wrong, such as 2h.
const clockVariable = "NODES_CLOCK"

// wrongClocks builds our commands with a clock that is wrong, and returns their folder. The clock is that of the
// standard library: agent, launcher and hook all have it, as on a machine whose clock is wrong.
func wrongClocks(t *testing.T) string {
	dir, bin := t.TempDir(), t.TempDir()
	file := filepath.Join(strings.TrimSpace(command(t, "go", "env", "GOROOT")), "src/time/time.go")
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	const reads = "sec, nsec, mono := runtimeNow()\n"
	require.Contains(t, string(raw), "func Now() Time {\n\t"+reads)
	text := strings.Replace(string(raw), "func Now() Time {\n\t"+reads, "func Now() Time {\n\t"+reads+"\tsec += wrong\n", 1)
	text = strings.Replace(text, "import (", "import (\n\t\"syscall\"", 1) + `
var wrong = func() int64 {
	by, _ := syscall.Getenv("` + clockVariable + `")
	d, _ := ParseDuration(by) // none if it is not set
	return int64(d / Second)
}()
`
	changed := filepath.Join(dir, "time.go")
	require.NoError(t, os.WriteFile(changed, []byte(text), 0o600))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: changed}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
	command(t, "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", bin+"/", "heartbeat/cmd/...")
	return bin
}

func command(t *testing.T, name string, args ...string) string {
	out, err := exec.Command(name, args...).CombinedOutput()
	require.NoError(t, err, "%s %s: %s", name, args, out)
	return string(out)
}
