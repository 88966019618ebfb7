#!/usr/bin/env bash
# For a timer: fetches work, such as unread mail, and has an agent work through it.
#
# Usage: triage.sh --inbox PATH --fetch COMMAND [--format FORMAT] [--on-orphan POLICY] [LAUNCH-FLAG...] -- claude "Read CLAUDE.md"
#
# sh runs COMMAND. Each line that it prints is an entry: a JSON string, or an object with
# a prompt and preferably an id, as in {"id":"mail-4711","prompt":"From: ..."}. An id that
# waits already, or was answered, is not taken twice. With --format lines any other line is
# a text of its own, as in an inbox.
#
# POLICY says where an entry comes back from that a session left unanswered:
#
#   drop (default)     from the source. COMMAND prints everything that is still to be done
#                      on every run, so the inbox is emptied before each run.
#   retry, deadletter  from the inbox. COMMAND prints each piece of work once, so the inbox
#                      is only appended to: emptying it would lose, without a word, what
#                      waits to be delivered again.
#
#   */10 * * * * /opt/heartbeat/triage.sh --inbox /srv/mail/work/inbox.jsonl --fetch /srv/mail/unread --cwd /srv/mail/project -- claude "Read CLAUDE.md"
#
# Like cron.sh, which must be beside it, it prints only what somebody must look at.
#
# Exit status: that of cron.sh. Also 75 if another process works on an inbox that is to be
# emptied; 78 if a command or the folder is not there; 1 if COMMAND failed, and then nothing
# was changed, or if its output could not be sent.
set -euo pipefail

usage() { sed -n '2,/^set/s/^# \{0,1\}//p' "$0"; }
fail() { printf 'triage: %s\n' "$*" >&2; exit "${status:-1}"; }

inbox=${HEARTBEAT_INBOX:-} fetch='' format=json policy=drop rest=()
while [ $# -gt 0 ]; do
	# The launcher takes --flag=VALUE, too: unseen here, the inbox would be emptied against it.
	case $1 in
	--inbox=* | --fetch=* | --format=* | --on-orphan=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;;
	esac
	case $1 in
	-h | --help) usage; exit 0 ;;
	--) break ;;
	--inbox | --fetch | --format | --on-orphan) [ $# -gt 1 ] || fail "$1 needs a value (see --help)" ;;
	esac
	case $1 in
	--inbox) inbox=$2; shift ;;
	--fetch) fetch=$2; shift ;;
	--format) format=$2; shift ;;
	--on-orphan) policy=$2; shift ;;
	*) rest+=("$1") ;;
	esac
	shift
done
[ -n "$inbox" ] || fail 'no inbox: give --inbox (see --help)'
[ -n "$fetch" ] || fail 'no command to fetch with: give --fetch (see --help)'
case $policy in drop | retry | deadletter) ;; *) fail "--on-orphan is drop, retry or deadletter, not $policy" ;; esac
case $format in json | lines) ;; *) fail "--format is json or lines, not $format" ;; esac
dir=$(dirname -- "$inbox")
[ -d "$dir" ] || status=78 fail "there is no folder $dir for the inbox: make it first"
# The inbox is emptied: in another user's folder it may be a link to any file of root's.
[ "$EUID" -ne 0 ] || [ -O "$dir" ] || fail "the folder $dir belongs to another user: run this as that user"
needed=(heartbeat heartbeat-stop heartbeat-launch)
[ "$policy" != drop ] || needed+=(flock)
for command in "${needed[@]}"; do
	command -v "$command" >/dev/null || status=78 fail "$command is not on the PATH"
done

# The file loses its name at once, so that nothing of it is left however this ends.
work=$(mktemp "${TMPDIR:-/tmp}/heartbeat-triage.XXXXXX")
exec 7>"$work"
exec 8<"$work"
rm -f "$work"
sh -c "$fetch" >&7 7>&- 8<&- || fail "the command to fetch with ended with status $?" # its stderr says why
exec 7>&-

if [ "$policy" = drop ]; then
	# Not while a session works, since its answer would find no entry, and only after the
	# last session's entry is settled.
	(
		umask 077
		exec 9>>"$dir/.launch-lock"
		flock -n 9 || exit 75
		state=$(heartbeat status --inbox "$inbox" --json)
		[[ $state != *'"in_flight":{'*'"life":"running"'* ]] || exit 75
		heartbeat recover --inbox "$inbox" --on-orphan drop >/dev/null
		: >"$inbox"
	)
fi
if [ -s /dev/fd/8 ]; then
	notes=$(heartbeat send --inbox "$inbox" --batch - --format "$format" <&8 2>&1 >/dev/null) || fail "$notes"
fi
exec 8<&-
exec "$(dirname -- "${BASH_SOURCE[0]}")/cron.sh" --inbox "$inbox" --on-orphan "$policy" ${rest[@]+"${rest[@]}"} "$@"
