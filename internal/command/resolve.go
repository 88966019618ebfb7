package command

import (
	"slices"
	"strings"
)

// minPrefix is how much of a name stands for the whole of it.
const minPrefix = 4

// names are what a thing is called: the id that its sender gave it, which may be
// empty, and those that heartbeat gives.
type names struct {
	id  string
	own []string
}

func (n names) all() []string { return append([]string{n.id}, n.own...) }

// resolve finds what a word means. An id comes before a name of ours, since
// whoever chose it may have chosen anything, and both before what merely begins
// with the word. More than one mean that the word is ambiguous.
func resolve[T any](word string, all []T, namesOf func(T) names) []T {
	ways := []func(names) bool{
		func(n names) bool { return word != "" && n.id == word },
		func(n names) bool { return slices.Contains(n.own, word) },
		func(n names) bool {
			return len(word) >= minPrefix && slices.ContainsFunc(n.all(), func(name string) bool { return strings.HasPrefix(name, word) })
		},
	}
	for _, fits := range ways {
		var found []T
		for _, t := range all {
			if fits(namesOf(t)) {
				found = append(found, t)
			}
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}
