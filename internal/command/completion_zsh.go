package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"heartbeat/internal/cli"
)

func zshCompletion(all []completed) string {
	var cases strings.Builder
	for _, c := range all {
		fmt.Fprintf(&cases, "\t%s)\n\t\t%s\n\t\t;;\n", quote(c.key), strings.Join(c.zsh(), "\n\t\t"))
	}
	return strings.Replace(zshScript, "\tSPECS\n", cases.String(), 1)
}

// zsh is the assignments of the script for c, one a line.
func (c completed) zsh() (set []string) {
	var takes, specs, verbs []string
	for _, f := range c.known() {
		hide := ""
		if slices.Contains(c.hidden, f) {
			hide = "!"
		}
		specs = append(specs, quote(hide+zshSpec(f)))
		if takesValue(f) {
			takes = append(takes, "--"+f.Name)
		}
	}
	for _, v := range c.verbs {
		verbs = append(verbs, quote(v.Name+":"+v.What))
	}
	if len(takes) > 0 {
		set = append(set, "takes="+quote(strings.Join(takes, " ")))
	}
	if len(verbs) > 0 {
		set = append(set, "verbs=("+strings.Join(verbs, " ")+")")
	}
	if c.command {
		set = append(set, "ends=(-A '-*')")
	}
	return append(set, "specs=("+strings.Join(append(specs, c.zshOperands()...), " ")+")")
}

func zshSpec(f *pflag.Flag) string {
	text := "[" + strings.NewReplacer("[", "(", "]", ")", ":", " -").Replace(flagUsage(f)) + "]"
	switch {
	case !takesValue(f):
		return "--" + f.Name + text
	case cli.Choices(f) != nil:
		return "--" + f.Name + "=" + text + ":value:(" + strings.Join(cli.Choices(f), " ") + ")"
	case !takesFile(f):
		return "--" + f.Name + "=" + text + ":value: "
	}
	return "--" + f.Name + "=" + text + ":value:_files"
}

// zshOperands are the specs of what follows the flags.
func (c completed) zshOperands() []string {
	switch {
	case c.command:
		return []string{"'1: :_command_names -e'", "'*::arguments:_normal'"}
	case c.ids != "":
		// The blank keeps _arguments from adding arguments of its own.
		return []string{quote("*:" + c.ids + ": _heartbeat_ids " + c.ids)}
	case len(c.words) > 0:
		return []string{quote("1:word:(" + strings.Join(c.words, " ") + ")")}
	case len(c.verbs) > 0:
		return nil
	}
	return []string{"'*:file:_files'"}
}

const zshScript = `#compdef heartbeat heartbeat-host heartbeat-launch heartbeat-mcp heartbeat-nats heartbeat-stop heartbeat-watch

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

# Sets what there is to offer at the key, a command with its verb.
_heartbeat_spec() {
	takes= verbs=() specs=() ends=()
	case $key in
	'heartbeat host' | 'heartbeat launch' | 'heartbeat stop' | 'heartbeat watch') key=heartbeat-${key#* } ;;
	esac
	case $key in
	SPECS
	esac
}

_heartbeat() {
	local key=${words[1]:t} takes word
	local -a verbs specs ends
	local -i i=2
	_heartbeat_spec
	# The verbs are taken out of the line, so that flags before them are theirs.
	while (( i < CURRENT )); do
		word=$words[i]
		case $word in
		--) break ;;
		-*) [[ " $takes " == *" $word "* ]] && (( i++ )) ;;
		*)
			(( $verbs[(I)${(b)word}:*] )) || break
			key+=" $word"
			words[i]=()
			(( CURRENT-- ))
			_heartbeat_spec
			continue
			;;
		esac
		(( i++ ))
	done
	if (( i == CURRENT && $#verbs )) && [[ $words[i] != -* ]]; then
		_describe verb verbs
		return
	fi
	_arguments $ends $specs
}

# As a file in fpath this is run for the first completion; sourced, it is not.
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
	_heartbeat "$@"
else
	compdef _heartbeat heartbeat heartbeat-host heartbeat-launch heartbeat-mcp heartbeat-nats heartbeat-stop heartbeat-watch
fi
`
