#!/usr/bin/env bash
# Fetches work, such as unread mail, and has an agent work through it: for a timer.
#
# Usage: triage.sh --inbox PATH --fetch COMMAND [--on-orphan POLICY] [LAUNCH-FLAG...] -- claude "Read CLAUDE.md"
#
# sh runs COMMAND. Each line that it prints is an entry: a JSON string, or an object
# with a prompt and, best, an id, as in {"id":"mail-4711","prompt":"From: ..."}. An id
# that waits already, or was answered, is not taken twice.
#
# POLICY says who brings back what a session left unanswered:
#
#   drop (default)     the source does. COMMAND shows on every run all that is still to
#                      be done, so the inbox is emptied before each run.
#   retry, deadletter  nobody else has it, for COMMAND hands out each mail once. The
#                      inbox is only ever appended to: emptied, it would lose what waits
#                      to be delivered again, and nobody would ever know.
#
#   */10 * * * * /opt/heartbeat/triage.sh --inbox /srv/mail/queue/inbox.jsonl --fetch /srv/mail/unread --cwd /srv/mail/project -- claude "Read CLAUDE.md"
#
# Exit status: that of heartbeat-launch; 75 as well where another one is at work on the
# inbox; 1 if COMMAND or sending failed: then nothing was changed, and no session started.
set -euo pipefail

usage() { sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; }
fail() { printf 'triage: %s\n' "$2" >&2; exit "$1"; }

inbox=${HEARTBEAT_INBOX:-} fetch='' policy=drop rest=()
while [ $# -gt 0 ]; do
	case $1 in
	-h | --help) usage; exit 0 ;;
	--) break ;;
	--inbox | --fetch | --on-orphan) [ $# -gt 1 ] || fail 1 "$1 needs a value (see --help)" ;;
	esac
	case $1 in
	--inbox) inbox=$2; shift ;;
	--fetch) fetch=$2; shift ;;
	--on-orphan) policy=$2; shift ;;
	*) rest+=("$1") ;;
	esac
	shift
done
[ -n "$inbox" ] || fail 1 'no inbox: give --inbox (see --help)'
[ -n "$fetch" ] || fail 1 'no command to fetch with: give --fetch (see --help)'
case $policy in drop | retry | deadletter) ;; *) fail 1 "--on-orphan is drop, retry or deadletter, not $policy" ;; esac
dir=$(dirname -- "$inbox")
[ -d "$dir" ] || fail 1 "there is no folder $dir for the inbox: make it first"
for command in heartbeat-stop heartbeat-launch flock; do
	command -v "$command" >/dev/null || fail 1 "$command is not on the PATH"
done

work=$(mktemp "${TMPDIR:-/tmp}/heartbeat-triage.XXXXXX")
trap 'rm -f "$work"' EXIT
sh -c "$fetch" >"$work" || fail 1 "the command to fetch with ended with status $?"

if [ "$policy" = drop ]; then
	# Not while a session is at work, whose answer would find no entry; and only once
	# what the last one left is settled.
	(
		umask 077
		exec 9>>"$dir/.launch-lock"
		flock -n 9 || fail 75 "another launcher is at work on $inbox"
		heartbeat-stop recover --inbox "$inbox" --on-orphan drop >/dev/null
		: >"$inbox"
	)
fi
[ ! -s "$work" ] || heartbeat-stop send --inbox "$inbox" --batch "$work" >/dev/null
rm -f "$work"
exec heartbeat-launch --inbox "$inbox" --on-orphan "$policy" ${rest[@]+"${rest[@]}"} "$@"
