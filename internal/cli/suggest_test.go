package cli_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"heartbeat/internal/cli"
)

func TestNearest(t *testing.T) {
	known := []string{"send", "status", "show", "results", "result", "run", "dead-letter", "completion", "man"}
	for typed, want := range map[string]string{
		"sned": "send", "statsu": "status", "stat": "status", "reslts": "results", "rn": "run", "dead-leter": "dead-letter",
		"complet": "completion", "Send": "send", "deadletter": "dead-letter", "send": "send",
		"throw": "", "serve": "", "x": "", "": "", "ma": "man",
	} {
		assert.Equal(t, want, cli.Nearest(typed, known), typed)
	}
	assert.Empty(t, cli.Nearest("send", nil))
}

func TestUnknownFlags(t *testing.T) {
	flags := cli.NewFlags("send")
	flags.String("inbox", "", "")
	flags.Bool("secret", false, "")
	flags.Lookup("secret").Hidden = true
	for args, want := range map[string]string{
		"--inbxo=x": "unknown flag: --inbxo: did you mean --inbox?",
		"--secre":   "unknown flag: --secre",
		"--wholly":  "unknown flag: --wholly",
		"-x":        "unknown shorthand flag: 'x' in -x",
	} {
		assert.EqualError(t, cli.FlagError(flags.Parse([]string{args}), flags), want)
	}
	assert.NoError(t, cli.FlagError(flags.Parse([]string{"--inbox=x"}), flags))
}
