#!/usr/bin/env bash
# Has the prompt worked on, unless its answer is there from a job before, and says what came
# of it: outputs, a summary, and the status of heartbeat ask.
#
# ASK_TOOLS, ASK_CHECK, ASK_MAX_COST, ASK_TIMEOUT, ASK_MODEL: inputs
# ASK_TRUSTED: the folder that the agent works in
# shellcheck source=scripts/action/common.sh
. "$(dirname "$0")/common.sh"
# shellcheck source=scripts/action/report.sh
. "$(dirname "$0")/report.sh"
needs jq
needs heartbeat
inbox=$ASK_DIR/inbox/inbox.jsonl
id=$(cat "$ASK_DIR/id")

# In characters: GitHub takes outputs of 1 MB and counts up to four bytes for each.
most_output=250000
most_log=65536

args=(ask --json --inbox "$inbox" "--id=$id" --file "$ASK_DIR/prompt.md" --project "$ASK_TRUSTED" "--timeout=${ASK_TIMEOUT:-20m}")
[ -z "${ASK_CHECK:-}" ] || args+=("--check=$ASK_CHECK")
[ -z "${ASK_MAX_COST:-}" ] || args+=("--max-cost=$ASK_MAX_COST")
args+=(-- claude)
[ -z "${ASK_MODEL:-}" ] || args+=("--model=$ASK_MODEL")
# A line may have one tool, or several with commas between.
tools=$(printf '%s' "${ASK_TOOLS:-}" | awk 'NF { gsub(/^[ \t]+|[ \t,]+$/, ""); printf "%s%s", sep, $0; sep = "," }')
[ -z "$tools" ] || args+=("--allowedTools=$tools")

state() {
	local file
	for file in inbox.jsonl .results.jsonl .dead-letter.jsonl; do cat "$ASK_DIR/inbox/$file" 2>/dev/null || true; done | sum
}

# What the agent and its tools inherit has no way to set outputs or the environment of later
# steps, and no token that only the comment needs.
run() {
	[ ! -e "$ASK_DIR/client/.claude.json" ] || export CLAUDE_CONFIG_DIR=${CLAUDE_CONFIG_DIR:-$ASK_DIR/client}
	exec 2>&1
	exec env -u GITHUB_OUTPUT -u GITHUB_ENV -u GITHUB_PATH -u GITHUB_STATE -u GITHUB_STEP_SUMMARY -u ASK_TOKEN -u HEARTBEAT_TOKEN \
		heartbeat "${args[@]}" >"$ASK_DIR/outcome.json"
}

before=$(state)
stop_commands
if [ -s "$inbox" ]; then
	# It has come from the cache, and is that of a job before: nothing else puts files there.
	heartbeat recover --adopt --inbox "$inbox" 2>&1 || true # ask says what is wrong with it
fi
run &
pid=$!
trap 'kill -TERM "$pid" 2>/dev/null || true' INT TERM HUP # a job that is cancelled ends its session first
status=0
wait "$pid" || status=$?
while kill -0 "$pid" 2>/dev/null; do # a signal ended the waiting, not what is waited for
	status=0
	wait "$pid" || status=$?
done
trap - INT TERM HUP

# What must not leave the job is not in the reply.
jq '(.result // {}) | (.result // .reply // "") | if type == "string" then . else tojson end
	| reduce (env.ANTHROPIC_API_KEY, env.ANTHROPIC_AUTH_TOKEN, env.CLAUDE_CODE_OAUTH_TOKEN // empty | select(length >= 8)) as $secret
		(.; split($secret) | join("***"))' <"$ASK_DIR/outcome.json" >"$ASK_DIR/reply.json" 2>/dev/null || true
[ -s "$ASK_DIR/reply.json" ] || echo '""' >"$ASK_DIR/reply.json" # there is no outcome
jq -j . <"$ASK_DIR/reply.json" >"$ASK_DIR/reply.md"
beginning "$most_log" | jq -j . | LC_ALL=C tr -d '\000-\010\013-\037\177'
resume_commands

case $(fact .outcome) in
answered) outcome=answered ;;
dead-lettered) outcome=dead-lettered ;;
'timed out') outcome=timed-out ;;
ended) outcome=ended ;;
'') outcome=refused ;; # nothing was sent
*) outcome=no-session ;;
esac
size=$(jq length <"$ASK_DIR/reply.json")
[ "$size" -le "$most_output" ] ||
	echo "heartbeat: the reply has $size characters, more than an output may have: the output is cut, and reply-file has it all"
beginning "$most_output" | jq -j . | output reply
printf '%s' "$ASK_DIR/reply.md" | output reply-file
printf '%s' "$outcome" | output outcome
cost | output cost
fact '.result // .dead_letter | .check | if type == "object" then .status else empty end' | tr -d '\n' | output check
[ "$before" = "$(state)" ] || printf true | output keep
[ ! -s "$ASK_DIR/target" ] || [ "$outcome" = refused ] || printf true | output comment

report "$outcome"
[ -z "${GITHUB_STEP_SUMMARY:-}" ] || jq -r . <"$ASK_DIR/report.json" >>"$GITHUB_STEP_SUMMARY"
[ -n "${GITHUB_OUTPUT:-}" ] || printf 'HEARTBEAT_OUTCOME=%s\nHEARTBEAT_COST=%s\n' "$outcome" "$(cost)" >"$ASK_DIR/outcome.env"
exit "$status"
