package layout_test

import (
	"bytes"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/cli/layout"
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
		"auto":                  {layout.Auto, "", "xterm", painted, "failed"},
		"no mode":               {"", "", "xterm", painted, "failed"},
		"NO_COLOR":              {layout.Auto, "1", "xterm", "failed", "failed"},
		"dumb terminal":         {layout.Auto, "", "dumb", "failed", "failed"},
		"always beats NO_COLOR": {layout.Always, "1", "dumb", painted, painted},
		"never":                 {layout.Never, "", "xterm", "failed", "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("NO_COLOR", tt.noColor)
			t.Setenv("TERM", tt.term)
			assert.Equal(t, tt.onTerminal, layout.PaletteFor(terminal, tt.mode).Paint(layout.Red, "failed"))
			assert.Equal(t, tt.inPipe, layout.PaletteFor(&bytes.Buffer{}, tt.mode).Paint(layout.Red, "failed"))
		})
	}
}

func TestPaintAddsNothingToNothing(t *testing.T) {
	p := layout.PaletteFor(&bytes.Buffer{}, layout.Always)
	assert.Empty(t, p.Paint(layout.Red, ""))
	assert.Equal(t, "as it is", p.Paint(layout.Plain, "as it is"))
}
