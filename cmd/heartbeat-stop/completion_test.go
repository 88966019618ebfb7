package main

import (
	"fmt"
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
		assert.Contains(t, []string{"", entryIDs, letterIDs, waitingIDs}, v.ids, v.name)
		assert.Contains(t, bash, "\t"+v.name+") flags=", v.name)
		for _, f := range append(v.completed(), completedOfHook()...) {
			assert.Regexp(t, "--"+f.Name+"[ ']", bash, v.name)
			assert.Contains(t, zsh, quote(zshSpec(f)), v.name)
			assert.Contains(t, fish, " -l "+f.Name+" -d "+quote(f.Usage), v.name)
		}
	}
}

// madeUpCompletion prints a completion script for the shell of its argument, as
// completion does, but of verbs that exist for the test alone: what a shell does
// with sub-verbs and ids is to hold whichever verbs have them.
func madeUpCompletion() {
	made := []verb{madeUpVerb("shelve", []string{"list", "show"}, letterIDs), madeUpVerb("tell", nil, entryIDs)}
	fmt.Print(completionScript(os.Args[1])(append(verbs(), made...)))
}

func madeUpVerb(name string, words []string, ids string) verb {
	return verb{
		name: name, short: "it's made up: " + name, words: words, ids: ids,
		build: func() (*pflag.FlagSet, action) {
			f := newFlags(name)
			(&inboxFlags{}).add(f)
			return f, nil
		},
	}
}
