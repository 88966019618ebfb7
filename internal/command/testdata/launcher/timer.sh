#!/bin/sh
# A launcher as heartbeat-rs's README has it: timer-triggered, the upstream source
# keeps nothing, so that orphans become dead letters.
#
# Usage: timer.sh AGENT_DIR CLAUDE PROMPT
set -u
AGENT_DIR=$1 CLAUDE=$2 PROMPT=$3
INBOX=$AGENT_DIR/inbox.jsonl

# Step 1: recover any orphan from a prior crashed session BEFORE resetting.
heartbeat-stop recover --inbox "$INBOX" --on-orphan deadletter || exit 3

# Step 2: reset the inbox for a fresh cycle.
# shellcheck disable=SC2188
> "$INBOX"

# Step 3: write new work and launch. A failed session keeps .in-flight.
printf '"%s"\n' "$PROMPT" >> "$INBOX"
if (cd "$AGENT_DIR" && sh "$CLAUDE" heartbeat-stop --inbox "$INBOX" --mode drain); then
	echo 'session ended'
else
	exit 1
fi
