#!/usr/bin/env bash
# A pipeline step that sends one prompt to an agent and waits for the answer.
#
# The prompt becomes an entry of an inbox, behind what waits there already.
# heartbeat-launch works through the inbox up to that entry, with sessions that end with
# the step. Steps that run at the same time on one inbox take turns. A step may run again
# with the same id: an answer that exists is printed again and costs nothing. Another prompt
# with that id is refused.
#
# The prompt never shows in the process list. Needs bash 4.3 or later.
set -euo pipefail

usage() {
	cat <<'USAGE'
Usage: ci-prompt.sh --inbox PATH --id ID [FLAG...] [-- CLAUDE-FLAG...] <PROMPT

  --inbox PATH        the inbox (default: $HEARTBEAT_INBOX)
  --id ID             names the prompt, for example with the build's number
  --timeout D         give up after this time, such as 90s or 1h (default: 10m)
  --file PATH         read the prompt from a file instead of stdin
  --project DIR       the folder that the agent works in (default: .)
  --on-orphan POLICY  deadletter (default), retry or drop: what becomes of an entry
                      that a session left unanswered, for example because its time
                      was over
  --no-session        start no session: another one works on the inbox

The reply goes to stdout, and one line on what happened to stderr.

Exit status: 0 answered; 3 the prompt became a dead letter; 124 not answered in time. If no
session took the prompt, the status of heartbeat-launch: 75 run it again later, 78 somebody
has to do something first, also where a command or the folder is not there. 1 otherwise, also
if the prompt could not be sent.
USAGE
}

say() { printf 'ci-prompt: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }
set_up() { say "$*"; exit 78; } # as heartbeat-launch has it

inbox=${HEARTBEAT_INBOX:-} id='' timeout=10m file='' project=. policy=deadletter session=yes
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help) usage; exit 0 ;;
	--no-session) session=''; shift; continue ;;
	--) shift; break ;;
	--inbox | --id | --timeout | --file | --project | --on-orphan) [ $# -gt 1 ] || fail "$1 needs a value (see --help)" ;;
	*) fail "unknown argument $1 (see --help)" ;;
	esac
	case $1 in
	--inbox) inbox=$2 ;; --id) id=$2 ;; --timeout) timeout=$2 ;;
	--file) file=$2 ;; --project) project=$2 ;; --on-orphan) policy=$2 ;;
	esac
	shift 2
done
[ -n "$inbox" ] || fail 'no inbox: give --inbox (see --help)'
[ -n "$id" ] || fail 'no id: give --id (see --help)'
[ -d "$project" ] || set_up "there is no folder $project"
case $policy in deadletter | retry | drop) ;; *) fail "--on-orphan is deadletter, retry or drop, not $policy" ;; esac
for command in heartbeat ${session:+heartbeat-stop heartbeat-launch claude}; do
	command -v "$command" >/dev/null || set_up "$command is not on the PATH"
done

tmp=$(mktemp -d "${TMPDIR:-/tmp}/ci-prompt.XXXXXX") # for this user alone
launcher='' waiter=''
# Whatever ends the step ends its session too. The launcher then settles the entry in
# flight.
# shellcheck disable=SC2317 # the trap calls it
clean_up() {
	kill ${waiter:+"$waiter"} ${launcher:+"$launcher"} 2>/dev/null || true
	wait
	rm -rf "$tmp"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

(umask 077 && cat -- ${file:+"$file"} >"$tmp/prompt")
send=(heartbeat send --inbox "$inbox" --id "$id")
note() { tail -n 1 "$tmp/note" | sed 's/^heartbeat: //'; }
# What the last session and its launcher said as they ended.
launched() {
	[ -s "$tmp/said" ] || return 0
	printf ' (%s%s)' "$(tail -n 1 "$tmp/said")" "$(sed -n 's/^[^ ]* \(the session .*\)/; \1/p' "$tmp/log" | tail -n 1)"
}
why() { heartbeat status --inbox "$inbox" 2>/dev/null | sed -n 's/^why *//p'; }
runs() { kill -0 "$1" 2>/dev/null; }

# The launcher takes as many entries as wait now, ours among them. Later ones belong to
# other steps, which would find them half done.
launch() {
	local state count=0
	state=$(heartbeat status --inbox "$inbox" --json)
	[[ $state != *'"life":"running"'* ]] || return 1 # that session will take our entry too
	[[ ! $state =~ \"queued\":([0-9]+) ]] || count=${BASH_REMATCH[1]}
	[[ $state != *'"in_flight":{'* ]] || count=$((count + 1))
	rm -f "$tmp/report"
	heartbeat-launch --inbox "$inbox" --cwd "$project" --on-orphan "$policy" --timeout 0 --drain-timeout 0 --until-drained=false \
		--max-entries "$((count > 0 ? count : 1))" --output log --report "$tmp/report" \
		-- claude 'Say that you are ready.' "$@" </dev/null >"$tmp/log" 2>"$tmp/said" &
	launcher=$!
	wait -n || true # for the launcher, or for the waiter
}
reported() { grep -Eq "$1" "$tmp/report" 2>/dev/null; }
settled() { heartbeat results --inbox "$inbox" "$id" >/dev/null 2>&1 || [ $? -eq 3 ]; }

# Sent before a session starts, which might end without finding the entry otherwise.
if [ -n "$session" ]; then
	"${send[@]}" --json - <"$tmp/prompt" >"$tmp/sent" 2>"$tmp/note" || fail "$(note)"
	! grep -q '"found":"answered"' "$tmp/sent" || session=''
fi
"${send[@]}" --wait --timeout "$timeout" - <"$tmp/prompt" 2>"$tmp/note" &
waiter=$!

gave_up=''
while [ -n "$session" ] && runs "$waiter"; do
	if ! launch "$@" || reported '"reason":"busy"'; then
		sleep 1 # another launcher or session works on the inbox
	elif runs "$launcher" || settled; then
		break # the waiter knows
	elif ! reported '"(answered|redelivered|dead_lettered|dropped)":[1-9]'; then
		gave_up=yes # another try would end like this one
		kill "$waiter" 2>/dev/null || true
		break
	fi
done
status=0
wait "$waiter" || status=$?
waiter=''

reason=$(why)
# If the entry was answered or set aside, the session ends by itself.
case $status in 0 | 3) ;; *) kill ${launcher:+"$launcher"} 2>/dev/null || true ;; esac
wait
launcher=''
case $status in
0) say "$id was answered" ;;
124) say "$id was not answered in time (--timeout $timeout): $reason$(launched)" ;;
143)
	if [ -n "$gave_up" ]; then
		say "no session came to $id$(launched): $reason"
		status=1
		for known in 75 78; do
			! reported "\"exit\":$known," || status=$known
		done
	fi
	;;
*) say "$(note)$(launched)" ;;
esac
exit "$status"
