package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// choose returns the verb of v that the arguments name, and the remaining arguments. If
// they name none, it returns v itself and the exit status.
func (v Verb) choose(args []string, s Streams) (chosen Verb, rest []string, status int) {
	args = VerbFirst(args, v.Verbs)
	flags, help, _ := v.Built()
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		sub, found := Find(v.Verbs, args[0])
		if !found {
			return v, nil, v.conclude(usageError{UnknownVerb(args[0], Names(v.Verbs))}, s)
		}
		sub.Parent = v.Path()
		if err := v.notForSibling(sub, args[1:]); err != nil {
			return v, nil, sub.conclude(usageError{err}, s)
		}
		return sub, args[1:], ExitOK
	}
	if flags.Parse(args) == nil && *help {
		return v, nil, s.Show(v.Page(s.Command, flags).Help())
	}
	err := fmt.Errorf("say what to do: %s", strings.Join(Names(v.Verbs), ", "))
	return v, nil, v.conclude(usageError{err}, s)
}

// notForSibling refuses a flag that only other verbs of v have, and names them.
func (v Verb) notForSibling(sub Verb, args []string) error {
	flags, _, _ := sub.Built()
	var unknown *pflag.NotExistError
	if !errors.As(flags.Parse(args), &unknown) {
		return nil
	}
	var others []string
	for _, other := range v.Verbs {
		if flags, _, _ := other.Built(); flags.Lookup(unknown.GetSpecifiedName()) != nil {
			others = append(others, other.Name)
		}
	}
	if others == nil {
		return nil
	}
	return fmt.Errorf("--%s is not for %s: it is for %s", unknown.GetSpecifiedName(), sub.Name, strings.Join(others, " and "))
}

// VerbFirst moves flags that come before the verb to after it. The verbs' flags show
// which of them take a value. If no verb is named, or an unknown flag comes before a
// word that is not a verb, the arguments stay as they are.
func VerbFirst(args []string, verbs []Verb) []string {
	if len(args) == 0 || !strings.HasPrefix(args[0], "-") {
		return args
	}
	takes, allKnown := takeValues(verbs), true
	for i := 0; i < len(args); i++ {
		word, isFlag := strings.CutPrefix(args[i], "-")
		switch {
		case !isFlag:
			if !allKnown && !isVerb(verbs, args[i:]) {
				return args
			}
			return slices.Concat(args[i:i+1], args[:i], args[i+1:])
		case word == "" || word == "-":
			return args
		}
		name, _, hasValue := strings.Cut(strings.TrimPrefix(word, "-"), "=")
		kinds := takes[name]
		allKnown = allKnown && kinds != nil
		if !hasValue && kinds[true] && !(kinds[false] && isVerb(verbs, args[i+1:])) {
			i++
		}
	}
	return args
}

func isVerb(verbs []Verb, args []string) bool {
	if len(args) == 0 {
		return false
	}
	_, found := Find(verbs, args[0])
	return found
}

// takeValues says for each flag of the verbs, by name, whether it takes the next word
// as its value. It may do so in one verb and not in another.
func takeValues(verbs []Verb) map[string]map[bool]bool {
	takes := map[string]map[bool]bool{}
	add := func(name string, value bool) {
		if takes[name] == nil {
			takes[name] = map[bool]bool{}
		}
		takes[name][value] = true
	}
	for _, v := range verbs {
		for name, kinds := range takeValues(v.Verbs) {
			for value := range kinds {
				add(name, value)
			}
		}
		flags, _, _ := v.Built()
		flags.VisitAll(func(f *pflag.Flag) { add(f.Name, f.NoOptDefVal == "") })
	}
	return takes
}

// Find returns the verb with that name.
func Find(verbs []Verb, name string) (Verb, bool) {
	for _, v := range verbs {
		if v.Name == name {
			return v, true
		}
	}
	return Verb{}, false
}

// Names returns the names of the verbs, in order.
func Names(verbs []Verb) (names []string) {
	for _, v := range verbs {
		names = append(names, v.Name)
	}
	return names
}
