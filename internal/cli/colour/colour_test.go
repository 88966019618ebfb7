package colour_test

import (
	"bytes"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/cli/colour"
)

const painted = "\x1b[31mfailed\x1b[m"

func TestColourIsForTerminals(t *testing.T) {
	control, terminal, err := pty.Open()
	require.NoError(t, err)
	defer func() { assert.NoError(t, control.Close()) }()
	defer func() { assert.NoError(t, terminal.Close()) }()

	for name, tt := range map[string]struct {
		mode, noColor, term, onTerminal, inPipe string
	}{
		"auto":                  {colour.Auto, "", "xterm", painted, "failed"},
		"no mode":               {"", "", "xterm", painted, "failed"},
		"NO_COLOR":              {colour.Auto, "1", "xterm", "failed", "failed"},
		"dumb terminal":         {colour.Auto, "", "dumb", "failed", "failed"},
		"always beats NO_COLOR": {colour.Always, "1", "dumb", painted, painted},
		"never":                 {colour.Never, "", "xterm", "failed", "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NO_COLOR", tt.noColor)
			t.Setenv("TERM", tt.term)
			assert.Equal(t, tt.onTerminal, colour.For(terminal, tt.mode).Paint(colour.Red, "failed"))
			assert.Equal(t, tt.inPipe, colour.For(&bytes.Buffer{}, tt.mode).Paint(colour.Red, "failed"))
		})
	}
}

func TestPaintAddsNothingToNothing(t *testing.T) {
	p := colour.For(&bytes.Buffer{}, colour.Always)
	assert.Empty(t, p.Paint(colour.Red, ""))
	assert.Equal(t, "as it is", p.Paint(colour.Plain, "as it is"))
}
