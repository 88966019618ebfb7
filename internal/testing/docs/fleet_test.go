package docs

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The commands of "On one machine" work as they stand, with a stand-in for the client.
func TestAgentsOnOneMachine(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	cmd, err := FollowFleet(ctx, root, t.TempDir(), self, bin)
	require.NoError(t, err)
	combined, err := cmd.CombinedOutput()
	out := string(combined)
	require.NoError(t, err, out)
	rest, found := out, false
	for _, want := range FleetSaid {
		_, rest, found = strings.Cut(rest, want)
		assert.True(t, found, "%q is not in its place in\n%s", want, out)
	}
}
