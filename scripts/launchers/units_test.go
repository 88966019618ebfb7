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

const shipped = "/usr/local/bin/"

// units copies the units to a folder, with the paths of the commands under test.
func units(t *testing.T) (paths []string) {
	t.Helper()
	all, err := filepath.Glob("systemd/*")
	require.NoError(t, err)
	require.Len(t, all, 6)
	dir := t.TempDir()
	for _, path := range all {
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		here := strings.ReplaceAll(string(raw), "="+shipped, "="+bin+"/")
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

// What passes ends no service: only wrong usage and what somebody has to do keep a launcher
// from being started again.
func TestNothingThatPassesEndsAService(t *testing.T) {
	for unit, want := range map[string]string{"heartbeat-supervisor@.service": "1 78", "../nats/heartbeat-nats@.service": "78"} {
		of := settings(t, unit)
		assert.Equal(t, []string{want}, of["RestartPreventExitStatus"], unit)
		assert.Equal(t, []string{"0"}, of["StartLimitIntervalSec"], unit)
		assert.Equal(t, []string{"on-failure"}, of["Restart"], unit)
		assert.NotContains(t, of["SuccessExitStatus"], "75", unit)
	}
}

// A hosted session's entry in flight is answered before its service stops.
func TestAHostedSessionStopsWarm(t *testing.T) {
	host := settings(t, "heartbeat-host@.service")
	assert.Equal(t, []string{"-/usr/local/bin/heartbeat-host cancel --warm --wait %i"}, host["ExecStop"])
	assert.Equal(t, []string{"180"}, host["TimeoutStopSec"], "over the minute of cancel, its grace, and the report")
}

// The check of a timer runs no agent: it may reach less.
func TestTheWatchReachesLess(t *testing.T) {
	drain, watch := settings(t, "heartbeat@.service"), settings(t, "heartbeat-watch.service")
	for _, name := range []string{
		"User", "NoNewPrivileges", "ProtectSystem", "ReadWritePaths", "ProtectHome", "PrivateTmp", "PrivateDevices", "ProtectClock",
		"ProtectControlGroups", "ProtectHostname", "ProtectKernelLogs", "ProtectKernelModules", "ProtectKernelTunables",
		"RestrictAddressFamilies", "RestrictRealtime", "RestrictSUIDSGID", "LockPersonality", "SystemCallArchitectures", "CapabilityBoundingSet", "UMask",
	} {
		assert.NotEmpty(t, drain[name], name)
		assert.Equal(t, drain[name], watch[name], name)
	}
	assert.Equal(t, []string{"yes"}, watch["MemoryDenyWriteExecute"])
}

// The agent may reach the same things in all services.
func TestUnitsAreHardenedAlike(t *testing.T) {
	drain, supervisor, host := settings(t, "heartbeat@.service"), settings(t, "heartbeat-supervisor@.service"), settings(t, "heartbeat-host@.service")
	assert.Equal(t, drain["Environment"], supervisor["Environment"])
	for _, name := range []string{
		"User", "EnvironmentFile", "KillMode", "NoNewPrivileges", "ProtectSystem", "ReadWritePaths", "ProtectHome",
		"PrivateTmp", "PrivateDevices", "ProtectClock", "ProtectControlGroups", "ProtectHostname", "ProtectKernelLogs",
		"ProtectKernelModules", "ProtectKernelTunables", "RestrictAddressFamilies", "RestrictRealtime", "RestrictSUIDSGID",
		"LockPersonality", "SystemCallArchitectures", "CapabilityBoundingSet", "UMask",
	} {
		assert.NotEmpty(t, drain[name], name)
		assert.Equal(t, drain[name], supervisor[name], name)
		assert.Equal(t, drain[name], host[name], name)
	}
	assert.NotContains(t, drain, "MemoryDenyWriteExecute", "the client compiles as it runs")
	assert.NotContains(t, supervisor, "MemoryDenyWriteExecute")
	assert.NotContains(t, host, "MemoryDenyWriteExecute")
}
