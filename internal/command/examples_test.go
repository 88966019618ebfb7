package command

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"heartbeat/internal/cli"
)

var flagOf = regexp.MustCompile(`(?:^|\s)--([a-z][a-z-]*)`)

// No example of a verb, and no sentence of its help, offers a flag that is gone.
func TestHelpOffersNoGoneFlag(t *testing.T) {
	found := 0
	var look func(under string, all []cli.Verb)
	look = func(under string, all []cli.Verb) {
		for _, v := range all {
			name := strings.TrimSpace(under + " " + v.Name)
			look(name, v.Verbs)
			if v.Build == nil {
				continue
			}
			flags := cli.NewFlags(name)
			v.Build(flags)
			for _, f := range flagOf.FindAllStringSubmatch(v.Long+"\n"+v.Example, -1) {
				found++
				if declared := flags.Lookup(f[1]); declared != nil {
					assert.False(t, declared.Hidden, "%s: --%s", name, f[1])
				}
			}
			for line := range strings.Lines(v.Example) {
				mine, _, _ := strings.Cut(line, " -- ")
				_, mine, is := strings.Cut(mine, "heartbeat "+name)
				for _, f := range flagOf.FindAllStringSubmatch(mine, -1) {
					assert.True(t, !is || flags.Lookup(f[1]) != nil, "%s: no flag --%s", name, f[1])
				}
			}
		}
	}
	for _, g := range heartbeat().Groups {
		look("", g.Verbs)
	}
	require.Greater(t, found, 30)
}
