package command

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"

	"heartbeat/internal/cli"
	hosting "heartbeat/internal/hosting/verbs"
)

// TestCompletionKnowsEveryFlag holds as well that a verb asks for ids that there
// are: a script would be silent about others.
func TestCompletionKnowsEveryFlag(t *testing.T) {
	all := allCompleted(verbs())
	bash, zsh, fish := bashCompletion(all), zshCompletion(all), fishCompletion(all)
	keys := map[string]bool{}
	for _, c := range all {
		keys[c.key] = true
		assert.Contains(t, []string{"", entryIDs, letterIDs, waitingIDs, hosting.SessionIDs}, c.ids, c.key)
		assert.Contains(t, bash, "\t'"+c.key+"') flags=", c.key)
		for _, f := range c.flags {
			assert.Regexp(t, "--"+f.Name+"[ ']", bash, c.key)
			assert.Contains(t, zsh, quote(zshSpec(f)), c.key)
			assert.Contains(t, fish, c.key+"' -l "+f.Name+" -d "+quote(flagUsage(f)), c.key)
			for _, word := range cli.Choices(f) {
				assert.Regexp(t, "--"+f.Name+"=[^ ]*"+word, bash, c.key)
			}
		}
	}
	for _, page := range allPages() {
		assert.True(t, keys[page.Command], page.Command)
	}
	assert.NotContains(t, strings.Join([]string{bash, zsh, fish}, ""), "launched", "a hidden flag")
}

// madeUpCompletion prints a completion script for the shell of its argument, as
// completion does, with additional verbs that only the tests have: what a shell does
// with sub-verbs and ids should not depend on which verbs have them.
func madeUpCompletion() {
	shelve := cli.Verb{Name: "shelve", Short: "it's made up: shelve", Verbs: []cli.Verb{madeUpVerb("list", ""), madeUpVerb("show", letterIDs)}}
	fmt.Print(completionScript(os.Args[1])(allCompleted(append(verbs(), shelve, madeUpVerb("tell", entryIDs)))))
}

func madeUpVerb(name, ids string) cli.Verb {
	return cli.Verb{
		Name: name, Short: "it's made up: " + name, IDs: ids,
		Build: func() (*pflag.FlagSet, cli.Action) {
			f := cli.NewFlags(name)
			(&cli.InboxFlags{}).Add(f)
			return f, nil
		},
	}
}
