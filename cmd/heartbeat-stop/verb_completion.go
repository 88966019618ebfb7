package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

func completionVerb() verb {
	return verb{
		name:  "completion",
		args:  "bash|zsh|fish",
		short: "print a completion script for a shell",
		long: `Print a script that completes verbs and flags in a shell. The script holds all
it needs: completing starts nothing.`,
		example: `source <(heartbeat-stop completion bash)
heartbeat-stop completion fish > ~/.config/fish/completions/heartbeat-stop.fish`,
		build: func() (*pflag.FlagSet, action) {
			f := newFlags("completion")
			return f, func(args []string, s streams) error {
				scripts := map[string]func() string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}
				if len(args) != 1 || scripts[args[0]] == nil {
					return usageError{fmt.Errorf("it takes one of bash, zsh, fish")}
				}
				_, err := fmt.Fprint(s.out, scripts[args[0]]())
				return err
			}
		},
	}
}

// eachFlagSet calls f with the hook's flags (under an empty name), then with
// each verb's.
func eachFlagSet(f func(v verb, flags []*pflag.Flag)) {
	f(verb{}, listFlags((&hookFlags{}).set()))
	for _, v := range verbs() {
		set, _ := v.build()
		f(v, listFlags(set))
	}
}

func listFlags(set *pflag.FlagSet) (flags []*pflag.Flag) {
	set.VisitAll(func(f *pflag.Flag) { flags = append(flags, f) })
	return flags
}

func flagWords(flags []*pflag.Flag) string {
	words := []string{}
	for _, f := range flags {
		words = append(words, "--"+f.Name)
	}
	return strings.Join(append(words, "--help"), " ")
}

func bashCompletion() string {
	var b strings.Builder
	b.WriteString("_heartbeat_stop() {\n\tlocal words\n\tcase ${COMP_WORDS[1]} in\n")
	eachFlagSet(func(v verb, flags []*pflag.Flag) {
		if v.name != "" {
			fmt.Fprintf(&b, "\t%s) words='%s' ;;\n", v.name, flagWords(flags))
		}
	})
	hook := flagWords(listFlags((&hookFlags{}).set()))
	fmt.Fprintf(&b, "\t*) words='%s' ;;\n\tesac\n", hook)
	fmt.Fprintf(&b, "\t[ \"$COMP_CWORD\" -eq 1 ] && words='%s %s'\n", strings.Join(verbNames(verbs()), " "), hook)
	b.WriteString("\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\")\n}\n")
	b.WriteString("complete -o default -F _heartbeat_stop heartbeat-stop\n")
	return b.String()
}

func zshCompletion() string {
	var b strings.Builder
	b.WriteString("#compdef heartbeat-stop\n_heartbeat_stop() {\n\tlocal -a verbs flags\n\tverbs=(\n")
	for _, v := range verbs() {
		fmt.Fprintf(&b, "\t\t%s\n", quote(v.name+":"+v.short))
	}
	b.WriteString("\t)\n\tcase ${words[2]} in\n")
	var hook string
	eachFlagSet(func(v verb, flags []*pflag.Flag) {
		var specs []string
		for _, f := range flags {
			specs = append(specs, quote(zshSpec(f)))
		}
		if v.name == "" {
			hook = strings.Join(specs, " ")
			return
		}
		fmt.Fprintf(&b, "\t%s) flags=(%s) ;;\n", v.name, strings.Join(specs, " "))
	})
	fmt.Fprintf(&b, "\t*) flags=(%s) ;;\n\tesac\n", hook)
	b.WriteString("\t(( CURRENT == 2 )) && _describe verb verbs\n\t_arguments $flags '*:file:_files'\n}\n")
	b.WriteString("compdef _heartbeat_stop heartbeat-stop\n")
	return b.String()
}

func zshSpec(f *pflag.Flag) string {
	text := strings.NewReplacer("[", "(", "]", ")", ":", " -").Replace(f.Usage)
	spec := "--" + f.Name + "[" + text + "]"
	if f.Value.Type() == "bool" {
		return spec
	}
	return spec + ":value:_files"
}

func fishCompletion() string {
	var b strings.Builder
	eachFlagSet(func(v verb, flags []*pflag.Flag) {
		condition := "__fish_seen_subcommand_from " + v.name
		if v.name == "" {
			condition = "not __fish_seen_subcommand_from " + strings.Join(verbNames(verbs()), " ")
		} else {
			fmt.Fprintf(&b, "complete -c heartbeat-stop -n __fish_use_subcommand -f -a %s -d %s\n", v.name, quote(v.short))
		}
		for _, f := range flags {
			needs := " -r"
			if f.Value.Type() == "bool" {
				needs = ""
			}
			fmt.Fprintf(&b, "complete -c heartbeat-stop -n %s -l %s%s -d %s\n", quote(condition), f.Name, needs, quote(f.Usage))
		}
	})
	return b.String()
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
