package cli

import (
	"strings"

	"github.com/spf13/pflag"
)

// Page describes a verb of a command. flags are those that Build returned.
func (v Verb) Page(command string, flags *pflag.FlagSet) Page {
	long, status := cutStatus(v.Long)
	related := []string{command}
	if v.Parent != "" {
		related = append(related, ManualName(command+" "+v.Parent))
	}
	var verbs []Group
	if v.Verbs != nil {
		verbs = []Group{{Title: "Verbs"}}
	}
	for _, sub := range v.Verbs {
		verbs[0].Items = append(verbs[0].Items, Item{Name: sub.Name, What: sub.Short})
		related = append(related, ManualName(command+" "+v.Path()+" "+sub.Name))
	}
	return Page{
		Command:     command + " " + v.Path(),
		Short:       v.Short,
		Long:        long,
		Usage:       []string{v.usage()},
		Example:     v.Example,
		Verbs:       verbs,
		Flags:       flags,
		Status:      status,
		Environment: InboxEnvironment(flags),
		SeeAlso:     related,
	}
}

// usage returns what follows the verb's name. In a group, flags come after one of its
// verbs, which its Args name.
func (v Verb) usage() string {
	if v.Verbs != nil {
		return v.Args + " [flags]"
	}
	return strings.TrimSpace("[flags] " + v.Args)
}

// InboxEnvironment describes the variable that replaces --inbox, if that is a flag.
func InboxEnvironment(flags *pflag.FlagSet) []Item {
	if flags == nil || flags.Lookup("inbox") == nil {
		return nil
	}
	return []Item{{Name: InboxVariable, What: "the inbox, where --inbox does not name one"}}
}

// cutStatus removes the paragraph about the exit status from a verb's long text, since
// the page has a section for it. A verb without that paragraph gets the usual one.
func cutStatus(long string) (rest, status string) {
	before, after, found := strings.Cut(long, "\n\n"+StatusTitle)
	if !found {
		return long, "0 done, 1 not done, with a sentence on stderr."
	}
	status, more, found := strings.Cut(after, "\n\n")
	if found {
		before += "\n\n" + more
	}
	return before, status
}
