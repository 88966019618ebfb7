# shellcheck shell=bash
# What people are told of a prompt: how it ended and how to repeat it, then the reply. Of the
# log there is nothing in it. A step sources it.

# beginning MOST [HEAD]: of the reply, so many characters, with a word on what is left out. It
# is JSON, which jq reads without breaking a character where a buffer ends.
beginning() {
	jq --argjson most "$1" --arg head "${2:-}" '$head + if length <= $most then . else
		.[:$most] + "\n\n[cut: the reply has \(length) characters]" end' <"$ASK_DIR/reply.json"
}

# report OUTCOME: writes report.json, a string. The facts come first: a reply that leaves a
# fence or a comment open, or that looks like facts, changes none of them.
report() {
	beginning 55000 "$(facts "$1")"$'\n\n---\n\n' >"$ASK_DIR/report.json"
}

facts() {
	local usd check reason
	usd=$(cost)
	check=$(fact '.result // .dead_letter | .check
		| if type == "array" then map("\(.name) \(.status)") | join(", ") elif type == "object" then .status else . end' | tr '\n`|<>&' '     .')
	reason=$(fact '.dead_letter.reason' | tr -c 'a-z_ \n' ' ')
	printf '**heartbeat: %s**' "$1"
	[ -z "$reason" ] || printf ' (%s)' "$reason"
	[ -z "$check" ] || printf ' · check: %s' "$check"
	[ -z "$usd" ] || printf ' · cost: $%s' "$usd"
	printf '\n\nTo repeat it, run the job again'
	case $1 in
	answered) printf ': this answer is kept, and printed again at no cost.' ;;
	*) printf ': it is tried anew.' ;;
	esac
	printf ' By hand, with the prompt in a file:\n\n````sh\n'
	[ -z "${ASK_SHA:-}" ] || printf 'git checkout %q\n' "$ASK_SHA"
	repeat
	printf '\n````\n'
}

# repeat: the command, of which a reader sees what it was allowed to do.
repeat() {
	local words line
	words=(heartbeat ask "--id=$(cat "$ASK_DIR/id")" --file prompt.md "--timeout=${ASK_TIMEOUT:-20m}")
	[ -z "${ASK_CHECK:-}" ] || words+=("--check=$ASK_CHECK")
	[ -z "${ASK_MAX_COST:-}" ] || words+=("--max-cost=$ASK_MAX_COST")
	words+=(-- claude)
	[ -z "${ASK_MODEL:-}" ] || words+=("--model=$ASK_MODEL")
	[ -z "$tools" ] || words+=("--allowedTools=$tools")
	line=$(printf '%q ' "${words[@]}")
	[ "${#line}" -le 4000 ] || line='# the command is too long to be shown: see the job'
	printf '%s' "${line% }"
}
