package launch

import (
	"bufio"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/supervise"
)

// What others wrote cannot act on the terminal that shows the report.
func TestReportAtATerminal(t *testing.T) {
	screen, terminal, err := pty.Open()
	require.NoError(t, err)
	defer func() { _ = screen.Close() }() // only read
	require.NoError(t, reportFile(toStdout).write(&supervise.Report{Detail: "\u202edetail\u009b2J"}, terminal))
	shown, err := bufio.NewReader(screen).ReadString('\n')
	require.NoError(t, err)
	assert.NotContains(t, shown, "\u202e")
	assert.NotContains(t, shown, "\u009b")
	assert.Contains(t, shown, "detail")
	require.NoError(t, terminal.Close())
}
