package command

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"

	"heartbeat/internal/cli"
	"heartbeat/internal/hook"
	"heartbeat/internal/launch"
)

func TestTheHookKnowsEveryVerb(t *testing.T) {
	assert.Equal(t, cli.VerbNames, cli.Names(verbs()))
}

// The help fits a terminal of 80 columns. Examples may be longer, since they are
// copied, and a usage line.
func TestHelpFitsTheScreen(t *testing.T) {
	for _, page := range allPages() {
		page.Example, page.Usage = "", nil
		for line := range strings.Lines(page.Help()) {
			assert.LessOrEqual(t, len(strings.TrimSpace(line)), 80, "%s: %s", page.Command, line)
		}
	}
	for line := range strings.Lines(overview()) {
		assert.LessOrEqual(t, len(line), 81, line)
	}
}

// pflag takes a word in back quotes for the name of the flag's value.
func TestValuesOfFlagsHaveNames(t *testing.T) {
	for _, page := range append(allPages(), hook.Page(), launch.Page()) {
		page.Flags.VisitAll(func(f *pflag.Flag) {
			value, text := pflag.UnquoteUsage(f)
			assert.NotContains(t, value, " ", "%s --%s", page.Command, f.Name)
			assert.NotContains(t, []string{"string", "strings", "stringArray"}, value, "%s --%s", page.Command, f.Name)
			assert.NotContains(t, text, "`", "%s --%s", page.Command, f.Name)
		})
	}
}
