package command

import (
	"slices"
	"strings"
)

// minPrefix is how many characters of a name are enough.
const minPrefix = 4

// names are the names of a thing: the id from its sender, which may be empty, and
// those that heartbeat gives it.
type names struct {
	id  string
	own []string
}

func (n names) all() []string { return append([]string{n.id}, n.own...) }

// resolve returns what a word means: things with that id, or else with that name of
// ours, or else those whose names begin with it. Ids come first because senders may
// choose anything. More than one result means that the word is ambiguous.
func resolve[T any](word string, all []T, namesOf func(T) names) []T {
	begin := strings.TrimSuffix(word, "…") // with which lists end a name that they cut
	ways := []func(names) bool{
		func(n names) bool { return word != "" && n.id == word },
		func(n names) bool { return slices.Contains(n.own, word) },
		func(n names) bool {
			return len(begin) >= minPrefix && slices.ContainsFunc(n.all(), func(name string) bool { return strings.HasPrefix(name, begin) })
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

// mayBeNamed reports whether any of the words may mean what has these names.
func mayBeNamed(words []string, n names) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		return len(resolve(word, []names{n}, func(n names) names { return n })) > 0
	})
}
