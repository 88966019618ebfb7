package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// choose is the verb of v that the arguments name, with those that are left for it.
// Where they name none, it returns v itself and the exit status.
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

// notForSibling refuses a flag that only other verbs of v have, and names those.
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

// VerbFirst moves the flags that stand before the verb behind it. Which of them take
// a value is what the verbs say; where none is named, the arguments stay as they are.
func VerbFirst(args []string, verbs []Verb) []string {
	if len(args) == 0 || !strings.HasPrefix(args[0], "-") {
		return args
	}
	takes := valueFlags(verbs)
	for i := 0; i < len(args); i++ {
		name, isFlag := strings.CutPrefix(args[i], "-")
		switch {
		case !isFlag:
			return slices.Concat(args[i:i+1], args[:i], args[i+1:])
		case name == "" || name == "-":
			return args
		}
		if takes[strings.TrimPrefix(name, "-")] {
			i++
		}
	}
	return args
}

// valueFlags are the names of the flags that take the next word for their value.
func valueFlags(verbs []Verb) map[string]bool {
	takes := map[string]bool{}
	for _, v := range verbs {
		for _, sub := range v.Verbs {
			for name := range valueFlags([]Verb{sub}) {
				takes[name] = true
			}
		}
		flags, _, _ := v.Built()
		flags.VisitAll(func(f *pflag.Flag) {
			if f.NoOptDefVal == "" {
				takes[f.Name] = true
			}
		})
	}
	return takes
}

// Find is the verb of that name.
func Find(verbs []Verb, name string) (Verb, bool) {
	for _, v := range verbs {
		if v.Name == name {
			return v, true
		}
	}
	return Verb{}, false
}

// Names are those of the verbs, in their order.
func Names(verbs []Verb) (names []string) {
	for _, v := range verbs {
		names = append(names, v.Name)
	}
	return names
}
