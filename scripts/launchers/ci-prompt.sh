#!/usr/bin/env bash
# A step of a pipeline that puts one prompt to an agent, and waits for the answer.
#
# The prompt becomes an entry of an inbox, behind what waits there already, and
# heartbeat-launch works through the inbox as far as that entry, with sessions that end
# with the step. Steps that run at the same time on one inbox take turns. To run a step
# again with its id is safe: an answer that is there is printed again, and costs nothing.
#
# Nothing of the prompt shows in the process list. Needs bash 4.3 or later.
set -euo pipefail

usage() {
	cat <<'USAGE'
Usage: ci-prompt.sh --inbox PATH --id ID [FLAG...] [-- CLAUDE-FLAG...] <PROMPT

  --inbox PATH        the inbox (default: $HEARTBEAT_INBOX)
  --id ID             names the prompt, for example by the build's number
  --timeout D         give up after this time, such as 90s or 1h (default: 10m)
  --file PATH         read the prompt from a file in place of stdin
  --project DIR       the folder that the agent works in (default: .)
  --on-orphan POLICY  deadletter (default), retry or drop: what becomes of an entry
                      that a session left unanswered, as one does that is ended
                      because the time is over
  --no-session        start no session: another one works on the inbox

The reply is on stdout, and what happened on stderr, in one line.

Exit status: 0 answered; 3 it became a dead letter; 124 not answered in time; where no
session came to the prompt, that of heartbeat-launch: 75 a later run may do better, 77 a
login, a key, a bill or a model that only a person can put right, 78 set-up; 1 otherwise,
also where it could not be sent.
USAGE
}

say() { printf 'ci-prompt: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

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
[ -d "$project" ] || fail "there is no folder $project"
case $policy in deadletter | retry | drop) ;; *) fail "--on-orphan is deadletter, retry or drop, not $policy" ;; esac
for command in heartbeat ${session:+heartbeat-stop heartbeat-launch claude}; do
	command -v "$command" >/dev/null || fail "$command is not on the PATH"
done

tmp=$(mktemp -d "${TMPDIR:-/tmp}/ci-prompt.XXXXXX") # for this user alone
launcher='' waiter=''
# Whatever ends the step ends its session too: the launcher settles what that had in
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
# How the last session and its launcher ended, in their own words.
launched() {
	[ -s "$tmp/said" ] || return 0
	printf ' (%s%s)' "$(tail -n 1 "$tmp/said")" "$(sed -n 's/^[^ ]* \(the session .*\)/; \1/p' "$tmp/log" | tail -n 1)"
}
why() { heartbeat status --inbox "$inbox" 2>/dev/null | sed -n 's/^why *//p'; }
runs() { kill -0 "$1" 2>/dev/null; }

# It works through what waits now, which our entry is a part of, and no more: what
# comes later is not ours to take and to leave.
launch() {
	local state count=0
	state=$(heartbeat status --inbox "$inbox" --json)
	[[ $state != *'"life":"running"'* ]] || return 1 # that session comes to our entry as well
	[[ ! $state =~ \"queued\":([0-9]+) ]] || count=${BASH_REMATCH[1]}
	[[ $state != *'"in_flight":{'* ]] || count=$((count + 1))
	rm -f "$tmp/report"
	heartbeat-launch --inbox "$inbox" --cwd "$project" --on-orphan "$policy" --timeout 0 --until-drained=false \
		--max-entries "$((count > 0 ? count : 1))" --output log --report "$tmp/report" \
		-- claude 'Say that you are ready.' "$@" </dev/null >"$tmp/log" 2>"$tmp/said" &
	launcher=$!
	wait -n || true # for it, or for the waiter
}
reported() { grep -Eq "$1" "$tmp/report" 2>/dev/null; }
settled() { heartbeat results --inbox "$inbox" "$id" >/dev/null 2>&1 || [ $? -eq 3 ]; }

# It is sent before a session starts, which might not find it otherwise.
if [ -n "$session" ]; then
	"${send[@]}" --json - <"$tmp/prompt" >"$tmp/sent" 2>"$tmp/note" || fail "$(note)"
	! grep -q '"found":"answered"' "$tmp/sent" || session=''
fi
"${send[@]}" --wait --timeout "$timeout" - <"$tmp/prompt" 2>"$tmp/note" &
waiter=$!

gave_up=''
while [ -n "$session" ] && runs "$waiter"; do
	if ! launch "$@" || reported '"reason":"busy"'; then
		sleep 1 # somebody else is at work on the inbox
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
# Answered or set aside, the session goes no further than to what waited before.
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
		for known in 75 77 78; do
			! reported "\"exit\":$known," || status=$known
		done
	fi
	;;
*) say "$(note)$(launched)" ;;
esac
exit "$status"
