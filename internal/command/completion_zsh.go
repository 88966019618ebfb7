package command

import (
	"fmt"
	"heartbeat/internal/cli"
	"strings"

	"github.com/spf13/pflag"
)

func zshCompletion(list []cli.Verb) string {
	var names, cases strings.Builder
	for _, v := range list {
		fmt.Fprintf(&names, "\t\t%s\n", quote(v.Name+":"+v.Short))
		fmt.Fprintf(&cases, "\t%s) specs=(%s%s) ;;\n", v.Name, zshFlags(completed(v)), zshOperands(v))
	}
	fmt.Fprintf(&cases, "\t*) _arguments %s; return ;;\n", zshFlags(completedBeforeVerb()))
	script := strings.Replace(zshScript, "\t\tNAMES\n", names.String(), 1)
	return strings.Replace(script, "\tVERBS\n", cases.String(), 1)
}

func zshFlags(flags []*pflag.Flag) string {
	var specs []string
	for _, f := range flags {
		specs = append(specs, quote(zshSpec(f)))
	}
	return strings.Join(specs, " ")
}

func zshSpec(f *pflag.Flag) string {
	text := "[" + strings.NewReplacer("[", "(", "]", ")", ":", " -").Replace(f.Usage) + "]"
	if !takesValue(f) {
		return "--" + f.Name + text
	}
	return "--" + f.Name + "=" + text + ":value:_files"
}

// zshOperands are the specs of what follows the flags.
func zshOperands(v cli.Verb) (specs string) {
	if len(v.Words) > 0 {
		specs = " " + quote("1:"+v.Name+":("+strings.Join(v.Words, " ")+")")
	}
	switch {
	case v.IDs != "":
		// The blank keeps _arguments from adding arguments of its own.
		return specs + " " + quote("*:"+v.IDs+": _heartbeat_ids "+v.IDs)
	case len(v.Words) > 0:
		return specs
	}
	return " '*:file:_files'"
}

const zshScript = `#compdef heartbeat

_heartbeat_ids() {
	local i line id hint inbox
	local -a ids
	for (( i = 2; i <= $#words; i++ )); do
		case $words[i] in
		--inbox) inbox=${(Q)words[i+1]} ;;
		--inbox=*) inbox=${(Q)words[i]#--inbox=} ;;
		esac
	done
	for line in "${(@f)$(heartbeat __ids $1 ${inbox:+--inbox=$inbox} 2> /dev/null)}"; do
		[[ -n $line ]] || continue
		id=${line%%$'\t'*} hint=${line#*$'\t'}
		[[ $line == *$'\t'* ]] || hint=
		id=${id//\\/\\\\}
		ids+=("${id//:/\\:}${hint:+:$hint}")
	done
	_describe -V $1 ids
}

_heartbeat() {
	local -a verbs specs
	verbs=(
		NAMES
	)
	if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
		_describe verb verbs
		return
	fi
	case $words[2] in
	VERBS
	esac
	shift words
	(( CURRENT-- ))
	_arguments $specs
}

# As a file in fpath this is run for the first completion; sourced, it is not.
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
	_heartbeat "$@"
else
	compdef _heartbeat heartbeat
fi
`
