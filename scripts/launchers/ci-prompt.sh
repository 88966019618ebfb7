#!/usr/bin/env bash
# A step of a pipeline that puts one prompt to an agent, and waits for the answer.
#
# The prompt becomes an entry of an inbox, behind what waits there already. One
# session of Claude Code works through the inbox as far as that entry, with
# heartbeat-stop as its hook in this session alone, and ends with the step. Steps
# that run at the same time on one inbox take turns. To run a step again with its
# id is safe: an answer that is there is printed again, and costs nothing.
#
# Nothing of the prompt shows in the process list. Needs bash 4.3 or later, and
# flock (util-linux).
set -euo pipefail

usage() {
	cat <<'END'
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

Exit status: 0 answered; 3 it became a dead letter; 124 not answered in time; 1 the
session ended before it came to the prompt, or the prompt could not be sent.
END
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
for command in heartbeat-stop ${session:+claude flock}; do
	command -v "$command" >/dev/null || fail "$command is not on the PATH"
done
dir=$(cd "$(dirname "$inbox")" && pwd) || exit 1
inbox=$dir/$(basename "$inbox")

tmp=$(mktemp -d "${TMPDIR:-/tmp}/ci-prompt.XXXXXX") # for this user alone
worker=''
# Whatever ends the step ends its session too, and decides about what that had in
# flight: nobody else knows that it is over.
end_session() {
	[ -n "$worker" ] || return 0
	for signal in TERM KILL; do
		kill -s "$signal" -- "-$worker" 2>/dev/null || break
		for _ in {1..50}; do
			kill -0 -- "-$worker" 2>/dev/null || break 2
			sleep 0.1
		done
	done
	wait "$worker" 2>/dev/null || true
	worker=''
	# Where the lock is taken, another step's session has begun, which decides itself.
	[ ! -e "$tmp/open" ] || flock -n "$dir" "${recover[@]}" >"$tmp/recovered" 2>&1 || true
}
# shellcheck disable=SC2317 # the trap calls it
clean_up() {
	kill %1 2>/dev/null || true # the waiter
	end_session
	rm -rf "$tmp"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

(umask 077 && cat -- ${file:+"$file"} >"$tmp/prompt")
send=(heartbeat-stop send --inbox "$inbox" --id "$id")
recover=(heartbeat-stop recover --inbox "$inbox" --on-orphan "$policy")
: >"$tmp/note"
note() { tail -n 1 "$tmp/note" | sed 's/^heartbeat-stop: //'; }
recovered() { [ ! -s "$tmp/recovered" ] || printf '; its session was ended: %s' "$(tail -n 1 "$tmp/recovered")"; }
why() { heartbeat-stop status --inbox "$inbox" 2>/dev/null | sed -n 's/^why *//p'; }

# By these our session would take itself for another one's child, as which it may
# write no transcript, or for a part of the pipeline.
inherited=()
for name in CI CLAUDECODE AI_AGENT CLAUDE_CODE_SESSION_ID CLAUDE_CODE_CHILD_SESSION CLAUDE_CODE_ENTRYPOINT \
	CLAUDE_CODE_EXECPATH CLAUDE_CODE_MESSAGING_SOCKET CLAUDE_CODE_MESSAGING_TOKEN CLAUDE_CODE_CHILD_NOTES_DIR \
	CLAUDE_CODE_SESSION_ATTENDED CLAUDE_CODE_SSE_PORT CLAUDE_PID CLAUDE_ENV_FILE CLAUDE_PROJECT_DIR; do
	inherited+=(-u "$name")
done

# One session that works through what waits now, which our entry is a part of, and
# no more: what comes later is not ours to take and to leave.
work() {
	local state
	exec 9<"$dir" # two sessions would take each other's entry for left behind
	flock 9
	state=$(heartbeat-stop status --inbox "$inbox" --json)
	if [[ $state == *'"life":"running"'* ]]; then
		: >"$tmp/other" # it comes to our entry as well
		return
	fi
	: >"$tmp/open"
	"${recover[@]}" >/dev/null
	state=$(heartbeat-stop status --inbox "$inbox" --json)
	[[ $state =~ \"queued\":([1-9][0-9]*) ]] || return 0
	heartbeat-stop install --settings "$tmp/settings.json" --inbox "$inbox" --on-orphan "$policy" \
		--max-entries "${BASH_REMATCH[1]}" >/dev/null
	cd -- "$project"
	env "${inherited[@]}" claude -p 'Say that you are ready.' --settings "$tmp/settings.json" "$@" </dev/null >"$tmp/said" 2>&1 9<&- ||
		echo "claude ended with status $?: $(tail -n 1 "$tmp/said")" >&2
	"${recover[@]}" >/dev/null
	rm "$tmp/open"
}

# It is sent before the session starts, which might not find it otherwise.
if [ -n "$session" ]; then
	"${send[@]}" --json - <"$tmp/prompt" >"$tmp/sent" 2>"$tmp/note" || fail "$(note)"
	! grep -q '"found":"answered"' "$tmp/sent" || session=''
fi
set -m # each of the two in a process group of its own
"${send[@]}" --wait --timeout "$timeout" - <"$tmp/prompt" 2>"$tmp/note" &
waiter=$!
if [ -n "$session" ]; then
	work "$@" 2>"$tmp/session" &
	worker=$!
	set +m
	wait -n || true
	# Where the session has ended, the waiter looks once more when it is asked to end,
	# and its status says what became of our entry.
	[ -e "$tmp/other" ] || kill -0 "$worker" 2>/dev/null || kill %1 2>/dev/null || true
fi
status=0
wait "$waiter" || status=$?

ended='' # how the session ended, if it did not end well
case $status in
0 | 3) # it goes no further than to what waited before
	[ -z "$worker" ] || wait "$worker" || true
	worker=''
	;;
*)
	reason=$(why)
	end_session
	;;
esac
[ ! -s "$tmp/session" ] || ended=" ($(tail -n 1 "$tmp/session"))"
case $status in
0) say "$id was answered" ;;
124) say "$id was not answered in time (--timeout $timeout): $reason$(recovered)" ;;
143) say "the session ended before it came to $id$ended: $reason"; status=1 ;;
*) say "$(note)$ended" ;;
esac
exit "$status"
