#!/bin/sh
# heartbeat.sh hook turn|wake|note   an event of the session, on stdin
# heartbeat.sh mcp                   the tools of an agent
# heartbeat.sh VERB [ARGUMENT...]    heartbeat VERB on the project's inbox
#
# As a hook it never exits with 2, unless heartbeat-stop wakes the session with that. A shell
# does of itself, where it cannot start a process.
trap '[ $? != 2 ] || exit 1' EXIT
set -u

project=${CLAUDE_PROJECT_DIR:-$PWD}
inbox=${HEARTBEAT_INBOX:-work/inbox.jsonl}
case $inbox in
/*) ;;
*) inbox=$project/$inbox ;;
esac

# A desktop session's PATH often lacks the folders that go install and users put programs in.
PATH=${PATH:-/usr/bin:/bin}:${GOBIN:-${GOPATH:-${HOME:-/nonexistent}/go}/bin}:${HOME:-/nonexistent}/.local/bin:/usr/local/bin
export PATH

missing() {
	echo "heartbeat: $1 is not installed, so the plugin does nothing: in a checkout of heartbeat type CGO_ENABLED=0 go install ./cmd/..."
}

# A limit that holds the session's blocks below the client's own cap, beyond which it
# swallows a text. The cap is the client's default unless the environment says another.
below_cap() {
	cap=${CLAUDE_CODE_STOP_HOOK_BLOCK_CAP:-8}
	case $cap in
	0) echo 0 ;;
	[1-9] | [1-9][0-9] | [1-9][0-9][0-9]) echo "$cap" ;;
	*) echo 8 ;;
	esac
}

# A hook that install wrote into the person's or the project's settings comes first.
wired_elsewhere() {
	grep -Eqs '"command"[[:space:]]*:[[:space:]]*"([^"\\]|\\.)*heartbeat-stop' \
		"$project/.claude/settings.json" "$project/.claude/settings.local.json" \
		"${CLAUDE_CONFIG_DIR:-${HOME:-/nonexistent}/.claude}/settings.json"
}

# An inbox that came with a repository was written by somebody else. Git does not say so of
# another user's repository, such as a checkout in a container where the session is root. It is
# asked at the top: a folder of a clone can pass for a repository of its own.
foreign() {
	[ -z "${HEARTBEAT_INBOX:-}" ] || return 1
	here=$(cd "$project" && pwd -P)
	top=$here
	while [ ! -e "$top/.git" ]; do
		[ -n "$top" ] || return 1
		top=${top%/*}
	done
	tracked=0
	git --literal-pathspecs -c core.fsmonitor=false -C "$top/" ls-files --error-unmatch -- "$here/${inbox#"$project/"}" >/dev/null 2>&1 || tracked=$?
	[ "$tracked" -gt 1 ] || return "$tracked"
	echo "heartbeat: whether $inbox came with the repository cannot be told, so it is left alone: see git -C '$project' status, or name the inbox by HEARTBEAT_INBOX if you trust it" >&2
	exit 1
}

hook() {
	kind=${1:-}
	[ -f "$inbox" ] || exit 0
	case ${CLAUDE_CODE_ENTRYPOINT:-} in
	sdk-*) wakes=no ;;
	*) wakes=yes ;;
	esac
	case $kind:$wakes in
	turn:no | wake:yes | note:*) ;;
	*) exit 0 ;;
	esac
	if wired_elsewhere || foreign; then
		exit 0
	fi
	if ! command -v heartbeat-stop >/dev/null; then
		# Status 1 shows the sentence to the person and nothing to the model.
		missing heartbeat-stop >&2
		exit 1
	fi
	if [ "$wakes" = yes ]; then
		exec heartbeat-stop --inbox "$inbox" --rewake
	fi
	exec heartbeat-stop --inbox "$inbox" --max-blocks "$(below_cap)"
}

case ${1:-} in
hook)
	shift
	hook "$@"
	;;
mcp)
	if ! command -v heartbeat >/dev/null; then
		missing heartbeat >&2
		exit 1
	fi
	exec heartbeat mcp --inbox "$inbox"
	;;
send | status | results | pause | resume)
	verb=$1
	shift
	if ! command -v heartbeat >/dev/null; then
		missing heartbeat >&2
		exit 1
	fi
	exec heartbeat "$verb" --inbox "$inbox" "$@"
	;;
run)
	case ${2:-} in
	start | resume | status) ;;
	*)
		echo "heartbeat.sh run needs start, resume or status" >&2
		exit 1
		;;
	esac
	part=$2
	shift 2
	if ! command -v heartbeat >/dev/null; then
		missing heartbeat >&2
		exit 1
	fi
	exec heartbeat run "$part" --inbox "$inbox" "$@"
	;;
*)
	echo "heartbeat.sh: unknown verb \"${1:-}\": send, status, results, pause, resume, run" >&2
	exit 1
	;;
esac
