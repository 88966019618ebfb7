package settings

import "strings"

// hooks returns the hooks of the text. Where the client takes lines for a shell, one that is a command in words that are
// plain, or quoted as we quote them, counts as that program with those arguments.
func (e *editor) hooks(d document) ([]wired, error) {
	all, err := d.hooks()
	if e.wiring.Line {
		for i := range all {
			all[i].Hook = split(all[i].Hook)
		}
	}
	return all, err
}

func split(h Hook) Hook {
	words, comment, simple := simpleWords(spelling(h.Command))
	if h.Args != nil || !simple || comment != "" || len(words) == 0 {
		return h
	}
	if words[0] == "exec" && len(words) > 1 {
		words = words[1:]
	}
	h.Command, h.Args = meant(words[0]), []string{}
	for _, word := range words[1:] {
		h.Args = append(h.Args, meant(word))
	}
	return h
}

// CommandLine is the line for a shell that split takes apart again. The shell becomes the
// program: one that cannot start a process ends with status 2, which is an order to the client.
func CommandLine(command string, args []string) string {
	words := []string{"exec", worded(spelling(command))}
	for _, arg := range args {
		words = append(words, worded(spelling(arg)))
	}
	return meant(strings.Join(words, " "))
}

// SplitLine takes apart a line for a shell that is a command in words that are plain, or quoted as we quote them.
func SplitLine(line string) (command string, args []string, simple bool) {
	h := split(Hook{Command: line})
	return h.Command, h.Args, h.Args != nil
}
