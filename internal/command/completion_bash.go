package command

import (
	"fmt"
	"heartbeat/internal/cli"
	"strings"

	"github.com/spf13/pflag"
)

func bashCompletion(list []cli.Verb) string {
	var cases strings.Builder
	for _, v := range list {
		fmt.Fprintf(&cases, "\t%s) %s", v.Name, bashFlags(completed(v)))
		if len(v.Words) > 0 {
			fmt.Fprintf(&cases, " words=%s", quote(strings.Join(v.Words, " ")))
		}
		if v.IDs != "" {
			fmt.Fprintf(&cases, " ids=%s", v.IDs)
		}
		cases.WriteString(" ;;\n")
	}
	own := bashFlags(completedBeforeVerb())
	fmt.Fprintf(&cases, "\t'') %s words=%s ;;\n", own, quote(strings.Join(cli.Names(list), " ")))
	fmt.Fprintf(&cases, "\t*) %s ;;\n", own)
	return strings.Replace(bashScript, "\tVERBS\n", cases.String(), 1)
}

func bashFlags(flags []*pflag.Flag) string {
	var all, takes []string
	for _, f := range flags {
		all = append(all, "--"+f.Name)
		if takesValue(f) {
			takes = append(takes, "--"+f.Name)
		}
	}
	return fmt.Sprintf("flags=%s takes=%s", quote(strings.Join(all, " ")), quote(strings.Join(takes, " ")))
}

const bashScript = `# bash completion for heartbeat
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
	for (( i = 2; i < ${#line[@]}; i++ )); do
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

_heartbeat() {
	local line=() at=0 cur='' before='' flags='' takes='' words='' ids='' verb='' word
	_heartbeat_line
	(( at > 1 )) && verb=${line[1]}
	case $verb in
	VERBS
	esac
	COMPREPLY=()
	[[ " $takes " == *" ${line[at - 1]} "* ]] && return # its value: a file, for all we know
	for (( word = 2; word < at; word++ )); do
		[[ " $words " == *" ${line[word]} "* ]] && words=
	done
	if [[ $cur != -* && -n $words$ids ]]; then
		compopt +o default 2> /dev/null # no files in place of them
		[[ $words ]] && flags=$words
		[[ $words ]] || { _heartbeat_ids "$ids"; return; }
	fi
	mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$cur")
}
complete -o default -F _heartbeat heartbeat
`
