package command

import (
	"fmt"
	"heartbeat/internal/cli"
	"os"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
)

// TestCompletionKnowsEveryFlag holds as well that a verb asks for ids that there
// are: a script would be silent about others.
func TestCompletionKnowsEveryFlag(t *testing.T) {
	bash, zsh, fish := bashCompletion(verbs()), zshCompletion(verbs()), fishCompletion(verbs())
	for _, v := range verbs() {
		assert.Contains(t, []string{"", entryIDs, letterIDs, waitingIDs}, v.IDs, v.Name)
		assert.Contains(t, bash, "\t"+v.Name+") flags=", v.Name)
		for _, f := range append(completed(v), completedBeforeVerb()...) {
			assert.Regexp(t, "--"+f.Name+"[ ']", bash, v.Name)
			assert.Contains(t, zsh, quote(zshSpec(f)), v.Name)
			assert.Contains(t, fish, " -l "+f.Name+" -d "+quote(f.Usage), v.Name)
		}
	}
}

// madeUpCompletion prints a completion script for the shell of its argument, as
// completion does, but of verbs that exist for the test alone: what a shell does
// with sub-verbs and ids is to hold whichever verbs have them.
func madeUpCompletion() {
	made := []cli.Verb{madeUpVerb("shelve", []string{"list", "show"}, letterIDs), madeUpVerb("tell", nil, entryIDs)}
	fmt.Print(completionScript(os.Args[1])(append(verbs(), made...)))
}

func madeUpVerb(name string, words []string, ids string) cli.Verb {
	return cli.Verb{
		Name: name, Short: "it's made up: " + name, Words: words, IDs: ids,
		Build: func() (*pflag.FlagSet, cli.Action) {
			f := cli.NewFlags(name)
			(&cli.InboxFlags{}).Add(f)
			return f, nil
		},
	}
}
