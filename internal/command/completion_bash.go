package command

import (
	"fmt"
	"slices"
	"strings"

	"heartbeat/internal/cli"
)

func bashCompletion(all []completed) string {
	var cases strings.Builder
	for _, c := range all {
		fmt.Fprintf(&cases, "\t%s) %s ;;\n", quote(c.key), c.bash())
	}
	return strings.Replace(bashScript, "\tSPECS\n", cases.String(), 1)
}

// bash is the assignments of the script for c.
func (c completed) bash() string {
	var set []string
	add := func(name string, words []string) {
		if len(words) > 0 {
			set = append(set, name+"="+quote(strings.Join(words, " ")))
		}
	}
	var flags, takes, values []string
	for _, f := range c.offered() {
		flags = append(flags, "--"+f.Name)
	}
	for _, f := range c.known() {
		if !takesValue(f) {
			continue
		}
		takes = append(takes, "--"+f.Name)
		if !takesFile(f) {
			values = append(values, "--"+f.Name+"="+strings.Join(cli.Choices(f), "|"))
		}
	}
	add("flags", flags)
	add("takes", takes)
	add("values", values)
	add("verbs", c.verbNames())
	add("words", c.words)
	add("ids", slices.DeleteFunc([]string{c.ids}, func(s string) bool { return s == "" }))
	if c.command {
		set = append(set, "command=yes")
	}
	return strings.Join(set, " ")
}

const bashScript = `# bash completion for heartbeat and the commands heartbeat-host, heartbeat-launch, heartbeat-mcp, heartbeat-nats, heartbeat-stop and heartbeat-watch
# shellcheck shell=bash

# Sets line to the words, at to the index of the current one, cur to that word, and
# before to what of it bash keeps: it splits words at = and :, and these join them.
_heartbeat_line() {
	local i word glue=
	for (( i = 0; i < ${#COMP_WORDS[@]}; i++ )); do
		word=${COMP_WORDS[i]}
		if [[ $i -gt 0 && -n $word && ( -n $glue || $word != *[^=:]* ) ]]; then
			line[${#line[@]} - 1]+=$word
		else
			line+=("$word")
		fi
		glue=
		[[ -n $word && $word != *[^=:]* ]] && glue=yes
		if (( i == COMP_CWORD )); then
			at=$(( ${#line[@]} - 1 )) cur=${line[${#line[@]} - 1]}
			[[ $glue ]] && word=
			before=${cur%"$word"}
		fi
	done
}

# Quotes an id as the word at the cursor was begun.
_heartbeat_quote() {
	case $cur in
	\'*) printf %s "${1//\'/\'\\\'\'}" ;;
	\"*) printf %s "$1" | sed 's/[\\$"` + "`" + `]/\\&/g' ;;
	*) printf %q "$1" ;;
	esac
}

# Ids come from a file that others write: they are compared and quoted here, since
# compgen -W would run what is in them.
_heartbeat_ids() {
	local i id inbox='' typed=${cur//[\"\'\\]/}
	for (( i = 1; i < ${#line[@]}; i++ )); do
		case ${line[i]} in
		--inbox) inbox=${line[i + 1]-} ;;
		--inbox=*) inbox=${line[i]#*=} ;;
		esac
	done
	inbox=${inbox//[\"\'\\]/}
	compopt -o nosort 2> /dev/null # the newest first, where bash is new enough
	while IFS= read -r id; do
		id=${id%%$'\t'*}
		[[ ${id//[\"\'\\]/} == "$typed"* ]] || continue
		id=${id#"${before//[\"\'\\]/}"}
		COMPREPLY+=("$(_heartbeat_quote "$id")")
	done < <(heartbeat __ids "$1" ${inbox:+"--inbox=$inbox"} 2> /dev/null)
}

# Sets what there is to offer at the key, a command with its verb.
_heartbeat_spec() {
	flags='' takes='' values='' verbs='' words='' ids='' command=''
	case $key in
	'heartbeat host' | 'heartbeat launch' | 'heartbeat stop' | 'heartbeat watch') key=heartbeat-${key#* } ;;
	esac
	case $key in
	SPECS
	esac
}

_heartbeat() {
	local line=() at=0 cur='' before='' key flags takes values verbs words ids command
	local i=1 word operands=0 ended='' flag='' value=''
	_heartbeat_line
	COMPREPLY=()
	key=${line[0]##*/}
	_heartbeat_spec
	while (( i < at )) && [[ ! $ended ]]; do
		word=${line[i]}
		case $word in
		--) ended=yes ;;
		-*) [[ " $takes " == *" $word "* ]] && flag=$word && (( i++ )) ;;
		*)
			if [[ " $verbs " == *" $word "* ]]; then
				key+=" $word"
				_heartbeat_spec
			else
				(( operands++ ))
				ended=$command
			fi
			;;
		esac
		(( i++ ))
	done
	if [[ $command && $ended ]]; then
		(( operands || i < at )) || mapfile -t COMPREPLY < <(compgen -c -- "$cur")
		return
	fi
	if (( i > at )); then
		value=$cur
	elif [[ ! $ended && $cur == --*=* ]]; then
		flag=${cur%%=*} value=${cur#*=}
	else
		flag=
	fi
	if [[ $flag ]]; then
		[[ " $values " == *" $flag="* ]] || return # a file, for all that is known
		compopt +o default 2> /dev/null
		word=" $values"
		word=${word##*" $flag="}
		word=${word%% *}
		mapfile -t COMPREPLY < <(compgen -W "${word//|/ }" -- "$value")
		return
	fi
	if [[ $cur != -* || $ended ]]; then
		[[ $ended ]] && flags=
		[[ $words && $operands -eq 0 ]] && flags=$words
		[[ $verbs && $operands -eq 0 ]] && flags=$verbs
		[[ $verbs$words$ids ]] && compopt +o default 2> /dev/null # no files in place of them
		[[ $ids ]] && { _heartbeat_ids "$ids"; return; }
	fi
	mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$cur")
}
complete -o default -F _heartbeat heartbeat heartbeat-host heartbeat-launch heartbeat-mcp heartbeat-nats heartbeat-stop heartbeat-watch
`
