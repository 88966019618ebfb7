package launchers_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const shipped = "/usr/local/bin/heartbeat-launch"

// units copies the units to a folder, with the path of the launcher under test.
func units(t *testing.T) (paths []string) {
	t.Helper()
	all, err := filepath.Glob("systemd/*")
	require.NoError(t, err)
	require.Len(t, all, 3)
	dir := t.TempDir()
	for _, path := range all {
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		here := strings.ReplaceAll(string(raw), shipped, filepath.Join(bin, "heartbeat-launch"))
		path = filepath.Join(dir, filepath.Base(path))
		require.NoError(t, os.WriteFile(path, []byte(here), 0o600))
		paths = append(paths, path)
	}
	return paths
}

// systemd finds no fault with the units.
func TestUnitsAreValid(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not here")
	}
	out, err := exec.Command(analyze, append([]string{"verify"}, units(t)...)...).CombinedOutput()
	assert.NoError(t, err, "%s", out)
	assert.Empty(t, string(out))
}

// settings maps each name in a unit to its values.
func settings(t *testing.T, unit string) map[string][]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("systemd", unit))
	require.NoError(t, err)
	all := map[string][]string{}
	for line := range strings.Lines(string(raw)) {
		if name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok && !strings.HasPrefix(line, "#") {
			all[name] = append(all[name], value)
		}
	}
	return all
}

// The agent may reach the same things in both services.
func TestUnitsAreHardenedAlike(t *testing.T) {
	drain, supervisor := settings(t, "heartbeat@.service"), settings(t, "heartbeat-supervisor@.service")
	for _, name := range []string{
		"User", "Environment", "EnvironmentFile", "KillMode", "NoNewPrivileges", "ProtectSystem", "ReadWritePaths", "ProtectHome",
		"PrivateTmp", "PrivateDevices", "ProtectClock", "ProtectControlGroups", "ProtectHostname", "ProtectKernelLogs",
		"ProtectKernelModules", "ProtectKernelTunables", "RestrictAddressFamilies", "RestrictRealtime", "RestrictSUIDSGID",
		"LockPersonality", "SystemCallArchitectures", "CapabilityBoundingSet", "UMask",
	} {
		assert.NotEmpty(t, drain[name], name)
		assert.Equal(t, drain[name], supervisor[name], name)
	}
	assert.NotContains(t, drain, "MemoryDenyWriteExecute", "the client compiles as it runs")
	assert.NotContains(t, supervisor, "MemoryDenyWriteExecute")
}
