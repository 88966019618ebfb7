#!/bin/sh
# A launcher as heartbeat-rs's README has it for the policy retry: the inbox is never
# truncated, and new work goes behind what is there.
#
# Usage: retry.sh AGENT_DIR CLAUDE PROMPT
set -u
AGENT_DIR=$1 CLAUDE=$2 PROMPT=$3
INBOX=$AGENT_DIR/inbox.jsonl

heartbeat-stop recover --inbox "$INBOX" --on-orphan retry || exit 3
printf '"%s"\n' "$PROMPT" >> "$INBOX"
if (cd "$AGENT_DIR" && sh "$CLAUDE" heartbeat-stop --inbox "$INBOX"); then
	echo 'session ended'
else
	exit 1
fi
