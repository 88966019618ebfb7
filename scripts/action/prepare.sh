#!/usr/bin/env bash
# The first step: checks what can be checked before anything is installed or spent, puts the
# prompt into a file, and finds the id and the folder of this prompt.
#
# ASK_PROMPT, ASK_PROMPT_FILE, ASK_ID, ASK_FOLDER, ASK_COMMENT, ASK_TOKEN: inputs
# shellcheck source=scripts/action/common.sh
. "$(dirname "$0")/common.sh"
needs jq

folder=${ASK_FOLDER:-.}
[ -d "$folder" ] || fail 78 "working-directory: there is no folder $folder: check the repository out before"
folder=$(cd "$folder" && pwd -P)

if [ -z "${ANTHROPIC_API_KEY:-}${ANTHROPIC_AUTH_TOKEN:-}${CLAUDE_CODE_OAUTH_TOKEN:-}${CLAUDE_CODE_USE_BEDROCK:-}${CLAUDE_CODE_USE_VERTEX:-}" ] &&
	[ ! -e "${CLAUDE_CONFIG_DIR:-$HOME/.claude}/.credentials.json" ]; then
	fail 78 'there is no key for the model: set api-key, or ANTHROPIC_API_KEY in the environment; a pull request of a fork is given no secrets'
fi

target=
case ${ASK_COMMENT:-} in
'' | false) ;;
true)
	target=${CI_MERGE_REQUEST_IID:-}
	[ -z "${GITHUB_EVENT_PATH:-}" ] ||
		target=$(jq -r '.pull_request.number // .issue.number // empty | numbers' "$GITHUB_EVENT_PATH") ||
		fail 1 "comment: $GITHUB_EVENT_PATH, which says of what pull request this is, cannot be read: name the number"
	[ -n "$target" ] || echo 'heartbeat: comment: what started this job is no pull request: the reply is not posted'
	;;
*[!0-9]* | 0*) fail 1 'comment: say true, false, or the number of a pull request' ;;
*) target=$ASK_COMMENT ;;
esac
if [ -n "$target" ]; then
	needs curl
	[ -n "${ASK_TOKEN:-}" ] || fail 78 'comment: there is no token to write it with: set token, or leave comment out'
fi

# A file that came with the checkout is no way out of it.
file=${ASK_PROMPT_FILE:-}
if [ -n "$file" ]; then
	if [ ! -f "$file" ] || [ -L "$file" ]; then fail 1 "prompt-file: $file is no file (a link is not followed)"; fi
	at=$(cd "$(dirname "$file")" && pwd -P)
	case $file in
	/*) ;;
	*) case $at/ in "$(pwd -P)"/*) ;; *) fail 1 "prompt-file: $file leads out of this folder: name it by its whole path if you mean that" ;; esac ;;
	esac
	[ "$(wc -c <"$file")" -le 16777216 ] || fail 1 "prompt-file: $file has more than 16 MB: have the agent read it instead"
fi
[ -n "${ASK_PROMPT:-}$file" ] || fail 1 'say what the agent is to do: set prompt, prompt-file or both'

mkdir -p "$ASK_ROOT"
prompt=$(mktemp "$ASK_ROOT/prompt.XXXXXX")
trap 'rm -f "$prompt"' EXIT
{
	# One newline ends it, however the workflow spells it, and as in a file: one prompt is one id.
	[ -z "${ASK_PROMPT:-}" ] || printf '%s\n' "$(printf '%s' "$ASK_PROMPT")"
	[ -z "${ASK_PROMPT:-}" ] || [ -z "$file" ] || echo
	[ -z "$file" ] || head -c 16777216 <"$file"
} >"$prompt"
grep -q '[^[:space:]]' "$prompt" || fail 1 'the prompt is empty: say in prompt or prompt-file what the agent is to do'

id=${ASK_ID:-}
if [ -z "$id" ]; then
	of=$(sum <"$prompt")
	id=$(printf '%.12s' "${ASK_SHA:-none}")-$(printf '%.16s' "$of")
fi
key=$(printf '%s' "$id" | sum | cut -c 1-32)
dir=$ASK_ROOT/$key
mkdir -p "$dir/inbox"
printf '%s' "$id" >"$dir/id"
printf '%s' "$target" >"$dir/target"
mv -f "$prompt" "$dir/prompt.md"
rm -f "$dir/outcome.json" "$dir/reply.json" "$dir/reply.md" "$dir/report.json" # of an earlier step with this id

known=false
[ ! -s "$dir/inbox/inbox.jsonl" ] || known=true
printf '%s' "$dir" >"$ASK_ROOT/newest"
printf '%s' "$id" | output id
printf '%s' "$key" | output key
printf '%s' "$dir" | output dir
printf '%s' "$folder" | output folder
printf '%s' "$known" | output known
